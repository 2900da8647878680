"""Averaging over hyperparameters: curvature, weights, and integrals that are known in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from equivalence.small_problems import differences, small_prior, some_data
from scipy.integrate import simpson
from sklearn.gaussian_process.kernels import RBF

from sumgp.hyperparameters.average import curvature, integrate
from sumgp.hyperparameters.optimise import Objective, maximise
from sumgp.priors import NoiseModel
from sumgp.solvers.dense import DenseEvidence


def one_parameter() -> Objective:
    """Lengthscale fixed, noise known: the amplitude of one output is the only hyperparameter."""
    x, y = some_data(T=1, N=8)
    noise = NoiseModel(((0,),), np.ones(1), known=np.full((8, 1), 0.04))
    prior = small_prior(T=1, kernels=(RBF(0.4, "fixed"),), noise=noise)
    return Objective(prior, DenseEvidence(prior, x, y))


def two_parameters() -> Objective:
    """Lengthscale and amplitude of one output, the noise being known."""
    x, y = some_data(T=1, N=8)
    noise = NoiseModel(((0,),), np.ones(1), known=np.full((8, 1), 0.04))
    prior = small_prior(T=1, kernels=(RBF(0.4),), noise=noise)
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
    result = integrate([objective], [maximum], lambda draws: [0.0] * len(draws), 64, 0)
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
    result = integrate([objective, objective], [maximum, maximum], lambda draws: [float(score[k]) for k, _ in draws], 64, 0)
    assert result.candidate_weights == pytest.approx((0.25, 0.75), abs=0.03)
    assert sum(result.candidate_weights) == pytest.approx(1.0)


def test_a_score_moves_the_draws() -> None:
    """exp(a theta) tilts a Gaussian of variance v by a v."""
    objective = one_parameter()
    maximum = maximise(objective)
    plain = integrate([objective], [maximum], lambda draws: [0.0] * len(draws), 64, 0)
    tilted = integrate([objective], [maximum], lambda draws: [2.0 * float(theta[0]) for _, theta in draws], 64, 0)

    def mean(result: object) -> float:
        return float(sum(d.weight * d.theta[0] for d in result.draws))  # type: ignore[attr-defined]

    variance = 1.0 / curvature(objective, maximum.theta)[0, 0]
    assert mean(tilted) - mean(plain) == pytest.approx(2.0 * variance, rel=0.5)


def test_draws_repeat_for_a_seed() -> None:
    objective = one_parameter()
    maximum = maximise(objective)
    first, second, other = (
        integrate([objective], [maximum], lambda draws: [0.0] * len(draws), 8, seed) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal([d.theta for d in first.draws], [d.theta for d in second.draws])
    assert first.draws[0].theta[0] != other.draws[0].theta[0]


def test_a_score_that_moves_the_draws_far_is_followed() -> None:
    """The score puts the maximum four standard deviations away from the data's: draws go there, and stay even."""
    objective = two_parameters()
    maximum = maximise(objective)
    wide = np.linalg.inv(curvature(objective, maximum.theta))
    aim = maximum.theta + 4.0 * np.linalg.cholesky(wide)[:, 0]
    precision = 4.0 * np.linalg.inv(wide)

    def score(theta: np.ndarray) -> float:
        return -0.5 * float((theta - aim) @ precision @ (theta - aim))

    axes = [np.linspace(a - 5.0 * sd, a + 3.0 * sd, 61) for a, sd in zip(aim, np.sqrt(np.diag(wide)), strict=True)]
    grid = np.array([[a, b] for a in axes[0] for b in axes[1]])
    logs = np.array([-objective.value(theta) + score(theta) for theta in grid])
    density = np.exp(logs - logs.max())
    density /= density.sum()
    mean = density @ grid
    sd = np.sqrt(density @ (grid - mean) ** 2)
    results = [
        integrate([objective], [maximum], lambda draws: [score(theta) for _, theta in draws], 24, state)
        for state in range(10)
    ]
    errors, widths = [], []
    for result in results:
        weights, thetas = np.array([d.weight for d in result.draws]), np.array([d.theta for d in result.draws])
        errors.append((weights @ thetas - mean) / sd)
        widths.append(np.sqrt(weights @ (thetas - mean) ** 2) / sd)
        assert result.temperature == 1.0
    size = np.mean([result.effective for result in results])
    assert size > 15.0
    assert np.sqrt(np.mean(np.square(errors))) < 1.0 / np.sqrt(size)  # independent draws of that number would err by this
    assert np.mean(widths) == pytest.approx(1.0, abs=0.1)


def test_the_value_alone_is_the_value_with_the_gradient() -> None:
    prior = small_prior(T=2)
    objective = Objective(prior, DenseEvidence(prior, *some_data(T=2)))
    theta = prior.start() + 0.1
    assert objective.value(theta) == pytest.approx(objective(theta)[0], rel=1e-14)
