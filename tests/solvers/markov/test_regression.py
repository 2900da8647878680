"""Markov regression against dense regression with the same kernels: evidence, smoothing, prediction, samples."""

from __future__ import annotations

import time
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from support.dense_markov import Problem, dense_posterior, random_problem

from sumgp.solvers.markov import (
    MarkovPrior,
    MaternTerm,
    evidence,
    markov_prior,
    predict,
    sample,
    smooth,
    time_series,
    with_rows,
)

CASES = [
    (1, 2, (2.5,), True),
    (2, 1, (0.5,), True),
    (40, 2, (2.5,), False),
    (40, 2, (1.5, 0.5), True),
    (60, 3, (2.5, 1.5), True),
]


@pytest.mark.parametrize(("N", "T", "nus", "mean"), CASES)
def test_smoothing_and_prediction_equal_dense(
    N: int, T: int, nus: tuple[float, ...], mean: bool, rng: np.random.Generator
) -> None:
    problem = random_problem(rng, N, T, nus, mean)
    found = smooth(problem.prior, time_series(problem.t, problem.y, problem.variance))
    dense = dense_posterior(problem.prior, problem.t, problem.y, problem.variance, problem.t)
    assert found.log_evidence == pytest.approx(dense.log_evidence, rel=1e-11)
    np.testing.assert_allclose(found.mean, dense.mean, atol=1e-11)
    np.testing.assert_allclose(found.covariance, dense.blocks, atol=1e-12)
    new = np.concatenate([rng.uniform(-3.0, 13.0, 30), problem.t[:2], [-1e6, 1e6]])
    mean_new, covariance_new = predict(found, new)
    dense = dense_posterior(problem.prior, problem.t, problem.y, problem.variance, new)
    np.testing.assert_allclose(mean_new, dense.mean, atol=1e-11)
    np.testing.assert_allclose(covariance_new, dense.blocks, atol=1e-12)


def test_noise_of_each_measurement(rng: np.random.Generator) -> None:
    problem = random_problem(rng, 30, 2, (2.5,))
    variance = rng.uniform(0.01, 0.5, problem.y.shape)
    found = smooth(problem.prior, time_series(problem.t, problem.y, variance))
    dense = dense_posterior(problem.prior, problem.t, problem.y, variance, problem.t)
    assert found.log_evidence == pytest.approx(dense.log_evidence, rel=1e-11)
    np.testing.assert_allclose(found.covariance, dense.blocks, atol=1e-12)


def test_linear_rows_are_observations(rng: np.random.Generator) -> None:
    problem = random_problem(rng, 30, 3, (1.5,))
    t = np.unique(problem.t)
    y = problem.y[: len(t)]
    J, target, s2 = rng.normal(size=(len(t), 2, 3)), rng.normal(size=(len(t), 2)), rng.uniform(0.01, 1.0, (len(t), 2))
    J[3, 1] = 0.0
    series = with_rows(time_series(t, y, problem.variance), J, target, s2)
    found = smooth(problem.prior, series)
    dense = dense_posterior(problem.prior, t, y, problem.variance, t, (J, target, s2))
    silent = -0.5 * (np.log(2 * np.pi * s2[3, 1]) + target[3, 1] ** 2 / s2[3, 1])
    assert found.log_evidence == pytest.approx(dense.log_evidence - silent, rel=1e-10)
    np.testing.assert_allclose(found.mean, dense.mean, atol=1e-11)
    np.testing.assert_allclose(found.covariance, dense.blocks, atol=1e-12)


def test_samples_have_the_posterior_moments(rng: np.random.Generator) -> None:
    problem = random_problem(rng, 12, 2, (2.5,))
    found = smooth(problem.prior, time_series(problem.t, problem.y, problem.variance))
    new = np.array([-1.0, 3.0, 3.01, problem.t[0], 20.0, 3.0])
    draws = 10_000
    values = sample(found, new, draws, rng)
    assert values.shape == (draws, 6, 2)
    np.testing.assert_array_equal(values[:, 1], values[:, 5])
    flat = values[:, :5].reshape(draws, 10)
    dense = dense_posterior(problem.prior, problem.t, problem.y, problem.variance, new[:5])
    sd = np.sqrt(np.diag(dense.joint))
    assert np.abs((flat.mean(axis=0) - dense.mean.ravel()) / sd).max() * np.sqrt(draws) < 4.5
    assert np.abs((np.cov(flat.T) - dense.joint) / np.outer(sd, sd)).max() * np.sqrt(draws) < 6.5


