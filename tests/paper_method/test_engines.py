"""Engines: exact where h is the identity, gradients against differences, evidence against brute-force integration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, optimize, stats
from support.engine_problems import (
    Problem,
    anchored,
    crossing_square,
    far_square,
    law,
    logarithm,
    mixed,
    outlier,
    plain,
    sine,
    stacked,
)

from sumgp.paper_method.engines import Engine, ExpectationPropagation, Gaussian, Laplace, MomentMatched, Variational
from sumgp.paper_method.likelihoods import GaussianLikelihood, LinkedLikelihood, NoncentralSquare, StackedLikelihood
from sumgp.transforms import Identity, Square

ENGINES: list[Engine] = [Gaussian(), MomentMatched(), Laplace(), Variational(), ExpectationPropagation()]
ITERATIVE: list[Engine] = [Laplace(), Variational(), ExpectationPropagation()]
PROBLEMS = [far_square(), crossing_square(), logarithm(), sine(), law(), mixed()]


def name(thing: object) -> str:
    return thing.name if isinstance(thing, Problem) else type(thing).__name__


@pytest.mark.parametrize("singular", [False, True])
@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("engine", ENGINES, ids=name)
def test_identity_is_exact_regression(engine: Engine, linked: bool, singular: bool) -> None:
    problem = plain(singular)
    m, K = problem.prior()
    likelihood = problem.likelihood
    y, noise = likelihood.y, likelihood.noise
    if linked:
        likelihood = LinkedLikelihood(y, noise, Identity(), y)
    C = K + np.diag(noise**2)
    weights = np.linalg.solve(C, y - m)
    result = engine.infer(m, K, likelihood)
    np.testing.assert_allclose(result.mean, m + K @ weights, atol=1e-8)
    np.testing.assert_allclose(result.cov, K - K @ np.linalg.solve(C, K), atol=1e-8)
    # Linked moments carry a variance floor of 1e-12, which moves the log density by less than 1e-8.
    assert result.evidence == pytest.approx(stats.multivariate_normal.logpdf(y, m, C), abs=1e-8)
    gradient = engine.gradient(m, K, likelihood, result)
    inverse = np.linalg.inv(C)
    np.testing.assert_allclose(gradient.prior_mean, weights, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(gradient.prior_cov, 0.5 * (np.outer(weights, weights) - inverse), rtol=1e-6, atol=1e-5)
    by_noise = (weights**2 - np.diag(inverse)) * noise**2
    np.testing.assert_allclose(gradient.log_noise, by_noise, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(gradient.prior_cov, gradient.prior_cov.T)


def check_gradient(engine: Engine, problem: Problem, relative: float) -> None:
    """Fourth-order differences in amplitude, lengthscale, mean and some observations' noise."""
    m, K = problem.prior()
    result = engine.infer(m, K, problem.likelihood)
    assert result.status == "converged"
    gradient = engine.gradient(m, K, problem.likelihood, result)
    slopes = problem.slopes()

    def evidence(step: float, which: str) -> float:
        if which.startswith("noise"):
            factor = np.ones(len(m))
            factor[int(which[5:])] = np.exp(step)
            return engine.infer(m, K, problem.likelihood.with_noise(problem.likelihood.noise * factor), result).evidence
        return engine.infer(*problem.prior(**{which: step}), problem.likelihood, result).evidence

    exact = {key: float(np.sum(gradient.prior_cov * slopes[key])) for key in ("amplitude", "lengthscale")}
    exact["shift"] = float(gradient.prior_mean @ slopes["shift"])
    exact.update({f"noise{i}": float(gradient.log_noise[i]) for i in (0, 2, len(m) - 1)})
    size = float(np.max(np.abs(gradient.log_noise)))
    for which, value in exact.items():
        e = 2e-4
        near, far = evidence(e, which) - evidence(-e, which), evidence(2 * e, which) - evidence(-2 * e, which)
        difference = (8.0 * near - far) / (12.0 * e)
        assert value == pytest.approx(difference, rel=relative, abs=0.1 * relative * size), which


@pytest.mark.parametrize("problem", PROBLEMS, ids=name)
@pytest.mark.parametrize("engine", ENGINES, ids=name)
def test_gradient_equals_differences(engine: Engine, problem: Problem) -> None:
    check_gradient(engine, problem, relative=1e-5)


