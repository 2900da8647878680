"""Nonlinear laws over time: iterated linearisation of the law with the Markov smoother as the linear solver.

The most probable f with g(f, x) = 0 minimises (f - mean)^T K^-1 (f - mean) / 2 + data misfit + |g|^2 / (2 s^2), the law's
variance s^2 annealed to a part in 1e9. Every iterate is f = mean + K alpha with alpha known, because a smoothed mean
satisfies alpha = B^T (rho - B f) for its whitened rows; so the prior's energy is alpha^T (f - mean) / 2 and costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sumgp.errors import NumericalError, Status
from sumgp.laws import UnitFreeLaw, project
from sumgp.numerics import backtrack
from sumgp.solvers.markov.chain import Chain, residuals
from sumgp.solvers.markov.posterior import MarkovPosterior, MarkovPrior, posterior, refactorise, smooth
from sumgp.solvers.markov.state_space import StateSpace, TimeSeries, with_rows

LEVELS = (1.0, 1e-1, 1e-2, 1e-3, 1e-6, 1e-9)  # of the law's variance, in units of what one measurement leaves open of it
LEVEL_STEPS = 6  # at most, of each level but the last: rough is enough there
MOST_STEPS = 60  # of all levels together
LAST_STEP = 1e-6  # posterior sds without law, at which the last level ends
COARSE = 0.1  # a step of so many posterior sds ends a level that is not the last
SHORTEST = 1e-3  # of a full step: a step below 1/512 that does not lower the merit ends a level
ROUND_OFF = 1e-15  # of the prior variance: a law's variance below it is not seen beside the first prediction
SMALLEST = 1e-5  # of the prior sd: steps are not measured against anything smaller, or round-off would seem to move f
SETTLED = 1e-3  # posterior sds: a Newton step so short changes no answer, and the merit, which has round-off, may not see it
UNMET = 1e-3  # of a row's own uncertainty: a violation that counts as such


class LawSmooth(NamedTuple):
    """f given data and law: ``mean`` (N, T) on the law, at the points as given.

    ``linearised`` is the posterior of the last linearisation, for predictions elsewhere. ``status`` is "converged", "step
    limit", "stalled" (no step improves), "round-off at law variance ..." or "law not met near t = ...".
    """

    mean: np.ndarray
    linearised: MarkovPosterior
    status: str
    steps: int


@dataclass(frozen=True)
class _Point:
    """f (n, T) with alpha = K^-1 (f - mean) (n, T), its mean (n, T) and that in standard units u (M,)."""

    f: np.ndarray
    alpha: np.ndarray
    mean: np.ndarray
    u: np.ndarray

    def towards(self, other: _Point, length: float) -> _Point:
        """The point at ``length`` of the way to another; all parts are linear in each other."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return _Point(*(a + length * (b - a) for a, b in pairs))


@dataclass(frozen=True)
class _Iterate:
    """A point of the search, the law's residuals (n, R) there and the merit."""

    point: _Point
    g: np.ndarray
    merit: float


@dataclass(frozen=True)
class _Free:
    """What the search needs of the problem without law: its parts, and the covariances (n, T, T) at the times."""

    prior: MarkovPrior
    series: TimeSeries
    space: StateSpace
    chain: Chain
    covariance: np.ndarray

    @cached_property
    def prior_covariance(self) -> np.ndarray:
        """(T, T) covariance of f at any one time, in the mean over the times where it varies."""
        H, basis = self.space.observe, self.prior.mean_basis(self.series.times)
        mean = np.einsum("nca,ab,ndb->cd", basis, self.prior.mean_covariance, basis, optimize=True) / len(basis)
        return H @ self.space.stationary @ H.T + mean


@dataclass(frozen=True)
class _Search:
    """The minimisation at one level: the problem without law, the law at x (n, ...) and its variance (n, R)."""

    free: _Free
    law: UnitFreeLaw
    x: np.ndarray
    variance: np.ndarray

    def at(self, point: _Point) -> _Iterate:
        """The iterate with its merit, infinite where the law cannot be evaluated."""
        g = self.law.residual(point.f, self.x)
        series = self.free.series
        misfit = series.observed - np.einsum("igt,it->ig", series.rows, point.f)
        energy = np.sum(point.alpha * (point.f - point.mean)) + np.sum(point.u**2)
        merit = 0.5 * float(energy + np.sum(misfit**2) + np.sum(g**2 / self.variance))
        return _Iterate(point, g, merit if np.isfinite(merit) else np.inf)

    def linearised(self, iterate: _Iterate) -> MarkovPosterior:
        """The posterior given J f = J f_k - g(f_k), the law linearised at the iterate f_k."""
        free, J = self.free, self.law.jacobian(iterate.point.f, self.x)
        target = np.einsum("irt,it->ir", J, iterate.point.f) - iterate.g
        series = with_rows(free.series, J, target, self.variance)
        return posterior(free.prior, series, free.space, refactorise(free.space, free.chain, series))


