"""Weight-space regression against textbook Gaussian-process regression: mean, covariance, samples."""

from __future__ import annotations

import numpy as np
import pytest
from equivalence.small_problems import gaussian_given, small_prior, some_data, some_theta, textbook_covariance
from sklearn.gaussian_process.kernels import RBF, Matern

from sumgp import ConstrainedGP
from sumgp.numerics.linear_algebra import schur_condition
from sumgp.priors import MultitaskPrior, NoiseModel, TaskLaw, nullspace_basis
from sumgp.solvers.weights import build_features, condition_on_data
from sumgp.strategies.weight_component import Component

F = np.array([[1.0, -2.0, 0.5]])
ASKED = np.array([[-0.3], [0.11], [0.5], [1.4]])


# Directions below 1e-12 of the variance are left out of a smooth kernel's weights: 1e-6 of the prior's sd.
TOLERANCE = {"smooth": 3e-6, "two terms": 3e-6}


def total(x: np.ndarray) -> np.ndarray:
    return np.sin(3.0 * x)


def priors() -> dict[str, MultitaskPrior]:
    x, _ = some_data()
    known = NoiseModel(((0,), (1,), (2,)), np.ones(3), known=0.01 + 0.1 * np.random.default_rng(0).uniform(size=(9, 3)))
    return {
        "plain": small_prior(),
        "smooth": small_prior(kernels=(RBF(0.5),)),
        "two terms": small_prior(kernels=(RBF(0.5), Matern(0.2, nu=1.5))),
        "identity mean": small_prior(mean_shape="identity"),
        "known noise": small_prior(noise=known),
        "unknown and soft columns": small_prior(unknown=np.array([4.0]), soft=np.array([0.09, 0.01])),
        "law": small_prior(law=TaskLaw(F, np.zeros(1), total(x))),
        "soft law": small_prior(law=TaskLaw(F, np.array([0.2]), total(x))),
    }