@pytest.mark.parametrize("engine", ENGINES, ids=name)
def test_gradient_holds_beside_very_precise_gaussian_terms(engine: Engine) -> None:
    """Virtual measurements: sds of 1e-4 of the prior's own among ordinary noise."""
    check_gradient(engine, anchored(), relative=1e-5)


@pytest.mark.parametrize("engine", ITERATIVE, ids=name)
@pytest.mark.parametrize("squares", [False, True])
def test_gaussian_terms_as_exact_sites_give_what_iterating_on_them_gives(engine: Engine, squares: bool) -> None:
    """The same terms by way of an identity link, which the engines take for any other: sites, posterior, evidence."""
    problem = mixed()
    m, K = problem.prior()
    assert isinstance(problem.likelihood, StackedLikelihood)
    *others, last = problem.likelihood.parts
    assert isinstance(last, GaussianLikelihood)
    beside = [NoncentralSquare(p.y, p.noise, p.reference) for p in others] if squares else others
    exact = stacked([*beside, last])
    iterated = stacked([*beside, LinkedLikelihood(last.y, last.noise, Identity(), last.y)])
    assert len(exact.without_gaussian()[0]) == 9
    assert len(iterated.without_gaussian()[0]) == 12
    one, other = engine.infer(m, K, exact), engine.infer(m, K, iterated)
    assert one.evidence == pytest.approx(other.evidence, abs=1e-7)
    np.testing.assert_allclose(one.mean, other.mean, atol=1e-7)
    np.testing.assert_allclose(one.cov, other.cov, atol=1e-7)
    gradients = engine.gradient(m, K, exact, one), engine.gradient(m, K, iterated, other)
    np.testing.assert_allclose(gradients[0].log_noise, gradients[1].log_noise, atol=1e-5)
    np.testing.assert_allclose(gradients[0].prior_cov, gradients[1].prior_cov, atol=1e-5)


@pytest.mark.parametrize("engine", [MomentMatched(), Laplace(), Variational()], ids=name)
def test_gradient_holds_with_a_site_on_its_floor(engine: Engine) -> None:
    """Also where the likelihood is convex around an outlier and the variational precision cannot go below zero."""
    problem = outlier()
    floored = np.flatnonzero(Variational().infer(*problem.prior(), problem.likelihood).variances > 1e6)
    assert floored.tolist() == [2]
    check_gradient(engine, problem, relative=1e-5)


@pytest.mark.parametrize("problem", PROBLEMS, ids=name)
@pytest.mark.parametrize("engine", ENGINES, ids=name)
def test_posterior_is_regression_on_the_sites(engine: Engine, problem: Problem) -> None:
    """The sites alone give the posterior back, through an ordinary inverse."""
    m, K = problem.prior()
    result = engine.infer(m, K, problem.likelihood)
    used = np.isfinite(result.variances)
    C = K[np.ix_(used, used)] + np.diag(result.variances[used])
    gain = np.linalg.solve(C, K[used]).T
    np.testing.assert_allclose(result.mean, m + gain @ (result.targets - m)[used], atol=1e-8)
    np.testing.assert_allclose(result.cov, K - gain @ K[used], atol=1e-8)
    assert np.array_equal(used, problem.likelihood.active)


@pytest.mark.parametrize("engine", ITERATIVE, ids=name)
def test_law_survives_inference(engine: Engine) -> None:
    """A prior conditioned on u_1 + u_2 = 1.6 keeps it in mean and covariance."""
    problem = law()
    m, K = problem.prior()
    result = engine.infer(m, K, problem.likelihood)
    np.testing.assert_allclose(result.mean[:4] + result.mean[4:], 1.6, atol=1e-12)
    assert np.max(np.abs(result.cov[:4] + result.cov[4:])) < 1e-12


@pytest.mark.parametrize("u_mean", [0.05, 0.8])
@pytest.mark.parametrize("kind", ["noncentral", "linked"])
def test_evidence_of_one_observation(kind: str, u_mean: float) -> None:
    """With one term EP is exact, the ELBO lies below by a KL divergence, Laplace is near."""
    y, sd = np.array([0.7]), np.array([0.2])
    likelihood = NoncentralSquare(y, sd, y) if kind == "noncentral" else LinkedLikelihood(y, sd, Square(), y)
    m, K = np.array([u_mean]), np.array([[0.3]])

    def integrand(u: float) -> float:
        log_density = likelihood.terms(np.array([u])).log_density[0]
        return float(np.exp(log_density) * stats.norm.pdf(u, u_mean, np.sqrt(0.3)))

    total, _ = integrate.quad(integrand, -4.0, 6.0, points=[0.0, 0.5], limit=500, epsabs=1e-13, epsrel=1e-12)
    exact = np.log(total)
    energy = ExpectationPropagation().infer(m, K, likelihood).evidence
    bound = Variational().infer(m, K, likelihood).evidence
    assert energy == pytest.approx(exact, abs=1e-7)
    assert exact - 0.1 < bound < exact
    assert Laplace().infer(m, K, likelihood).evidence == pytest.approx(exact, abs=0.2)


