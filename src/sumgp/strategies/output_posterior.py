"""One output given its own data, averaged over kernels: means, covariances, derivatives, left-out values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax
from sklearn.gaussian_process.kernels import Kernel

from sumgp.hyperparameters import GridPoint
from sumgp.numerics import cholesky, cholesky_inverse, solve_cholesky, solve_lower
from sumgp.priors import KernelDerivatives, MultitaskPrior, derivative_gram, local_lengthscales, smoothness

MEAN_VARIANCE = MultitaskPrior.mean_variance
JITTER = 1e-10  # of the prior variance, on the diagonal


@dataclass(frozen=True)
class OutputPosterior:
    """One output given its own data, unit-free: G kernels s^2 (K + m 1 1^T) with weights, each conditioned on n values."""

    x: np.ndarray  # (n, D)
    kernels: tuple[Kernel, ...]
    weights: np.ndarray  # (G,)
    sizes: np.ndarray  # (G,) s^2
    ratios: np.ndarray  # (G,) noise sd over s
    factors: np.ndarray  # (G, n, n) of K + m 1 1^T + r^2 I
    alphas: np.ndarray  # (G, n) its inverse times the data
    order: tuple[int, ...] = ()  # of the derivative by each input that this is; () = the function itself

    def differentiated(self, order: tuple[int, ...]) -> OutputPosterior | None:
        """The derivative, averaged over the kernels whose functions have one; None where no kernel's functions do."""
        smooth = np.array([smoothness(kernel) >= sum(order) for kernel in self.kernels])
        if not np.any(self.weights[smooth] > 0):
            return None
        kept = tuple(kernel for kernel, has in zip(self.kernels, smooth, strict=True) if has)
        weights = self.weights[smooth] / np.sum(self.weights[smooth])
        parts = (self.sizes[smooth], self.ratios[smooth], self.factors[smooth], self.alphas[smooth])
        return OutputPosterior(self.x, kept, weights, *parts, order)

    def _cross(self, kernel: Kernel, x: np.ndarray) -> np.ndarray:
        """(n, rows) prior covariances with the measured values; a constant has no derivative."""
        if not self.order:
            return kernel(x, self.x) + MEAN_VARIANCE
        return derivative_gram(kernel, x, self.order, self.x, (0,) * len(self.order))

    def _variances(self, kernel: Kernel, x: np.ndarray) -> np.ndarray:
        """(n,) of the prior."""
        if not self.order:
            return kernel.diag(x) + MEAN_VARIANCE
        return KernelDerivatives.paired(kernel, x, x).value(self.order, self.order)

    def _between(self, kernel: Kernel, x: np.ndarray) -> np.ndarray:
        """(n, n) prior covariances between points."""
        if not self.order:
            return kernel(x) + MEAN_VARIANCE
        return derivative_gram(kernel, x, self.order, x, self.order)

    @property
    def noise(self) -> float:
        """Mean noise variance."""
        return float(self.weights @ (self.sizes * self.ratios**2))

    @property
    def log_lengthscales(self) -> np.ndarray:
        """(G,) of the kernels, the shorter of several."""
        return np.array([np.min(np.log(local_lengthscales(kernel, kernel.theta))) for kernel in self.kernels])

    def moments(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance (n,) of the average over kernels."""
        means, variances = [], []
        for kernel, size, factor, alpha in zip(self.kernels, self.sizes, self.factors, self.alphas, strict=True):
            cross = self._cross(kernel, x)
            means.append(cross @ alpha)
            drop = np.sum(solve_lower(factor, cross.T) ** 2, axis=0)
            prior = self._variances(kernel, x)
            variances.append(size * np.maximum(prior - drop, JITTER * prior))
        mean = self.weights @ np.array(means)
        return mean, self.weights @ (np.array(variances) + (np.array(means) - mean) ** 2)

    def without(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Residuals and variances (n,), noise included, of the values fitted at x (n, D), each left out."""
        residual, variance = self.left_out(None)
        place = {tuple(row): k for k, row in enumerate(self.x.tolist())}
        rows = [place[tuple(row)] for row in x.tolist()]
        return residual[rows], variance[rows]

    def covariance(self, x: np.ndarray) -> np.ndarray:
        """(n, n) between points, of the average over kernels."""
        total = np.zeros((len(x), len(x)))
        means = []
        for weight, kernel, size, factor, alpha in zip(
            self.weights, self.kernels, self.sizes, self.factors, self.alphas, strict=True
        ):
            cross = self._cross(kernel, x)
            means.append(cross @ alpha)
            explained = solve_lower(factor, cross.T)
            total += weight * size * (self._between(kernel, x) - explained.T @ explained)
        away = np.array(means) - self.weights @ np.array(means)
        return total + (away.T * self.weights) @ away

    def left_out(self, blocks: list[np.ndarray] | None) -> tuple[np.ndarray, np.ndarray]:
        """Residual and variance (n,) of each value given all values outside its block; None = each on its own.

        With Q = (K + m 1 1^T + r^2 I)^-1 and a = Q y a block left out has residual Q_bb^-1 a_b and covariance s^2 Q_bb^-1.
        The weight of a kernel given all values but the block's is its weight over the density that it gives the block.
        """
        residuals, variances, shares = (np.zeros(self.alphas.shape) for _ in range(3))
        for g, (factor, alpha, size) in enumerate(zip(self.factors, self.alphas, self.sizes, strict=True)):
            Q = cholesky_inverse(factor)
            if blocks is None:
                residuals[g], variances[g] = alpha / np.diagonal(Q), size / np.diagonal(Q)
                shares[g] = -0.5 * (residuals[g] ** 2 / variances[g] + np.log(variances[g]))
                continue
            for block in blocks:
                inverse = np.linalg.inv(Q[np.ix_(block, block)])
                residuals[g, block], variances[g, block] = inverse @ alpha[block], size * np.diagonal(inverse)
                away = residuals[g, block] @ alpha[block] / size
                shares[g, block] = -0.5 * (away + np.linalg.slogdet(size * inverse)[1])
        weights = softmax(np.log(self.weights)[:, None] - shares, axis=0)
        mean = np.sum(weights * residuals, axis=0)
        return mean, np.sum(weights * (variances + (residuals - mean) ** 2), axis=0)


def output_posterior(x: np.ndarray, y: np.ndarray, points: list[GridPoint]) -> OutputPosterior:
    """Condition each kernel on one output y (n,) at x (n, D)."""
    factors, alphas = [], []
    for point in points:
        covariance = point.kernel(x) + MEAN_VARIANCE
        covariance[np.diag_indices(len(x))] += point.ratio**2 + JITTER
        factors.append(cholesky(covariance, "output alone"))
        alphas.append(solve_cholesky(factors[-1], y))
    return OutputPosterior(
        x,
        tuple(p.kernel for p in points),
        np.array([p.weight for p in points]),
        np.array([p.size for p in points]),
        np.array([p.ratio for p in points]),
        np.stack(factors),
        np.stack(alphas),
    )
