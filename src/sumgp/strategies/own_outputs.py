"""Outputs with kernels and noises of their own, which have in common what a row of them has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sumgp.hyperparameters import noises_differ
from sumgp.laws import UnitFreeLaw
from sumgp.priors import MultitaskPrior, OneOutputTask
from sumgp.solvers import JointGaussian
from sumgp.strategies.left_out import GOLDEN, LeftOut, TrainingRows
from sumgp.strategies.output_posterior import OutputPosterior, families, grid_of
from sumgp.strategies.problem import FitProblem, LocalPosterior
from sumgp.strategies.vecchia_output import MapOutput
from sumgp.strategies.weight_component import MovedComponent, Unprojected, moved_onto_law, own_points, with_soft_errors

FEWEST_VALUES = 5  # of each output
MOST_ROWS = 600  # with more, the eigendecompositions of a grid take longer than a search
LEAST_EIGENVALUE = 1e-3  # of the correlation matrix
SMALLEST_SD = 1e-150  # its square is a double


class Cells(NamedTuple):
    """Unit-free cells ``y`` (n, T) of rows, and which of them the fit has ``used``."""

    y: np.ndarray
    used: np.ndarray


@dataclass(frozen=True)
class OwnComponent(MovedComponent):
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
        return Unprojected(mean, covariance) if self.law is None else own_points(self.law, mean, covariance)

    def without_cells(self, x: np.ndarray, x_law: np.ndarray, cells: Cells, closed: bool) -> LocalPosterior:
        """Points given all rows but their own; the covariance of measurements is this and the noise.

        Of ``closed`` data the correlation is that of measurements, which meet the law as they are.
        """
        mean, variance = self.alone(x, cells)
        if self.law is not None and not closed:
            return moved_onto_law(self.law, self.free(mean, np.sqrt(variance)), x_law)
        sd = np.sqrt(variance + self.noise)
        covariance = sd[:, :, None] * self.correlation * sd[:, None, :] - np.diag(self.noise)
        return LocalPosterior(*with_soft_errors(mean, covariance, self.error_variances))

    def left_out(self, rows: TrainingRows) -> LeftOut:
        """Each row of the fit given the others, kernels weighed anew: the form for one posterior is none for averages."""
        cells = Cells(rows.y, ~np.isnan(rows.y))
        found = self.without_cells(rows.x, rows.x_law, cells, closed=False)
        mean, variance = (part[:, : self.n_outputs] for part in (found.mean, np.einsum("ncc->nc", found.covariance)))
        return LeftOut(rows.y - mean, np.where(cells.used, variance + self.noise, np.nan), np.zeros(len(mean)))

    def alone(self, x: np.ndarray, cells: Cells) -> tuple[np.ndarray, np.ndarray]:
        """Means and variances (n, T) of each output by itself; where the fit has used its cell, without that cell."""
        mean, variance = (np.stack(part, axis=1) for part in zip(*(o.moments(x) for o in self.outputs), strict=True))
        for t, output in enumerate(self.outputs):
            rows = np.flatnonzero(cells.used[:, t])
            residual, whole = output.without(x[rows], cells.y[rows, t])
            mean[rows, t], variance[rows, t] = cells.y[rows, t] - residual, np.maximum(whole - output.noise, 0.0)
        return mean, self.widening**2 * variance

    def free_joint(self, x: np.ndarray, x_law: np.ndarray) -> JointGaussian:
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
        values, vectors = np.linalg.eigh(np.concatenate([self.correlation[None], unit @ unit.mT]))
        roots = np.sqrt(np.maximum(values, LEAST_EIGENVALUE))
        R_root = (vectors[0] * roots[0]) @ vectors[0].T
        V_inverse_root = (vectors[1:] / roots[1:, None, :]) @ vectors[1:].mT
        root = self.widening * sd[:, :, None] * (R_root @ V_inverse_root @ unit)
        more = len(self.error_variances)
        mean, root = np.pad(mean, ((0, 0), (0, more))), np.pad(root, ((0, 0), (0, more), (0, more * n)))
        for column, variance in enumerate(self.error_variances, T):
            root[range(n), column, range(column * n, column * n + n)] = np.sqrt(variance)
        return JointGaussian(mean, root, np.zeros((*mean.shape, 0)), ())

    def free_draws(self, x: np.ndarray, x_law: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
        """(count, n, T) joint draws."""
        whole = self.free_joint(x, x_law)
        numbers = generator.standard_normal((count, whole.plus.shape[2]))
        return whole.mean + np.einsum("nca,ka->knc", whole.plus, numbers)

    def differentiated(self, order: tuple[int, ...], x_scale: np.ndarray) -> OwnComponent | None:
        """The derivatives of all outputs; single points are not moved onto the law."""
        outputs = tuple(output.differentiated(order) for output in self.outputs)
        known = tuple(output for output in outputs if output is not None)
        return replace(self, outputs=known, law=None) if len(known) == len(outputs) else None

    def widened(self, factor: float) -> OwnComponent:
        """The same means with all standard deviations ``factor`` times as large."""
        return replace(self, widening=factor * self.widening)


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


def own_priors(problem: FitProblem, component: OwnComponent, draws: int) -> Iterator[tuple[MultitaskPrior, np.ndarray]]:
    """Priors of independent outputs with hyperparameters: the kernels of each output, drawn evenly by their weights."""
    T = problem.n_outputs
    tasks = tuple(OneOutputTask(T, t) for t in range(T))
    for draw in range(draws):
        chosen = []
        for t, output in enumerate(component.outputs):
            assert isinstance(output, OutputPosterior)
            place = ((draw + 0.5) / draws + t * GOLDEN) % 1.0  # so that outputs do not go through theirs together
            k = min(int(np.searchsorted(np.cumsum(output.weights), place)), len(output.weights) - 1)
            chosen.append((output.kernels[k], float(np.sqrt(output.sizes[k])), float(output.ratios[k])))
        kernels = tuple(kernel for kernel, _, _ in chosen)
        prior = MultitaskPrior(
            kernels, ((),) * T, tasks, problem.noise, T, mean_shape="identity", soft=component.error_variances
        )
        theta = [np.append(kernel.theta, np.log(size)) for kernel, size, _ in chosen]
        yield prior, np.concatenate([*theta, problem.noise.like(np.array([size * ratio for _, size, ratio in chosen]))])
