"""One output alone: a grid of kernels, amplitudes and noise weighed by their evidence, and the posterior averaged over it.

y ~ N(0, s^2 (K + m 1 1^T + r^2 I)). One eigendecomposition of K + m 1 1^T gives the evidence for all noise ratios r and,
with a scale-free prior, for all amplitudes s: -n/2 log q - 1/2 log|K + m 1 1^T + r^2 I| with q = y^T (...)^-1 y / n. Outputs
measured in the same rows share it. So a grid over families, lengthscales and ratios costs less than one search.

Few rows leave open whether an output is rough or noisy. So kernel and noise ratio of each output are drawn around common
ones c: p(c) prod_t sum_j B(c, j) L_t(j) with the likelihoods L_t of grid points j and B the probability of j around c. A law
that rows miss tells of the common noise too: the imbalance of a row is nothing but noise, g ~ N(0, sum_t J_t^2 sd_t^2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.gaussian_process.kernels import RBF, Kernel, RationalQuadratic

from sumgp.hyperparameters import around, own_length_families, pool, share_noise
from sumgp.laws import UnitFreeLaw
from sumgp.numerics import cholesky, cholesky_inverse, shifted_forms, solve_cholesky, solve_lower
from sumgp.priors import (
    KernelDerivatives,
    KernelFamily,
    KernelOnPoints,
    MultitaskPrior,
    derivative_gram,
    local_lengthscales,
    output_families,
    smoothness,
)
from sumgp.strategies.problem import FitProblem, closed_imbalance

MEAN_VARIANCE = MultitaskPrior.mean_variance
CLOSEST = 1e-4  # neighbouring rows, over half the range: shorter lengthscales are not tried
# Of the prior variance, on the diagonal: just above the round-off of covariances of 600 rows. With 1e-10 sds between rows
# were 2.6 times too large beside a noise of 1e-5 of the amplitude.
JITTER = 1e-12
ROUND_OFF = 1e-13  # of the prior variance: what its difference to what rows explain is known to
RATIOS = np.exp(np.linspace(np.log(JITTER) / 2, np.log(10.0), 112))  # noise sd over amplitude; a step changes noise by 15 %
RATIO_CENTRE, RATIO_SD = np.log(0.05), 2.0  # of the logarithm, as in the noise model
SMALLEST_SQUARE = 1e-12  # unit-free: a column of equal values has no amplitude of its own
KEPT, KEPT_OF_MANY = 12, 4  # kernels of an output that predictions are averaged over; each keeps a factor of all rows
KEPT_SHARE = 0.003  # of the heaviest one's weight, below which a point is not kept
FINE_ROWS = 120  # rows up to which every place of a grid is looked at
SMOOTH = (RBF, RationalQuadratic)  # few eigenvalues, the fewer the longer the lengthscale
ALIKE_LENGTH = 0.7  # of log lengthscales: a factor of two
ALIKE_RATIO = 0.7  # of log noise ratios


class GridPoint(NamedTuple):
    """One kernel of one output with amplitude s^2, noise ratio r and weight."""

    kernel: Kernel
    size: float
    ratio: float
    weight: float


def families(problem: FitProblem) -> list[KernelFamily]:
    """The kernels that an output alone may have; where there are several inputs, with a lengthscale for each too."""
    given = problem.x, problem.y, problem.half_range, max(problem.spacing, CLOSEST)
    return output_families(*given) + (own_length_families(*given) if problem.x.shape[1] > 1 else [])


@dataclass(frozen=True)
class LawNoise:
    """Imbalances g (M,) of measured rows under a law, unit-free, and the squares (M, T) of their slopes by the outputs."""

    g: np.ndarray
    squares: np.ndarray

    def log_density(self, variances: np.ndarray) -> np.ndarray:
        """(C,) for noise variances (T, C)."""
        found = np.zeros(variances.shape[1])
        for g, squares in zip(self.g, self.squares, strict=True):  # row by row: tables of all rows would leave the cache
            total = np.maximum(squares @ variances, np.finfo(float).tiny)
            found -= 0.5 * (g * g / total + np.log(total))
        return found


def law_noise(problem: FitProblem, law: UnitFreeLaw | None) -> LawNoise | None:
    """How rows of which all that an exact law needs was measured miss it; None where their noise obeys the law too."""
    if law is None or closed_imbalance(problem) is not None:
        return None
    T = problem.n_outputs
    filled = np.pad(np.nan_to_num(problem.y), ((0, 0), (0, law.n_columns - T)))
    g, J = law.residual(filled, problem.data.x), law.jacobian(filled, problem.data.x)[:, :, :T]
    needed = np.einsum("nrt,nt->nr", J**2, np.isnan(problem.y)) == 0
    usable = (law.law.noise == 0) & needed & np.isfinite(g) & np.isfinite(J).all(axis=2) & np.any(J != 0, axis=2)
    return LawNoise(g[usable], J[usable] ** 2)


class Grid(NamedTuple):
    """Log weight and amplitude s^2 (T, ratios) of outputs under one kernel, (T, kernels, ratios) under several."""

    log_weight: np.ndarray
    size: np.ndarray

    @property
    def log_sd(self) -> np.ndarray:
        """Of the noise, at each point."""
        return np.log(RATIOS) + 0.5 * np.log(self.size)


def own_grid(
    x: np.ndarray,
    y: np.ndarray,
    families: Sequence[KernelFamily],
    groups: Sequence[Sequence[int]],
    law: LawNoise | None = None,
) -> list[list[GridPoint]]:
    """The grid points that carry the weight of each output y (N, T, NaN = not measured), heaviest first.

    Outputs of one of the ``groups`` have one noise sd; ``law``: how rows miss a law, which tells of their noise.
    """
    grid = grid_of(x, y, families)
    weights = _pooled(*grid, families, law)
    share_noise(weights, grid.log_sd, groups)
    most = KEPT if len(x) <= FINE_ROWS else KEPT_OF_MANY
    kernels = [[(f.kernel, theta) for f in families for theta in f.thetas_of(t)] for t in range(y.shape[1])]
    return [_kept(*of_output, most) for of_output in zip(weights, grid.size, kernels, strict=True)]


def grid_of(x: np.ndarray, y: np.ndarray, families: Sequence[KernelFamily]) -> Grid:
    """Log evidence and amplitude of each output y (N, T, NaN = not measured) alone, under all kernels."""
    measured = ~np.isnan(y)
    patterns, pattern_of = np.unique(measured.T, axis=0, return_inverse=True)
    count = sum(len(family.thetas) for family in families)
    weights = np.full((y.shape[1], count, len(RATIOS)), -np.inf)
    sizes = np.ones_like(weights)
    for number, pattern in enumerate(patterns):
        own = np.flatnonzero(pattern_of.ravel() == number)
        start = 0
        for family in families:
            meant = [int(t) for t in own if family.of is None or family.of[t]]
            for together in [meant] if meant and family.centres is None else [[t] for t in meant]:
                values, thetas = y[np.ix_(pattern, together)], family.thetas_of(together[0])
                for k, grid in _along(family.kernel, x[pattern], values, thetas).items():
                    weights[together, start + k] = grid.log_weight
                    sizes[together, start + k] = grid.size
            start += len(family.thetas)
    return Grid(weights, sizes)


def _pooled(weights: np.ndarray, sizes: np.ndarray, families: Sequence[KernelFamily], law: LawNoise | None) -> np.ndarray:
    """Log likelihoods (T, kernels, ratios) times what the outputs have in common."""
    dimension = max(family.thetas.shape[1] for family in families)
    places = np.concatenate([np.pad(f.thetas, ((0, 0), (0, dimension - f.thetas.shape[1]))) for f in families])
    # Where outputs have lengthscales of their own, how smooth they are is their own too.
    kind = [k if f.centres is None else len(families) for k, f in enumerate(families)]
    kinds = np.repeat(kind, [len(f.thetas) for f in families])
    prior = np.concatenate([f.log_prior for f in families])
    ratio_prior = -0.5 * ((np.log(RATIOS) - RATIO_CENTRE) / RATIO_SD) ** 2
    kernels = around(places, ALIKE_LENGTH, np.exp(prior - prior.max()), kinds)
    ratios = around(np.log(RATIOS)[:, None], ALIKE_RATIO, np.exp(ratio_prior), np.zeros(len(RATIOS)))
    T, K, R = weights.shape
    told = None if law is None else law.log_density((sizes * RATIOS**2).reshape(T, -1)).reshape(K, R)
    return pool(weights, kernels, ratios, prior[:, None] + ratio_prior, told)


def _along(kernel: Kernel, x: np.ndarray, y: np.ndarray, thetas: np.ndarray) -> dict[int, Grid]:
    """Evidence along ``thetas``; of many rows every second place first, then the neighbours of maxima."""
    on_points = KernelOnPoints(kernel, x)
    count, smooth = len(thetas), type(kernel) in SMOOTH
    wanted = list(range(0, count, 1 if len(x) <= FINE_ROWS else 2))
    found = {k: _evidence(on_points.matrix(thetas[k]), y, smooth) for k in wanted}
    if len(wanted) < count:
        best = {wanted[int(np.argmax([found[k].log_weight[t].max() for k in wanted]))] for t in range(y.shape[1])}
        for k in sorted({k + step for k in best for step in (-1, 1)}):
            if 0 <= k < count and k not in found:
                found[k] = _evidence(on_points.matrix(thetas[k]), y, smooth)
    return found


def _evidence(K: np.ndarray, y: np.ndarray, smooth: bool) -> Grid:
    """Log evidence and amplitude s^2 (T, ratios) of outputs y (n, T); ``smooth``: K may have few eigenvalues."""
    n, noise = len(y), RATIOS**2
    if n > FINE_ROWS:  # a third of the time of all eigenvectors at 600 rows, about the same at 200
        squares, logs = shifted_forms(K + MEAN_VARIANCE, y, noise, smooth)
    else:
        spectrum, U = np.linalg.eigh(K + MEAN_VARIANCE)
        size = np.maximum(spectrum, 0.0)[:, None] + noise
        squares, logs = ((U.T @ y) ** 2).T @ (1.0 / size), np.sum(np.log(size), axis=0)
    squares = np.maximum(squares / n, SMALLEST_SQUARE)
    return Grid(-0.5 * n * np.log(squares) - 0.5 * logs, squares)


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


def fitted_rows(fitted_x: np.ndarray, fitted_y: np.ndarray, x: np.ndarray, y: np.ndarray) -> list[int]:
    """Positions of the values y (n,) at x (n, D) among those fitted; of several at one place the nearest."""
    places: dict[tuple[float, ...], list[int]] = {}
    for k, row in enumerate(fitted_x.tolist()):
        places.setdefault(tuple(row), []).append(k)
    return [
        min(places[tuple(row)], key=lambda k: abs(fitted_y[k] - value))
        for row, value in zip(x.tolist(), y.tolist(), strict=True)
    ]


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
            variances.append(size * np.maximum(prior - drop, ROUND_OFF * prior))
        mean = self.weights @ np.array(means)
        return mean, self.weights @ (np.array(variances) + (np.array(means) - mean) ** 2)

    def without(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Residuals and variances (n,), noise included, of the values y (n,) fitted at x (n, D), each left out."""
        residual, variance = self.left_out(None)
        rows = fitted_rows(self.x, self.factors[0] @ (self.factors[0].T @ self.alphas[0]), x, y)
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
