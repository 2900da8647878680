"""Roots of many functions at once, each inside a bracket."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

STEPS = 60  # of a search whose brackets halve at least every third
FEW = 0.6  # share of rows that are left, at which the others are set aside


class Bracket(NamedTuple):
    """Ends (n, ...) around each root, and the functions' values there: ``below`` zero or less, ``above`` zero or more."""

    low: np.ndarray
    high: np.ndarray
    below: np.ndarray
    above: np.ndarray

    def at(self, rows: np.ndarray) -> Bracket:
        """Some of the rows."""
        return Bracket(*(part[rows] for part in self))


Values = Callable[[np.ndarray, np.ndarray], np.ndarray]  # at arguments (m, ...) of the rows with these numbers (m,)
Close = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]  # smallest values, widths, rows -> done (m, ...)


def bracketed_roots(values: Values, bracket: Bracket, close: Close) -> np.ndarray:
    """(n, ...) roots by false position; rows are looked at until all their entries are ``close``.

    An end that stays twice has its value halved (Illinois), and a bracket that two steps did not halve is bisected: where a
    function jumps, false position has no slope to use.
    """
    result = 0.5 * (bracket.low + bracket.high)
    rows, before = np.arange(len(result)), np.full(result.shape, 2)  # 2: neither end has stayed yet
    widths, nearest = bracket.high - bracket.low, np.full(result.shape, np.inf)
    for step in range(STEPS):
        low, high, below, above = bracket
        with np.errstate(all="ignore"):
            secant = low - below * (high - low) / (above - below)
        inside = np.isfinite(secant) & (secant > low) & (secant < high)
        if step % 3 == 2:
            inside, widths = inside & (high - low < 0.5 * widths), high - low
        here = np.where(inside, secant, 0.5 * (low + high))
        value = values(here, rows)
        left = value < 0
        # An end that stays twice would hold the secant back.
        again = np.where(left == before, 0.5, 1.0)
        below, above, before = np.where(left, value, again * below), np.where(left, again * above, value), left
        bracket = Bracket(np.where(left, here, low), np.where(left, high, here), below, above)
        nearer = np.abs(value) <= np.abs(nearest[rows])
        result[rows], nearest[rows] = np.where(nearer, here, result[rows]), np.where(nearer, value, nearest[rows])
        done = close(nearest[rows], bracket.high - bracket.low, rows)
        going = ~np.all(done.reshape(len(rows), -1), axis=1)
        if not going.any():
            break
        if going.sum() <= FEW * len(rows):
            # A few rows with jumps take many steps: the others need not wait with them.
            bracket, rows, before, widths = bracket.at(going), rows[going], before[going], widths[going]
    return result
