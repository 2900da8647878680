"""Outputs that are derivatives of latent functions: the state-space form against dense algebra with the same kernel."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from equivalence.small_problems import assert_gradient
from sklearn.gaussian_process.kernels import Matern

from sumgp.errors import DataError
from sumgp.laws import FormulaConstraint, latent_map, split_law
from sumgp.priors import KernelDerivatives, MultitaskPrior, NoiseModel, OneOutputTask, hyper_priors
from sumgp.solvers.latent_evidence import LatentEvidence
from sumgp.solvers.markov import MarkovPosterior, observed_series, predict, sample, smooth, state_space_prior
from sumgp.solvers.markov.evidence import MarkovObjectiveEvidence

LAWS = {
    "motion": ("d(z, t) = v", ["z", "v"]),
    "chain": (["d(z, t) = v", "d(v, t) = a"], ["z", "v", "a"]),
    "two latent functions": ("d(u, t) + w = q", ["u", "w", "q"]),
}
CASES = [(name, nu) for name in LAWS for nu in (2.5, 3.5, 4.5)] + [("motion", 1.5)]
NEW = np.array([-1.3, -0.51, 0.02, 0.4, 0.999, 1.2])


def data(n_outputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Unordered times, one of them three times; a fifth of the entries missing."""
    generator = np.random.default_rng(5)
    x = generator.uniform(-1.0, 1.0, (30, 1))
    x[3:5] = x[2]
    y = generator.normal(size=(30, n_outputs))
    y[generator.random(y.shape) < 0.2] = np.nan
    return x, y


def latent_prior(name: str, nu: float) -> tuple[MultitaskPrior, np.ndarray]:
    """A prior and hyperparameters of it."""
    law, outputs = LAWS[name]
    split = split_law(FormulaConstraint(law).bind(outputs, ["t"]))
    assert split is not None
    T, generator = len(outputs), np.random.default_rng(1)
    potential = split.potential.scaled(generator.uniform(0.5, 2.0, T), np.ones(1))
    latent = latent_map(potential, 0.1 * generator.normal(size=T), data(T)[0], np.ones(T))
    K = latent.n_latent
    kernels = tuple(Matern(0.3 + 0.1 * k, nu=nu) for k in range(K))
    prior = MultitaskPrior(
        kernels=kernels,
        kernel_priors=tuple(tuple(hyper_priors(k, np.ones(1))) for k in kernels),
        tasks=tuple(OneOutputTask(K, k) for k in range(K)),
        noise=NoiseModel(tuple((t,) for t in range(T)), np.ones(T)),
        n_outputs=T,
        mean_shape="identity",
        latent=latent,
    )
    return prior, prior.start() + 0.2 * generator.normal(size=prior.n_parameters)


def covariance(
    prior: MultitaskPrior, theta: np.ndarray, x: np.ndarray, z: np.ndarray, orders: tuple[int, int]
) -> np.ndarray:
    """(n T, m T) between derivatives of the outputs, point by point."""
    assert prior.latent is not None
    P = prior.latent.polynomials(x, (orders[0],)).reshape(len(x) * prior.n_outputs, -1)
    Q = prior.latent.polynomials(z, (orders[1],)).reshape(len(z) * prior.n_outputs, -1)
    total = prior.mean_variance * P @ Q.T
    for kernel, task, Sigma in zip(prior.unpack(theta).kernels, prior.tasks, prior.Sigmas(theta), strict=True):
        used, W = prior.latent.orders(task.speaks_of)
        table = KernelDerivatives(kernel, x, z)
        K = np.array([[table.value((a + orders[0],), (b + orders[1],)) for (b,) in used] for (a,) in used])
        size = Sigma[task.speaks_of, task.speaks_of]
        total = total + size * np.einsum("ta,abij,ub->itju", W, K, W).reshape(total.shape)
    return total


