"""The multitask prior of several outputs: a sum of separable terms K_r (x) Sigma_r, constants, noise, all parameters.

Unit-free throughout. Besides the T outputs a prior may have columns that only the law sees: ``unknown`` constants and
the errors of ``soft`` laws, which vary as smoothly as the outputs do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import erf
from sklearn.gaussian_process.kernels import Kernel

from sumgp.errors import DataError
from sumgp.laws import LatentMap, TaskRows
from sumgp.numerics import SchurConditioning, schur_condition
from sumgp.priors.alike import alike_lengths, several_lengths
from sumgp.priors.kernels import HyperPrior, kernel_at, lengthscale_mask, local_lengthscales
from sumgp.priors.tasks import TaskCovariance, nullspace_basis, student_around_mean

CENTRE = 0.05  # prior median of noise sd / sd of an output
LOG_SD = 2.0  # prior sd of log noise: a factor of seven either way
SMALLEST = 1e-6  # of an output's sd; a noise of exactly zero makes covariances singular
# Outputs are mostly measured about equally well beside their own variation. With few rows the data say little about each
# noise; a law then believes the output whose noise happens to look smallest. Scale of the logs around their mean, and
# degrees of freedom: so few that noises which do differ, by a factor of ten say, are left as the data have them.
ALIKE_NOISES = 0.15
ALIKE_DEGREES = 3.0  # see above


@dataclass(frozen=True)
class NoiseModel:
    """Noise variances (T,) or (N, T) in unit-free outputs: known, or exp(2 theta) times a reference.

    ``groups`` lists outputs with one common parameter; ``reference`` (T,) is the unit-free size of one user unit
    relative to its group, so that "shared" means the same standard deviation in the user's units.
    """

    groups: tuple[tuple[int, ...], ...]
    reference: np.ndarray
    known: np.ndarray | None = None  # (N, T) variances
    closed: bool = False  # noise lies within the null space of the law
    row_factor: np.ndarray | None = None  # (N,) times the variances of a row: 1 / weight

    @property
    def n_parameters(self) -> int:
        """Number of unknown standard deviations."""
        return 0 if self.known is not None else len(self.groups)

    def start(self) -> np.ndarray:
        """Log standard deviations to begin with."""
        return np.full(self.n_parameters, np.log(0.1))

    def like(self, sds: np.ndarray) -> np.ndarray:
        """Parameters near unit-free standard deviations (T,): the geometric mean of each group."""
        if self.known is not None:
            return np.zeros(0)
        logs = np.log(np.maximum(sds, SMALLEST) / self.reference)
        return np.array([logs[list(group)].mean() for group in self.groups])

    def reaching(self, reach: np.ndarray) -> NoiseModel:
        """The same with each group's reference ``reach`` (T,) times as large, by the largest of its outputs."""
        reference = self.reference.copy()
        for group in self.groups:
            reference[list(group)] *= reach[list(group)].max()
        return replace(self, reference=reference)

    def prior_mean(self) -> np.ndarray:
        """Centre of the normal prior on the log standard deviations."""
        return np.full(self.n_parameters, np.log(CENTRE))

    def prior_sd(self) -> np.ndarray:
        """Width of that prior."""
        return np.full(self.n_parameters, LOG_SD)

    def agreement(self, parameters: np.ndarray, scale: float = ALIKE_NOISES) -> tuple[float, np.ndarray]:
        """Log density, up to a constant, of how the log standard deviations differ, and its gradient."""
        if len(parameters) < 2:
            return 0.0, np.zeros(len(parameters))
        return student_around_mean(parameters, scale, ALIKE_DEGREES)

    def variances(self, parameters: np.ndarray) -> np.ndarray:
        """(T,) variances where they are unknown, (N, T) where they were given or rows have weights."""
        variances = self._unweighted(parameters)
        return variances if self.row_factor is None else variances * self.row_factor[:, None]

    def _unweighted(self, parameters: np.ndarray) -> np.ndarray:
        if self.known is not None:
            return self.known
        return np.exp(2.0 * parameters)[self._group_of] * self._squared + SMALLEST**2

    def weighted(self, weights: np.ndarray) -> NoiseModel:
        """The noise of rows with these weights (N,), rows of weight zero left out."""
        used = weights > 0
        alike = np.all(weights[used] == 1.0)
        return replace(self.at(used), row_factor=None if alike else 1.0 / weights[used])

    def at(self, rows: np.ndarray) -> NoiseModel:
        """The noise of these rows."""
        known = None if self.known is None else self.known[rows]
        return replace(self, known=known, row_factor=None if self.row_factor is None else self.row_factor[rows])

    @cached_property
    def _group_of(self) -> np.ndarray:
        """(T,) position of each output's group."""
        positions = np.empty(len(self.reference), dtype=int)
        for position, group in enumerate(self.groups):
            positions[list(group)] = position
        return positions

    @cached_property
    def _squared(self) -> np.ndarray:
        return self.reference**2

    def typical(self, parameters: np.ndarray) -> np.ndarray:
        """(T,) variances for a new measurement of weight one: the mean over the rows where each row has its own."""
        variances = self._unweighted(parameters)
        return variances if variances.ndim == 1 else variances.mean(axis=0)

    def pull_back(self, parameters: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Gradient with respect to the parameters from the gradient (N, T) with respect to the variances.

        (T,), already summed over the rows, is enough where rows have no weights.
        """
        if self.known is not None:
            return np.zeros(0)
        variance = self._unweighted(parameters) - SMALLEST**2
        if gradient.ndim == 2:
            gradient = np.sum(gradient if self.row_factor is None else gradient * self.row_factor[:, None], axis=0)
        return 2.0 * np.bincount(self._group_of, gradient * variance, len(self.groups))


def read_noise(noise: Any, y_scale: np.ndarray, groups: Sequence[Sequence[int]], n_rows: int) -> NoiseModel:
    """The noise model for the estimator's argument ``noise``, in unit-free outputs."""
    n_outputs = len(y_scale)
    if isinstance(noise, str):
        if noise == "per-output":
            return NoiseModel(tuple(tuple(g) for g in groups), np.ones(n_outputs))
        if noise == "shared":
            # Relative to the geometric mean of the scales, so that the prior's centre keeps its meaning.
            reference = np.exp(np.mean(np.log(y_scale))) / y_scale
            return NoiseModel((tuple(range(n_outputs)),), reference)
        raise DataError("noise", "'per-output', 'shared' or known standard deviations", repr(noise), "choose one of them")
    try:
        known = np.asarray(noise, dtype=float)
    except (TypeError, ValueError) as error:
        raise DataError("noise", "'per-output', 'shared' or numbers", repr(noise), "give standard deviations") from error
    if known.shape not in ((), (n_outputs,), (n_rows, n_outputs)):
        raise DataError(
            "noise",
            f"a number, {n_outputs} numbers or an array ({n_rows}, {n_outputs})",
            f"shape {known.shape}",
            "give one standard deviation per output or per measurement",
        )
    if not np.all(np.isfinite(known)) or np.any(known < 0):
        raise DataError("noise", "standard deviations of zero or more", "negative or NaN values", "correct them")
    variances = (np.broadcast_to(known, (n_rows, n_outputs)) / y_scale) ** 2 + SMALLEST**2
    return NoiseModel(tuple(tuple(g) for g in groups), np.ones(n_outputs), known=variances)


def read_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """(N,) weights of zero or more, some positive; ones where none are given."""
    if sample_weight is None:
        return np.ones(n_rows)
    try:
        weights = np.asarray(sample_weight, dtype=float)
    except (TypeError, ValueError) as error:
        raise DataError("sample_weight", "numbers", repr(sample_weight)[:40], "give one per row") from error
    if weights.shape not in ((n_rows,), (n_rows, 1)):
        raise DataError("sample_weight", f"{n_rows} numbers", f"shape {weights.shape}", "give one per row")
    if not np.all(np.isfinite(weights)) or np.any(weights < 0) or not np.any(weights > 0):
        got = "negative or infinite ones, NaN, or only zeros"
        raise DataError("sample_weight", "weights of zero or more", got, "correct them")
    return weights.reshape(-1)


@dataclass(frozen=True)
class TaskLaw:
    """A linear law with constant F: F u = S(x) in unit-free outputs, imposed on the task covariance (Algorithm 3)."""

    F: np.ndarray  # (R, T)
    noise: np.ndarray  # (R,)
    totals: np.ndarray  # (N, R) right sides at the training inputs
    centred: np.ndarray | None = None  # (R,) rows whose error has no constant part: all of it varies

    @classmethod
    def of(cls, rows: TaskRows, x_law: np.ndarray) -> TaskLaw:
        """Rows of a law at the training inputs; of an error that was estimated the mean is in the right side."""
        return cls(rows.F, rows.noise, rows.right_sides(x_law), np.isin(rows.right_sides.keep, rows.right_sides.law.learnt))


@dataclass(frozen=True)
class Hyperparameters:
    """One point of the hyperparameter space, unpacked."""

    kernels: tuple[Kernel, ...]
    Sigmas: tuple[np.ndarray, ...]
    noise: np.ndarray  # (T,) or (N, T) variances
    theta: np.ndarray


@dataclass(frozen=True)
class MultitaskPrior:
    """Everything that is fixed while hyperparameters vary; ``theta`` is one flat vector of logarithms.

    Order of theta: for each term the kernel's theta and the task covariance's parameters, then the noise.
    ``mean_shape``: "task" adds mean_variance to K, "identity" gives each output its own constant, free within the law.
    """

    kernels: tuple[Kernel, ...]
    kernel_priors: tuple[tuple[HyperPrior, ...], ...]
    tasks: tuple[TaskCovariance, ...]
    noise: NoiseModel
    n_outputs: int
    mean_variance: float = 4.0
    mean_shape: str = "task"
    law: TaskLaw | None = None
    within: np.ndarray | None = None  # (R, T) rows of a law that constants of mean shape "identity" obey
    unknown: np.ndarray = field(default_factory=lambda: np.zeros(0))  # (U,) prior variances of constants
    soft: np.ndarray = field(default_factory=lambda: np.zeros(0))  # (Q,) variances of the laws' own errors
    latent: LatentMap | None = None  # terms are latent functions, of which the outputs are derivatives
    alike: bool = False  # lengthscales of several inputs are expected to be about the same in half ranges

    @cached_property
    def slices(self) -> tuple[tuple[slice, slice], ...]:
        """(kernel, task) slices of theta for each term."""
        result, start = [], 0
        for kernel, task in zip(self.kernels, self.tasks, strict=True):
            middle = start + len(kernel.theta)
            result.append((slice(start, middle), slice(middle, middle + task.n_parameters)))
            start = middle + task.n_parameters
        return tuple(result)

    @cached_property
    def noise_slice(self) -> slice:
        """The noise's part of theta."""
        start = self.slices[-1][1].stop
        return slice(start, start + self.noise.n_parameters)

    @cached_property
    def n_parameters(self) -> int:
        """Length of theta."""
        return self.noise_slice.stop

    def unpack(self, theta: np.ndarray) -> Hyperparameters:
        """Kernels, task covariances and noise variances at theta."""
        kernels = tuple(make(theta[s]) for make, (s, _) in zip(self._kernels_at, self.slices, strict=True))
        return Hyperparameters(kernels, self.Sigmas(theta), self.noise.variances(theta[self.noise_slice]), theta)

    @cached_property
    def _kernels_at(self) -> tuple[Callable[[np.ndarray], Kernel], ...]:
        return tuple(kernel_at(kernel) for kernel in self.kernels)

    def Sigmas(self, theta: np.ndarray) -> tuple[np.ndarray, ...]:
        """Task covariances (T, T) before any law."""
        return tuple(t.covariance(theta[s]) for t, (_, s) in zip(self.tasks, self.slices, strict=True))

    def conditioned(self, Sigma: np.ndarray) -> SchurConditioning | None:
        """The task covariance given the law, or None without one."""
        if self.law is None:
            return None
        share = self.soft_share if self.law.centred is None else np.where(self.law.centred, 1.0, self.soft_share)
        return schur_condition(Sigma, self.law.F, self.law.noise * np.sqrt(share))

    @cached_property
    def constant_root(self) -> np.ndarray:
        """(T, q) root C of the covariance mean_variance C C^T of the outputs' own constants, which obey the law."""
        rows = self.within if self.law is None else self.law.F
        return np.eye(self.n_outputs) if rows is None else nullspace_basis(rows)

    @cached_property
    def soft_share(self) -> float:
        """Factor on a soft error's task variance: it varies with K + mean_variance, where it is to keep its size."""
        return 1.0 / (1.0 + self.mean_variance) if self.mean_shape == "task" else 1.0

    def start(self) -> np.ndarray:
        """Theta to begin an optimisation with."""
        parts = []
        for kernel, task in zip(self.kernels, self.tasks, strict=True):
            parts += [kernel.theta, task.start()]
        return np.concatenate([*parts, self.noise.start()])

    def bounds(self) -> list[tuple[float, float]]:
        """Box for the optimiser: the kernels' own bounds, wide ones elsewhere."""
        result: list[tuple[float, float]] = []
        for kernel, task in zip(self.kernels, self.tasks, strict=True):
            result += [(float(a), float(b)) for a, b in np.reshape(kernel.bounds, (-1, 2))]
            result += [(-12.0, 8.0)] * task.n_parameters
        return result + [(np.log(SMALLEST), 4.0)] * self.noise.n_parameters

    def lengthscales(self) -> np.ndarray:
        """Which entries of theta are lengthscales over the inputs."""
        flags = np.zeros(self.n_parameters, dtype=bool)
        for kernel, (s, _) in zip(self.kernels, self.slices, strict=True):
            flags[s] = lengthscale_mask(kernel)
        return flags

    def shortest_lengthscales(self, theta: np.ndarray, half_range: np.ndarray) -> np.ndarray:
        """(D,) the shortest along each input, or half the range for kernels without one."""
        each = [local_lengthscales(kernel, theta[s]) for kernel, (s, _) in zip(self.kernels, self.slices, strict=True)]
        found = [np.broadcast_to(v, half_range.shape) for v in each if len(v) in (1, len(half_range))]
        return np.min(found, axis=0) if found else half_range.copy()

    def log_prior(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Log density of the weak prior, normalised so that priors of different size compare, and its gradient."""
        centre, below, above, heavy = self._prior_arrays
        offset = theta - centre
        width = np.where(offset < 0, below, above)
        z = offset / width
        inner = np.maximum(z, -heavy)
        gradient = -inner / width
        alike, slope = self.noise.agreement(theta[self.noise_slice])
        gradient[self.noise_slice] += slope
        if self._several_lengths:
            of_lengths, slope = alike_lengths(offset, self._several_lengths)
            alike, gradient = alike + of_lengths, gradient + slope
        return self._log_normaliser + float(inner @ (0.5 * inner - z)) + alike, gradient

    @cached_property
    def _several_lengths(self) -> list[np.ndarray]:
        """Positions in theta of lengthscales that one kernel has along several inputs and that are expected to be alike."""
        each = zip(self.kernels, self.slices, strict=True) if self.alike else ()
        return [s.start + places for kernel, (s, _) in each for places in several_lengths(kernel)]

    @cached_property
    def _log_normaliser(self) -> float:
        # The wide upper side says that long lengthscales are fine, not that they are expected: it is not counted as volume.
        _, below, _, heavy = self._prior_arrays
        tail = np.exp(-0.5 * heavy**2) / heavy
        return -float(np.sum(np.log(2.0 * below * (np.sqrt(0.5 * np.pi) * erf(heavy / np.sqrt(2.0)) + tail))))

    @cached_property
    def _prior_arrays(self) -> np.ndarray:
        """(4, p) centres, widths below and above, and how many widths below the tail begins."""
        arrays = np.full((4, self.n_parameters), np.inf)
        centre, below, above, heavy = arrays
        for priors, task, (k, t) in zip(self.kernel_priors, self.tasks, self.slices, strict=True):
            centre[k] = [p.centre for p in priors]
            below[k] = [p.below for p in priors]
            above[k] = [p.above for p in priors]
            heavy[k] = [p.heavy for p in priors]
            centre[t] = task.prior_mean()
            below[t] = above[t] = task.prior_sd()
        centre[self.noise_slice] = self.noise.prior_mean()
        below[self.noise_slice] = above[self.noise_slice] = self.noise.prior_sd()
        return arrays
