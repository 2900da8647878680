"""Outputs that are derivatives of latent functions: evidence and features against covariances written out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared, Matern, RationalQuadratic

from sumgp.laws import find_potential, latent_map
from sumgp.priors import MultitaskPrior, NoiseModel, OneOutputTask, derivative_gram, hyper_priors, reordered
from sumgp.solvers import LatentEvidence, build_features, condition_on_data

GENERATOR = np.random.default_rng(3)


def motion() -> tuple[np.ndarray, np.ndarray]:
    """d(z, t) = 0.7 v."""
    return np.array([[0], [1]]), np.array([[[0.0, 1.0], [-0.7, 0.0]]])


def flow() -> tuple[np.ndarray, np.ndarray]:
    """d(u, x) + d(v, y) + d(w, z) = 0: three latent functions."""
    return np.eye(3, dtype=int), np.eye(3)[None]


def stress() -> tuple[np.ndarray, np.ndarray]:
    return np.eye(2, dtype=int), np.array([[[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]]])


CASES = {
    "motion, RBF": (motion, RBF(0.8)),
    "motion, periodic": (motion, ExpSineSquared(1.1, 2.0) * RBF(1.5)),
    "motion, Matern 3/2": (motion, Matern(0.9, nu=1.5)),
    "flow, RBF for each input": (flow, RBF([0.8, 1.2, 0.6])),
    "stress, RationalQuadratic": (stress, RationalQuadratic(0.9, 2.0)),
    "stress, Matern 5/2": (stress, Matern(1.1, nu=2.5)),
}


def problem(name: str, n: int = 9) -> tuple[MultitaskPrior, np.ndarray, np.ndarray, np.ndarray]:
    """Prior, inputs, outputs with gaps, and hyperparameters."""
    law, kernel = CASES[name]
    exponents, R = law()
    D, T = exponents.shape[1], R.shape[1]
    x = GENERATOR.uniform(-1.0, 1.0, (n, D))
    y = GENERATOR.normal(size=(n, T))
    y[GENERATOR.uniform(size=y.shape) < 0.25] = np.nan
    potential = find_potential(exponents, R)
    assert potential is not None
    K = potential.n_latent
    prior = MultitaskPrior(
        kernels=(kernel,) * K,
        kernel_priors=(tuple(hyper_priors(kernel, np.ones(D))),) * K,
        tasks=tuple(OneOutputTask(K, k) for k in range(K)),
        noise=NoiseModel(tuple((t,) for t in range(T)), np.ones(T)),
        n_outputs=T,
        mean_shape="identity",
        latent=latent_map(potential, GENERATOR.normal(size=T), x, np.ones(T)),
    )
    return prior, x, y, prior.start() + 0.2 * GENERATOR.normal(size=prior.n_parameters)


def written_out(prior: MultitaskPrior, theta: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(nT, nT) covariance of the outputs, point by point, by a loop over all derivatives."""
    hyper, latent = prior.unpack(theta), prior.latent
    assert latent is not None
    G, exponents = latent.potential.coefficients, latent.potential.exponents
    n, T = len(x), prior.n_outputs
    total = np.zeros((n, T, n, T))
    for k, kernel in enumerate(hyper.kernels):
        for a, order_a in enumerate(exponents):
            for b, order_b in enumerate(exponents):
                gram = hyper.Sigmas[k][k, k] * derivative_gram(kernel, x, order_a, x, order_b)
                total += np.einsum("t,u,ij->itju", G[:, k, a], G[:, k, b], gram)
    polynomials = latent.polynomials(x).reshape(n * T, -1)
    return total.reshape(n * T, n * T) + prior.mean_variance * polynomials @ polynomials.T


@pytest.mark.parametrize("name", CASES)
def test_evidence_is_the_density_of_the_data_and_its_gradient_the_difference(name):
    prior, x, y, theta = problem(name)
    evidence = LatentEvidence(prior, x, y)
    value, gradient = evidence(theta)
    seen = ~np.isnan(y).ravel()
    noise = np.tile(prior.unpack(theta).noise, len(x))
    covariance = (written_out(prior, theta, x) + np.diag(noise))[np.ix_(seen, seen)]
    residual = (y - prior.latent.offset).ravel()[seen]
    assert value == pytest.approx(multivariate_normal(cov=covariance).logpdf(residual), rel=1e-9)
    assert evidence.value(theta) == pytest.approx(value, rel=1e-13)
    step = 1e-5
    for p in range(len(theta)):
        shift = step * np.eye(len(theta))[p]
        slope = (evidence.value(theta + shift) - evidence.value(theta - shift)) / (2.0 * step)
        assert gradient[p] == pytest.approx(slope, rel=1e-5, abs=1e-5), p


@pytest.mark.parametrize("name", CASES)
def test_features_and_what_they_leave_open_are_the_covariance(name):
    prior, x, _, theta = problem(name)
    features = build_features(prior, theta, x)
    new = np.vstack([x[:3], GENERATOR.uniform(-1.5, 1.5, (5, x.shape[1]))])
    G, phis = features.design(new)
    n, T, _ = G.shape
    flat = G.reshape(n * T, -1)
    joint = flat @ flat.T
    for K, B in features.opened(new, phis):
        joint += np.einsum("ij,itq,juq->itju", K, B, B).reshape(n * T, n * T)
    exact = written_out(prior, theta, new)
    assert np.allclose(joint, exact, atol=1e-9 * np.abs(exact).max())
    local = G @ G.transpose(0, 2, 1) + features.left_over(new, phis)
    assert np.allclose(local, exact.reshape(n, T, n, T)[range(n), :, range(n)], atol=1e-9 * np.abs(exact).max())
    assert np.allclose(features.left_over(new, phis)[:3], 0.0, atol=1e-9 * np.abs(exact).max())


@pytest.mark.parametrize("name", ["motion, RBF", "flow, RBF for each input", "stress, RationalQuadratic"])
def test_every_weight_obeys_the_law(name):
    """The law's residual of each column of the design, by differences."""
    prior, x, y, theta = problem(name)
    exponents, R = CASES[name][0]()
    features = build_features(prior, theta, x)
    new, step = GENERATOR.uniform(-1.0, 1.0, (4, x.shape[1])), 1e-3
    total = 0.0
    for m, exponent in enumerate(exponents):
        part = features.design(new)[0]
        if exponent.any():
            shifts = [c * step * exponent for c in (1.0, -1.0, 2.0, -2.0)]
            a, b, c, d = (features.design(new + s)[0] for s in shifts)
            part = (8.0 * (a - b) - (c - d)) / (12.0 * step)
        total = total + np.einsum("rt,ntw->nrw", R[:, :, m], part)
    size = np.abs(features.design(new)[0]).max()
    assert np.abs(total).max() < 1e-6 * size
    posterior = condition_on_data(prior, theta, features, x, x, y)
    assert np.all(np.isfinite(posterior.mean))


def test_the_order_of_outputs_changes_nothing():
    prior, x, y, theta = problem("stress, RationalQuadratic")
    order = np.array([2, 0, 1])
    turned = reordered(prior, order)
    plain = LatentEvidence(prior, x, y)(theta)
    other = LatentEvidence(turned.prior, x, y[:, order])(turned.there(theta))
    assert other[0] == pytest.approx(plain[0], rel=1e-12)
    assert np.allclose(turned.back(other[1]), plain[1], rtol=1e-8, atol=1e-8)
