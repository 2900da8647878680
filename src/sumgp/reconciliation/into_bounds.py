"""Forecasts on a law, moved into bounds as predictions of a fit are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sumgp.laws import BoundedLaw, Inequalities, UnitFreeLaw, check_bounds
from sumgp.prediction import BoundedPoints, common_numbers, point_draws
from sumgp.reconciliation.result import Reconciled
from sumgp.strategies import Unprojected


def gaussian_draws(law: UnitFreeLaw | None, before: Unprojected, x: np.ndarray) -> np.ndarray:
    """(M, n, C) draws of a Gaussian at each of n points, moved onto the law in its metric."""
    numbers = common_numbers(np.ones(1), np.arange(before.mean.shape[1]))
    return point_draws(law, [before], numbers, x)


def into_bounds(bounds: Inequalities, moved: Reconciled, V: np.ndarray) -> Reconciled:
    """Means and draws outside the bounds go to the nearest point that obeys them and the law.

    Outputs are measured in the standard deviations of the forecasts, from V (n, T, T); one that is certain stays. Gaussian
    forecasts become draws, of which each is moved.
    """
    check_bounds(bounds, moved.law, moved.x)
    draws = moved.draws
    if draws is None and moved.covariance is not None:
        draws = gaussian_draws(None, Unprojected(moved.mean, moved.covariance, None), moved.x)
    limits = bounds.limits(moved.x)
    mean, inside = moved.mean.copy(), None if draws is None else draws.copy()
    T = mean.shape[1]
    sds, kind = np.unique(np.sqrt(np.einsum("ntt->nt", V)), axis=0, return_inverse=True)
    for k, sd in enumerate(sds):
        rows = np.flatnonzero(kind.ravel() == k)
        region = BoundedLaw(bounds, moved.law)
        points = BoundedPoints(region, limits.at(rows), moved.x[rows], sd, np.zeros(T), np.ones(T))
        mean[rows] = points.mean(mean[rows])
        if inside is not None:
            inside[:, rows] = points.draws(inside[:, rows], mean[rows])
    return replace(moved, mean=mean, covariance=None, draws=inside, limits=limits)
