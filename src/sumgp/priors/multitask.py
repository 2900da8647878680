"""The multitask prior: a sum of separable terms K_r (x) Sigma_r, a marginalised constant mean, noise, all parameters.

Unit-free throughout. Besides the T outputs a prior may have columns that only the law sees: ``unknown`` constants and
the errors of ``soft`` laws, which vary as smoothly as the outputs do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.special import erf
from sklearn.gaussian_process.kernels import Kernel

from sumgp.laws import LatentMap
from sumgp.numerics import SchurConditioning, schur_condition
from sumgp.priors.kernels import HyperPrior, lengthscale_mask, with_theta
from sumgp.priors.noise import SMALLEST, NoiseModel
from sumgp.priors.tasks import TaskCovariance


@dataclass(frozen=True)
class TaskLaw:
    """A linear law with constant F: F u = S(x) in unit-free outputs, imposed on the task covariance (Algorithm 3)."""

    F: np.ndarray  # (R, T)
    noise: np.ndarray  # (R,)
    totals: np.ndarray  # (N, R) right sides at the training inputs


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
    ``mean_shape``: "task" adds mean_variance to K (so that K (x) Sigma_t keeps its form and a linear law holds for the
    mean too), "identity" gives each output its own free constant.
    """

    kernels: tuple[Kernel, ...]
    kernel_priors: tuple[tuple[HyperPrior, ...], ...]
    tasks: tuple[TaskCovariance, ...]
    noise: NoiseModel
    n_outputs: int
    mean_variance: float = 4.0
    mean_shape: str = "task"
    law: TaskLaw | None = None
    unknown: np.ndarray = field(default_factory=lambda: np.zeros(0))  # (U,) prior variances of constants
    soft: np.ndarray = field(default_factory=lambda: np.zeros(0))  # (Q,) variances of the laws' own errors
    latent: LatentMap | None = None  # terms are latent functions, of which the outputs are derivatives

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
        kernels = tuple(with_theta(k, theta[s]) for k, (s, _) in zip(self.kernels, self.slices, strict=True))
        return Hyperparameters(kernels, self.Sigmas(theta), self.noise.variances(theta[self.noise_slice]), theta)

    def Sigmas(self, theta: np.ndarray) -> tuple[np.ndarray, ...]:
        """Task covariances (T, T) before any law."""
        return tuple(t.covariance(theta[s]) for t, (_, s) in zip(self.tasks, self.slices, strict=True))

    def conditioned(self, Sigma: np.ndarray) -> SchurConditioning | None:
        """The task covariance given the law, or None without one."""
        if self.law is None:
            return None
        return schur_condition(Sigma, self.law.F, self.law.noise * np.sqrt(self.soft_share))

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
        return self._log_normaliser + float(inner @ (0.5 * inner - z)) + alike, gradient

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
