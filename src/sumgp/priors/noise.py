"""Noise of the measurements: one standard deviation per output or group, one for all, or known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sumgp.errors import DataError, worded

CENTRE = 0.05  # prior median of noise sd / sd of an output
LOG_SD = 2.0
SMALLEST = 1e-6  # of an output's sd; a noise of exactly zero makes covariances singular


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

    @property
    def n_parameters(self) -> int:
        """Number of unknown standard deviations."""
        return 0 if self.known is not None else len(self.groups)

    def start(self) -> np.ndarray:
        """Log standard deviations to begin with."""
        return np.full(self.n_parameters, np.log(0.1))

    def prior_mean(self) -> np.ndarray:
        """Centre of the normal prior on the log standard deviations."""
        return np.full(self.n_parameters, np.log(CENTRE))

    def prior_sd(self) -> np.ndarray:
        """Width of that prior."""
        return np.full(self.n_parameters, LOG_SD)

    def variances(self, parameters: np.ndarray) -> np.ndarray:
        """(T,) variances where they are unknown, (N, T) where they were given."""
        if self.known is not None:
            return self.known
        return np.exp(2.0 * parameters)[self._group_of] * self._squared + SMALLEST**2

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
        """(T,) variances for a new measurement: the mean over the rows where each row has its own."""
        variances = self.variances(parameters)
        return variances if variances.ndim == 1 else variances.mean(axis=0)

    def pull_back(self, parameters: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Gradient with respect to the parameters from the gradient (T,) with respect to the variances."""
        if self.known is not None:
            return np.zeros(0)
        variance = self.variances(parameters) - SMALLEST**2
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
        raise DataError(
            worded("noise", "'per-output', 'shared' or known standard deviations", repr(noise), "choose one of them")
        )
    try:
        known = np.asarray(noise, dtype=float)
    except (TypeError, ValueError) as error:
        raise DataError(
            worded("noise", "'per-output', 'shared' or numbers", repr(noise), "give standard deviations")
        ) from error
    if known.shape not in ((), (n_outputs,), (n_rows, n_outputs)):
        raise DataError(
            worded(
                "noise",
                f"a number, {n_outputs} numbers or an array ({n_rows}, {n_outputs})",
                f"shape {known.shape}",
                "give one standard deviation per output or per measurement",
            )
        )
    if not np.all(np.isfinite(known)) or np.any(known < 0):
        raise DataError(worded("noise", "standard deviations of zero or more", "negative or NaN values", "correct them"))
    variances = (np.broadcast_to(known, (n_rows, n_outputs)) / y_scale) ** 2 + SMALLEST**2
    return NoiseModel(tuple(tuple(g) for g in groups), np.ones(n_outputs), known=variances)
