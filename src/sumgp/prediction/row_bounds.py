"""Rows of a table within bounds: measured cells stay, others move to the nearest values that obey law and bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sumgp.laws import BoundedLaw, Limits
from sumgp.prediction.bounding import NEAR, BoundedPoints
from sumgp.prediction.marginals import DrawnMarginals, common_numbers, principal_root

ROWS_AT_ONCE = 256  # whose draws are moved at a time


def bounds_of_rows(points: BoundedPoints, constants: np.ndarray, law: bool, stay: np.ndarray) -> BoundedPoints:
    """For rows (n, T) in the user's units, of which the cells that ``stay`` (n, T) do so, whatever their own bounds say.

    ``law``: whether the rows obey it; ``constants`` (U,) of it.
    """
    lower, upper, G, h = points.limits
    limits = Limits(np.where(stay, -np.inf, lower), np.where(stay, np.inf, upper), G, h)
    sds, T = np.where(stay, 0.0, points.sds[: points.n_outputs]), points.n_outputs
    if not law or points.region.law is None:
        return BoundedPoints(BoundedLaw(points.region.bounds), limits, points.x, sds, np.zeros(T), np.ones(T))
    U = len(constants)
    shift, scale = np.concatenate([np.zeros(T), constants]), np.concatenate([np.ones(T), np.zeros(U)])
    return BoundedPoints(points.region, limits, points.x, np.pad(sds, ((0, 0), (0, U))), shift, scale)


@dataclass(frozen=True, eq=False)
class BoundedRows:
    """Gaussian rows N(mean, covariance) before the bounds, where these bind (``near``) and what they make of draws there."""

    bounds: BoundedPoints
    mean: np.ndarray
    covariance: np.ndarray
    near: np.ndarray  # (n,)
    marginals: DrawnMarginals  # at the near rows


def bounded_rows(
    bounds: BoundedPoints, free: tuple[np.ndarray, np.ndarray], mean: np.ndarray
) -> tuple[BoundedRows, np.ndarray]:
    """Rows with Gaussian mean (n, T) and covariance (n, T, T), whose mean within the bounds is ``mean``; and covariances of
    the moved draws."""
    centre, covariance = free
    sd = np.sqrt(np.maximum(np.einsum("ntt->nt", covariance), 0.0))
    near = bounds.limits.may_be_left(centre[None], NEAR * sd[None])
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
