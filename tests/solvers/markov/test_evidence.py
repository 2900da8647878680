"""The gradient of the Markov evidence against finite differences of dense evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from support.dense_markov import Problem, dense_posterior, random_problem

from sumgp.solvers.markov import MarkovPrior, MaternTerm, evidence, markov_prior, smooth, time_series

CASES = [
    (1, 2, (2.5,), True),
    (30, 2, (2.5,), False),
    (30, 2, (1.5, 0.5), True),
    (40, 3, (2.5, 1.5), True),
]


def slope(value: Callable[[float], float], h: float = 1e-3) -> float:
    """Fourth-order difference quotient at 0."""
    return (8.0 * (value(h) - value(-h)) - (value(2.0 * h) - value(-2.0 * h))) / (12.0 * h)


def dense_value(problem: Problem, prior: MarkovPrior, variance: np.ndarray) -> float:
    return dense_posterior(prior, problem.t, problem.y, variance, problem.t[:1]).log_evidence


def with_term(prior: MarkovPrior, r: int, term: MaternTerm) -> MarkovPrior:
    return replace(prior, terms=(*prior.terms[:r], term, *prior.terms[r + 1 :]))


@pytest.mark.parametrize(("N", "T", "nus", "mean"), CASES)
def test_gradient(N: int, T: int, nus: tuple[float, ...], mean: bool, rng: np.random.Generator) -> None:
    problem = random_problem(rng, N, T, nus, mean)
    prior, variance = problem.prior, problem.variance
    found = evidence(prior, time_series(problem.t, problem.y, variance))
    assert found.value == pytest.approx(dense_value(problem, prior, variance), rel=1e-11)
    E = rng.normal(size=(T, T))
    E = 0.01 * (E + E.T)
    for r, term in enumerate(prior.terms):
        by_length = slope(
            lambda h, r=r, term=term: dense_value(
                problem, with_term(prior, r, replace(term, lengthscale=term.lengthscale * np.exp(h))), variance
            )
        )
        assert found.lengthscales[r] == pytest.approx(by_length, rel=1e-6, abs=1e-8)
        by_task = slope(
            lambda h, r=r, term=term: dense_value(
                problem, with_term(prior, r, replace(term, covariance=term.covariance + h * E)), variance
            )
        )
        assert np.sum(found.covariances[r] * E) == pytest.approx(by_task, rel=1e-6, abs=1e-8)
    tilt = rng.normal(size=T)
    by_noise = slope(lambda h: dense_value(problem, prior, variance * np.exp(h * tilt)))
    assert np.sum(found.noise * variance * tilt) == pytest.approx(by_noise, rel=1e-6, abs=1e-8)
    if mean:
        by_mean = slope(
            lambda h: dense_value(problem, replace(prior, mean_covariance=prior.mean_covariance + h * E), variance)
        )
        assert np.sum(found.mean_covariance * E) == pytest.approx(by_mean, rel=1e-6, abs=1e-8)


def test_gradient_by_each_measurement(rng: np.random.Generator) -> None:
    problem = random_problem(rng, 15, 2, (1.5,))
    variance = rng.uniform(0.05, 0.3, problem.y.shape)
    found = evidence(problem.prior, time_series(problem.t, problem.y, variance))
    tilt = rng.normal(size=variance.shape)
    expected = slope(lambda h: dense_value(problem, problem.prior, variance * np.exp(h * tilt)))
    assert np.sum(found.noise * variance * tilt) == pytest.approx(expected, rel=1e-6)
    assert np.all(found.noise[np.isnan(problem.y)] == 0.0)


def test_gradient_into_directions_a_singular_covariance_lacks(rng: np.random.Generator) -> None:
    problem = random_problem(rng, 25, 3, (2.5, 0.5))
    b = rng.normal(size=(3, 1))
    prior = with_term(problem.prior, 0, replace(problem.prior.terms[0], covariance=b @ b.T))
    found = evidence(prior, time_series(problem.t, problem.y, problem.variance))
    other = rng.normal(size=(3, 1))
    E = other @ other.T

    def value(h: float) -> float:
        moved = with_term(prior, 0, replace(prior.terms[0], covariance=b @ b.T + h * E))
        return dense_value(problem, moved, problem.variance)

    h = 1e-4
    one_sided = (-25 * value(0) + 48 * value(h) - 36 * value(2 * h) + 16 * value(3 * h) - 3 * value(4 * h)) / (12 * h)
    assert np.sum(found.covariances[0] * E) == pytest.approx(one_sided, rel=1e-6)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_gradient_with_tiny_steps(nu: float, rng: np.random.Generator) -> None:
    t = np.cumsum(np.where(rng.random(50) < 0.7, 1e-7, 0.3) * rng.uniform(0.5, 1.5, 50))
    y = np.stack([np.sin(t), np.cos(t)], axis=1) + 0.1 * rng.normal(size=(50, 2))
    prior = markov_prior([MaternTerm(nu, 1.0, np.array([[1.0, 0.2], [0.2, 0.7]]))], mean_covariance=np.eye(2))
    problem = Problem(t, y, np.full(2, 0.01), prior)
    found = evidence(prior, time_series(t, y, problem.variance))
    term = prior.terms[0]
    expected = slope(
        lambda h: dense_value(problem, with_term(prior, 0, replace(term, lengthscale=np.exp(h))), problem.variance)
    )
    assert found.lengthscales[0] == pytest.approx(expected, rel=1e-6)


def test_gradient_over_many_lanes(rng: np.random.Generator) -> None:
    """Longer than a dense check allows: differences of the Markov evidence itself."""
    t = np.sort(rng.uniform(0.0, 100.0, 3000))
    y = np.stack([np.sin(t), np.cos(t)], axis=1) + 0.1 * rng.normal(size=(3000, 2))
    prior = markov_prior([MaternTerm(2.5, 2.0, np.eye(2))], mean_covariance=np.eye(2))
    series = time_series(t, y, np.full(2, 0.02))
    found = evidence(prior, series)
    term = prior.terms[0]
    expected = slope(lambda h: smooth(with_term(prior, 0, replace(term, lengthscale=2.0 * np.exp(h))), series).log_evidence)
    assert found.lengthscales[0] == pytest.approx(expected, rel=1e-6)
