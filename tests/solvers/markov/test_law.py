"""Laws over time: the iterated Markov smoother against dense iterated linearisation, and against what must hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from support.dense_markov import covariance, dense_law, dense_posterior, random_covariance, random_problem

from sumgp.laws import project
from sumgp.solvers.markov import (
    MarkovPrior,
    MaternTerm,
    law_smooth,
    markov_prior,
    predict,
    smooth,
    time_series,
)
from sumgp.solvers.markov.law import SETTLED, SMALLEST, _Iterate, _line_search, _point, _Search, _without_law


@dataclass(frozen=True)
class PointLaw:
    """A law as functions of f (n, T) and x (n, ...)."""

    residual: Callable[[np.ndarray, np.ndarray], np.ndarray]
    jacobian: Callable[[np.ndarray, np.ndarray], np.ndarray]
    is_linear: bool = False


def circle(f: np.ndarray) -> np.ndarray:
    return np.sum(f[:, :2] ** 2, axis=1, keepdims=True) - 1.0


def circle_slope(f: np.ndarray) -> np.ndarray:
    return 2.0 * f[:, None, :2]


def oscillator(
    rng: np.random.Generator, N: int, span: float, noise: float = 0.1
) -> tuple[np.ndarray, np.ndarray, np.ndarray, MarkovPrior]:
    """Times, truth, noisy data with 20 % missing, and a prior."""
    t = np.sort(rng.uniform(0.0, span, N))
    truth = np.stack([np.cos(t), -np.sin(t)], axis=1)
    y = truth + noise * rng.normal(size=truth.shape)
    y[rng.random(y.shape) < 0.2] = np.nan
    prior = markov_prior([MaternTerm(2.5, 3.0, np.array([[1.0, 0.1], [0.1, 0.8]]))], mean_covariance=np.eye(2))
    return t, truth, y, prior


CIRCLE = PointLaw(lambda f, x: circle(f), lambda f, x: circle_slope(f))


def full_step(search: _Search, iterate: _Iterate) -> _Iterate:
    return search.at(_point(search.linearised(iterate)))


@pytest.mark.parametrize("nu", [1.5, 2.5])
def test_nonlinear_law_equals_dense(nu: float, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """300 points, 20 % missing: means and sds of the slow way to 1e-6."""
    t, _, y, prior = oscillator(rng, 300, 20.0)
    prior = replace(prior, terms=(replace(prior.terms[0], nu=nu),))
    variance = np.full(2, 0.01)
    series = time_series(t, y, variance)
    found = law_smooth(prior, series, CIRCLE, series.times)
    assert found.status == "converged"
    dense, step = dense_law(prior, t, y, variance, circle, circle_slope, law_variance=4e-11)
    assert step < 1e-8
    sd = np.sqrt(np.einsum("itt->it", found.linearised.covariance))
    np.testing.assert_allclose(found.mean, dense.mean, atol=1e-6)
    np.testing.assert_allclose(sd, np.sqrt(np.einsum("itt->it", dense.blocks)), atol=1e-6)
    assert np.abs(circle(found.mean)).max() < 1e-15
    assert np.abs(found.mean - smooth(prior, series).mean).max() > 0.02
    monkeypatch.setattr("sumgp.solvers.markov.law._reference", lambda J, free: np.full((300, 1), 0.04))
    same = law_smooth(prior, series, CIRCLE, series.times).linearised
    np.testing.assert_allclose(same.mean, dense.mean, atol=2e-8)
    np.testing.assert_allclose(same.covariance, dense.blocks, atol=1e-9)


@pytest.mark.parametrize("spread", [0.0, 2.0])
def test_merit_is_the_energy_of_the_dense_problem(spread: float, rng: np.random.Generator) -> None:
    """(f - m)^T K^-1 (f - m) / 2 + misfit + law, at a smoothed mean and half way between two of them."""
    t, _, y, _ = oscillator(rng, 40, 8.0)
    prior = markov_prior([MaternTerm(0.5, 3.0, random_covariance(rng, 2))], rng.normal(size=2), spread * np.eye(2))
    series = time_series(t, y, np.full(2, 0.01))
    free, point = _without_law(prior, series)
    search = _Search(free, CIRCLE, series.times, np.full((40, 1), 0.05))
    start = search.at(point)
    aim = full_step(search, start)
    K = covariance(prior, t, t)
    for iterate in (start, aim, search.at(start.point.towards(aim.point, 0.5))):
        f = iterate.point.f
        offset = (f - prior.mean).ravel()
        misfit = np.nansum((y - f) ** 2) / 0.01 + np.sum(circle(f) ** 2) / 0.05
        assert iterate.merit == pytest.approx(0.5 * (offset @ np.linalg.solve(K, offset) + misfit), rel=1e-9)


def test_line_search_never_raises_the_merit(rng: np.random.Generator) -> None:
    t, _, y, prior = oscillator(rng, 40, 8.0)
    series = time_series(t, y, np.full(2, 0.01))
    free, point = _without_law(prior, series)
    search = _Search(free, CIRCLE, series.times, np.full((40, 1), 1e-4))
    start = search.at(point)
    aim = full_step(search, start)
    assert aim.merit < start.merit
    far = search.at(start.point.towards(aim.point, 30.0))
    assert far.merit > start.merit
    found = _line_search(search, start, far)
    assert found is not None
    assert found.merit <= start.merit
    lowest = aim
    for _ in range(8):
        lowest = full_step(search, lowest)
    assert _line_search(search, lowest, start) is None


def test_laws_that_determine_an_output_never_measured(rng: np.random.Generator) -> None:
    """f_2 = f_0 f_1 beside the circle, f_2 without a single measurement."""
    t, truth, y, _ = oscillator(rng, 60, 8.0)
    y = np.column_stack([y, np.full(60, np.nan)])
    prior = markov_prior([MaternTerm(2.5, 2.5, np.diag([1.0, 0.8, 0.5])), MaternTerm(1.5, 2.0, 0.1 * np.eye(3))])
    variance = np.array([0.01, 0.01, 1.0])

    def residual(f: np.ndarray) -> np.ndarray:
        return np.column_stack([circle(f)[:, 0], f[:, 2] - f[:, 0] * f[:, 1]])

    def slope(f: np.ndarray) -> np.ndarray:
        J = np.zeros((len(f), 2, 3))
        J[:, 0, :2] = 2.0 * f[:, :2]
        J[:, 1] = np.column_stack([-f[:, 1], -f[:, 0], np.ones(len(f))])
        return J

    series = time_series(t, y, variance)
    found = law_smooth(prior, series, PointLaw(lambda f, x: residual(f), lambda f, x: slope(f)), series.times)
    rows = found.linearised.series.rows[:, 3:]
    law_variance = np.sum(slope(found.mean) ** 2, axis=2) / np.sum(rows**2, axis=2)
    assert law_variance.max() < 2e-9
    dense, step = dense_law(prior, t, y, variance, residual, slope, law_variance)
    assert step < 1e-9
    assert found.status == "converged"
    np.testing.assert_allclose(found.mean, dense.mean, atol=1e-6)
    sd = np.sqrt(np.einsum("itt->it", found.linearised.covariance))
    np.testing.assert_allclose(sd, np.sqrt(np.einsum("itt->it", dense.blocks)), atol=1e-6)
    assert np.abs(found.mean[:, 2] - truth[:, 0] * truth[:, 1]).max() < 0.15


def test_a_linear_law_is_exact_conditioning(rng: np.random.Generator) -> None:
    """F(x) f = S(x) with coefficients and totals that vary with time, in one step of the last level."""
    problem = random_problem(rng, 50, 3, (2.5,))
    t = np.unique(problem.t)
    y = problem.y[: len(t)]
    F = np.stack([np.cos(t), np.ones_like(t), 0.3 * t], axis=1)[:, None, :]
    S = np.sin(t)[:, None]
    series = time_series(t, y, problem.variance)
    law = PointLaw(lambda f, x: np.einsum("irt,it->ir", F[x], f) - S[x], lambda f, x: F[x])
    found = law_smooth(problem.prior, series, law, np.arange(len(t)))
    dense = dense_posterior(problem.prior, t, y, problem.variance, t, (F, S, np.full(S.shape, 1e-10)))
    assert found.status == "converged"
    np.testing.assert_allclose(found.mean, dense.mean, atol=1e-6)
    np.testing.assert_allclose(found.linearised.covariance, dense.blocks, atol=1e-6)
    assert np.abs(law.residual(found.mean, np.arange(len(t)))).max() < 1e-14


def test_repeated_times_and_law_only_where_active(rng: np.random.Generator) -> None:
    t, _, y, prior = oscillator(rng, 80, 6.0)
    t = np.concatenate([t, t[:20]])
    y = np.concatenate([y, y[:20] + 0.1 * rng.normal(size=(20, 2))])
    series = time_series(t, y, np.full(2, 0.01))
    law = PointLaw(
        lambda f, x: np.where(x[:, None] < 3.0, circle(f), 0.0),
        lambda f, x: np.where(x[:, None, None] < 3.0, circle_slope(f), 0.0),
    )
    found = law_smooth(prior, series, law, t[series.first])
    assert found.status == "converged"
    np.testing.assert_array_equal(found.mean[80:], found.mean[:20])
    assert np.abs(circle(found.mean[t < 3.0])).max() < 1e-15
    assert np.abs(circle(found.mean[t > 4.0])).max() > 1e-3
    off_law = found.linearised.time_mean[series.times > 3.0]
    expected = off_law[(series.place - np.sum(series.times < 3.0))[t > 3.0]]
    np.testing.assert_allclose(found.mean[t > 3.0], expected, atol=2e-8)


def test_prediction_between_law_points(rng: np.random.Generator) -> None:
    """Where the law is imposed densely it nearly holds in between, and the truth is covered."""
    t, _, y, prior = oscillator(rng, 400, 20.0)
    series = time_series(t, y, np.full(2, 0.01))
    found = law_smooth(prior, series, CIRCLE, series.times)
    new = rng.uniform(1.0, 19.0, 200)
    mean, spread = predict(found.linearised, new)
    free, _ = predict(smooth(prior, series), new)
    assert np.abs(circle(mean)).max() < 0.05 * np.abs(circle(free)).max()
    truth = np.stack([np.cos(new), -np.sin(new)], axis=1)
    assert np.sqrt(np.mean((mean - truth) ** 2)) < 0.8 * np.sqrt(np.mean((free - truth) ** 2))
    on_law = project(CIRCLE, mean, spread, new).points
    assert np.abs(circle(on_law)).max() < 1e-15


def test_large_offsets_do_not_stop_the_search(rng: np.random.Generator) -> None:
    t, _, y, prior = oscillator(rng, 100, 6.0)
    variance = np.full(2, 0.01)
    near = time_series(t, y, variance)
    here = law_smooth(prior, near, CIRCLE, near.times)
    far = time_series(t, y + 1e5, variance)
    law = PointLaw(lambda f, x: circle(f - 1e5), lambda f, x: circle_slope(f - 1e5))
    there = law_smooth(replace(prior, mean=np.full(2, 1e5)), far, law, far.times)
    assert there.status == "converged"
    np.testing.assert_allclose(there.mean - 1e5, here.mean, atol=1e-7)


def test_an_impossible_law_is_said_to_be_unmet(rng: np.random.Generator) -> None:
    t, _, y, prior = oscillator(rng, 30, 3.0)
    series = time_series(t, y, np.full(2, 0.01))
    law = PointLaw(lambda f, x: circle(f) + 2.0 + 0.1 * x[:, None], lambda f, x: circle_slope(f))
    found = law_smooth(prior, series, law, series.times)
    assert found.status.startswith("law not met near t = ")
    assert np.abs(law.residual(found.mean, series.times)).max() > 0.5


@pytest.mark.parametrize("seed", range(6))
def test_noise_of_a_millionth_of_the_prior(seed: int) -> None:
    """1e-9 of its variance would be below round-off of the prior's: the law's variance has a floor.

    Times that run backwards pose the same problem with other round-off. Either search ends at most SETTLED from the
    optimum, in sds that are no smaller than SMALLEST of the prior's.
    """
    t, truth, y, prior = oscillator(np.random.default_rng(seed), 100, 6.0, noise=1e-6)
    series, backwards = (time_series(times, y, np.full(2, 1e-12)) for times in (t, -t))
    found, mirrored = (law_smooth(prior, s, CIRCLE, s.times) for s in (series, backwards))
    assert found.status == mirrored.status == "converged"
    assert np.abs(circle(found.mean)).max() < 1e-15
    without = smooth(prior, series)
    prior_sd = np.sqrt(np.diagonal(prior.terms[0].covariance + prior.mean_covariance))
    sd = np.maximum(np.sqrt(np.einsum("itt->it", without.covariance)), SMALLEST * prior_sd)
    assert np.max(np.abs(found.mean - mirrored.mean) / sd) < 2.0 * SETTLED
    assert np.sqrt(np.mean((found.mean - truth) ** 2)) < np.sqrt(np.mean((without.mean - truth) ** 2))


def test_a_step_limit_is_reported(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sumgp.solvers.markov.law.MOST_STEPS", 3)
    t, _, y, prior = oscillator(rng, 30, 3.0)
    series = time_series(t, y, np.full(2, 0.01))
    assert law_smooth(prior, series, CIRCLE, series.times).status == "step limit"


def test_a_point_where_the_law_has_no_slope_stays() -> None:
    f = np.array([[0.0, 0.0], [0.5, 0.5]])
    found = project(CIRCLE, f, np.broadcast_to(np.eye(2), (2, 2, 2)), np.zeros(2)).points
    np.testing.assert_array_equal(found[0], f[0])
    np.testing.assert_allclose(found[1], np.sqrt(0.5), rtol=1e-15)