def test_variational_optimum_equals_direct_maximisation() -> None:
    """Three latent values, ELBO over mean and Cholesky factor (nine numbers) by BFGS, integrals on a fine grid."""
    problem = crossing_square()
    m, K = (part[:3] if part.ndim == 1 else part[:3, :3] for part in problem.prior())
    full = problem.likelihood
    likelihood = LinkedLikelihood(full.y[:3], full.noise[:3], Square(), full.reference[:3])
    lower = np.tril_indices(3)
    inverse, log_det = np.linalg.inv(K), np.linalg.slogdet(K)[1]
    grid = np.linspace(-8.0, 8.0, 4001)
    weights = stats.norm.pdf(grid) * (grid[1] - grid[0])

    def negative_bound(parameters: np.ndarray) -> float:
        L = np.zeros((3, 3))
        L[lower] = parameters[3:]
        S = L @ L.T
        u = parameters[:3, None] + np.sqrt(np.diag(S))[:, None] * grid
        expected = np.sum(likelihood.terms(u).log_density @ weights)
        gap = parameters[:3] - m
        divergence = 0.5 * (np.trace(inverse @ S) - 3 + gap @ inverse @ gap + log_det - np.linalg.slogdet(S)[1])
        return float(divergence - expected)

    result = Variational().infer(m, K, likelihood)
    start = np.concatenate([m, np.linalg.cholesky(K)[lower]])
    best = optimize.minimize(negative_bound, start, method="BFGS", options={"gtol": 1e-6})
    assert result.evidence == pytest.approx(-best.fun, abs=1e-5)
    np.testing.assert_allclose(result.mean, best.x[:3], atol=2e-3)


@pytest.mark.parametrize("problem", PROBLEMS, ids=name)
def test_laplace_mode_equals_direct_maximisation(problem: Problem) -> None:
    m, K = problem.prior()
    values, vectors = np.linalg.eigh(K)
    keep = values > 1e-12 * values[-1]
    root = vectors[:, keep] * np.sqrt(values[keep])

    def negative(w: np.ndarray) -> tuple[float, np.ndarray]:
        terms = problem.likelihood.terms(m + root @ w)
        return 0.5 * w @ w - np.sum(terms.log_density), w - root.T @ terms.first

    result = Laplace().infer(m, K, problem.likelihood)
    start = np.linalg.lstsq(root, result.mean - m, rcond=None)[0] + 0.05
    best = optimize.minimize(negative, start, jac=True, method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(result.mean, m + root @ best.x, atol=1e-5)


@pytest.mark.parametrize("engine", ITERATIVE, ids=name)
def test_warm_start_gives_the_same_in_fewer_steps(engine: Engine) -> None:
    problem = crossing_square()
    near = engine.infer(*problem.prior(amplitude=0.01), problem.likelihood)
    cold = engine.infer(*problem.prior(), problem.likelihood)
    warm = engine.infer(*problem.prior(), problem.likelihood, near)
    assert warm.evidence == pytest.approx(cold.evidence, abs=1e-9)
    np.testing.assert_allclose(warm.mean, cold.mean, atol=1e-6)
    assert warm.n_steps < cold.n_steps


@pytest.mark.parametrize("engine", ENGINES, ids=name)
def test_latent_value_known_beforehand_stays(engine: Engine) -> None:
    """A zero row of the prior covariance: a value the law pins down."""
    problem = crossing_square()
    m, K = problem.prior()
    K[2], K[:, 2] = 0.0, 0.0
    result = engine.infer(m, K, problem.likelihood)
    assert result.status == "converged"
    assert result.mean[2] == pytest.approx(m[2], abs=1e-12)
    assert np.all(np.isfinite(engine.gradient(m, K, problem.likelihood, result).prior_cov))