def law_smooth(prior: MarkovPrior, series: TimeSeries, law: UnitFreeLaw, x: np.ndarray) -> LawSmooth:
    """Condition on data and law; ``x`` (n, ...) are the law's inputs at the series' distinct times, in their order.

    The law's variances are ``LEVELS`` times what one measurement leaves uncertain; the last step is below ``LAST_STEP``
    posterior sds without law. The law must have values and slopes wherever the search may go: outside its domain give it a
    continuation.
    """
    free, point = _without_law(prior, series)
    sd = np.sqrt(np.maximum(np.einsum("itt->it", free.covariance), SMALLEST**2 * free.prior_covariance.diagonal()))
    search, steps = None, 0
    status: str = Status.STEP_LIMIT
    for level in LEVELS:
        final = level == LEVELS[-1]
        trial = _Search(free, law, x, _variance(level, law.jacobian(point.f, x), free))
        allowed = MOST_STEPS - steps if final else min(LEVEL_STEPS, MOST_STEPS - steps)
        try:
            point, used, status = _descend(trial, point, sd, LAST_STEP if final else COARSE, allowed)
        except NumericalError:
            if search is None:
                raise
            status = Status.ROUND_OFF.at(f"at law variance {level:g}")
            break
        search, steps = trial, steps + used
    assert search is not None
    last = search.linearised(search.at(point))
    projected = project(law, point.f, free.covariance, x).points
    unmet = np.abs(law.residual(projected, x)) > UNMET * np.sqrt(_variance(1.0, law.jacobian(projected, x), free))
    if unmet.any():
        status = Status.LAW_NOT_MET.at(f"near t = {series.times[np.argmax(unmet.any(axis=1))]:.6g}")
    return LawSmooth(projected[series.place], last, status, steps)


def _without_law(prior: MarkovPrior, series: TimeSeries) -> tuple[_Free, _Point]:
    """The problem without law and its solution; the factor, which is large, is not kept."""
    solved = smooth(prior, series)
    free = _Free(prior, series, solved.space, solved.factor.chain, solved.time_covariance)
    return free, _point(solved)


class _Descent(NamedTuple):
    """The last point of a level, its steps, and how it ended."""

    point: _Point
    steps: int
    status: Status


def _descend(search: _Search, point: _Point, sd: np.ndarray, limit: float, allowed: int) -> _Descent:
    """Steps at one law variance until one is below ``limit`` sds: the last point, the number of steps and the status.

    Near the end the merit is round-off of very large numbers; there a step is taken if it is at most half the last, and
    a search that finds no lower merit has converged if the whole step is short beside the posterior sd.
    """
    iterate, before = search.at(point), 0.0
    for step in range(1, allowed + 1):
        aim = search.at(_point(search.linearised(iterate)))
        change = _change(iterate, aim, sd)
        moved = aim if change <= 0.5 * before else _line_search(search, iterate, aim)
        if moved is None:
            return _Descent(iterate.point, step, Status.CONVERGED if change <= max(limit, SETTLED) else Status.STALLED)
        before = _change(iterate, moved, sd)
        iterate = moved
        if before <= limit:
            return _Descent(iterate.point, step, Status.CONVERGED)
    return _Descent(iterate.point, allowed, Status.STEP_LIMIT)


def _change(first: _Iterate, second: _Iterate, sd: np.ndarray) -> float:
    """Largest move in posterior sds."""
    return float(np.max(np.abs(second.point.f - first.point.f) / sd))


def _point(solved: MarkovPosterior) -> _Point:
    """A smoothed mean with its alpha = B^T (rho - B f): what the observations pull at it with."""
    left = solved.factor.chain.lanes.collect(residuals(solved.factor, solved.solution))[:, :, 0]
    alpha = np.einsum("igt,ig->it", solved.series.rows, left)
    mean = solved.prior.mean_at(solved.series.times, solved.constant.estimate)
    return _Point(solved.time_mean, alpha, mean, solved.constant.standard)


def _variance(level: float, J: np.ndarray, free: _Free) -> np.ndarray:
    """(n, R) variances of the law's rows: ``level`` times the reference, but not below round-off."""
    return np.maximum(level * _reference(J, free), ROUND_OFF * np.einsum("irt,tu,iru->ir", J, free.prior_covariance, J))


def _reference(J: np.ndarray, free: _Free) -> np.ndarray:
    """(n, R) posterior variances of the law's rows, or those of one measurement where these are larger.

    Neighbouring times share what they know; with many of them in a lengthscale the posterior variance is far below one
    measurement's, and as many rows act together on it. A variance relative to the measurement keeps their joint weight.
    """
    series = free.series
    measured = ~np.isnan(series.values)
    noise = np.where(measured, series.variance, 0.0).sum(axis=0) / np.maximum(measured.sum(axis=0), 1)
    crowding = len(series.times) / max(int(np.any(series.rows != 0, axis=(1, 2)).sum()), 1)
    own = np.einsum("irt,itu,iru->ir", J, free.covariance, J)
    size = np.maximum(own, crowding * np.einsum("irt,t->ir", J**2, noise))
    typical = size.mean(axis=0)
    return np.maximum(size, np.where(typical > 0, 1e-4 * typical, 1.0))


def _line_search(search: _Search, start: _Iterate, aim: _Iterate) -> _Iterate | None:
    """The first of 1, 1/2, 1/4 ... of the step that does not raise the merit; None if there is none."""
    bar = start.merit + 1e-11 * abs(start.merit)

    def lower(length: float) -> _Iterate | None:
        trial = aim if length == 1.0 else search.at(start.point.towards(aim.point, length))
        return trial if trial.merit <= bar else None

    return backtrack(lower, SHORTEST)
