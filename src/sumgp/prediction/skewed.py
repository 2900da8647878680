"""Mixtures of marginals that are not Gaussian: transformed outputs back in their own units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sumgp.likelihoods.quadrature import standard_normal

STEPS = 60
MOST_WIDENED = 45
PRECISION = 1e-10  # of a quantile, in probability
NARROW = 1e-8  # bracket around a jump of the distribution function, in spreads
NODES = 24  # of the average over the noise of a new measurement


class Marginals(Protocol):
    """What a component offers whose marginals are not Gaussian; values are (..., n, T), unit-free."""

    def cdf(self, values: np.ndarray) -> np.ndarray:
        """Probabilities of outputs below ``values``."""

    def density(self, values: np.ndarray) -> np.ndarray:
        """Densities at ``values``."""


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
        total = np.zeros(np.shape(values))
        z, shares = standard_normal(NODES)
        for weight, part, sd in zip(self.weights, self.parts, self.noise, strict=True):
            function = part.cdf if what == "cdf" else part.density
            if np.any(sd > 0):
                total += weight * np.tensordot(shares, function(values - z[:, None, None] * sd), axes=1)
            else:
                total += weight * function(values)
        return total

    def quantile(self, probability: float, centre: np.ndarray, spread: np.ndarray) -> np.ndarray:
        """(n, T) values below which ``probability`` lies, by false position in a bracket around centre and spread (n, T).

        The end that stays has its distance halved (Illinois), and each third step is a bisection: jumps of the
        distribution function, where an interval ends at the edge of a domain, leave false position no slope to use.
        """
        low, high, below, above = self._bracket(probability, centre, spread)
        value = 0.5 * (low + high)
        for step in range(STEPS):
            with np.errstate(all="ignore"):
                secant = low - below * (high - low) / (above - below)
            inside = np.isfinite(secant) & (secant > low) & (secant < high) & (step % 3 != 2)
            value = np.where(inside, secant, 0.5 * (low + high))
            miss = self.cdf(value) - probability
            left = miss < 0
            # An end that stays twice would hold the secant back.
            above, below = np.where(left, 0.5 * above, miss), np.where(left, miss, 0.5 * below)
            low, high = np.where(left, value, low), np.where(left, high, value)
            if np.all((np.abs(miss) < PRECISION) | (high - low < NARROW * spread)):
                break
        return value

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
