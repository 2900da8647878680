"""The kind of prior in which each output has kernels of its own: families, fit, and what it says of left-out values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern, RationalQuadratic

from sumgp.hyperparameters import Family, own_grid, row_spacing
from sumgp.priors import hyper_priors, quasi_periodic, shown_period
from sumgp.strategies.averaging import WIDENING
from sumgp.strategies.own_component import OwnComponent, output_posterior
from sumgp.strategies.problem import FitProblem
from sumgp.strategies.weight_component import moved_onto_law

STEP = 0.35  # between logarithms of lengthscales; a maximum is about twice as wide
LONGEST = 1.4  # logarithm of the longest lengthscale over half the range
NEIGHBOUR = 0.5  # shortest lengthscale in distances between rows
WAVES = (0.5, 1.0, 2.0)  # of w in exp(-2 sin^2 / w^2): from peaked to nearly a sine
SHORTEST_DECAY = 2.0  # periods over which a wave keeps its shape, at least
SHOWN_BY = 0.5  # share of the outputs that show a period, from which on few rows will do: they always fit some sine
ROWS_FOR_ONE = 30  # rows from which on a single output may show one
FEWEST_VALUES = 5  # of each output
MOST_ROWS = 600  # with more, the eigendecompositions of a grid take longer than a search
LEAST_SHRINKAGE = 0.02  # of correlations, so that closed data leave no direction without variance
LEAST_EIGENVALUE = 1e-3  # of the correlation matrix
LOG_2PI = float(np.log(2.0 * np.pi))

Way = Sequence[np.ndarray] | None  # blocks of rows that are left out in turn; None = each row on its own


@dataclass(frozen=True)
class LeftOutValues:
    """Residuals and variances (N, T) of left-out values, noise included; NaN = not measured."""

    residual: np.ndarray
    variance: np.ndarray

    @property
    def log_density(self) -> np.ndarray:
        """(N, T) of each value alone."""
        return -0.5 * (self.residual**2 / self.variance + np.log(self.variance) + LOG_2PI)


def families(problem: FitProblem) -> list[Family]:
    """RBF, RationalQuadratic and Matern kernels, lengthscales from neighbouring rows to beyond the range, and waves."""
    half_range = problem.half_range
    size = float(np.sqrt(np.mean(half_range**2)))
    apart = max(row_spacing(problem.x / half_range), 1e-4)
    shifts = np.arange(LONGEST, min(np.log(NEIGHBOUR * apart), -1.0) - 1e-9, -STEP)
    kernels: list[Kernel] = [RBF(size), RationalQuadratic(size, alpha=2.0, alpha_bounds="fixed")]
    kernels += [Matern(size, nu=nu) for nu in (0.5, 1.5, 2.5)]
    result = []
    for kernel in kernels:
        prior = hyper_priors(kernel, half_range, apart)[0]
        logs = np.log(size) + shifts
        result.append(Family(kernel, logs[:, None], np.array([prior.log_density(v) for v in logs])))
    period = shown_period(problem.x, problem.y)
    if period is not None and (np.mean(period.shown_by) >= SHOWN_BY or len(problem.x) >= ROWS_FOR_ONE):
        decays = np.arange(np.log(4.0 * size), np.log(SHORTEST_DECAY * period.length), -2.0 * STEP)
        thetas = np.array([[np.log(w), np.log(period.length), d] for w in WAVES for d in decays])
        if len(thetas):
            kernel = quasi_periodic(RBF(size), period.length)
            result.append(Family(kernel, thetas, np.full(len(thetas), np.log(2.0 / len(WAVES))), period.shown_by))
    return result


def own_component(problem: FitProblem) -> OwnComponent | None:
    """Independent outputs, None where that is not defined: known noise, many rows, an output with hardly any values."""
    y, measured = problem.y, ~np.isnan(problem.y)
    alike = problem.noise.known is None and problem.noise.row_factor is None
    if not alike or len(y) > MOST_ROWS or measured.sum(axis=0).min() < FEWEST_VALUES:
        return None
    grids = own_grid(problem.x, y, families(problem), problem.noise.groups)
    outputs = tuple(
        output_posterior(problem.x[measured[:, t]], y[measured[:, t], t], points) for t, points in enumerate(grids)
    )
    plain = OwnComponent(outputs, np.eye(y.shape[1]), WIDENING)
    return replace(plain, correlation=shrunk_correlation(own_left_out(plain, y, None)))


def own_left_out(component: OwnComponent, y: np.ndarray, way: Way) -> LeftOutValues:
    """Values of each output left out, before any law."""
    residual, variance = np.full(y.shape, np.nan), np.full(y.shape, np.nan)
    for t, output in enumerate(component.outputs):
        rows = np.flatnonzero(~np.isnan(y[:, t]))
        own = None if way is None else [found for block in way if len(found := np.flatnonzero(np.isin(rows, block)))]
        residual[rows, t], variance[rows, t] = output.left_out(own)
    noise = component.noise
    return LeftOutValues(residual, noise + component.widening**2 * np.maximum(variance - noise, 0.0))


def moved_left_out(component: OwnComponent, values: LeftOutValues, y: np.ndarray, x_law: np.ndarray) -> LeftOutValues:
    """The same with complete rows moved onto the component's law, as predictions are."""
    if component.law is None:
        return values
    residual, variance, noise = values.residual.copy(), values.variance.copy(), component.noise
    complete = ~np.isnan(y).any(axis=1)
    sd = np.sqrt(np.maximum(variance[complete] - noise, 1e-12))
    moved = moved_onto_law(component.law, component.free((y - residual)[complete], sd), x_law[complete])
    residual[complete] = y[complete] - moved.mean
    variance[complete] = np.einsum("ntt->nt", moved.covariance) + noise
    return LeftOutValues(residual, variance)


def shrunk_correlation(values: LeftOutValues) -> np.ndarray:
    """(T, T) correlation of standardised residuals, shrunk to none by its own standard errors.

    Share of the shrinkage: sum (1 - r^2)^2 / (n - 1) over sum r^2 of the pairs, the variance of r over its square.
    """
    z = values.residual / np.sqrt(values.variance)
    seen = ~np.isnan(z)
    z = np.where(seen, z, 0.0)
    count = np.maximum(seen.T.astype(float) @ seen, 1.0)
    together = z.T @ z / count
    sd = np.sqrt(np.diagonal(together))
    R = np.clip(together / np.maximum(np.outer(sd, sd), np.finfo(float).tiny), -1.0, 1.0)
    np.fill_diagonal(R, 1.0)
    off = ~np.eye(len(R), dtype=bool)
    error = np.sum(((1.0 - R**2) ** 2 / np.maximum(count - 1.0, 1.0))[off])
    share = float(np.clip(error / max(float(np.sum(R[off] ** 2)), 1e-12), LEAST_SHRINKAGE, 1.0))
    eigenvalues, vectors = np.linalg.eigh((1.0 - share) * R + share * np.eye(len(R)))
    R = (vectors * np.maximum(eigenvalues, LEAST_EIGENVALUE)) @ vectors.T
    sd = np.sqrt(np.diagonal(R))
    return R / np.outer(sd, sd)
