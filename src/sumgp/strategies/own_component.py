"""Independent outputs, each with kernels of its own, and what a row of them has in common."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from sumgp.hyperparameters import GridPoint
from sumgp.laws import UnitFreeLaw, project
from sumgp.numerics import cholesky, cholesky_inverse, solve_cholesky, solve_lower
from sumgp.priors import MultitaskPrior
from sumgp.strategies.joint_gaussian import JointGaussian
from sumgp.strategies.weight_component import Unprojected, local_posteriors, moving_metric, projected_draws

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

    @property
    def noise(self) -> float:
        """Mean noise variance."""
        return float(self.weights @ (self.sizes * self.ratios**2))

    def moments(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance (n,) of the average over kernels."""
        means, variances = [], []
        for kernel, size, factor, alpha in zip(self.kernels, self.sizes, self.factors, self.alphas, strict=True):
            cross = kernel(x, self.x) + MEAN_VARIANCE
            means.append(cross @ alpha)
            drop = np.sum(solve_lower(factor, cross.T) ** 2, axis=0)
            prior = kernel.diag(x) + MEAN_VARIANCE
            variances.append(size * np.maximum(prior - drop, JITTER * prior))
        mean = self.weights @ np.array(means)
        return mean, self.weights @ (np.array(variances) + (np.array(means) - mean) ** 2)

    def covariance(self, x: np.ndarray) -> np.ndarray:
        """(n, n) between points, of the average over kernels."""
        total = np.zeros((len(x), len(x)))
        means = []
        for weight, kernel, size, factor, alpha in zip(
            self.weights, self.kernels, self.sizes, self.factors, self.alphas, strict=True
        ):
            cross = kernel(x, self.x) + MEAN_VARIANCE
            means.append(cross @ alpha)
            explained = solve_lower(factor, cross.T)
            total += weight * size * (kernel(x) + MEAN_VARIANCE - explained.T @ explained)
        away = np.array(means) - self.weights @ np.array(means)
        return total + (away.T * self.weights) @ away

    def left_out(self, blocks: list[np.ndarray] | None) -> tuple[np.ndarray, np.ndarray]:
        """Residual and variance (n,) of each value given all values outside its block; None = each on its own.

        With Q = (K + m 1 1^T + r^2 I)^-1 and a = Q y a block left out has residual Q_bb^-1 a_b and covariance s^2 Q_bb^-1.
        """
        residuals, variances = np.zeros(self.alphas.shape), np.zeros(self.alphas.shape)
        for g, (factor, alpha, size) in enumerate(zip(self.factors, self.alphas, self.sizes, strict=True)):
            Q = cholesky_inverse(factor)
            if blocks is None:
                residuals[g], variances[g] = alpha / np.diagonal(Q), size / np.diagonal(Q)
                continue
            for block in blocks:
                inverse = np.linalg.inv(Q[np.ix_(block, block)])
                residuals[g, block], variances[g, block] = inverse @ alpha[block], size * np.diagonal(inverse)
        mean = self.weights @ residuals
        return mean, self.weights @ (variances + (residuals - mean) ** 2)


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


@dataclass(frozen=True)
class OwnComponent:
    """Outputs that are alike only in a row: covariance sd_t sd_u R_tu with R the ``correlation`` (T, T).

    With a ``law`` each point is moved onto it in that covariance.
    """

    outputs: tuple[OutputPosterior, ...]
    correlation: np.ndarray
    widening: float = 1.0
    law: UnitFreeLaw | None = None

    @property
    def noise(self) -> np.ndarray:
        """(T,) noise variances of a new measurement."""
        return np.array([output.noise for output in self.outputs])

    @property
    def n_columns(self) -> int:
        """Number of outputs: a law with columns of its own is not for this component."""
        return len(self.outputs)

    def unprojected(self, x: np.ndarray, x_law: np.ndarray) -> Unprojected:
        """Each point before it is moved onto the law."""
        parts = [output.moments(x) for output in self.outputs]
        mean = np.stack([m for m, _ in parts], axis=1)
        return self.free(mean, self.widening * np.sqrt(np.stack([v for _, v in parts], axis=1)))

    def free(self, mean: np.ndarray, sd: np.ndarray) -> Unprojected:
        """Points with these means and standard deviations (n, T) before they are moved."""
        covariance = sd[:, :, None] * self.correlation * sd[:, None, :]
        if self.law is None:
            return Unprojected(mean, covariance)
        T = self.n_columns
        return Unprojected(mean, covariance, moving_metric(covariance, covariance, False, slice(T, T)), sd**2)

    def marginals(self, x: np.ndarray, x_law: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (n, T) and covariance (n, T, T) at each point."""
        local = local_posteriors([self], x, x_law)[0]
        return local.mean, local.covariance

    def joint(self, x: np.ndarray) -> JointGaussian:
        """All points before projection: mean + A_t (L z)_t, A_t the symmetric root over points, L L^T = R over outputs."""
        mean = np.stack([output.moments(x)[0] for output in self.outputs], axis=1)
        n, T = mean.shape
        between = np.linalg.cholesky(self.correlation)
        plus = np.zeros((n, T, T, n))
        for t, output in enumerate(self.outputs):
            values, vectors = np.linalg.eigh(output.covariance(x))
            A = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
            plus[:, t] = self.widening * between[t][:, None] * A[:, None, :]
        return JointGaussian(mean, plus.reshape(n, T, T * n), np.zeros((n, T, 0)), ())

    def joint_gaussian(self, x: np.ndarray, x_law: np.ndarray) -> JointGaussian:
        """All points together, moved onto the law."""
        whole = self.joint(x)
        if self.law is None:
            return whole
        free = self.unprojected(x, x_law)
        assert free.metric is not None
        projection = project(self.law, free.mean, free.metric, x_law)
        return whole.moved(projection.points, projection.projectors)

    def joint_covariance(self, x: np.ndarray, x_law: np.ndarray) -> np.ndarray:
        """(nT, nT) covariance between all points."""
        return self.joint_gaussian(x, x_law).covariance()

    def sample(self, x: np.ndarray, x_law: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
        """(count, n, T) joint draws, each on the law."""
        whole = self.joint(x)
        numbers = generator.standard_normal((count, whole.plus.shape[2]))
        draws = whole.mean + np.einsum("nca,ka->knc", whole.plus, numbers)
        if self.law is None:
            return draws
        metric = self.unprojected(x, x_law).metric
        assert metric is not None
        return projected_draws(self.law, draws, metric, x_law)

    def widened(self, factor: float) -> OwnComponent:
        """The same means with all standard deviations ``factor`` times as large."""
        return replace(self, widening=factor * self.widening)
