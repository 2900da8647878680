"""A differential law imposed at many points: the most probable weights of the outputs and values of the constants.

Least squares in the weights w of all outputs and the unknown constants c, both unit-free:

    |w|^2 / 2 + c^T V^-1 c / 2 + |y - Phi w|^2 / (2 s^2) + |g|^2 / (2 level^2),

by Gauss-Newton with a line search, the level lowered step by step. The inverse of the last normal matrix is the posterior
covariance (Laplace).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from sumgp.errors import Status
from sumgp.laws import UnitFreeLaw
from sumgp.numerics import cholesky, solve_cholesky

LEVELS = (1.0, 0.3, 0.1, 0.03, 0.01)  # standard deviations of the law, in units of its reference size
# With several inputs: terms of such laws are small beside what the data leave open of them.
FINE_LEVELS = (*LEVELS, 0.003, 0.001)
INNER_STEPS = 12  # at most of a level before the last, which need not end where it would
LAST_STEPS = 30  # at most of the last level
ROUGH = 0.1  # expected decrease of the merit at which a level ends
ENOUGH = 1e-6  # and the last level
SHORTEST = 1e-4  # share of a step that is still tried
SUFFICIENT = 0.2  # decrease as a share of the slope's at which a step needs no correction (a half where nothing bends)
CORRECTIONS = 3  # of one step at most: with the same factor each gains less than the one before


@dataclass(frozen=True)
class OutputWeights:
    """One output: its columns in the law, their features (n, r) at the law's points, and at its measurements y (k,)."""

    columns: tuple[int, ...]
    at_law: tuple[np.ndarray, ...]
    at_data: np.ndarray
    y: np.ndarray

    @property
    def size(self) -> int:
        """Number of weights r."""
        return self.at_data.shape[1]


@dataclass(frozen=True)
class CollocationProblem:
    """Law and its points (n, D) in the user's units, the outputs, and prior variances (U,) of the constants.

    ``tilt`` (U,): what is added to the merit for each unit of a constant, none if empty.
    """

    law: UnitFreeLaw
    x_law: np.ndarray
    outputs: tuple[OutputWeights, ...]
    unknown: np.ndarray
    tilt: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @cached_property
    def slices(self) -> list[slice]:
        """Where the weights of each output stand, and last where the constants do."""
        ends = np.cumsum([0, *(output.size for output in self.outputs), len(self.unknown)])
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]

    @property
    def n_weights(self) -> int:
        """Weights of all outputs, and constants."""
        return self.slices[-1].stop

    def values(self, w: np.ndarray) -> np.ndarray:
        """(n, C) columns of the law; errors of soft rows are zero."""
        f = np.zeros((len(self.x_law), self.law.n_columns))
        for output, part in zip(self.outputs, self.slices, strict=False):
            for column, features in zip(output.columns, output.at_law, strict=True):
                f[:, column] = features @ w[part]
        f[:, self.law.constants] = w[self.slices[-1]]
        return f

    def residual(self, w: np.ndarray) -> np.ndarray:
        """(n, R) residuals of the law."""
        return self.law.residual(self.values(w), self.x_law)

    def slopes(self, w: np.ndarray) -> np.ndarray:
        """(n R, W) derivatives of the residuals by the weights."""
        J = self.law.jacobian(self.values(w), self.x_law)
        n, R, _ = J.shape
        A = np.zeros((n, R, self.n_weights))
        for output, part in zip(self.outputs, self.slices, strict=False):
            for column, features in zip(output.columns, output.at_law, strict=True):
                A[:, :, part] += J[:, :, column, None] * features[:, None, :]
        A[:, :, self.slices[-1]] = J[:, :, self.law.constants]
        return A.reshape(n * R, -1)

    def released(self, factors: np.ndarray) -> CollocationProblem:
        """The same with prior standard deviations of the outputs ``factors`` (T,) times as large."""
        outputs = tuple(
            replace(o, at_law=tuple(a * factor for a in o.at_law), at_data=factor * o.at_data)
            for o, factor in zip(self.outputs, factors, strict=True)
        )
        return replace(self, outputs=outputs)

    def shrunk(self, w: np.ndarray, factors: np.ndarray) -> np.ndarray:
        """Weights that give the same functions once the problem is released."""
        result = w.copy()
        for part, factor in zip(self.slices, factors, strict=False):
            result[part] /= factor
        return result

    def law_sds(self, level: float) -> np.ndarray:
        """(n R,) standard deviations within which the law is to hold."""
        variances = np.full(self.law.n_rows, level**2)
        variances[self.law.soft_rows] += self.law.soft_variances
        return np.tile(np.sqrt(variances), len(self.x_law))


@dataclass(frozen=True)
class CollocationSolution:
    """Weights (W,), the lower factor of their posterior precision (W, W), steps taken, and how the search ended."""

    w: np.ndarray
    factor: np.ndarray
    steps: int
    status: Status


