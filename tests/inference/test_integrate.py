"""Averaging over hyperparameters: curvature, weights, and integrals that are known in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from equivalence.small_problems import differences, small_prior, some_data
from scipy.integrate import simpson
from sklearn.gaussian_process.kernels import RBF

from sumgp.inference.integrate import CAP, _guessed, _Pool, curvature, integrate, tempered
from sumgp.inference.objective import Objective
from sumgp.inference.optimise import maximise
from sumgp.priors import NoiseModel
from sumgp.solvers.dense import DenseEvidence


def one_parameter() -> Objective:
    """Lengthscale fixed, noise known: the amplitude of one output is the only hyperparameter."""
    x, y = some_data(T=1, N=8)
    noise = NoiseModel(((0,),), np.ones(1), known=np.full((8, 1), 0.04))
    prior = small_prior(T=1, kernels=(RBF(0.4, "fixed"),), noise=noise)
    return Objective(prior, DenseEvidence(prior, x, y))


def test_curvature_equals_second_differences_of_the_value() -> None:
    prior = small_prior(T=1)
    objective = Objective(prior, DenseEvidence(prior, *some_data(T=1)))
    theta = prior.start()
    second = differences(lambda t: differences(lambda s: objective(s)[0], t, 3e-3), theta, 3e-3)
    np.testing.assert_allclose(curvature(objective, theta), second, atol=1e-4 * np.max(np.abs(second)))


def test_moments_equal_numerical_integration_over_the_one_parameter() -> None:
    objective = one_parameter()
    maximum = maximise(objective)
    result = integrate([objective], [maximum], lambda k, theta: 0.0, 64, 0)
    grid = np.linspace(-6.0, 6.0, 1201)
    log_density = np.array([-objective(np.array([t]))[0] for t in grid])
    density = np.exp(log_density - log_density.max())
    density /= simpson(density, x=grid)
    mean = simpson(grid * density, x=grid)
    sd = np.sqrt(simpson((grid - mean) ** 2 * density, x=grid))
    weights = np.array([d.weight for d in result.draws])
    theta = np.array([d.theta[0] for d in result.draws])
    assert weights.sum() == pytest.approx(1.0)
    assert weights @ theta == pytest.approx(mean, abs=0.1 * sd)
    assert np.sqrt(weights @ (theta - mean) ** 2) == pytest.approx(sd, rel=0.15)


def test_candidates_are_weighted_by_their_evidence() -> None:
    """The same candidate twice, once with a score of log 3: three quarters of the weight."""
    objective = one_parameter()
    maximum = maximise(objective)
    score = np.log([1.0, 3.0])
    result = integrate([objective, objective], [maximum, maximum], lambda k, theta: float(score[k]), 64, 0)
    assert result.candidate_weights == pytest.approx((0.25, 0.75), abs=0.03)
    assert sum(result.candidate_weights) == pytest.approx(1.0)


def test_a_score_moves_the_draws() -> None:
    """exp(a theta) tilts a Gaussian of variance v by a v."""
    objective = one_parameter()
    maximum = maximise(objective)
    plain = integrate([objective], [maximum], lambda k, theta: 0.0, 64, 0)
    tilted = integrate([objective], [maximum], lambda k, theta: 2.0 * float(theta[0]), 64, 0)

    def mean(result: object) -> float:
        return float(sum(d.weight * d.theta[0] for d in result.draws))  # type: ignore[attr-defined]

    variance = 1.0 / curvature(objective, maximum.theta)[0, 0]
    assert mean(tilted) - mean(plain) == pytest.approx(2.0 * variance, rel=0.5)


def test_draws_repeat_for_a_seed() -> None:
    objective = one_parameter()
    maximum = maximise(objective)
    first, second, other = (integrate([objective], [maximum], lambda k, theta: 0.0, 8, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal([d.theta for d in first.draws], [d.theta for d in second.draws])
    assert first.draws[0].theta[0] != other.draws[0].theta[0]


def test_even_weights_stay_as_they_are() -> None:
    logs = np.log(np.random.default_rng(0).uniform(0.5, 1.0, 40))
    weights, power = tempered(logs)
    assert power == 1.0
    np.testing.assert_allclose(weights, np.exp(logs) / np.exp(logs).sum(), rtol=1e-12)


def test_degenerate_weights_are_flattened_and_capped() -> None:
    logs = -np.arange(64.0) * 50.0
    weights, power = tempered(logs)
    assert 0.0 < power < 1.0
    assert weights.sum() == pytest.approx(1.0)
    assert weights.max() <= CAP / np.sqrt(64) * (1.0 + 1e-9)
    assert 1.0 / np.sum(weights**2) > 5.0
    assert np.all(np.diff(weights) <= 1e-15)


def test_impossible_draws_get_no_weight() -> None:
    logs = np.concatenate([np.zeros(20), np.full(5, -np.inf)])
    weights, _ = tempered(logs)
    np.testing.assert_array_equal(weights[20:], 0.0)
    nothing, power = tempered(np.full(4, -np.inf))
    np.testing.assert_allclose(nothing, 0.25)
    assert power == 0.0


def test_a_regression_of_the_scores_finds_a_parabola() -> None:
    """Scores of half of the pool; those of the other half follow, within the range that was seen."""
    generator = np.random.default_rng(0)
    thetas = generator.normal(0.0, 1.0, (128, 3))
    truth = 3.0 * thetas[:, 0] - thetas[:, 1] ** 2
    pool = _Pool(list(thetas), np.zeros(128, dtype=int), np.zeros(128))
    counts = (np.arange(128) < 64).astype(int)
    guess = _guessed(pool, counts, np.where(counts > 0, truth, 0.0))
    inside = (counts == 0) & np.all(np.abs(thetas) < 1.5, axis=1)
    assert np.sqrt(np.mean((guess - truth)[inside] ** 2)) < 0.3 * truth[inside].std()
    np.testing.assert_array_equal(guess[:64], truth[:64])


def test_the_value_alone_is_the_value_with_the_gradient() -> None:
    prior = small_prior(T=2)
    objective = Objective(prior, DenseEvidence(prior, *some_data(T=2)))
    theta = prior.start() + 0.1
    assert objective.value(theta) == pytest.approx(objective(theta)[0], rel=1e-14)
