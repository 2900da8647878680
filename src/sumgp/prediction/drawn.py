"""Marginals that are known by draws: their quantiles, probabilities, densities and spread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

BANDWIDTH = 0.9  # of the smoothed density, times the spread and M^(-1/5) (Silverman's rule)
INTERQUARTILE = 1.34  # of a Gaussian, in standard deviations


@dataclass(frozen=True, eq=False)
class DrawnMarginals:
    """M sorted draws (M, n, T) of each output at each point.

    The i-th draw stands for the probability (i - 1/2) / M, with straight lines between, so that quantiles never leave the
    range of the draws: where all draws lie on a law, intervals end where the law does.
    """

    draws: np.ndarray

    @property
    def std(self) -> np.ndarray:
        """(n, T) standard deviations."""
        return self.draws.std(axis=0)

    def quantile(self, probability: float) -> np.ndarray:
        """(n, T) quantiles."""
        last = len(self.draws) - 1
        place = float(np.clip(probability * (last + 1) - 0.5, 0.0, last))
        low = min(int(place), last - 1)
        return self.draws[low] + (place - low) * (self.draws[low + 1] - self.draws[low])

    def cdf(self, values: np.ndarray) -> np.ndarray:
        """(n, T) probabilities below ``values``, the inverse of ``quantile``."""
        last = len(self.draws) - 1
        below = np.sum(self.draws <= values, axis=0)
        low = np.clip(below - 1, 0, last - 1)[None]
        a, b = np.take_along_axis(self.draws, low, axis=0)[0], np.take_along_axis(self.draws, low + 1, axis=0)[0]
        share = np.divide(values - a, b - a, out=np.zeros_like(a), where=b > a)
        inside = (low[0] + np.clip(share, 0.0, 1.0) + 0.5) / (last + 1)
        return np.where(below == 0, 0.0, np.where(below > last, 1.0, inside))

    def log_density(self, values: np.ndarray) -> np.ndarray:
        """(n, T) log densities, smoothed by a Gaussian kernel.

        One part in M + 1 is a Gaussian with the moments of the draws: a value beyond all draws is unlikely, not impossible.
        """
        M = len(self.draws)
        quartiles = self.quantile(0.75) - self.quantile(0.25)
        tiny = np.finfo(float).tiny ** 0.5
        std = np.maximum(self.std, tiny)
        narrower = np.minimum(std, np.where(quartiles > 0, quartiles / INTERQUARTILE, std))
        width = np.maximum(BANDWIDTH * M**-0.2 * narrower, tiny)
        with np.errstate(under="ignore", over="ignore"):
            kernels = np.sum(np.exp(-0.5 * ((values - self.draws) / width) ** 2), axis=0) / width
            z = (values - self.draws.mean(axis=0)) / std
        # The Gaussian's logarithm is kept apart: far out its density is below all numbers.
        far = -0.5 * z**2 - np.log(std)
        near = np.log(np.maximum(kernels, np.finfo(float).tiny))
        return np.logaddexp(near, far) - np.log(M + 1) - 0.5 * np.log(2.0 * np.pi)
