"""Marginals of a weighted mixture of Gaussians: quantiles, probabilities, densities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, ndtr, ndtri

PRECISION = 1e-9  # of a quantile, in standard deviations of the narrowest component


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

    @property
    def std(self) -> np.ndarray:
        """(n, T) standard deviations."""
        centre = np.einsum("k,knt->nt", self.weights, self.means)
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
    low, high = ends.min(axis=0).ravel(), ends.max(axis=0).ravel()
    value = np.einsum("k,knt->nt", weights, ends).ravel()
    flat_means, flat_sds = means.reshape(len(weights), -1), sds.reshape(len(weights), -1)
    going = np.arange(len(value))
    for _ in range(60):
        m, sd, v = flat_means[:, going], flat_sds[:, going], value[going]
        s = (v - m) / sd
        F = weights @ ndtr(s)
        density = (weights / np.sqrt(2.0 * np.pi)) @ (np.exp(-0.5 * s**2) / sd)
        below = probability > F
        low[going], high[going] = np.where(below, v, low[going]), np.where(below, high[going], v)
        with np.errstate(all="ignore"):
            newton = v - (F - probability) / density
        inside = np.isfinite(newton) & (newton > low[going]) & (newton < high[going])
        value[going] = np.where(inside, newton, 0.5 * (low[going] + high[going]))
        going = going[np.abs(value[going] - v) >= PRECISION * sd.min(axis=0)]
        if not len(going):
            break
    return value.reshape(means.shape[1:])