def dense(prior: MultitaskPrior, theta: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Means (m, T) and covariance (m T, m T) of the outputs' derivatives at NEW."""
    x, y = data(prior.n_outputs)
    seen = ~np.isnan(y).ravel()
    noise = np.tile(prior.unpack(theta).noise, len(x))
    C = (covariance(prior, theta, x, x, (0, 0)) + np.diag(noise))[np.ix_(seen, seen)]
    cross = covariance(prior, theta, NEW[:, None], x, (order, 0))[:, seen]
    offset = prior.latent.offset  # type: ignore[union-attr]
    mean = cross @ np.linalg.solve(C, (y - offset).ravel()[seen])
    joint = covariance(prior, theta, NEW[:, None], NEW[:, None], (order, order)) - cross @ np.linalg.solve(C, cross.T)
    return mean.reshape(len(NEW), -1) + (offset if order == 0 else 0.0), joint


def markov(prior: MultitaskPrior, theta: np.ndarray) -> MarkovPosterior:
    x, y = data(prior.n_outputs)
    return smooth(state_space_prior(prior, theta), observed_series(prior, theta, x, y))


@pytest.mark.parametrize(("name", "nu"), CASES)
def test_evidence_and_gradient_equal_the_dense_ones(name: str, nu: float) -> None:
    prior, theta = latent_prior(name, nu)
    x, y = data(prior.n_outputs)
    fast, fast_gradient = MarkovObjectiveEvidence(prior, x, y)(theta)
    slow, slow_gradient = LatentEvidence(prior, x, y)(theta)
    assert fast == pytest.approx(slow, rel=1e-10)
    np.testing.assert_allclose(fast_gradient, slow_gradient, rtol=0, atol=1e-9 * np.max(np.abs(slow_gradient)))
    assert_gradient(MarkovObjectiveEvidence(prior, x, y), theta)


@pytest.mark.parametrize(
    ("name", "nu", "order"), [(*case, 0) for case in CASES] + [("motion", 2.5, 1), ("chain", 3.5, 1), ("motion", 4.5, 3)]
)
def test_posterior_equals_dense_algebra(name: str, nu: float, order: int) -> None:
    prior, theta = latent_prior(name, nu)
    mean, joint = dense(prior, theta, order)
    found, spread = predict(markov(prior, theta), NEW, order)
    np.testing.assert_allclose(found, mean, rtol=0, atol=1e-8 * np.max(np.abs(mean)))
    m, T = mean.shape
    blocks = joint.reshape(m, T, m, T)[np.arange(m), :, np.arange(m), :]
    np.testing.assert_allclose(spread, blocks, rtol=0, atol=1e-8 * np.max(np.abs(blocks)))


@pytest.mark.parametrize("name", LAWS)
def test_draws_obey_the_law_and_spread_as_the_covariance_says(name: str) -> None:
    """The same numbers drawn with and without differentiation: outputs and their derivatives of the same paths."""
    prior, theta = latent_prior(name, 4.5)
    posterior = markov(prior, theta)
    draws, slopes = (sample(posterior, NEW, 400, np.random.default_rng(0), order) for order in (0, 1))
    draws = draws - prior.latent.offset  # type: ignore[union-attr]
    G = prior.latent.potential.coefficients  # type: ignore[union-attr]
    exponents = prior.latent.potential.exponents[:, 0]  # type: ignore[union-attr]
    if name != "two latent functions":
        for t in range(prior.n_outputs - 1):
            factor = G[t + 1, 0, exponents == t + 1][0] / G[t, 0, exponents == t][0]
            assert np.abs(draws[:, :, t + 1] - factor * slopes[:, :, t]).max() < 1e-10 * np.abs(draws).max()
    mean, joint = dense(prior, theta, 0)
    size = np.sqrt(np.diagonal(joint))
    z = (draws + prior.latent.offset - mean).reshape(400, -1) / size  # type: ignore[union-attr]
    # 400 draws: means to 1/20, variances to a factor of 1 +- .07, four standard deviations of each.
    assert np.abs(z.mean(axis=0)).max() < 0.2
    assert np.abs(z.var(axis=0) - 1.0).max() < 0.3
    expected = joint / np.outer(size, size)
    assert np.abs(np.corrcoef(z.T) - expected).max() < 0.2


def test_columns_of_a_law_beside_the_outputs() -> None:
    """Unknown constants and errors of soft laws are columns after the outputs, with the variances they were given."""
    prior, theta = latent_prior("motion", 3.5)
    wide = replace(prior, unknown=np.array([9.0]), soft=np.array([0.3]))
    x, y = data(2)
    assert MarkovObjectiveEvidence(wide, x, y).value(theta) == pytest.approx(
        MarkovObjectiveEvidence(prior, x, y).value(theta), rel=1e-12
    )
    mean, spread = predict(markov(wide, theta), NEW)
    plain_mean, plain_spread = predict(markov(prior, theta), NEW)
    np.testing.assert_allclose(mean[:, :2], plain_mean, atol=1e-12)
    np.testing.assert_allclose(spread[:, :2, :2], plain_spread, atol=1e-12)
    np.testing.assert_allclose(spread[:, 2:, 2:], np.tile(np.diag([9.0, 0.3]), (len(NEW), 1, 1)), atol=1e-12)


def test_derivatives_that_functions_do_not_have_are_refused() -> None:
    prior, theta = latent_prior("motion", 2.5)
    with pytest.raises(DataError, match=r"3 derivative.*Matern\(nu=3.5\)"):
        predict(markov(prior, theta), NEW, 2)


def test_time_grows_with_the_rows() -> None:
    """Evidence with its gradient at 2,000 and at 20,000 rows."""
    prior, theta = latent_prior("motion", 3.5)
    seconds = []
    for n in (2000, 20000):
        x = np.linspace(-1.0, 1.0, n)[:, None]
        evidence = MarkovObjectiveEvidence(prior, x, np.column_stack([np.sin(9.0 * x), np.cos(9.0 * x)]))
        tries = []
        for _ in range(3):
            start = time.process_time()
            evidence(theta)
            tries.append(time.process_time() - start)
        seconds.append(min(tries))
    assert seconds[1] < 13.0 * seconds[0]
