"""Nonlinear laws over time: iterated linearisation of the law with the Markov smoother as the linear solver.

The most probable f with g(f, x) = 0 minimises (f - mean)^T K^-1 (f - mean) / 2 + data misfit + |g|^2 / (2 s^2), the law's
variance s^2 annealed to a part in 1e9. Every iterate is f = mean + K alpha with alpha known, because a smoothed mean
satisfies alpha = B^T (rho - B f) for its whitened rows; so the prior's energy is alpha^T (f - mean) / 2 and costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sumgp.solvers.chain_means import residuals
from sumgp.solvers.markov import MarkovPosterior, MarkovPrior, posterior, refactorise, smooth
from sumgp.solvers.timeseries import TimeSeries, with_rows

PointFunction = Callable[[np.ndarray, np.ndarray], np.ndarray]

LEVELS = (1.0, 1e-1, 1e-2, 1e-3, 1e-6, 1e-9)
CORRECTIONS = 3  # re-projections with the same factor
LEVEL_STEPS = 6
COARSE = 0.1  # a step of so many posterior sds ends a level that is not the last
SHORTEST = 1e-3
ROUND_OFF = 1e-15  # of the prior variance: a law's variance below it is not seen beside the first prediction


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


@dataclass(frozen=True)
class LawSmooth:
    """f given data and law: ``mean`` (N, T) on the law, ``covariance`` (N, T, T) within it, at the points as given.

    ``linearised`` is the posterior of the last linearisation, for predictions elsewhere; ``status`` is "converged",
    "step limit" or "stalled" (no step improves); ``violation`` (N, R) what is left of the law.
    """

    mean: np.ndarray
    covariance: np.ndarray
    linearised: MarkovPosterior
    status: str
    steps: int
    violation: np.ndarray


@dataclass(frozen=True)
class _Iterate:
    """A point f (n, T) of the search, its alpha (n, T), the law's residuals there and the merit."""

    f: np.ndarray
    alpha: np.ndarray
    g: np.ndarray
    merit: float


@dataclass(frozen=True)
class _Search:
    """The minimisation at one level: the posterior without law, the law and its variance (n, R)."""

    free: MarkovPosterior
    law: PointLaw
    variance: np.ndarray

    def at(self, f: np.ndarray, alpha: np.ndarray) -> _Iterate:
        """The iterate with its merit, infinite outside the law's domain."""
        g = self.law.values(f)
        series = self.free.series
        misfit = series.observed - np.einsum("igt,it->ig", series.rows, f)
        energy = np.sum(alpha * (f - self.free.prior.mean)) + np.sum(misfit**2) + np.sum(g**2 / self.variance)
        return _Iterate(f, alpha, g, 0.5 * float(energy) if np.isfinite(energy) else np.inf)


def law_smooth(
    prior: MarkovPrior,
    series: TimeSeries,
    law: PointLaw,
    levels: Sequence[float] = LEVELS,
    tolerance: float = 1e-6,
    max_steps: int = 60,
) -> LawSmooth:
    """Condition on data and law; ``law`` is given at the series' distinct times, in their order.

    ``levels`` are the law's variances relative to what one measurement leaves uncertain, ``tolerance`` is the last step
    relative to the posterior sd without law.
    """
    free = smooth(prior, series)
    sd = np.sqrt(np.maximum(np.einsum("itt->it", free.time_covariance), np.finfo(float).tiny))
    f, alpha, steps, status, last = free.time_mean, _alpha(free), 0, "converged", free
    for level in levels:
        final = level == levels[-1]
        search = _Search(free, law, _variance(level, law.slopes(f), free))
        iterate = search.at(f, alpha)
        allowed = max_steps - steps if final else min(LEVEL_STEPS, max_steps - steps)
        iterate, last, used, status = _descend(search, iterate, sd, tolerance if final else COARSE, allowed)
        f, alpha, steps = iterate.f, iterate.alpha, steps + used
    projected = project(f, free.time_covariance, law)
    place = series.place
    return LawSmooth(projected[place], last.covariance, last, status, steps, law.values(projected)[place])


def _descend(
    search: _Search, iterate: _Iterate, sd: np.ndarray, limit: float, allowed: int
) -> tuple[_Iterate, MarkovPosterior, int, str]:
    """Steps at one law variance until one is below ``limit`` sds: the last iterate and linearisation, count and status.

    Near the end the merit is round-off of very large numbers; there a step is taken if it is at most half the last.
    """
    before = 0.0
    for step in range(1, allowed + 1):
        aim, last = _aim(search, iterate)
        change = float(np.max(np.abs(aim.f - iterate.f) / sd))
        moved = aim if change <= 0.5 * before else _line_search(search, iterate, aim)
        if moved is None:
            return iterate, last, step, "converged" if change <= limit else "stalled"
        before = float(np.max(np.abs(moved.f - iterate.f) / sd))
        iterate = moved
        if before <= limit:
            return iterate, last, step, "converged"
    return iterate, last, allowed, "step limit"


