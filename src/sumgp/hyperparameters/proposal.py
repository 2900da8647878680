"""Student t distributions that hyperparameters are drawn from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln
from scipy.stats import chi2, norm, qmc

DEGREES = 6.0
CURVATURE_FLOOR = 0.25


@dataclass(frozen=True)
class Proposal:
    """A multivariate Student t."""

    mean: np.ndarray
    root: np.ndarray  # lower factor of the scale matrix

    @classmethod
    def around(cls, maximum: np.ndarray, curvature: np.ndarray) -> Proposal:
        """As wide as the curvature of minus the log density says, but not wider than the floor lets it."""
        values, vectors = np.linalg.eigh(curvature)
        return cls(maximum, _root((vectors / np.maximum(values, CURVATURE_FLOOR)) @ vectors.T))

    @classmethod
    def of_moments(cls, thetas: np.ndarray, weights: np.ndarray, wide: np.ndarray) -> Proposal:
        """Mean and covariance of weighted draws (n, p); the fewer count, the more of the covariance ``wide`` is mixed in."""
        mean = weights @ thetas
        away = thetas - mean
        p, effective = thetas.shape[1], 1.0 / float(np.sum(weights**2))
        share = p / (p + effective)
        return cls(mean, _root((1.0 - share) * (away.T * weights) @ away + share * wide))

    @property
    def scale(self) -> np.ndarray:
        """(p, p) scale matrix."""
        return self.root @ self.root.T

    def sample(self, count: int, generator: np.random.Generator) -> np.ndarray:
        """Quasi-random draws (scrambled Sobol), (count, p)."""
        p = len(self.mean)
        u = np.clip(qmc.Sobol(p + 1, scramble=True, seed=generator).random(count), 1e-9, 1.0 - 1e-9)
        scale = np.sqrt(DEGREES / chi2.ppf(u[:, p], DEGREES))
        return self.mean + (norm.ppf(u[:, :p]) * scale[:, None]) @ self.root.T

    def log_density(self, theta: np.ndarray) -> np.ndarray:
        """(count,) log densities."""
        p = len(self.mean)
        squares = np.sum(self.whitened(theta) ** 2, axis=1)
        constant = gammaln(0.5 * (DEGREES + p)) - gammaln(0.5 * DEGREES) - 0.5 * p * np.log(DEGREES * np.pi)
        return constant - np.sum(np.log(np.diagonal(self.root))) - 0.5 * (DEGREES + p) * np.log1p(squares / DEGREES)

    def whitened(self, theta: np.ndarray) -> np.ndarray:
        """(count, p) places in units of the scale."""
        return np.linalg.solve(self.root, (theta - self.mean).T).T


def _root(matrix: np.ndarray) -> np.ndarray:
    return np.linalg.cholesky(0.5 * (matrix + matrix.T))
