"""Where a fit by collocation starts: the outputs as the data alone tell them, constants that match their slopes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares

from sumgp.hyperparameters import OutputFit
from sumgp.lawsolve import CollocationProblem, OutputWeights, data_weights, solve_collocation
from sumgp.numerics import solve_lower
from sumgp.strategies.collocation_setting import Family, Setting, law_points, left_out_score

STARTS = (1.0, 0.1, 10.0)  # of all constants, in the user's units
PER_LENGTHSCALE, PER_LENGTHSCALE_EACH = 4.0, 2.0  # points, with one input and along each of several
WIDE = 1e4  # prior variance of constants and of outputs that were never measured
ROUNDS = 3  # of constants and of the law's size, which depend on each other
HELD = 1e-4  # noise variance of outputs held at what the data tell, as a share of the measurements'
HELD_LEVELS = (1.0, 0.3)  # of the law's error while outputs are held: a start need not meet it closely
FLAT_ROW = 0.01  # size of a row of which the data tell nothing, as a share of its terms
BEYOND = 1e6  # residual where the law has no value


class Start(NamedTuple):
    """Values (n, T) of the outputs at points z (n, D), constants (U,) with their spread, and the rows' sizes (R,).

    A row's size is its standard deviation given the data alone, rms over the points, without that of the constants.
    ``left_out`` is the log density of left-out measurements without the law.
    """

    z: np.ndarray
    values: np.ndarray
    constants: np.ndarray
    spread: np.ndarray
    row_scale: np.ndarray
    left_out: float


@dataclass(frozen=True)
class _Matching:
    """The posterior given the data alone, at points z."""

    setting: Setting
    z: np.ndarray
    problem: CollocationProblem
    w: np.ndarray
    factor: np.ndarray

    def residual(self, w: np.ndarray, constants: np.ndarray) -> np.ndarray:
        """(n, R) residuals in the law's own units."""
        moved = w.copy()
        moved[self.problem.slices[-1]] = constants
        return np.nan_to_num(self.problem.residual(moved), nan=BEYOND, posinf=BEYOND, neginf=-BEYOND)

    def row_scale(self, w: np.ndarray, constants: np.ndarray) -> np.ndarray:
        """(R,) sizes of the rows at these values."""
        moved, law = w.copy(), self.problem.law
        moved[self.problem.slices[-1]] = constants
        A = np.nan_to_num(self.problem.slopes(moved))
        for t, part in enumerate(self.problem.slices[:-1]):
            if self.setting.never[t]:
                A[:, part] = 0.0
        A[:, self.problem.slices[-1]] = 0.0
        spread = np.sum(solve_lower(self.factor, A.T) ** 2, axis=0).reshape(-1, law.n_rows)
        f = law.shift + law.scale * self.problem.values(moved)[:, : law.law.n_columns]
        with np.errstate(all="ignore"):
            terms = np.nan_to_num(law.law.magnitude(f, self.problem.x_law), posinf=0.0)
        size, least = np.sqrt(np.mean(spread, axis=0)), FLAT_ROW * np.sqrt(np.mean(terms**2, axis=0))
        return np.where(size > 1e-3 * least, size, np.where(least > 0, least, 1.0))


def match_gradients(setting: Setting, family: Family, fits: tuple[OutputFit | None, ...]) -> Start:
    """The start for all candidates, from the hyperparameters ``fits`` of the measured outputs."""
    matching, left_out = _given_data(setting, family, fits)
    best: tuple[float, np.ndarray, np.ndarray, np.ndarray] | None = None
    for first in STARTS if len(setting.law.unknowns) else STARTS[:1]:
        constants = np.full(len(setting.law.unknowns), first)
        w, constants, sizes = (_follow_law if setting.never.any() else _match)(matching, constants)
        misfit = 0.5 * float(np.sum((matching.residual(w, constants) / sizes) ** 2)) + len(matching.z) * float(
            np.sum(np.log(sizes))
        )
        if best is None or misfit < best[0]:
            best = misfit, w, constants, sizes
    assert best is not None
    _, w, constants, sizes = best
    values = matching.problem.values(w)[:, : len(setting.never)]
    return Start(matching.z, values, constants, _spread(matching, w, constants, sizes), sizes, left_out)


