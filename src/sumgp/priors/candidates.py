"""The priors that are tried: the user's, or a few that differ in what they let outputs have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared, Kernel, Matern, RationalQuadratic

from sumgp.errors import DataError, worded
from sumgp.priors.kernels import prepare_kernel
from sumgp.priors.period import Period
from sumgp.priors.tasks import FullTask, LowRankTask, OneOutputTask, TaskCovariance

PERIOD_FACTOR = 1.3  # within which a period is looked for around the one that the data show
WAVE_BOUNDS = (0.1, 10.0)  # of w, from sharp peaks to a wave too weak to be seen
MOST_OUTPUTS_ON_THEIR_OWN = 3  # with more, what outputs have in common tells more than how they differ


@dataclass(frozen=True)
class Candidate:
    """A sum of separable terms, each of one kernel. ``own``: a term for each output alone, with its own lengthscale."""

    kernels: tuple[Kernel, ...]
    own: bool = False

    @property
    def is_separable(self) -> bool:
        """True for a single term."""
        return len(self.kernels) == 1

    def tasks(self, n_outputs: int, rank: int | None) -> tuple[TaskCovariance, ...]:
        """The task covariance of each term."""
        if self.own:
            return tuple(OneOutputTask(n_outputs, t) for t in range(n_outputs))
        if rank is not None:
            return (LowRankTask(n_outputs, rank),) * len(self.kernels)
        return (FullTask(n_outputs, amplitude=1.0 / np.sqrt(len(self.kernels))),) * len(self.kernels)


def given_candidate(kernel: Any, half_range: np.ndarray) -> tuple[Candidate, ...]:
    """The user's kernel, or sum of kernels if several are given in a list."""
    kernels = list(kernel) if isinstance(kernel, Sequence) else [kernel]
    if not kernels:
        raise DataError(worded("kernel", "at least one kernel", "an empty list", "leave kernel=None"))
    return (Candidate(tuple(prepare_kernel(k, half_range) for k in kernels)),)


def default_candidates(
    half_range: np.ndarray, n_outputs: int = 1, separable: bool = True, period: Period | None = None
) -> tuple[Candidate, ...]:
    """A very smooth kernel and one with heavier tails, shared by all outputs.

    Unless the prior must be ``separable``, two or three outputs may have lengthscales of their own: that is tried with both
    kernels, and replaces the shared one with heavier tails. Several inputs: the smooth kernel with a lengthscale for each.
    Where the data show a ``period``, curves that nearly repeat themselves are tried too.
    """
    size: Any = 1.0 if len(half_range) == 1 else np.ones(len(half_range))
    smooth = prepare_kernel(RBF(size), half_range)
    if len(half_range) > 1:
        return (Candidate((smooth,)),)
    rational = prepare_kernel(RationalQuadratic(alpha=2.0, alpha_bounds="fixed"), half_range)
    repeating = smooth if period is None else quasi_periodic(smooth, period.length)
    if separable or not 2 <= n_outputs <= MOST_OUTPUTS_ON_THEIR_OWN:
        kernels = (smooth, rational) if period is None else (smooth, rational, repeating)
        return tuple(Candidate((kernel,)) for kernel in kernels)
    own = [Candidate((kernel,) * n_outputs, own=True) for kernel in (smooth, rational)]
    if period is not None:
        own.append(Candidate(tuple(repeating if shown else smooth for shown in period.shown_by), own=True))
    return Candidate((smooth,)), *own


def map_candidates(half_range: np.ndarray) -> tuple[Candidate, ...]:
    """Kernels for many points, from rough to smooth; several inputs have a lengthscale each."""
    size: Any = 1.0 if len(half_range) == 1 else np.ones(len(half_range))
    kernels = (Matern(size, nu=0.5), Matern(size, nu=1.5), Matern(size, nu=2.5), RBF(size))
    return tuple(Candidate((prepare_kernel(kernel, half_range),)) for kernel in kernels)


def quasi_periodic(smooth: Kernel, period: float) -> Kernel:
    """exp(-2 sin^2(pi r / period) / w^2) times a smooth kernel: a wave whose shape changes slowly."""
    near = (period / PERIOD_FACTOR, period * PERIOD_FACTOR)
    return ExpSineSquared(1.0, period, length_scale_bounds=WAVE_BOUNDS, periodicity_bounds=near) * smooth
