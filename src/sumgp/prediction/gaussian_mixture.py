"""Marginals of a weighted mixture of Gaussians: quantiles, probabilities, densities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, ndtr, ndtri


@dataclass(frozen=True, eq=False)
class GaussianMixture:
    """K weighted Gaussians at each of n points and T outputs: means and sds (K, n, T), weights (K,)."""

    means: np.ndarray
    sds: np.ndarray
    weights: np.ndarray

    def cdf(self, values: np.ndarray) -> np.ndarray:
        """(n, T) probability below ``values``."""
        return np.einsum("k,knt->nt", self.weights, ndtr((values - self.means) / self.sds))

    def log_density(self, values: np.ndarray) -> np.ndarray:
        """(n, T) log densities at ``values``."""
        z = (values - self.means) / self.sds
        parts = -0.5 * z**2 - np.log(self.sds) - 0.5 * np.log(2.0 * np.pi) + np.log(self.weights)[:, None, None]
        return logsumexp(parts, axis=0)

    def spread(self, centre: np.ndarray) -> np.ndarray:
        """(n, T) root mean square distance from ``centre``."""
        return np.sqrt(np.einsum("k,knt->nt", self.weights, self.sds**2 + (self.means - centre) ** 2))

    def quantile(self, probability: float) -> np.ndarray:
        """(n, T) quantiles."""
        return mixture_quantile(self.means, self.sds, self.weights, probability)


def mixture_quantile(means: np.ndarray, sds: np.ndarray, weights: np.ndarray, probability: float) -> np.ndarray:
    """(n, T) quantiles of Gaussian mixtures with means, sds (K, n, T) and weights (K,), by safeguarded Newton steps."""
    z = ndtri(probability)
    ends = means + z * sds
    if len(weights) == 1:
        return ends[0]
    # The quantile lies between the smallest and the largest of the components' own quantiles.
    low, high = ends.min(axis=0), ends.max(axis=0)
    value = np.einsum("k,knt->nt", weights, ends)
    for _ in range(60):
        s = (value - means) / sds
        F = np.einsum("k,knt->nt", weights, ndtr(s))
        below = probability > F
        low, high = np.where(below, value, low), np.where(below, high, value)
        density = np.einsum("k,knt->nt", weights, np.exp(-0.5 * s**2) / (sds * np.sqrt(2.0 * np.pi)))
        with np.errstate(all="ignore"):
            newton = value - (F - probability) / density
        inside = np.isfinite(newton) & (newton > low) & (newton < high)
        update = np.where(inside, newton, 0.5 * (low + high))
        if np.max(np.abs(update - value) / sds.min(axis=0)) < 1e-9:
            return update
        value = update
    return value