def _alpha(solved: MarkovPosterior) -> np.ndarray:
    """(n, T) K^-1 (f - mean) = B^T (rho - B f) at the smoothed mean f: what the observations pull at it with."""
    left = solved.factor.chain.lanes.collect(residuals(solved.factor, solved.solution))[:, :, 0]
    return np.einsum("igt,ig->it", solved.series.rows, left)


def _variance(level: float, J: np.ndarray, free: MarkovPosterior) -> np.ndarray:
    """(n, R) variances of the law's rows: ``level`` times the posterior variance, or that of one measurement if larger.

    Neighbouring times share what they know; with many of them in a lengthscale the posterior variance is far below one
    measurement's, and as many rows act together on it. A variance relative to the measurement keeps their joint weight.
    """
    series = free.series
    measured = ~np.isnan(series.values)
    noise = np.where(measured, series.variance, 0.0).sum(axis=0) / np.maximum(measured.sum(axis=0), 1)
    crowding = len(series.times) / max(int(np.any(series.rows != 0, axis=(1, 2)).sum()), 1)
    own = np.einsum("irt,itu,iru->ir", J, free.time_covariance, J)
    reference = np.maximum(own, crowding * np.einsum("irt,t->ir", J**2, noise))
    typical = reference.mean(axis=0)
    prior = sum(term.covariance for term in free.prior.terms) + free.prior.mean_covariance
    floor = ROUND_OFF * np.einsum("irt,tu,iru->ir", J, prior, J)
    return np.maximum(level * np.maximum(reference, np.where(typical > 0, 1e-4 * typical, 1.0)), floor)


def _aim(search: _Search, iterate: _Iterate) -> tuple[_Iterate, MarkovPosterior]:
    """The Gauss-Newton step with second-order corrections, and the posterior of this linearisation.

    A full step along a curved law leaves it by the square of the step, which the merit would refuse (Maratos effect);
    solving again with the same factor and the residual found there brings it back.
    """
    free, J = search.free, search.law.slopes(iterate.f)

    def series_at(f: np.ndarray, g: np.ndarray) -> TimeSeries:
        return with_rows(free.series, J, np.einsum("irt,it->ir", J, f) - g, search.variance)

    series = series_at(iterate.f, iterate.g)
    factor = refactorise(free, series)
    solved = posterior(free.prior, series, free.space, factor)
    best = search.at(solved.time_mean, _alpha(solved))
    for _ in range(CORRECTIONS):
        if best.merit <= iterate.merit or not np.all(np.isfinite(best.g)):
            break
        trial = posterior(free.prior, series_at(best.f, best.g), free.space, factor)
        found = search.at(trial.time_mean, _alpha(trial))
        if not found.merit < best.merit:
            break
        solved, best = trial, found
    return best, solved


def _line_search(search: _Search, start: _Iterate, aim: _Iterate) -> _Iterate | None:
    """The first of 1, 1/2, 1/4 ... of the step that does not raise the merit; None if there is none."""
    bar = start.merit + 1e-11 * abs(start.merit)
    if aim.merit <= bar:
        return aim
    length = 0.5
    while length > SHORTEST:
        f, alpha = start.f + length * (aim.f - start.f), start.alpha + length * (aim.alpha - start.alpha)
        trial = search.at(f, alpha)
        if trial.merit <= bar:
            return trial
        length *= 0.5
    return None


def project(f: np.ndarray, covariance: np.ndarray, law: PointLaw, steps: int = 8) -> np.ndarray:
    """(n, T) points on the law, each the nearest to f (n, T) in the metric of its covariance (n, T, T).

    f_{k+1} = f + P J^T (J P J^T)^+ (J (f_k - f) - g(f_k)) for the first steps, then Newton's method down to round-off;
    a point keeps its place where a step would not come closer to the law.
    """
    found, g = f, law.values(f)
    for step in range(steps):
        J = law.slopes(found)
        target = -g
        origin = found
        if step < steps // 2:
            origin, target = f, target + np.einsum("irt,it->ir", J, found - f)
        cross = np.einsum("itu,iru->itr", covariance, J)
        inverse = np.linalg.pinv(np.einsum("irt,its->irs", J, cross), rcond=1e-12, hermitian=True)
        trial = origin + np.einsum("itr,irs,is->it", cross, inverse, target)
        value = law.values(trial)
        closer = np.sum(value**2, axis=1) < np.sum(g**2, axis=1)
        found, g = np.where(closer[:, None], trial, found), np.where(closer[:, None], value, g)
    return found