def test_samples_repeat_with_their_seed(rng: np.random.Generator) -> None:
    problem = random_problem(rng, 12, 2, (1.5,))
    found = smooth(problem.prior, time_series(problem.t, problem.y, problem.variance))
    first, second, other = (sample(found, problem.t, 3, np.random.default_rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert np.abs(first - other).min() > 0


def test_an_output_never_measured_is_learned_from_the_others(rng: np.random.Generator) -> None:
    problem = random_problem(rng, 40, 3, (2.5,))
    problem.y[:, 1] = np.nan
    found = smooth(problem.prior, time_series(problem.t, problem.y, problem.variance))
    dense = dense_posterior(problem.prior, problem.t, problem.y, problem.variance, problem.t)
    np.testing.assert_allclose(found.mean, dense.mean, atol=1e-11)
    assert found.log_evidence == pytest.approx(dense.log_evidence, rel=1e-11)


def test_singular_task_covariances(rng: np.random.Generator) -> None:
    problem = random_problem(rng, 40, 3, (2.5, 1.5))
    b = rng.normal(size=(3, 1))
    terms = (replace(problem.prior.terms[0], covariance=b @ b.T), problem.prior.terms[1])
    prior = MarkovPrior(terms, problem.prior.mean, b @ b.T)
    series = time_series(problem.t, problem.y, problem.variance)
    small, large = smooth(prior, series), smooth(prior, series, compact=False)
    dense = dense_posterior(prior, problem.t, problem.y, problem.variance, problem.t)
    assert small.space.stationary.shape == (9, 9)
    assert large.space.stationary.shape == (15, 15)
    new = rng.uniform(-1.0, 12.0, 20)
    for found in (small, large):
        assert found.log_evidence == pytest.approx(dense.log_evidence, rel=1e-10)
        np.testing.assert_allclose(found.mean, dense.mean, atol=1e-10)
        np.testing.assert_allclose(found.covariance, dense.blocks, atol=1e-11)
        expected = dense_posterior(prior, problem.t, problem.y, problem.variance, new)
        np.testing.assert_allclose(predict(found, new)[0], expected.mean, atol=1e-10)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
@pytest.mark.parametrize("step", [1e-3, 1e-6, 1e-10])
def test_tiny_steps(nu: float, step: float, rng: np.random.Generator) -> None:
    """Steps of 1e-10 lengthscales beside ordinary ones: a precision form fails here from about 1e-2 on."""
    t = np.cumsum(np.where(rng.random(60) < 0.7, step, 0.3) * rng.uniform(0.5, 1.5, 60))
    y = np.stack([np.sin(t), np.cos(t)], axis=1) + 0.1 * rng.normal(size=(60, 2))
    prior = markov_prior([MaternTerm(nu, 1.0, np.array([[1.0, 0.2], [0.2, 0.7]]))])
    variance = np.array([0.01, 0.01])
    found, dense = smooth(prior, time_series(t, y, variance)), dense_posterior(prior, t, y, variance, t)
    assert found.log_evidence == pytest.approx(dense.log_evidence, abs=1e-8)
    np.testing.assert_allclose(found.mean, dense.mean, atol=1e-11)
    np.testing.assert_allclose(found.covariance, dense.blocks, atol=1e-12)


def test_huge_offsets_and_units(rng: np.random.Generator) -> None:
    problem = random_problem(rng, 40, 2, (2.5,))
    ticks = np.round(problem.t * 2**20) / 2**20
    prior = MarkovPrior(problem.prior.terms, np.zeros(2), 1e4 * np.eye(2))
    near = smooth(prior, time_series(ticks, problem.y, problem.variance))
    shift, scale = 1e8, np.array([1e-5, 1e6])
    terms = [replace(term, covariance=term.covariance * np.outer(scale, scale)) for term in prior.terms]
    moved = MarkovPrior(tuple(terms), shift * scale, 1e4 * np.diag(scale**2))
    series = time_series(ticks + 2.0**30, (problem.y + shift) * scale, problem.variance * scale**2)
    far = smooth(moved, series)
    np.testing.assert_allclose(far.mean / scale - shift, near.mean, atol=1e-6)
    np.testing.assert_allclose(far.covariance / np.outer(scale, scale), near.covariance, atol=1e-11)
    jacobian = np.log(scale).sum() * 0 + np.sum(~np.isnan(problem.y) * np.log(scale))
    assert far.log_evidence + jacobian == pytest.approx(near.log_evidence, abs=1e-5)


def test_an_offset_far_outside_the_prior_mean(rng: np.random.Generator) -> None:
    """The prior mean is 0 and wide, the data lie at 1e6: nothing may cancel."""
    problem = random_problem(rng, 40, 2, (1.5,))
    prior = MarkovPrior(problem.prior.terms, np.zeros(2), 1e12 * np.eye(2))
    found = smooth(prior, time_series(problem.t, problem.y + 1e6, problem.variance))
    centred = MarkovPrior(problem.prior.terms, np.full(2, -1e6), 1e12 * np.eye(2))
    near = smooth(centred, time_series(problem.t, problem.y, problem.variance))
    np.testing.assert_allclose(found.mean - 1e6, near.mean, atol=1e-8)
    assert found.log_evidence == pytest.approx(near.log_evidence, abs=1e-7)


def test_order_of_the_points_does_not_matter(rng: np.random.Generator) -> None:
    problem = random_problem(rng, 40, 2, (2.5,))
    order = rng.permutation(40)
    first = smooth(problem.prior, time_series(problem.t, problem.y, problem.variance))
    second = smooth(problem.prior, time_series(problem.t[order], problem.y[order], problem.variance))
    np.testing.assert_allclose(second.mean, first.mean[order], atol=1e-13)


def test_predictions_do_not_depend_on_company(rng: np.random.Generator) -> None:
    problem = random_problem(rng, 40, 2, (2.5,))
    found = smooth(problem.prior, time_series(problem.t, problem.y, problem.variance))
    new = rng.uniform(-1.0, 11.0, 5000)
    together = predict(found, new)
    alone = predict(found, new[4321:4322])
    np.testing.assert_allclose(together[0][4321], alone[0][0], rtol=1e-13)
    np.testing.assert_allclose(together[1][4321], alone[1][0], rtol=1e-12)
    assert predict(found, np.empty(0))[0].shape == (0, 2)


def long_problem(rng: np.random.Generator, N: int) -> Problem:
    t = np.sort(rng.uniform(0.0, N / 20.0, N))
    y = np.stack([np.cos(t), np.sin(t)], axis=1) + 0.1 * rng.normal(size=(N, 2))
    prior = markov_prior([MaternTerm(2.5, 3.0, np.eye(2))], mean_covariance=np.eye(2))
    return Problem(t, y, np.full(2, 0.01), prior)


def test_memory_and_time_grow_with_the_number_of_points(rng: np.random.Generator) -> None:
    used = []
    for N in (1600, 16000):
        problem = long_problem(rng, N)
        series = time_series(problem.t, problem.y, problem.variance)
        seconds = np.inf
        for _ in range(2):
            start = time.process_time()
            evidence(problem.prior, series)
            seconds = min(seconds, time.process_time() - start)
        tracemalloc.start()
        smooth(problem.prior, series)
        used.append((seconds, tracemalloc.get_traced_memory()[1]))
        tracemalloc.stop()
    assert used[1][0] < 20.0 * used[0][0]
    assert used[1][1] < 10.5 * used[0][1]
    assert used[1][1] < 16000 * 6000
