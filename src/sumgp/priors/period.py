"""Does a table show a period? Least-squares sines over the frequencies that its rows can tell apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

FEWEST_PERIODS = 4.0  # within the range of the inputs: fewer look like any other smooth curve
FINENESS = 0.125  # step of the frequencies in cycles over the range: the phase at the ends is right to a sixteenth of one
SHOWN = 0.4  # share of an output's variance in its sine, from which on the evidence is asked about a period
FEWEST_ROWS, MOST_ROWS = 16, 600  # fewer always fit some sine, more take long


@dataclass(frozen=True)
class Period:
    """A period along the input, and for each output whether it shows it."""

    length: float
    shown_by: tuple[bool, ...]


def shown_period(x: np.ndarray, y: np.ndarray) -> Period | None:
    """Period along one input x (N, 1) that outputs y (N, T, NaN = not measured) share, or None if there is none.

    That of the frequency at which a + b sin + c cos explains most, summed over the outputs in units of their variances.
    """
    measured = ~np.isnan(y)
    places = len(np.unique(x))
    span = float(np.ptp(x))
    if x.shape[1] != 1 or len(x) > MOST_ROWS or places < FEWEST_ROWS:
        return None
    cycles = np.arange(FEWEST_PERIODS, 0.5 * (places - 1), FINENESS)
    angle = 2.0 * np.pi * cycles[:, None] * ((x[:, 0] - x[0, 0]) / span)
    shares = [_explained(angle[:, seen], column[seen]) for column, seen in zip(y.T, measured.T, strict=True)]
    best = int(np.argmax(np.sum(shares, axis=0)))
    shown_by = tuple(bool(share[best] > SHOWN) for share in shares)
    return Period(span / float(cycles[best]), shown_by) if any(shown_by) else None


def _explained(angle: np.ndarray, values: np.ndarray) -> np.ndarray:
    """(F,) share of the variance of values (n,) that a sine at each of angles (F, n) explains."""
    if len(values) < FEWEST_ROWS or np.ptp(values) == 0:
        return np.zeros(len(angle))
    centred = values - values.mean()
    S, C = np.sin(angle), np.cos(angle)
    S, C = S - S.mean(axis=1, keepdims=True), C - C.mean(axis=1, keepdims=True)
    ss, cc, sc = np.sum(S * S, axis=1), np.sum(C * C, axis=1), np.sum(S * C, axis=1)
    s, c = S @ centred, C @ centred
    determinant = ss * cc - sc * sc
    # At a frequency that the rows cannot tell from another, sine and cosine are one.
    regular = determinant > 1e-6 * len(values) ** 2
    explained = (cc * s * s - 2.0 * sc * s * c + ss * c * c) / np.where(regular, determinant, 1.0)
    return np.where(regular, explained, 0.0) / float(centred @ centred)