def textbook(prior: MultitaskPrior, theta: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean (n C,) and covariance (n C, n C) at the asked points, from the joint over data and asked points."""
    points = np.vstack([x, ASKED])
    covariance = textbook_covariance(prior, theta, points, points)
    C = len(covariance) // len(points)
    mean = np.zeros(len(covariance))
    if prior.law is not None:
        sd = prior.law.noise / np.sqrt(1.0 + prior.mean_variance)
        given = schur_condition(prior.Sigmas(theta)[0], F, sd)
        mean = (total(points) @ given.D).ravel()
        covariance = np.kron(prior.unpack(theta).kernels[0](points) + prior.mean_variance, given.covariance)
    seen = np.zeros((len(points), C), dtype=bool)
    seen[: len(x), :3] = ~np.isnan(y)
    H = np.eye(len(covariance))[seen.ravel()]
    noise = np.broadcast_to(prior.noise.variances(theta[prior.noise_slice]), y.shape)[~np.isnan(y)]
    m, V = gaussian_given(mean, covariance, H, y[~np.isnan(y)], np.diag(noise))
    asked = slice(len(x) * C, None)
    return m[asked], V[asked, asked]


def component(prior: MultitaskPrior, theta: np.ndarray, x: np.ndarray, y: np.ndarray) -> Component:
    features = build_features(prior, theta, x, total)
    return Component(condition_on_data(prior, theta, features, x, x, y), theta, np.zeros(3), 3)


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("name", priors())
def test_mean_and_covariance_equal_textbook_regression(name: str, missing: float) -> None:
    prior = priors()[name]
    x, y = some_data(missing=missing)
    theta = some_theta(prior)
    fitted = component(prior, theta, x, y)
    mean, local = fitted.marginals(ASKED, ASKED)
    joint = fitted.joint_covariance(ASKED, ASKED)
    expected_mean, expected = textbook(prior, theta, x, y)
    n, C = mean.shape
    tolerance = TOLERANCE.get(name, 1e-8)
    np.testing.assert_allclose(mean.ravel(), expected_mean, atol=tolerance)
    np.testing.assert_allclose(joint, expected, atol=tolerance)
    blocks = expected.reshape(n, C, n, C)[np.arange(n), :, np.arange(n), :]
    np.testing.assert_allclose(local, blocks, atol=tolerance)


@pytest.mark.parametrize("name", ["plain", "law", "two terms"])
def test_joint_samples_have_the_moments_of_the_posterior(name: str) -> None:
    prior = priors()[name]
    x, y = some_data(missing=0.3)
    theta = some_theta(prior)
    count = 20000
    draws = component(prior, theta, x, y).sample(ASKED, ASKED, count, np.random.default_rng(0)).reshape(count, -1)
    mean, covariance = textbook(prior, theta, x, y)
    sd = np.sqrt(np.diagonal(covariance))
    np.testing.assert_allclose((draws.mean(axis=0) - mean) / sd, 0.0, atol=5.0 / np.sqrt(count))
    np.testing.assert_allclose(np.cov(draws.T) / np.outer(sd, sd), covariance / np.outer(sd, sd), atol=7.0 / np.sqrt(count))


def test_a_smooth_kernel_needs_few_weights() -> None:
    prior = small_prior(T=2, kernels=(RBF(0.5),))
    x = np.linspace(0, 1, 80)[:, None]
    features = build_features(prior, prior.start(), x)
    weights = features.design(x)[0].shape[2]
    assert weights < 2 * 25
    phi = features.terms[0].phi(x)
    K = prior.kernels[0](x) + prior.mean_variance
    np.testing.assert_allclose(phi @ phi.T, K, atol=1e-9)


@pytest.mark.parametrize(("noise", "left"), [(0.1, 1e-10), (1e-4, 1e-12)])
def test_many_features_leave_open_what_noise_hides(noise: float, left: float) -> None:
    """At their points the kernel is missed by no more than that share of its variance, and by more than a tenth of it."""
    prior = small_prior(2, kernels=(RBF(0.1),))
    theta = prior.start()
    theta[prior.noise_slice] = np.log(noise)
    x = np.linspace(0.0, 1.0, 400)[:, None]
    term = build_features(prior, theta, x).terms[0]
    open_share = np.max(term.left_over(x, term.phi(x)))
    assert 0.1 * left < open_share < 1.5 * left


@pytest.mark.parametrize("missing", [False, True])
def test_closed_data_equal_regression_on_independent_entries(missing: bool) -> None:
    """Noise within the null space: leaving out an entry that the law fixes changes nothing."""
    x, y = some_data()
    y = y - (y @ F.T - total(x)) @ F / np.sum(F**2)
    if missing:
        y[2, 0] = y[4, 1:] = np.nan
    noise = NoiseModel(((0,), (1,), (2,)), np.ones(3), closed=True)
    prior = small_prior(noise=noise, law=TaskLaw(F, np.zeros(1), total(x)))
    theta = some_theta(prior)
    mean, local = component(prior, theta, x, y).marginals(ASKED, ASKED)
    given = schur_condition(prior.Sigmas(theta)[0], F, np.zeros(1))
    points = np.vstack([x, ASKED])
    covariance = np.kron(prior.unpack(theta).kernels[0](points) + prior.mean_variance, given.covariance)
    seen = ~np.isnan(y)
    seen[seen.all(axis=1), 0] = False
    index = np.flatnonzero(seen.ravel())
    H = np.eye(len(covariance))[index]
    basis = nullspace_basis(F)
    block = basis @ basis.T @ np.diag(noise.variances(theta[prior.noise_slice])) @ basis @ basis.T
    R = np.kron(np.eye(len(x)), block)[np.ix_(index, index)]
    m, V = gaussian_given((total(points) @ given.D).ravel(), covariance, H, y.ravel()[index], R)
    np.testing.assert_allclose(mean.ravel(), m[y.size :], atol=1e-7)
    V = V[y.size :, y.size :].reshape(4, 3, 4, 3)[np.arange(4), :, np.arange(4), :]
    np.testing.assert_allclose(local, V, atol=1e-7)


def test_outputs_that_a_law_determines_have_no_weights() -> None:
    """One output and one linear law: nothing is left to the kernel."""
    x = np.linspace(0.0, 1.0, 5)
    gp = ConstrainedGP("2*a = 6", outputs=["a"], uncertainty="plug-in", restarts=0).fit(
        x, 3.0 + 0.1 * np.cos(9.0 * x)[:, None]
    )
    posterior = gp.posterior(np.linspace(0.0, 1.0, 3))
    np.testing.assert_allclose(posterior.mean, 3.0, rtol=1e-12)
    np.testing.assert_allclose(posterior.std, 0.0, atol=1e-6)