def common_lengthscales(fits: tuple[OutputFit | None, ...]) -> np.ndarray:
    """(T, D) lengthscales; an output that was never measured has the geometric mean of the others."""
    typical = np.exp(np.mean([np.log(fit.lengthscale) for fit in fits if fit is not None], axis=0))
    return np.array([typical if fit is None else fit.lengthscale for fit in fits])


def _given_data(setting: Setting, family: Family, fits: tuple[OutputFit | None, ...]) -> tuple[_Matching, float]:
    lengthscales, U = common_lengthscales(fits), len(setting.law.unknowns)
    fine = PER_LENGTHSCALE if setting.x.shape[1] == 1 else PER_LENGTHSCALE_EACH
    at = law_points(setting.x, lengthscales.min(axis=0) / fine).alone
    bases = setting.bases(family, lengthscales, np.array([WIDE if fit is None else fit.variance for fit in fits]), at)
    law = setting.scaled_law(np.zeros(U), np.ones(U), np.ones(setting.law.n_rows))
    problem = setting.collocation(law, bases, at.z, np.full(U, WIDE))
    noise = setting.noise_variances(np.array([1.0 if fit is None else fit.noise for fit in fits]))
    solution = data_weights(problem, noise)
    score = left_out_score(setting, problem, solution, noise)
    return _Matching(setting, at.z, problem, solution.w, solution.factor), score.log_density


def _match(matching: _Matching, constants: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Constants by least squares on the law's residuals, the outputs as the data tell them."""
    sizes = matching.row_scale(matching.w, constants)
    for _ in range(ROUNDS if len(constants) else 0):

        def scaled(c: np.ndarray, sizes: np.ndarray = sizes) -> np.ndarray:
            return (matching.residual(matching.w, c) / sizes).ravel()

        constants = least_squares(scaled, constants, x_scale="jac", max_nfev=60).x
        sizes = matching.row_scale(matching.w, constants)
    return matching.w, constants, sizes


def _follow_law(matching: _Matching, constants: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same where outputs were never measured: these follow the law, the others are held where the data tell them."""
    setting, problem = matching.setting, matching.problem
    outputs, noise = [], []
    for t, (output, part) in enumerate(zip(problem.outputs, problem.slices, strict=False)):
        values = output.at_law[0] if not setting.never[t] else output.at_data
        target = values @ matching.w[part]
        outputs.append(OutputWeights(output.columns, output.at_law, values, target))
        spread = np.sum(solve_lower(matching.factor[part, part], values.T) ** 2, axis=0) if len(values) else np.zeros(0)
        noise.append(HELD * np.maximum(spread, 1e-12))
    w = matching.w
    size = np.maximum(np.abs(constants), 1e-3)
    for _ in range(2):
        sizes = matching.row_scale(w, constants)
        law = setting.scaled_law(constants, size, sizes)
        held = CollocationProblem(law, problem.x_law, tuple(outputs), np.full(len(constants), WIDE))
        start = w.copy()
        start[problem.slices[-1]] = 0.0
        w = solve_collocation(held, start, noise, HELD_LEVELS, held=True).w
        constants = constants + size * w[problem.slices[-1]]
    return w, constants, matching.row_scale(w, constants)


def _spread(matching: _Matching, w: np.ndarray, constants: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """(U,) how far the constants may be off: their own size, and what the matching leaves open of them.

    Residuals at neighbouring points repeat each other: the points count as many as there are measurements.
    """
    if not len(constants):
        return constants
    moved = w.copy()
    moved[matching.problem.slices[-1]] = constants
    A = np.nan_to_num(matching.problem.slopes(moved))[:, matching.problem.slices[-1]]
    A = A / np.tile(sizes, len(matching.z))[:, None]
    share = min(1.0, len(matching.setting.x) / len(matching.z))
    size = np.where(np.abs(constants) > 0, np.abs(constants), 1.0)
    normal = share * (A * size).T @ (A * size)
    open_ = np.sqrt(np.diagonal(np.linalg.inv(normal + 1e-4 * np.eye(len(size)))))
    return size * np.sqrt(1.0 + open_**2)
