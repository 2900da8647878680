"""Outputs with kernels of their own: the posterior of each alone, what a row of them has in common, left-out values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern, RationalQuadratic

from sumgp.hyperparameters import lengths_penalty, noises_differ, own_lengthscales, row_spacing
from sumgp.laws import UnitFreeLaw, project, projected_draws
from sumgp.numerics import LOG_2PI
from sumgp.priors import hyper_priors, quasi_periodic, shown_period
from sumgp.solvers import JointGaussian
from sumgp.strategies.averaging import WIDENING
from sumgp.strategies.output_posterior import KernelFamily, OutputPosterior, grid_of, law_noise, output_posterior, own_grid
from sumgp.strategies.problem import FitProblem, PosteriorComponent, closed_imbalance
from sumgp.strategies.vecchia_output import MapOutput
from sumgp.strategies.weight_component import LocalPosterior, Unprojected, local_posteriors, moved_onto_law, moving_metric

STEP = 0.35  # between logarithms of lengthscales; a maximum is about twice as wide
LONGEST = 1.4  # logarithm of the longest lengthscale over half the range
AROUND = 1.05  # logarithm of lengthscales over those of several inputs that were found with one kernel, at most
# Logarithms of lengthscales of RBF and of Matern kernels over those of Matern 5/2 that suit the same curve.
RBF_LONGER = -0.7
MATERN_LONGER = {0.5: 1.75, 1.5: 0.7, 2.5: 0.0}  # by their smoothness nu
NEIGHBOUR = 0.5  # shortest lengthscale in distances between rows
WAVES = (0.5, 1.0, 2.0)  # of w in exp(-2 sin^2 / w^2): from peaked to nearly a sine
SHORTEST_DECAY = 2.0  # periods over which a wave keeps its shape, at least
SHOWN_BY = 0.5  # share of the outputs that show a period, from which on few rows will do: they always fit some sine
ROWS_FOR_ONE = 30  # rows from which on a single output may show one
FEWEST_VALUES = 5  # of each output
MOST_ROWS = 600  # with more, the eigendecompositions of a grid take longer than a search
LEAST_SHRINKAGE = 0.02  # of correlations, so that closed data leave no direction without variance
LEAST_EIGENVALUE = 1e-3  # of the correlation matrix
LEAST_VARIANCE = 1e-12  # unit-free, of a left-out value beside its noise
SMALLEST_SD = 1e-150  # its square is a double

Way = Sequence[np.ndarray] | None  # blocks of rows that are left out in turn; None = each row on its own


class Cells(NamedTuple):
    """Unit-free cells ``y`` (n, T) of rows, and which of them the fit has ``used``."""

    y: np.ndarray
    used: np.ndarray


@dataclass(frozen=True)
class OwnComponent(PosteriorComponent):
    """Outputs that are alike only in a row: covariance sd_t sd_u R_tu with R the ``correlation`` (T, T).

    With a ``law`` each point is moved onto it in that covariance; errors of soft laws are independent further columns.
    ``closed``: measurements meet the law, so that what each output shows of noise is the noise after the law, with that
    correlation.
    """

    outputs: tuple[OutputPosterior | MapOutput, ...]
    correlation: np.ndarray
    theta: np.ndarray
    noise: np.ndarray  # (T,) variances
    n_outputs: int
    law: UnitFreeLaw | None = None
    widening: float = 1.0
    closed: bool = False

    @property
    def noise_covariance(self) -> np.ndarray:
        """(T, T), independent unless the data are closed."""
        sd = np.sqrt(self.noise)
        return sd[:, None] * (self.correlation if self.closed else np.eye(self.n_outputs)) * sd

    @property
    def n_columns(self) -> int:
        """Outputs and errors of soft laws."""
        return self.n_outputs + len(self.error_variances)

    @property
    def error_variances(self) -> np.ndarray:
        """Of the errors of soft laws."""
        return np.zeros(0) if self.law is None else self.law.soft_variances

    @staticmethod
    def local_posteriors(components: Sequence[Any], x: np.ndarray, x_law: np.ndarray) -> list[LocalPosterior]:
        """All moved onto the law in one call."""
        return local_posteriors(components, x, x_law)

    def distribution(self, x: np.ndarray, x_law: np.ndarray) -> None:
        """None: Gaussian."""

    def lengthscales(self) -> list[np.ndarray]:
        """Of each output's kernels, averaged in the log."""
        return [np.exp([output.weights @ output.log_lengthscales]) for output in self.outputs]

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
        mean, covariance = self.with_errors(mean, covariance)
        metric = moving_metric(covariance, covariance, False, self.law.constants)
        return Unprojected(mean, covariance, metric, np.einsum("ncc->nc", covariance))

    def with_errors(self, mean: np.ndarray, covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means (n, C) and covariances (n, C, C) of outputs and of the errors of soft laws, whose bias is in the law."""
        errors = np.diag(self.error_variances)
        more = ((0, 0), (0, len(errors)))
        covariance = np.pad(covariance, (*more, more[1]))
        covariance[:, self.n_outputs :, self.n_outputs :] = errors
        return np.pad(mean, more), covariance

    def without_cells(self, x: np.ndarray, x_law: np.ndarray, cells: Cells, closed: bool) -> LocalPosterior:
        """Points given all rows but their own; the covariance of measurements is this and the noise.

        Of ``closed`` data the correlation is that of measurements, which meet the law as they are.
        """
        mean, variance = self.alone(x, cells)
        if self.law is not None and not closed:
            return moved_onto_law(self.law, self.free(mean, np.sqrt(variance)), x_law)
        sd = np.sqrt(variance + self.noise)
        covariance = sd[:, :, None] * self.correlation * sd[:, None, :] - np.diag(self.noise)
        return LocalPosterior(*self.with_errors(mean, covariance))

    def alone(self, x: np.ndarray, cells: Cells) -> tuple[np.ndarray, np.ndarray]:
        """Means and variances (n, T) of each output by itself; where the fit has used its cell, without that cell."""
        mean, variance = (np.stack(part, axis=1) for part in zip(*(o.moments(x) for o in self.outputs), strict=True))
        for t, output in enumerate(self.outputs):
            rows = np.flatnonzero(cells.used[:, t])
            residual, whole = output.without(x[rows])
            mean[rows, t], variance[rows, t] = cells.y[rows, t] - residual, np.maximum(whole - output.noise, 0.0)
        return mean, self.widening**2 * variance

    def joint(self, x: np.ndarray) -> JointGaussian:
        """All points before projection: mean + A_t (L z)_t, A_t the symmetric root over points, L L^T = R over outputs.

        Roots of different outputs are not parallel: at one point their correlations are V, not R. Multiplied there by
        D R^(1/2) V^(-1/2) D^-1 with D the standard deviations, each point has the covariance that it has on its own.
        """
        parts = [output.moments(x) for output in self.outputs]
        mean, sd = np.stack([m for m, _ in parts], axis=1), np.sqrt(np.stack([v for _, v in parts], axis=1))
        (n, T), between = mean.shape, np.linalg.cholesky(self.correlation)
        plus = np.zeros((n, T, T, n))
        for t, output in enumerate(self.outputs):
            values, vectors = np.linalg.eigh(output.covariance(x))
            A = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
            plus[:, t] = between[t][:, None] * A[:, None, :] / np.maximum(sd[:, t], SMALLEST_SD)[:, None, None]
        unit = plus.reshape(n, T, T * n)
        values, vectors = np.linalg.eigh(np.concatenate([self.correlation[None], unit @ unit.transpose(0, 2, 1)]))
        roots = np.sqrt(np.maximum(values, LEAST_EIGENVALUE))
        R_root = (vectors[0] * roots[0]) @ vectors[0].T
        V_inverse_root = (vectors[1:] / roots[1:, None, :]) @ vectors[1:].transpose(0, 2, 1)
        root = self.widening * sd[:, :, None] * (R_root @ V_inverse_root @ unit)
        more = len(self.error_variances)
        mean, root = np.pad(mean, ((0, 0), (0, more))), np.pad(root, ((0, 0), (0, more), (0, more * n)))
        for column, variance in enumerate(self.error_variances, T):
            root[range(n), column, range(column * n, column * n + n)] = np.sqrt(variance)
        return JointGaussian(mean, root, np.zeros((*mean.shape, 0)), ())

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

    def differentiated(self, order: tuple[int, ...], x_scale: np.ndarray) -> OwnComponent | None:
        """The derivatives of all outputs; single points are not moved onto the law."""
        outputs = tuple(output.differentiated(order) for output in self.outputs)
        known = tuple(output for output in outputs if output is not None)
        return replace(self, outputs=known, law=None) if len(known) == len(outputs) else None

    def widened(self, factor: float) -> OwnComponent:
        """The same means with all standard deviations ``factor`` times as large."""
        return replace(self, widening=factor * self.widening)


def independent_outputs(outputs: tuple[OutputPosterior, ...], widening: float) -> OwnComponent:
    """Outputs without any correlation; hyperparameters are averaged over within each, so that there is no one theta."""
    T = len(outputs)
    return OwnComponent(outputs, np.eye(T), np.zeros(0), np.array([o.noise for o in outputs]), T, widening=widening)


@dataclass(frozen=True)
class LeftOutValues:
    """Residuals and variances (N, T) of left-out values, noise included; NaN = not measured."""

    residual: np.ndarray
    variance: np.ndarray

    @property
    def log_density(self) -> np.ndarray:
        """(N, T) of each value alone; not finite where a law leaves nothing open, so that nothing is told by it."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return -0.5 * (self.residual**2 / self.variance + np.log(self.variance) + LOG_2PI)


def families(problem: FitProblem) -> list[KernelFamily]:
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
        result.append(KernelFamily(kernel, logs[:, None], np.array([prior.log_density(v) for v in logs])))
    if problem.x.shape[1] > 1:
        return result + _with_lengthscales(problem, apart)
    period = shown_period(problem.x, problem.y)
    if period is not None and (np.mean(period.shown_by) >= SHOWN_BY or len(problem.x) >= ROWS_FOR_ONE):
        decays = np.arange(np.log(4.0 * size), np.log(SHORTEST_DECAY * period.length), -2.0 * STEP)
        thetas = np.array([[np.log(w), np.log(period.length), d] for w in WAVES for d in decays])
        if len(thetas):
            kernel = quasi_periodic(RBF(size), period.length)
            result.append(KernelFamily(kernel, thetas, np.full(len(thetas), np.log(2.0 / len(WAVES))), period.shown_by))
    return result


def _with_lengthscales(problem: FitProblem, apart: float) -> list[KernelFamily]:
    """RBF and Matern kernels with a lengthscale for each input, if some output asks for it; all of one change together."""
    found = own_lengthscales(problem.x, problem.y, problem.half_range, apart)
    if not any(lengths.gain > 0 for lengths in found):
        return []
    centres = np.stack([lengths.logs for lengths in found])
    shifts = np.arange(AROUND, -AROUND - 1e-9, -STEP)
    prior = -0.5 * np.minimum(shifts, 0.0) ** 2 - lengths_penalty(*problem.x.shape)
    thetas = np.repeat(shifts[:, None], problem.x.shape[1], axis=1)
    kernels: list[tuple[Kernel, float]] = [(RBF(problem.half_range), RBF_LONGER)]
    kernels += [(Matern(problem.half_range, nu=nu), longer) for nu, longer in MATERN_LONGER.items()]
    return [KernelFamily(kernel, thetas, prior, centres=centres + longer) for kernel, longer in kernels]


def with_own_noises(problem: FitProblem) -> FitProblem:
    """Outputs that share one noise have noises of their own where that is clearly more probable, by each output alone."""
    noise, order = problem.noise, problem.in_order()
    seen = (~np.isnan(order.y)).sum(axis=0) >= FEWEST_VALUES
    groups = [group for group in noise.groups if seen[list(group)].sum() > 1]
    if not groups or noise.known is not None or noise.row_factor is not None or len(order.y) > MOST_ROWS:
        return problem
    kernels = families(order)
    grid = grid_of(order.x, order.y, kernels)
    weights = grid.log_weight + np.concatenate([family.log_prior for family in kernels])[:, None]
    apart = {g for g in groups if noises_differ(weights, grid.log_sd, [t for t in g if seen[t]])}
    own = sorted([g for g in noise.groups if g not in apart] + [(t,) for g in apart for t in g])
    return replace(problem, noise=replace(noise, groups=tuple(own)))


def own_component(problem: FitProblem, law: UnitFreeLaw | None = None) -> OwnComponent | None:
    """Independent outputs, None where that is not defined: known noise, many rows, an output with hardly any values.

    ``law`` tells of their noise; points are moved onto it by the component that has it.
    """
    y, measured = problem.y, ~np.isnan(problem.y)
    alike = problem.noise.known is None and problem.noise.row_factor is None
    if not alike or len(y) > MOST_ROWS or measured.sum(axis=0).min() < FEWEST_VALUES:
        return None
    grids = own_grid(problem.x, y, families(problem), problem.noise.groups, law_noise(problem, law))
    outputs = tuple(
        output_posterior(problem.x[measured[:, t]], y[measured[:, t], t], points) for t, points in enumerate(grids)
    )
    plain = independent_outputs(outputs, WIDENING)
    closed = closed_imbalance(problem) is not None
    return replace(plain, correlation=shrunk_correlation(own_left_out(plain, y, None)), closed=closed)


def own_left_out(component: OwnComponent, y: np.ndarray, way: Way) -> LeftOutValues:
    """Values of each output left out, before any law."""
    residual, variance = np.full(y.shape, np.nan), np.full(y.shape, np.nan)
    for t, output in enumerate(component.outputs):
        assert isinstance(output, OutputPosterior)
        rows = np.flatnonzero(~np.isnan(y[:, t]))
        own = None if way is None else [found for block in way if len(found := np.flatnonzero(np.isin(rows, block)))]
        residual[rows, t], variance[rows, t] = output.left_out(own)
    return LeftOutValues(residual, component.noise + component.widening**2 * np.maximum(variance - component.noise, 0.0))


def moved_left_out(
    component: OwnComponent, values: LeftOutValues, y: np.ndarray, x_law: np.ndarray, x: np.ndarray | None = None
) -> LeftOutValues:
    """The same with rows moved onto the component's law, as predictions are: complete rows, and if ``x`` is given all.

    Cells that were not measured are then what the fit says at x, which is right where no other row is left out.
    """
    if component.law is None:
        return values
    noise = component.noise
    mean, variance = y - values.residual, np.maximum(values.variance - noise, LEAST_VARIANCE)
    for t, output in enumerate(component.outputs if x is not None else ()):
        lost = np.flatnonzero(np.isnan(y[:, t]))
        if len(lost):
            mean[lost, t], free = output.moments(x[lost])  # type: ignore[index]
            variance[lost, t] = component.widening**2 * free
    known = ~np.isnan(mean).any(axis=1)
    moved = moved_onto_law(component.law, component.free(mean[known], np.sqrt(variance[known])), x_law[known])
    residual, whole = values.residual.copy(), values.variance.copy()
    T = y.shape[1]
    residual[known] = y[known] - moved.mean[:, :T]
    whole[known] = np.einsum("ncc->nc", moved.covariance)[:, :T] + noise
    return LeftOutValues(residual, np.where(np.isnan(y), np.nan, whole))


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
