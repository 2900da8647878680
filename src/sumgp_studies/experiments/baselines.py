"""Interpolation of the measured rows, without any law or uncertainty: what a model must beat to be worth fitting."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline

from sumgp.errors import DataError


@dataclass(frozen=True)
class PointPrediction:
    """A prediction (n, T) that says nothing about its error: intervals and densities are NaN."""

    mean: np.ndarray

    def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Two arrays (n, T) of NaN."""
        return np.full_like(self.mean, np.nan), np.full_like(self.mean, np.nan)

    def log_density(self, values: np.ndarray) -> np.ndarray:
        """(n, T) NaN."""
        return np.full_like(self.mean, np.nan)

    def observed(self) -> PointPrediction:
        """The same for a new measurement."""
        return self


def interpolated(X: np.ndarray, Y: np.ndarray, X_new: np.ndarray, smooth: bool) -> np.ndarray:
    """(n, T) values at X_new (n, 1) from the measured entries of Y (N, T), by straight lines or a cubic spline.

    Straight lines are continued as constants beyond the data, splines by their last piece.
    """
    if X.shape[1] != 1:
        raise DataError("X", "one input column", f"{X.shape[1]}", "interpolation is offered for one input only")
    columns = []
    for values in Y.T:
        known = np.isfinite(values)
        if np.sum(known) < 2:
            raise DataError("Y", "two measured values of each output", f"{np.sum(known)}", "give more data")
        x, y = X[known, 0], values[known]
        columns.append(CubicSpline(x, y)(X_new[:, 0]) if smooth else np.interp(X_new[:, 0], x, y))
    return np.column_stack(columns)
