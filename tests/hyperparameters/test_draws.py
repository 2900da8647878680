"""The pool of draws: densities of proposals, weights under several of them together, moments that are followed."""

from __future__ import annotations

import numpy as np
import pytest
from equivalence.small_problems import small_prior, some_data
from scipy.stats import multivariate_t
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared

from sumgp.errors import Status
from sumgp.hyperparameters.average import Pool, curvature
from sumgp.hyperparameters.optimise import DEGREES, MapEstimate, Objective, Proposal, maximise, values_at
from sumgp.priors import NoiseModel
from sumgp.solvers.dense import DenseEvidence


def one_parameter() -> Objective:
    """The amplitude of one output."""
    x, y = some_data(T=1, N=8)
    noise = NoiseModel(((0,),), np.ones(1), known=np.full((8, 1), 0.04))
    prior = small_prior(T=1, kernels=(RBF(0.4, "fixed"),), noise=noise)
    return Objective(prior, DenseEvidence(prior, x, y))


def begun(objective: Objective, size: int = 256) -> Pool:
    maximum = maximise(objective)
    pool = Pool([objective], [maximum], [curvature(objective, maximum.theta)], 0)
    pool.begin(size)
    return pool


def evidence_by_grid(objective: Objective, tilt: float = 0.0) -> float:
    grid = np.linspace(-8.0, 6.0, 4001)
    logs = np.array([-objective.value(np.array([t])) + tilt * t for t in grid])
    return float(np.log(np.sum(np.exp(logs - logs.max())) * (grid[1] - grid[0])) + logs.max())


def test_the_density_is_that_of_a_student_t() -> None:
    generator = np.random.default_rng(0)
    root = np.tril(generator.normal(size=(3, 3))) + 2.0 * np.eye(3)
    proposal = Proposal(generator.normal(size=3), root)
    theta = generator.normal(size=(5, 3))
    expected = multivariate_t(proposal.mean, root @ root.T, df=DEGREES).logpdf(theta)
    np.testing.assert_allclose(proposal.log_density(theta), expected, rtol=1e-12)


def test_draws_have_the_spread_of_the_proposal() -> None:
    root = np.array([[2.0, 0.0], [1.0, 0.5]])
    draws = Proposal(np.array([1.0, -1.0]), root).sample(4096, np.random.default_rng(1))
    np.testing.assert_allclose(draws.mean(axis=0), [1.0, -1.0], atol=0.05)
    np.testing.assert_allclose(np.cov(draws.T), root @ root.T * DEGREES / (DEGREES - 2.0), rtol=0.1)


def test_moments_of_many_draws_are_taken_as_they_are_of_few_with_care() -> None:
    draws = np.random.default_rng(2).normal(size=(4000, 2)) @ np.diag([3.0, 0.1]) + 5.0
    even = np.full(4000, 1.0 / 4000)
    many = Proposal.of_moments(draws, even, np.eye(2))
    np.testing.assert_allclose(np.diag(many.scale), [9.0, 0.01], rtol=0.1)
    single = Proposal.of_moments(draws, np.eye(4000)[0], np.eye(2))
    np.testing.assert_allclose(single.mean, draws[0])
    np.testing.assert_allclose(single.scale, 2.0 / 3.0 * np.eye(2), atol=1e-12)


def test_weights_sum_to_the_evidence_before_and_after_following() -> None:
    objective = one_parameter()
    pool = begun(objective)
    expected = evidence_by_grid(objective)
    assert np.log(np.sum(np.exp(pool.log_weights))) == pytest.approx(expected, abs=0.02)
    pool.follow(3.0 * np.array([theta[0] for theta in pool.thetas]), 256)
    assert np.log(np.sum(np.exp(pool.log_weights))) == pytest.approx(expected, abs=0.02)
    tilted = pool.log_weights + 3.0 * np.array([theta[0] for theta in pool.thetas])
    assert np.log(np.sum(np.exp(tilted))) == pytest.approx(evidence_by_grid(objective, 3.0), abs=0.02)


def test_new_draws_come_where_the_score_is_high() -> None:
    pool = begun(one_parameter())
    before = len(pool.thetas)
    pool.follow(np.array([50.0 * theta[0] for theta in pool.thetas]), 64)
    old, new = np.ravel(pool.thetas[:before]), np.ravel(pool.thetas[before:])
    assert len(new) == 64
    assert np.median(new) > np.quantile(old, 0.9)


def test_picks_are_as_frequent_as_the_weights_say() -> None:
    pool = begun(one_parameter(), 64)
    counts, expected = pool.picked(pool.log_weights, 20, np.random.default_rng(0))
    assert counts.sum() == 20
    assert expected.sum() == pytest.approx(20.0)
    assert np.max(np.abs(counts - expected)) < 1.0 + 1e-9


def test_candidates_of_no_weight_are_not_followed() -> None:
    objective = one_parameter()
    maximum = maximise(objective)
    H = curvature(objective, maximum.theta)
    pool = Pool([objective, objective], [maximum, maximum], [H, H], 0)
    pool.begin(64)
    pool.follow(np.where(pool.owners == 1, -50.0, 0.0), 64)
    assert np.sum(pool.owners == 1) == 32
    assert np.sum(pool.owners == 0) == 96


def test_draws_stay_between_narrow_bounds_where_the_density_is_flat() -> None:
    """A wave whose period the rows leave open: without its bounds nearly all draws of two periods were lost, or all."""
    x, y = some_data(T=1, N=8)
    prior = small_prior(T=1, kernels=(ExpSineSquared(1.0, 2.0, periodicity_bounds=(1.6, 2.5)),))
    objective = Objective(prior, DenseEvidence(prior, x, y))
    theta, bounds = prior.start(), np.array(prior.bounds())
    pool = Pool([objective], [MapEstimate(theta, 0.0, Status.CONVERGED, ())], [np.zeros((len(theta), len(theta)))], 0)
    narrow = np.flatnonzero(np.ptp(bounds, axis=1) < 1.0)
    assert len(narrow) == 1
    draws = pool.first[0].sample(512, np.random.default_rng(0))[:, narrow[0]]
    assert np.mean((draws > bounds[narrow[0], 0]) & (draws < bounds[narrow[0], 1])) > 0.8


def test_no_hyperparameters_have_no_values() -> None:
    assert values_at(one_parameter(), np.empty((0, 1))) == []
