"""One output alone: a grid of kernels, amplitudes and noise weighed by their evidence, and the posterior averaged over it.


y ~ N(0, s^2 (K + m 1 1^T + r^2 I)). One eigendecomposition of K + m 1 1^T gives the evidence for all noise ratios r and,
with a scale-free prior, for all amplitudes s: -n/2 log q - 1/2 log|K + m 1 1^T + r^2 I| with q = y^T (...)^-1 y / n. Outputs
measured in the same rows share it. So a grid over families, lengthscales and ratios costs less than one search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.gaussian_process.kernels import Kernel

from sumgp.numerics import cholesky, cholesky_inverse, solve_cholesky, solve_lower
from sumgp.priors import KernelDerivatives, KernelOnPoints, MultitaskPrior, derivative_gram, local_lengthscales, smoothness

MEAN_VARIANCE = MultitaskPrior.mean_variance
JITTER = 1e-10  # of the prior variance, on the diagonal
RATIOS = np.exp(np.linspace(np.log(1e-4), np.log(10.0), 80))  # noise sd over amplitude; a step changes noise by 15 %
RATIO_CENTRE, RATIO_SD = np.log(0.05), 2.0  # of the logarithm, as in the noise model
SMALLEST_SQUARE = 1e-12  # unit-free: a column of equal values has no amplitude of its own
KEPT, KEPT_OF_MANY = 12, 4  # kernels of an output that predictions are averaged over; each keeps a factor of all rows
KEPT_SHARE = 0.003  # of the heaviest one's weight, below which a point is not kept
FINE_ROWS = 120  # rows up to which every place of a grid is looked at
NOISE_BLUR = 0.15  # of log noise sds that outputs of one group share


class GridPoint(NamedTuple):
    """One kernel of one output with amplitude s^2, noise ratio r and weight."""

    kernel: Kernel
    size: float
    ratio: float
    weight: float


@dataclass(frozen=True)
class Family:
    """A kernel with the values of theta that are tried, (L, p), and their log prior (L,); ``of`` (T,): for which outputs."""

    kernel: Kernel
    thetas: np.ndarray
    log_prior: np.ndarray
    of: tuple[bool, ...] | None = None


class _Grid(NamedTuple):
    """Log weight and amplitude s^2 (T, ratios) of outputs under one kernel."""

    log_weight: np.ndarray
    size: np.ndarray


def own_grid(
    x: np.ndarray, y: np.ndarray, families: Sequence[Family], groups: Sequence[Sequence[int]]
) -> list[list[GridPoint]]:
    """The grid points that carry the weight of each output y (N, T, NaN = not measured), heaviest first.

    Outputs of one of the ``groups`` have one noise sd.
    """
    measured = ~np.isnan(y)
    patterns, pattern_of = np.unique(measured.T, axis=0, return_inverse=True)
    kernels = [(family.kernel, theta) for family in families for theta in family.thetas]
    weights = np.full((y.shape[1], len(kernels), len(RATIOS)), -np.inf)
    sizes = np.ones_like(weights)
    for number, pattern in enumerate(patterns):
        own = np.flatnonzero(pattern_of.ravel() == number)
        values, start = y[np.ix_(pattern, own)], 0
        for family in families:
            meant = [i for i, t in enumerate(own) if family.of is None or family.of[t]]
            found = _along(family, x[pattern], values[:, meant]) if meant else {}
            for k, grid in found.items():
                weights[own[meant], start + k] = grid.log_weight + family.log_prior[k]
                sizes[own[meant], start + k] = grid.size
            start += len(family.thetas)
    weights -= 0.5 * ((np.log(RATIOS) - RATIO_CENTRE) / RATIO_SD) ** 2
    _share_noise(weights, sizes, groups)
    most = KEPT if len(x) <= FINE_ROWS else KEPT_OF_MANY
    return [_kept(weights[t], sizes[t], kernels, most) for t in range(y.shape[1])]


def _along(family: Family, x: np.ndarray, y: np.ndarray) -> dict[int, _Grid]:
    """Evidence along a family's grid; of many rows every second place first, then the neighbours of maxima."""
    on_points = KernelOnPoints(family.kernel, x)
    count = len(family.thetas)
    wanted = list(range(0, count, 1 if len(x) <= FINE_ROWS else 2))
    found = {k: _evidence(on_points.matrix_and_gradient(family.thetas[k])[0], y) for k in wanted}
    if len(wanted) < count:
        best = {wanted[int(np.argmax([found[k].log_weight[t].max() for k in wanted]))] for t in range(y.shape[1])}
        for k in sorted({k + step for k in best for step in (-1, 1)}):
            if 0 <= k < count and k not in found:
                found[k] = _evidence(on_points.matrix_and_gradient(family.thetas[k])[0], y)
    return found


def _evidence(K: np.ndarray, y: np.ndarray) -> _Grid:
    """Log evidence and amplitude s^2 (T, ratios) of outputs y (n, T)."""
    n = len(y)
    spectrum, U = np.linalg.eigh(K + MEAN_VARIANCE)
    size = np.maximum(spectrum, 0.0)[:, None] + RATIOS**2
    squares = ((U.T @ y) ** 2).T @ (1.0 / size) / n
    squares = np.maximum(squares, SMALLEST_SQUARE)
    return _Grid(-0.5 * n * np.log(squares) - 0.5 * np.sum(np.log(size), axis=0), squares)


def _share_noise(weights: np.ndarray, sizes: np.ndarray, groups: Sequence[Sequence[int]]) -> None:
    """Multiply the weights of an output by what the others of its group say of their common noise sd, in place."""
    noise = np.log(RATIOS) + 0.5 * np.log(sizes)
    bins = np.arange(noise.min() - 1.0, noise.max() + 1.0, 0.5 * NOISE_BLUR)
    for group in groups:
        if len(group) < 2:
            continue
        said = {}
        for t in group:
            w = np.exp(weights[t] - weights[t].max()).ravel()
            heavy = w > 1e-6
            z = (bins[:, None] - noise[t].ravel()[heavy]) / NOISE_BLUR
            said[t] = np.log(np.exp(-0.5 * z**2) @ w[heavy] / w.sum() + 1e-12)
        for t in group:
            others = sum(said[u] for u in group if u != t)
            weights[t] += np.interp(noise[t], bins, others)


def _kept(log_weight: np.ndarray, size: np.ndarray, kernels: list[tuple[Kernel, np.ndarray]], most: int) -> list[GridPoint]:
    """At most ``most`` kernels, the heaviest, each with the mean of its log noise ratio and log amplitude."""
    total = logsumexp(log_weight, axis=1)
    shares = np.exp(total - logsumexp(total))
    heaviest = np.argsort(-shares, kind="stable")[:most]
    points = []
    for k in heaviest[shares[heaviest] > KEPT_SHARE * shares[heaviest[0]]]:
        along = np.exp(log_weight[k] - total[k])
        ratio, amplitude = np.exp(along @ np.log(RATIOS)), np.exp(along @ np.log(size[k]))
        kernel, theta = kernels[k]
        points.append(GridPoint(kernel.clone_with_theta(theta), float(amplitude), float(ratio), float(shares[k])))
    whole = sum(p.weight for p in points)
    return [p._replace(weight=p.weight / whole) for p in points]


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
