"""Means and standard deviations of every engine against a long elliptical-slice run on five small problems.

The bars: each mean within 0.15 posterior sd, each sd within 20 %. Laplace and moment matching replace a skewed density by
a Gaussian at one point, so they miss where the posterior is skewed; those pairs are listed with the reason, and a listed
pair that meets the bars fails the test too. ``pytest -s`` shows the table.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.engine_problems import Problem, crossing_square, far_square, law, logarithm, sine
from support.mcmc import elliptical_slice

from sumgp.numerics.linear_algebra import symmetric_root
from sumgp.paper_method.engines import Engine, ExpectationPropagation, Laplace, MomentMatched, Variational
from sumgp.paper_method.likelihoods import GaussianLikelihood

PROBLEMS = [far_square(), crossing_square(), logarithm(), sine(), law()]
ENGINES: list[Engine] = [MomentMatched(), Laplace(), Variational(), ExpectationPropagation()]

NEAR_TURN = "the data lie within two noise sds of a turning point of h, where the posterior of f' is skewed against its edge"
SKEWED = "noise of 15 % makes log f skewed, and its mode lies off its mean by more than 0.15 sd"
MISSES = {
    ("MomentMatched", "square, crossing zero"): NEAR_TURN,
    ("Laplace", "square, crossing zero"): NEAR_TURN,
    ("MomentMatched", "logarithm"): SKEWED,
    ("Laplace", "logarithm"): SKEWED,
    ("MomentMatched", "sine, near its turning points"): NEAR_TURN,
    ("Laplace", "sine, near its turning points"): NEAR_TURN,
    ("MomentMatched", "two squares under a law"): NEAR_TURN,
    ("Laplace", "two squares under a law"): NEAR_TURN,
}


def sampled(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sd (n,) of 36,000 draws; chains start at draws from the Laplace approximation, twice as wide."""
    m, K = problem.prior()
    rough = Laplace().infer(m, K, problem.likelihood)
    root = symmetric_root(rough.cov)
    start = rough.mean[:, None] + 2.0 * root @ np.random.default_rng(0).standard_normal((root.shape[1], 600))
    draws = elliptical_slice(m, K, problem.likelihood, start, chains=600, burn=60, keep=60)
    return draws.mean(axis=1), draws.std(axis=1)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
def test_engines_against_sampling(problem: Problem) -> None:
    mean, sd = sampled(problem)
    met = set()
    for engine in ENGINES:
        result = engine.infer(*problem.prior(), problem.likelihood)
        error = float(np.max(np.abs(result.mean - mean) / sd))
        ratio = np.sqrt(np.diagonal(result.cov)) / sd
        name = type(engine).__name__
        print(
            f"\n{problem.name:32s}{name:24s} mean off by {error:.3f} sd, sd {ratio.min():.2f} to {ratio.max():.2f}", end=""
        )
        if error <= 0.15 and ratio.min() >= 0.8 and ratio.max() <= 1.2:
            met.add(name)
    expected = {type(engine).__name__ for engine in ENGINES} - {engine for engine, where in MISSES if where == problem.name}
    assert met == expected


def test_sampler_reproduces_a_gaussian_posterior() -> None:
    """The yardstick itself, against exact regression, with a singular prior."""
    problem = law()
    m, K = problem.prior()
    likelihood = GaussianLikelihood(problem.likelihood.y**2, np.full(8, 0.4))
    C = K + 0.16 * np.eye(8)
    mean, cov = m + K @ np.linalg.solve(C, likelihood.y - m), K - K @ np.linalg.solve(C, K)
    draws = elliptical_slice(m, K, likelihood, np.tile(m[:, None], 600), chains=600, burn=60, keep=60)
    sd = np.sqrt(np.diag(cov))
    assert np.max(np.abs(draws.mean(axis=1) - mean) / sd) < 0.03
    assert np.max(np.abs(draws.std(axis=1) / sd - 1.0)) < 0.03
