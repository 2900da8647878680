"""One output of a map by itself: its own kernels, lengthscales and noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from sumgp.solvers.vecchia import LatentField
from sumgp.strategies.output_posterior import fitted_rows

LEAST_LEFT = 1e-6  # of the noise variance: what a row does not know of itself, at least; round-off and averages over nodes


@dataclass(frozen=True)
class MapOutput:
    """One output given its own rows, unit-free: G fields in units of their noise, with weights."""

    fields: tuple[LatentField, ...]  # of one latent each
    weights: np.ndarray  # (G,)
    scales: np.ndarray  # (G,) noise sds

    @property
    def noise(self) -> float:
        """Mean noise variance."""
        return float(self.weights @ self.scales**2)

    @property
    def log_lengthscales(self) -> np.ndarray:
        """(G,) of the kernels, the shortest of several."""
        return np.array([np.min(np.log(field.lengthscales()[0])) for field in self.fields])

    def differentiated(self, order: tuple[int, ...]) -> None:
        """None: neighbours change from point to point, so that predictions have jumps."""

    def moments(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance (n,) of the average over kernels."""
        found = [field.marginals(x) for field in self.fields]
        means = np.stack([part.mean[:, 0] for part in found]) * self.scales[:, None]
        variances = np.stack([part.covariance[:, 0, 0] for part in found]) * self.scales[:, None] ** 2
        mean = self.weights @ means
        return mean, self.weights @ (variances + (means - mean) ** 2)

    def covariance(self, x: np.ndarray) -> np.ndarray:
        """(n, n) between points: correlations of all points, the sd of each on its own."""
        found = [field.joint(x) for field in self.fields]
        means = np.stack([mean[:, 0] for mean, _ in found]) * self.scales[:, None]
        away = means - self.weights @ means
        whole = np.einsum("g,gab->ab", self.weights * self.scales**2, np.stack([part[0, 0] for _, part in found]))
        whole += (away.T * self.weights) @ away
        ratio = np.sqrt(self.moments(x)[1] / np.diagonal(whole))
        return whole * ratio[:, None] * ratio

    def without(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Residuals and variances (n,), noise included, of the values y (n,) fitted at x (n, D), each left out.

        In units of the noise a value with posterior mean m and variance v has, left out, the residual (y - m) / (1 - v) and
        the variance 1 / (1 - v). The weight of a kernel is then that over the density that it gives the value.
        """
        rows = fitted_rows(self.fields[0].x, self.scales[0] * self.fields[0].pulled[:, 0], x, y)
        residual, variance = (np.empty((len(self.fields), len(x))) for _ in range(2))
        for g, (field, scale) in enumerate(zip(self.fields, self.scales, strict=True)):
            found = field.at_own_rows if field.is_small else field.marginals(x)
            mean, known = (part[rows] if field.is_small else part for part in (found.mean[:, 0], found.covariance[:, 0, 0]))
            left = np.maximum(1.0 - known, LEAST_LEFT)
            residual[g] = scale * (field.pulled[rows, 0] - mean) / left
            variance[g] = scale**2 / left
        weights = softmax(np.log(self.weights)[:, None] + 0.5 * (residual**2 / variance + np.log(variance)), axis=0)
        mean = np.sum(weights * residual, axis=0)
        return mean, np.sum(weights * (variance + (residual - mean) ** 2), axis=0)
