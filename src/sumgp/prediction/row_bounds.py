"""Rows of a table within bounds: measured cells stay, others move to the nearest values that obey law and bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sumgp.laws import BoundedLaw, Limits
from sumgp.prediction.bounding import NEAR, BoundedPoints
from sumgp.prediction.marginals import DrawnMarginals, common_numbers, principal_root

ROWS_AT_ONCE = 256  # whose draws are moved at a time


@dataclass(frozen=True, eq=False)
class RowBounds:
    """n rows: the law that they obey (or none), their bounds, inputs, and how far each cell may move, 0 = not at all."""

    region: BoundedLaw
    limits: Limits
    x: np.ndarray
    sds: np.ndarray  # (n, T + U), in the user's units
    constants: np.ndarray  # (U,) of the law

    @classmethod
    def of(cls, points: BoundedPoints, constants: np.ndarray, law: bool, stay: np.ndarray) -> RowBounds:
        """Of cells (n, T) of which some ``stay``, whatever their own bounds say; ``law``: whether the rows obey it."""
        T = points.n_outputs
        limits = points.limits._replace(
            lower=np.where(stay, -np.inf, points.limits.lower), upper=np.where(stay, np.inf, points.limits.upper)
        )
        sds = np.where(stay, 0.0, points.sds[:T])
        if not law or points.region.law is None:
            return cls(BoundedLaw(points.region.bounds), limits, points.x, sds, np.zeros(0))
        sds = np.concatenate([sds, np.zeros((len(sds), len(constants)))], axis=1)
        return cls(points.region, limits, points.x, sds, constants)

    def at(self, rows: np.ndarray) -> RowBounds:
        """Some of the rows."""
        return replace(self, limits=self.limits.at(rows), x=self.x[rows], sds=self.sds[rows])

    def near(self, mean: np.ndarray, sd: np.ndarray) -> np.ndarray:
        """(n,) truth of whether rows with mean and sd (n, T) may leave their bounds."""
        reach = NEAR * sd
        own = np.any((mean - reach < self.limits.lower) | (mean + reach > self.limits.upper), axis=1)
        sums = np.einsum("nqt,nt->nq", self.limits.G, mean) + np.einsum("nqt,nt->nq", np.abs(self.limits.G), reach)
        return own | np.any(sums > self.limits.h, axis=1)

    def moved(self, f: np.ndarray, refuge: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Rows f (n, T) within the bounds, and whether (n,) such a row was found; where not, ``refuge`` or f itself."""
        result, met = f.copy(), np.ones(len(f), dtype=bool)
        T, out = f.shape[1], np.flatnonzero(np.any(self.limits.excess(f) > 0, axis=1))
        kinds, kind = np.unique(self.sds[out], axis=0, return_inverse=True)
        for k, sds in enumerate(kinds):
            rows = out[kind.reshape(-1) == k]
            columns = [np.concatenate([a[rows], self._constants(len(rows))], axis=1) for a in (f, refuge) if a is not None]
            found = self.region.moved(columns[0], self.x[rows], self.limits.at(rows), sds, *columns[1:])
            instead = f[rows] if refuge is None else refuge[rows]
            result[rows] = np.where(found.met[:, None], found.points[:, :T], instead)
            met[rows] = found.met
        return result, met

    def draws(self, draws: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """(M, n, T) draws within the bounds; one from which the law cannot be reached there becomes the mean (n, T)."""
        M, n, T = draws.shape
        every = self.at(np.tile(np.arange(n), M))
        return every.moved(draws.reshape(M * n, T), np.tile(mean, (M, 1)))[0].reshape(M, n, T)

    def clipped(self, values: np.ndarray) -> np.ndarray:
        """Values (..., n, T) within the bounds of each cell alone."""
        return np.clip(values, self.limits.lower, np.maximum(self.limits.lower, self.limits.upper))

    def _constants(self, count: int) -> np.ndarray:
        return np.broadcast_to(self.constants, (count, len(self.constants)))


@dataclass(frozen=True, eq=False)
class BoundedRows:
    """Gaussian rows N(mean, covariance) before the bounds, where these bind (``near``) and what they make of draws there."""

    bounds: RowBounds
    mean: np.ndarray
    covariance: np.ndarray
    near: np.ndarray  # (n,)
    marginals: DrawnMarginals  # at the near rows


def bounded_rows(bounds: RowBounds, free: tuple[np.ndarray, np.ndarray], mean: np.ndarray) -> tuple[BoundedRows, np.ndarray]:
    """Rows with Gaussian mean (n, T) and covariance (n, T, T), whose mean within the bounds is ``mean``; and covariances of
    the moved draws."""
    centre, covariance = free
    sd = np.sqrt(np.maximum(np.einsum("ntt->nt", covariance), 0.0))
    near = bounds.near(centre, sd)
    rows, T = np.flatnonzero(near), centre.shape[1]
    numbers = common_numbers(np.ones(1), np.arange(T))
    moved, total = [np.empty((len(numbers.normal), 0, T))], covariance.copy()
    for start in range(0, len(rows), ROWS_AT_ONCE):
        some = rows[start : start + ROWS_AT_ONCE]
        root = principal_root(covariance[some], numbers.rank)
        draws = centre[some] + np.einsum("ncd,kd->knc", root, numbers.normal)
        draws = bounds.at(some).draws(draws, mean[some])
        away = draws - draws.mean(axis=0)
        total[some] = np.einsum("knt,knu->ntu", away, away) / len(draws)
        moved.append(draws)
    marginals = DrawnMarginals(np.sort(np.concatenate(moved, axis=1), axis=0))
    return BoundedRows(bounds, centre, covariance, near, marginals), total
