"""A law at given points, as arrays, and the projection of points onto it.

Nonlinear laws over time: iterated linearisation of the law with the Markov smoother as the linear solver.
The most probable f with g(f, x) = 0 minimises (f - mean)^T K^-1 (f - mean) / 2 + data misfit + |g|^2 / (2 s^2), the law's
variance s^2 annealed to a part in 1e9. Every iterate is f = mean + K alpha with alpha known, because a smoothed mean
satisfies alpha = B^T (rho - B f) for its whitened rows; so the prior's energy is alpha^T (f - mean) / 2 and costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sumgp.errors import NumericalError
from sumgp.solvers.markov.chain import Chain, residuals
from sumgp.solvers.markov.posterior import MarkovPosterior, MarkovPrior, posterior, refactorise, smooth
from sumgp.solvers.markov.state_space import StateSpace, TimeSeries, with_rows

PointFunction = Callable[[np.ndarray, np.ndarray], np.ndarray]

RANK = 1e-10  # eigenvalues of the rows' correlations below it: rows that repeat others


@dataclass(frozen=True)
class PointLaw:
    """``residual(f, x)`` (n, R) = 0 with ``jacobian(f, x)`` (n, R, T), at inputs ``x`` (n, ...), imposed where ``active``.

    ``active`` (n, R) is None where every row holds everywhere.
    """

    residual: PointFunction
    jacobian: PointFunction
    x: np.ndarray
    active: np.ndarray | None = None

    def values(self, f: np.ndarray) -> np.ndarray:
        """(n, R) residuals, zero where a row is not imposed."""
        values = self.residual(f, self.x)
        return values if self.active is None else np.where(self.active, values, 0.0)

    def slopes(self, f: np.ndarray) -> np.ndarray:
        """(n, R, T) derivatives, zero where a row is not imposed."""
        slopes = self.jacobian(f, self.x)
        return slopes if self.active is None else np.where(self.active[:, :, None], slopes, 0.0)

    def at(self, index: np.ndarray) -> PointLaw:
        """The law at some of the points."""
        active = None if self.active is None else self.active[index]
        return PointLaw(self.residual, self.jacobian, self.x[index], active)


def project(f: np.ndarray, covariance: np.ndarray, law: PointLaw, steps: int = 12) -> np.ndarray:
    """(n, T) points on the law, each the nearest to f (n, T) in the metric of its covariance (n, T, T).

    f_{k+1} = f + P J^T (J P J^T)^+ (J (f_k - f) - g(f_k)) for the first half of the steps, then Newton's method down to
    round-off. A point stops where a step brings it no closer to the law.
    """
    found = f.copy()
    live = np.arange(len(f))
    for step in range(steps):
        here, P = law.at(live), covariance[live]
        g, J = here.values(found[live]), here.slopes(found[live])
        origin, target = found[live], -g
        if step < steps // 2:
            origin, target = f[live], target + np.einsum("irt,it->ir", J, found[live] - f[live])
        cross = np.einsum("itu,iru->itr", P, J)
        inverse = _pseudo_inverse(np.einsum("irt,its->irs", J, cross))
        trial = origin + np.einsum("itr,irs,is->it", cross, inverse, target)
        value = here.values(trial)
        closer = np.sum(value**2, axis=1) < np.sum(g**2, axis=1)
        found[live[closer]] = trial[closer]
        live = live[closer]
        if not len(live):
            break
    return found


def _pseudo_inverse(S: np.ndarray) -> np.ndarray:
    """(n, R, R) pseudo-inverses of semidefinite S; rows that repeat others or vanish drop out, whatever their units."""
    sd = np.sqrt(np.maximum(np.einsum("irr->ir", S), 0.0))
    inverse = np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > 0)
    scale = inverse[:, :, None] * inverse[:, None, :]
    if S.shape[1] == 1:
        return scale
    return np.linalg.pinv(S * scale, rcond=RANK, hermitian=True) * scale


LEVELS = (1.0, 1e-1, 1e-2, 1e-3, 1e-6, 1e-9)
LEVEL_STEPS = 6
COARSE = 0.1  # a step of so many posterior sds ends a level that is not the last
SHORTEST = 1e-3
ROUND_OFF = 1e-15  # of the prior variance: a law's variance below it is not seen beside the first prediction
SMALLEST = 1e-5  # of the prior sd: steps are not measured against anything smaller, or round-off would seem to move f
SETTLED = 1e-3  # posterior sds: a Newton step so short changes no answer, and the merit, which has round-off, may not see it
UNMET = 1e-3  # of a row's own uncertainty: a violation that counts as such


@dataclass(frozen=True)
class LawSmooth:
    """f given data and law: ``mean`` (N, T) on the law, ``covariance`` (N, T, T) within it, at the points as given.

    ``linearised`` is the posterior of the last linearisation, for predictions elsewhere; ``violation`` (N, R) what is
    left of the law. ``status`` is "converged", "step limit", "stalled" (no step improves), "round-off at law variance ..."
    or "law not met near t = ...".
    """

    mean: np.ndarray
    covariance: np.ndarray
    linearised: MarkovPosterior
    status: str
    steps: int
    violation: np.ndarray


@dataclass(frozen=True)
class _Point:
    """f (n, T) with alpha = K^-1 (f - mean) (n, T), its constant mean (T,) and that in standard units u (T,)."""

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


@dataclass(frozen=True)
class _Search:
    """The minimisation at one level: the problem without law, the law and its variance (n, R)."""

    free: _Free
    law: PointLaw
    variance: np.ndarray

    def at(self, point: _Point) -> _Iterate:
        """The iterate with its merit, infinite where the law cannot be evaluated."""
        g = self.law.values(point.f)
        series = self.free.series
        misfit = series.observed - np.einsum("igt,it->ig", series.rows, point.f)
        energy = np.sum(point.alpha * (point.f - point.mean)) + np.sum(point.u**2)
        merit = 0.5 * float(energy + np.sum(misfit**2) + np.sum(g**2 / self.variance))
        return _Iterate(point, g, merit if np.isfinite(merit) else np.inf)

    def linearised(self, iterate: _Iterate) -> MarkovPosterior:
        """The posterior given J f = J f_k - g(f_k), the law linearised at the iterate f_k."""
        free, J = self.free, self.law.slopes(iterate.point.f)
        target = np.einsum("irt,it->ir", J, iterate.point.f) - iterate.g
        series = with_rows(free.series, J, target, self.variance)
        return posterior(free.prior, series, free.space, refactorise(free.space, free.chain, series))


def law_smooth(
    prior: MarkovPrior,
    series: TimeSeries,
    law: PointLaw,
    levels: Sequence[float] = LEVELS,
    reference: np.ndarray | None = None,
    tolerance: float = 1e-6,
    max_steps: int = 60,
) -> LawSmooth:
    """Condition on data and law; ``law`` is given at the series' distinct times, in their order.

    The law's variances are ``levels`` times ``reference`` (n, R), by default what one measurement leaves uncertain;
    ``tolerance`` is the last step relative to the posterior sd without law. The law must have values and slopes wherever
    the search may go: outside its domain give it a continuation. For a linear law one level is enough.
    """
    free, point = _without_law(prior, series)
    sd = np.sqrt(np.maximum(np.einsum("itt->it", free.covariance), SMALLEST**2 * _prior_covariance(prior).diagonal()))
    search, steps, status = None, 0, "step limit"
    for level in levels:
        final = level == levels[-1]
        trial = _Search(free, law, _variance(level, law.slopes(point.f), free, reference))
        allowed = max_steps - steps if final else min(LEVEL_STEPS, max_steps - steps)
        try:
            point, used, status = _descend(trial, point, sd, tolerance if final else COARSE, allowed)
        except NumericalError:
            if search is None:
                raise
            status = f"round-off at law variance {level:g}"
            break
        search, steps = trial, steps + used
    assert search is not None
    last = search.linearised(search.at(point))
    projected = project(point.f, free.covariance, law)
    violation = law.values(projected)
    unmet = np.abs(violation) > UNMET * np.sqrt(_variance(1.0, law.slopes(projected), free, reference))
    if unmet.any():
        status = f"law not met near t = {series.times[np.argmax(unmet.any(axis=1))]:.6g}"
    return LawSmooth(projected[series.place], last.covariance, last, status, steps, violation[series.place])


def _without_law(prior: MarkovPrior, series: TimeSeries) -> tuple[_Free, _Point]:
    """The problem without law and its solution; the factor, which is large, is not kept."""
    solved = smooth(prior, series)
    free = _Free(prior, series, solved.space, solved.factor.chain, solved.time_covariance)
    return free, _point(solved)


def _descend(search: _Search, point: _Point, sd: np.ndarray, limit: float, allowed: int) -> tuple[_Point, int, str]:
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
            return iterate.point, step, "converged" if change <= max(limit, SETTLED) else "stalled"
        before = _change(iterate, moved, sd)
        iterate = moved
        if before <= limit:
            return iterate.point, step, "converged"
    return iterate.point, allowed, "step limit"


def _change(first: _Iterate, second: _Iterate, sd: np.ndarray) -> float:
    """Largest move in posterior sds."""
    return float(np.max(np.abs(second.point.f - first.point.f) / sd))


def _point(solved: MarkovPosterior) -> _Point:
    """A smoothed mean with its alpha = B^T (rho - B f): what the observations pull at it with."""
    left = solved.factor.chain.lanes.collect(residuals(solved.factor, solved.solution))[:, :, 0]
    alpha = np.einsum("igt,ig->it", solved.series.rows, left)
    return _Point(solved.time_mean, alpha, solved.constant.estimate, solved.constant.standard)


def _variance(level: float, J: np.ndarray, free: _Free, reference: np.ndarray | None) -> np.ndarray:
    """(n, R) variances of the law's rows: ``level`` times the reference, but not below round-off."""
    size = _reference(J, free) if reference is None else reference
    return np.maximum(level * size, ROUND_OFF * np.einsum("irt,tu,iru->ir", J, _prior_covariance(free.prior), J))


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


def _prior_covariance(prior: MarkovPrior) -> np.ndarray:
    """(T, T) covariance of f at any one time."""
    return np.sum([term.covariance for term in prior.terms], axis=0) + prior.mean_covariance


def _line_search(search: _Search, start: _Iterate, aim: _Iterate) -> _Iterate | None:
    """The first of 1, 1/2, 1/4 ... of the step that does not raise the merit; None if there is none."""
    bar = start.merit + 1e-11 * abs(start.merit)
    if aim.merit <= bar:
        return aim
    length = 0.5
    while length > SHORTEST:
        trial = search.at(start.point.towards(aim.point, length))
        if trial.merit <= bar:
            return trial
        length *= 0.5
    return None
