"""How complete rows of a table, as measured, miss a law: whether they meet it up to rounding, by how much on average."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sumgp.data import Data, Scaling, in_bulk
from sumgp.laws.law import Law

CLOSED = 3e-3  # rows that meet the law this well (in sds of the outputs) have noise that meets it too
ROUNDED = 1.5  # times the standard deviation that rounding of the values alone would cause
FEWEST_ROWS = 3
MOST_MISPRINTS = 0.05  # of the rows
MOST_DIGITS = 9  # decimals looked for; values with more are not rounded
TRACE = 1e-12  # of the law's largest term: round-off of sums


@dataclass(frozen=True)
class Imbalance:
    """Left minus right side of a law's R rows at complete rows of the data, each divided by its slope.

    The slope of row r at outputs f is |J_r(f) y_scale|: the residual that one standard deviation of the outputs causes.
    ``bias``, ``sd``, ``count`` (R,): mean, standard deviation about it and number of complete rows; NaN with too few of
    them. ``closed`` (R,): the rows meet the law up to rounding. ``misprints``: positions of rows that miss a law which
    all others meet; they do not count.
    """

    bias: np.ndarray
    sd: np.ndarray
    count: np.ndarray
    closed: np.ndarray
    misprints: tuple[int, ...] = ()

    @property
    def all_closed(self) -> bool:
        """True if every row of the law is met up to rounding."""
        return bool(np.all(self.closed))


def measured_imbalance(law: Law, data: Data, scaling: Scaling, constants: np.ndarray | None = None) -> Imbalance:
    """The imbalance of the rows of ``data``; ``constants`` (U,) are the values of the law's unknown constants."""
    R, T = law.n_rows, len(law.outputs)
    bias, sd, count = np.full(R, np.nan), np.full(R, np.nan), np.zeros(R, dtype=int)
    closed, misprints = np.zeros(R, dtype=bool), set()
    if law.unknowns and constants is None:
        return Imbalance(bias, sd, count, closed)
    middle = np.where(np.isfinite(scaling.y_shift), scaling.y_shift, 0.0)
    filled = np.where(data.measured, data.y, middle)
    # No measured row tells a derivative: rows of the law that hold one are not to be judged from the data.
    f = np.full((len(filled), law.n_columns), np.nan)
    f[:, :T] = filled
    if constants is not None:
        f[:, law.unknown_columns] = constants
    with np.errstate(all="ignore"):
        g, J = law.residual(f, data.x), law.jacobian(f, data.x)[:, :, :T]
        magnitude = law.magnitude(f, data.x)
        slope = np.sqrt(np.sum((J * scaling.y_scale) ** 2, axis=2))
    unit = rounding_units(data.y)
    rounding = np.sqrt(np.sum((J * unit) ** 2, axis=2) / 12.0)
    active = law.active(data.x)
    for r in range(R):
        needed = np.any(J[:, r] != 0, axis=0)
        usable = active[:, r] & data.measured[:, needed].all(axis=1) & np.isfinite(g[:, r]) & (slope[:, r] > 0)
        usable &= np.isfinite(slope[:, r])
        rows = np.flatnonzero(usable)
        count[r] = len(rows)
        if len(rows) < FEWEST_ROWS:
            continue
        values = g[rows, r] / slope[rows, r]
        allowed = np.maximum(CLOSED, ROUNDED * rounding[rows, r] / slope[rows, r])
        allowed = allowed + TRACE * magnitude[rows, r] / slope[rows, r]
        odd = np.abs(values) > 2.0 * allowed
        closed[r] = odd.mean() <= MOST_MISPRINTS and float(np.mean((values / allowed)[~odd] ** 2)) <= 1.0
        if closed[r]:
            misprints |= set(rows[odd].tolist())
            values = values[~odd]
        bias[r], sd[r] = values.mean(), values.std(ddof=1)
    return Imbalance(bias, sd, count, closed, tuple(sorted(misprints)))


def rounding_units(y: np.ndarray) -> np.ndarray:
    """(T,) unit that the values of each output are multiples of, a power of ten; 0 where they are not rounded.

    Values far outside the others do not count: beside them all others would be rounded to nothing.
    """
    units = np.zeros(y.shape[1])
    for t, (column, bulk) in enumerate(zip(y.T, in_bulk(y).T, strict=True)):
        values = column[bulk & ~np.isnan(column)]
        size = float(np.abs(values).max(initial=0.0))
        if size == 0.0:
            continue
        top = int(np.ceil(np.log10(size)))
        for digits in range(1, MOST_DIGITS + 1):
            unit = 10.0 ** (top - digits)
            if np.all(np.abs(values / unit - np.rint(values / unit)) < 1e-9 * size / unit + 1e-9):
                units[t] = unit
                break
    return units
