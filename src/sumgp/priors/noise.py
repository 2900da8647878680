"""Noise of the measurements: one standard deviation per output or group, one for all, or known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from sumgp.errors import DataError, worded

CENTRE = 0.05  # prior median of noise sd / sd of an output
LOG_SD = 2.0
SMALLEST = 1e-6  # of an output's sd; a noise of exactly zero makes covariances singular
# Outputs are mostly measured about equally well beside their own variation. With few rows the data say little about each
# noise; a law then believes the output whose noise happens to look smallest. Scale of the logs around their mean, and
# degrees of freedom: so few that noises which do differ, by a factor of ten say, are left as the data have them.
ALIKE = 0.15
ALIKE_DEGREES = 3.0


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

    def agreement(self, parameters: np.ndarray) -> tuple[float, np.ndarray]:
        """Log density, up to a constant, of how the log standard deviations p differ, and its gradient.

        A Student t of each difference d = p - mean(p): -(nu + 1) / 2 log(1 + d^2 / (nu s^2)).
        """
        if len(parameters) < 2:
            return 0.0, np.zeros(len(parameters))
        away = parameters - parameters.mean()
        spread = ALIKE_DEGREES * ALIKE**2
        value = -0.5 * (ALIKE_DEGREES + 1.0) * float(np.sum(np.log1p(away**2 / spread)))
        slope = -(ALIKE_DEGREES + 1.0) * away / (spread + away**2)
        return value, slope - slope.mean()

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


def read_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """(N,) weights of zero or more, some positive; ones where none are given."""
    if sample_weight is None:
        return np.ones(n_rows)
    try:
        weights = np.asarray(sample_weight, dtype=float)
    except (TypeError, ValueError) as error:
        raise DataError(worded("sample_weight", "numbers", repr(sample_weight)[:40], "give one per row")) from error
    if weights.shape not in ((n_rows,), (n_rows, 1)):
        raise DataError(worded("sample_weight", f"{n_rows} numbers", f"shape {weights.shape}", "give one per row"))
    if not np.all(np.isfinite(weights)) or np.any(weights < 0) or not np.any(weights > 0):
        got = "negative or infinite ones, NaN, or only zeros"
        raise DataError(worded("sample_weight", "weights of zero or more", got, "correct them"))
    return weights.reshape(-1)
