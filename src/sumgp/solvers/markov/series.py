"""Observations of several outputs over one input, merged where times repeat and written as whitened rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sumgp.errors import DataError, worded


@dataclass(frozen=True)
class TimeSeries:
    """What is known at n distinct, increasing times: ``observed`` = ``rows`` f + N(0, I), a zero row saying nothing.

    ``times`` (n,), ``rows`` (n, g, T), ``observed`` (n, g). ``place`` (N,) says which time each given point became.
    ``constant`` is the part of log p(y) that does not depend on f. ``values`` and ``variance`` (N, T) are the data as
    given, NaN where nothing was measured.
    """

    times: np.ndarray
    rows: np.ndarray
    observed: np.ndarray
    place: np.ndarray
    constant: float
    values: np.ndarray
    variance: np.ndarray

    @property
    def n_outputs(self) -> int:
        """Number of outputs T."""
        return self.rows.shape[2]

    @property
    def first(self) -> np.ndarray:
        """(n,) index of the first given point at each distinct time."""
        return np.unique(self.place, return_index=True)[1]


def time_series(times: np.ndarray, values: np.ndarray, variance: np.ndarray) -> TimeSeries:
    """Merge N points at ``times`` (N,) with ``values`` (N, T), NaN = not measured, and noise ``variance`` (T,) or (N, T).

    Measurements of one output at one time become their weighted mean, which loses nothing: the scatter about it enters
    log p(y) as a constant.
    """
    times, values = np.asarray(times, dtype=float), np.asarray(values, dtype=float)
    variance = np.broadcast_to(np.asarray(variance, dtype=float), values.shape)
    _check(times, values, variance)
    measured = ~np.isnan(values)
    distinct, place = np.unique(times, return_inverse=True)
    weight = np.where(measured, 1.0 / np.where(measured, variance, 1.0), 0.0)
    filled = np.where(measured, values, 0.0)
    total = _summed(weight, place, len(distinct))
    centre = _summed(weight * filled, place, len(distinct)) / np.where(total > 0, total, 1.0)
    scatter = weight * np.where(measured, filled - centre[place], 0.0) ** 2
    constant = -0.5 * float(scatter.sum() + np.log(2.0 * np.pi * variance[measured]).sum())
    rows = np.sqrt(total)[:, :, None] * np.eye(values.shape[1])
    return TimeSeries(distinct, rows, np.sqrt(total) * centre, place, constant, values, variance)


def _check(times: np.ndarray, values: np.ndarray, variance: np.ndarray) -> None:
    if times.ndim != 1 or values.ndim != 2 or len(times) != len(values) or not len(times):
        shapes = f"shapes {times.shape} and {values.shape}"
        raise DataError(worded("times, values", "(N,) and (N, T) with N > 0", shapes, "give one row of values per time"))
    if not np.all(np.isfinite(times)):
        raise DataError(worded("times", "finite numbers", "NaN or infinity", "drop those rows"))
    if np.any(np.isinf(values)):
        raise DataError(worded("values", "numbers, or NaN where nothing was measured", "infinity", "replace it by NaN"))
    if not np.all(variance[~np.isnan(values)] > 0):
        raise DataError(
            worded("variance", "positive numbers", "zero, negative or NaN", "give the noise a positive variance")
        )


def _summed(values: np.ndarray, place: np.ndarray, n: int) -> np.ndarray:
    """(n, T) sums of the (N, T) values that share a place."""
    return np.stack([np.bincount(place, weights=column, minlength=n) for column in values.T], axis=1)


def with_rows(series: TimeSeries, J: np.ndarray, target: np.ndarray, variance: np.ndarray) -> TimeSeries:
    """The same with R further observations J_i f(t_i) = target_i + N(0, variance_i) at every distinct time.

    J (n, R, T), target and variance (n, R), in the order of ``series.times``; a row of J that is zero says nothing.
    """
    sd = np.sqrt(variance)
    said = np.any(J != 0, axis=2)
    return replace(
        series,
        rows=np.concatenate([series.rows, J / sd[:, :, None]], axis=1),
        observed=np.concatenate([series.observed, np.where(said, target / sd, 0.0)], axis=1),
        constant=series.constant - 0.5 * float(np.log(2.0 * np.pi * variance[said]).sum()),
    )


def with_times(series: TimeSeries, times: np.ndarray) -> tuple[TimeSeries, np.ndarray]:
    """The same with further times (m,) at which nothing was seen; also the (m,) places of the new times."""
    union, place = np.unique(np.concatenate([series.times, times]), return_inverse=True)
    old, new = place[: len(series.times)], place[len(series.times) :]
    rows = np.zeros((len(union), *series.rows.shape[1:]))
    observed = np.zeros((len(union), series.rows.shape[1]))
    rows[old], observed[old] = series.rows, series.observed
    return replace(series, times=union, rows=rows, observed=observed, place=old[series.place]), new
