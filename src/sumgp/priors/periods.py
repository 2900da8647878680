"""A period that the data show, alone or on top of a curve that varies slowly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

FEWEST_PERIODS = 4.0  # within the range of the inputs: fewer look like any other smooth curve
FINENESS = 0.125  # step of the frequencies in cycles over the range: the phase at the ends is right to a sixteenth of one
SHOWN = 0.4  # share of an output's variance in its sine, from which on the evidence is asked about a period
SHOWN_BESIDE = 0.7  # the same of what a slow curve leaves: noise of 16 degrees of freedom has it once in a hundred times
LEAST_LEFT = 1e-5  # of an output's variance by a slow curve: less is what its form is missed by
FEWEST_ROWS, MOST_ROWS = 16, 600  # fewer always fit some sine, more take long
SLOW_WAVES = 7  # half waves over the range in a slow curve, at most: fewer than in the slowest period looked for


@dataclass(frozen=True)
class Period:
    """A period along the input: which outputs show it, and which do on top of a slow curve, ``size`` times whose variance
    it has there."""

    length: float
    shown_by: tuple[bool, ...]
    beside: tuple[bool, ...]
    size: float = 1.0


def shown_period(x: np.ndarray, y: np.ndarray) -> Period | None:
    """Period along one input x (N, 1) that outputs y (N, T, NaN = not measured) share, or None if there is none.

    That of the frequency at which a + b sin + c cos explains most, summed over the outputs in units of their variances; or,
    where that is little for each of them, most of what slow curves leave.
    """
    places = len(np.unique(x))
    if x.shape[1] != 1 or len(x) > MOST_ROWS or places < FEWEST_ROWS:
        return None
    span = float(np.ptp(x))
    cycles = np.arange(FEWEST_PERIODS, 0.5 * (places - 1), FINENESS)
    at = (x[:, 0] - x[0, 0]) / span
    slow = _slow_curves((x[:, 0] - x.min()) / span)
    shares = np.array([_shares(at, cycles, slow[:, :1], column)[0] for column in y.T])
    rest = [_shares(at, cycles, slow, column) for column in y.T]
    best = int(np.argmax(shares.sum(axis=0)))
    shown = shares[:, best] > SHOWN
    if not shown.any():
        best = int(np.argmax(np.sum([share for share, _ in rest], axis=0)))
    beside = ~shown & np.array([share[best] > SHOWN_BESIDE and left > LEAST_LEFT for share, left in rest])
    if not (shown | beside).any():
        return None
    size = float(np.mean([left for _, left in rest], where=beside)) if beside.any() else 1.0
    return Period(span / float(cycles[best]), tuple(shown.tolist()), tuple(beside.tolist()), size)


def _slow_curves(u: np.ndarray) -> np.ndarray:
    """(N, P) straight line, parabola and cosines over u from 0 to 1."""
    return np.column_stack([np.cos(np.pi * np.arange(SLOW_WAVES + 1) * u[:, None]), u, u * u])


def _shares(at: np.ndarray, cycles: np.ndarray, slow: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, float]:
    """(F,) share of what slow curves (N, P) leave of values (N,) that sines explain, and how much of all that is."""
    seen = ~np.isnan(values)
    if seen.sum() < FEWEST_ROWS + slow.shape[1] - 1 or np.ptp(values[seen]) == 0:
        return np.zeros(len(cycles)), 0.0
    basis, _ = np.linalg.qr(slow[seen])
    rest = values[seen] - basis @ (basis.T @ values[seen])
    variance = float(rest @ rest)
    angle = 2.0 * np.pi * cycles[:, None] * at[seen]
    S, C = (wave - (wave @ basis) @ basis.T for wave in (np.sin(angle), np.cos(angle)))
    ss, cc, sc = np.sum(S * S, axis=1), np.sum(C * C, axis=1), np.sum(S * C, axis=1)
    s, c = S @ rest, C @ rest
    determinant = ss * cc - sc * sc
    # At a frequency that the rows cannot tell from another, sine and cosine are one.
    regular = determinant > 1e-6 * len(rest) ** 2
    explained = (cc * s * s - 2.0 * sc * s * c + ss * c * c) / np.where(regular, determinant, 1.0)
    shares = np.where(regular, explained, 0.0) / max(variance, np.finfo(float).tiny)
    return shares, variance / float(np.sum((values[seen] - values[seen].mean()) ** 2))
