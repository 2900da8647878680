"""Mixtures of marginals that are not Gaussian: transformed outputs back in their own units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sumgp.likelihoods.quadrature import standard_normal

STEPS = 26  # of bisection: the bracket shrinks to 1e-8 of its width
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
        """(n, T) values below which ``probability`` lies, by bisection outwards from centre and spread (n, T)."""
        low, high = centre - spread, centre + spread
        for _ in range(STEPS):
            short, over = self.cdf(low) > probability, self.cdf(high) < probability
            if not (short.any() or over.any()):
                break
            low, high = np.where(short, low - (high - low), low), np.where(over, high + (high - low), high)
        for _ in range(STEPS):
            middle = 0.5 * (low + high)
            below = self.cdf(middle) < probability
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return 0.5 * (low + high)
