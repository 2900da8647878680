"""Mixtures of marginals that are not Gaussian: transformed outputs back in their own units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from sumgp.numerics import standard_normal

STEPS = 60
MOST_WIDENED = 45
PRECISION = 1e-10  # of a quantile, in probability
NARROW = 1e-8  # bracket around a jump of the distribution function, in spreads
FEW = 0.6  # share of points that are left, at which the others are set aside
POINTS_AT_ONCE = 20_000  # values in one call, which bounds memory
NODES = 12  # of the average over the noise of a new measurement


class Marginals(Protocol):
    """What a component offers whose marginals are not Gaussian; values are (..., n, T), unit-free."""

    def cdf(self, values: np.ndarray) -> np.ndarray:
        """Probabilities of outputs below ``values``."""

    def density(self, values: np.ndarray) -> np.ndarray:
        """Densities at ``values``."""

    def at(self, rows: np.ndarray) -> Marginals:
        """Some of the points."""

    def followed_by(self, others: Sequence[Any]) -> Marginals:
        """The points of this one and then those of the others, as points of one."""


@dataclass(frozen=True, eq=False)
class SkewedMixture:
    """Weighted marginals (K of them), each with Gaussian noise of standard deviation ``noise`` (K, T) added; 0 = none."""

    parts: Sequence[Marginals]
    weights: np.ndarray
    noise: np.ndarray

    def cdf(self, values: np.ndarray) -> np.ndarray:
        """(n, T) probabilities of outputs below ``values`` (n, T)."""
        return self._averaged(values, "cdf")

    def density(self, values: np.ndarray) -> np.ndarray:
        """(n, T) densities at ``values`` (n, T)."""
        return self._averaged(values, "density")

    def _averaged(self, values: np.ndarray, what: str) -> np.ndarray:
        n, T = np.shape(values)
        total = np.zeros((n, T))
        noisy = bool(np.any(self.noise > 0))
        z, shares = standard_normal(NODES) if noisy else (np.zeros(1), np.ones(1))
        each = max(1, POINTS_AT_ONCE // (n * len(z)))
        for start in range(0, len(self.parts), each):
            some = slice(start, start + each)
            joined = self._joined(start, each)
            # (nodes, parts, n, T): a call for all parts costs little more than one for a single part.
            asked = values - z[:, None, None, None] * self.noise[some][:, None, :]
            flat = asked.reshape(len(z), -1, T)
            found = (joined.cdf(flat) if what == "cdf" else joined.density(flat)).reshape(asked.shape)
            total += np.einsum("z,k,zknt->nt", shares, self.weights[some], found)
        return total

    def _joined(self, start: int, count: int) -> Marginals:
        if (start, count) not in self._known_joined:
            first, *others = self.parts[start : start + count]
            self._known_joined[start, count] = first.followed_by(others)
        return self._known_joined[start, count]

    @cached_property
    def _known_joined(self) -> dict[tuple[int, int], Marginals]:
        """Quantiles ask for the same again and again."""
        return {}

    def quantile(self, probability: float, centre: np.ndarray, spread: np.ndarray) -> np.ndarray:
        """(n, T) values below which ``probability`` lies, by false position in a bracket around centre and spread (n, T).

        The end that stays has its distance halved (Illinois), and each third step is a bisection: jumps of the
        distribution function, where an interval ends at the edge of a domain, leave false position no slope to use.
        """
        low, high, below, above = self._bracket(probability, centre, spread)
        result = 0.5 * (low + high)
        rows, mixture = np.arange(len(centre)), self
        for step in range(STEPS):
            with np.errstate(all="ignore"):
                secant = low - below * (high - low) / (above - below)
            inside = np.isfinite(secant) & (secant > low) & (secant < high) & (step % 3 != 2)
            value = np.where(inside, secant, 0.5 * (low + high))
            miss = mixture.cdf(value) - probability
            left = miss < 0
            # An end that stays twice would hold the secant back.
            above, below = np.where(left, 0.5 * above, miss), np.where(left, miss, 0.5 * below)
            low, high = np.where(left, value, low), np.where(left, high, value)
            result[rows] = value
            open_rows = np.any((np.abs(miss) >= PRECISION) & (high - low >= NARROW * spread[rows]), axis=1)
            if not open_rows.any():
                break
            if open_rows.sum() <= FEW * len(rows):
                # A few points with jumps take many steps: the others need not wait with them.
                mixture, rows = mixture.at(open_rows), rows[open_rows]
                low, high, below, above = (a[open_rows] for a in (low, high, below, above))
        return result

    def at(self, rows: np.ndarray) -> SkewedMixture:
        """The mixture at some of its points."""
        return SkewedMixture([part.at(rows) for part in self.parts], self.weights, self.noise)

    def _bracket(self, probability: float, centre: np.ndarray, spread: np.ndarray) -> tuple[np.ndarray, ...]:
        """Ends (n, T) around the quantile, widened until they hold it, and how far the probability is missed there."""
        low, high = centre - 2.0 * spread, centre + 2.0 * spread
        below, above = self.cdf(low) - probability, self.cdf(high) - probability
        for _ in range(MOST_WIDENED):
            short, over = below > 0, above < 0
            if not (short.any() or over.any()):
                break
            low, high = np.where(short, low - (high - low), low), np.where(over, high + (high - low), high)
            below, above = self.cdf(low) - probability, self.cdf(high) - probability
        return low, high, below, above