@dataclass(frozen=True)
class _Quadratic:
    """w^T H w / 2 - b^T w: prior and data."""

    H: np.ndarray
    b: np.ndarray

    def merit(self, w: np.ndarray, g: np.ndarray) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            value = 0.5 * float(w @ (self.H @ w)) - float(self.b @ w) + 0.5 * float(np.sum(g**2))
        return value if np.isfinite(value) else np.inf


class _Descent(NamedTuple):
    """Weights (W,), the last factor (W, W), steps taken, and whether nothing worth it was left to gain."""

    w: np.ndarray
    factor: np.ndarray
    steps: int
    converged: bool


def solve_collocation(
    problem: CollocationProblem,
    start: np.ndarray,
    noise: Sequence[np.ndarray],
    levels: Sequence[float] = LEVELS,
    held: bool = False,
) -> CollocationSolution:
    """The most probable weights from ``start``; ``noise`` are variances (k,) of each output's measurements.

    ``held``: stop at the rough accuracy that a start needs.
    """
    given = given_data(problem, noise)
    reached, steps = _Descent(start, np.zeros((0, 0)), 0, False), 0
    for level in levels:
        last = level == levels[-1] and not held
        sds = problem.law_sds(level)
        reached = _descend(problem, given, reached.w, sds, ENOUGH if last else ROUGH)
        steps += reached.steps
    return CollocationSolution(
        reached.w, reached.factor, steps, Status.CONVERGED if reached.converged else Status.STEP_LIMIT
    )


def data_weights(problem: CollocationProblem, noise: Sequence[np.ndarray]) -> CollocationSolution:
    """The weights given the data alone, constants at zero."""
    given = given_data(problem, noise)
    factor = cholesky(given.H, "weights")
    return CollocationSolution(solve_cholesky(factor, given.b), factor, 0, Status.CONVERGED)


def given_data(problem: CollocationProblem, noise: Sequence[np.ndarray]) -> _Quadratic:
    """Prior and data, without the law."""
    H, b = np.eye(problem.n_weights), np.zeros(problem.n_weights)
    for output, part, variances in zip(problem.outputs, problem.slices, noise, strict=False):
        weighted = output.at_data / variances[:, None]
        H[part, part] += output.at_data.T @ weighted
        b[part] += weighted.T @ output.y
    constants = problem.slices[-1]
    H[constants, constants] = np.diag(1.0 / problem.unknown)
    if len(problem.tilt):
        b[constants] -= problem.tilt
    return _Quadratic(H, b)


def _descend(problem: CollocationProblem, given: _Quadratic, w: np.ndarray, sds: np.ndarray, wanted: float) -> _Descent:
    """Gauss-Newton at one level, until the expected decrease of the merit is below ``wanted``."""
    most = LAST_STEPS if wanted == ENOUGH else INNER_STEPS
    g = problem.residual(w).ravel() / sds
    for steps in range(1, most + 1):
        A = problem.slopes(w) / sds[:, None]
        factor = cholesky(given.H + A.T @ A, "law")
        gradient = given.H @ w - given.b + A.T @ g
        step = -solve_cholesky(factor, gradient)
        decrease = -float(gradient @ step)
        if decrease < wanted:
            return _Descent(w, factor, steps, True)
        moved = _search(problem, given, _Step(w, g, step, decrease, A, factor, sds))
        if moved is None:
            # Round-off hides what is left to gain.
            return _Descent(w, factor, steps, decrease < ROUGH)
        w, g = moved
    return _Descent(w, factor, most, False)


class _Step(NamedTuple):
    """From w with residuals g: the step, twice the decrease expected of it, slopes A and the factor it came from."""

    w: np.ndarray
    g: np.ndarray
    step: np.ndarray
    decrease: float
    A: np.ndarray
    factor: np.ndarray
    sds: np.ndarray


def _search(problem: CollocationProblem, given: _Quadratic, at: _Step) -> tuple[np.ndarray, np.ndarray] | None:
    """Weights and residuals after the longest share of a step that lowers the merit; None where none does.

    A law that bends stops long steps although they are good (Maratos): what the linear model missed of the residuals is put
    right with the same factor before a step is called too long.
    """
    merit, length = given.merit(at.w, at.g), 1.0
    while length > SHORTEST:
        there = at.w + length * at.step
        g = problem.residual(there).ravel() / at.sds
        value, enough = given.merit(there, g), merit - SUFFICIENT * length * at.decrease
        predicted = at.g + length * (at.A @ at.step)
        for _ in range(CORRECTIONS if value > enough and np.all(np.isfinite(g)) else 0):
            corrected = there - solve_cholesky(at.factor, at.A.T @ (g - predicted))
            g_there = problem.residual(corrected).ravel() / at.sds
            better = given.merit(corrected, g_there)
            if not better < value:
                break
            there, g, value = corrected, g_there, better
        if value < merit:
            return there, g
        length *= 0.5
    return None
