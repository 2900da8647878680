"""Unknown constants that the rows of a law have in common: where a fit begins to look for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import OptimizeResult, least_squares

from sumgp.data import Data, Scaling
from sumgp.errors import ConstraintError
from sumgp.laws.law import Law

STARTS = (1.0, 0.1, 10.0)  # of constants that no single row tells, in the user's units, besides what single rows suggest
STEPS = 300  # of their search: an exponential with a large exponent takes about a hundred
UNMET = 0.1  # rms residual, in units of a law's terms, above which constants are tried over a whole range
RANGE, MOST = 3, 300  # trials of a constant for each row, and in all: as fast an oscillation as rows so dense can show
TURNED = 3.0  # changes of a law by its own size, on the way of its constants from zero: slower ones may do as well
NEARLY = 1.01  # sums of squares that tell frequencies apart differ by more
TRIAL_STEPS = 10  # of a trial
HELD, DAMPED = 1e12, 1e-2  # damping of constants that do not move yet, and of the first step that moves all
TRIAL_ROWS = 300  # that trials are judged by
CURVED = 1e9  # times a constant: where its effect bends only beyond, it is linear
SHRUNK = 20  # times that constants are moved nearer to zero
ALIKE = 1.0 + 1e-9  # sums of squares that differ by round-off
TIED = 1e-6  # smallest singular value of slopes of length one: some constants occur in one combination only
BEYOND = 1e6  # residual, in units of a law's terms, where it has no value


def shared_constants(law: Law, f: np.ndarray, x: np.ndarray, first: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Constants (U,) that rows ``f`` (n, T) in the user's units have in common, and with which spread (U,) one row alone
    would suggest them if their size were known. None where ``first``, the suggestion of single rows, is to be kept: each
    row determines all constants, or all rows together do not.
    """
    U, n = len(law.unknowns), len(f)

    def filled(constants: np.ndarray) -> np.ndarray:
        return np.concatenate([f, np.tile(constants, (n, 1))], axis=1)

    with np.errstate(all="ignore"):
        terms = law.magnitude(filled(first), x)
        slopes = np.nan_to_num(law.jacobian(filled(first), x)[:, :, law.unknown_columns], posinf=0.0, neginf=0.0)
    if np.all(np.linalg.matrix_rank(slopes * np.where(first != 0, first, 1.0)) == U) or not np.isfinite(terms).any():
        return None
    size = np.sqrt(np.nanmean(np.where(np.isfinite(terms), terms, np.nan) ** 2, axis=0))

    def scaled(constants: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            left = law.residual(filled(constants), x) / size
        return np.clip(np.nan_to_num(left, nan=BEYOND), -BEYOND, BEYOND).ravel()

    def reached(start: np.ndarray) -> OptimizeResult:
        with np.errstate(all="ignore"):  # trials far from any sense
            return least_squares(scaled, start, x_scale="jac", max_nfev=STEPS)

    results = [reached(start) for start in (first, *np.outer(STARTS, np.ones(U)))]
    best = _slowest(results)
    with np.errstate(all="ignore"):
        there = law.magnitude(filled(best.x), x) / size
    unmet = 2.0 * best.cost > UNMET**2 * np.sum(np.where(np.isfinite(there), there, 1.0) ** 2)
    if unmet or _turns(best.jac, best.x) > TURNED * np.sqrt(best.fun.size):
        best = _slowest([*results, reached(_tried(law, f, x, size))])
    found = best.x
    for i in np.flatnonzero(found < 0):  # of equal values, as r and -r of a circle, the positive one
        other = np.where(np.arange(U) == i, -found, found)
        found = other if 0.5 * np.sum(scaled(other) ** 2) <= ALIKE * best.cost else found
    length = np.linalg.norm(best.jac, axis=0)
    if not np.all(length > 0) or np.linalg.svd(best.jac / length)[1][-1] < TIED:
        return None
    own = np.maximum(np.abs(found), np.sqrt(best.fun.size) / length)  # or what changes the law by all of its terms
    noise = max(2.0 * best.cost / max(best.fun.size - U, 1), np.finfo(float).tiny)
    alone = (best.jac * own).T @ (best.jac * own) / (n * noise) + np.eye(U)
    return found, own * np.sqrt(np.diagonal(np.linalg.inv(alone)))


def _tried(law: Law, f: np.ndarray, x: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Constants (U,) from trials of each over a whole range: sums of squares of a frequency have a minimum at each turn.

    Constant i goes in steps u_i = |dr/dc_i| / |d2r/dc_i2|, over which its effect on the residuals r bends: 1.3/T for the
    frequency of ``sin(w*t)`` with t from 0 to T. The others start where they bend little over all rows, half a step from
    zero, and all follow by Levenberg and Marquardt's steps, all trials at once.
    """
    rows = np.unique(np.linspace(0, len(f) - 1, TRIAL_ROWS).astype(int))
    f, x, U = f[rows], x[rows], len(law.unknowns)

    def at(constants: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        m, n = len(constants), len(f)
        full = np.concatenate([np.tile(f, (m, 1)), np.repeat(constants, n, axis=0)], axis=1)
        with np.errstate(all="ignore"):
            left = law.residual(full, np.tile(x, (m, 1))) / size
            slopes = law.jacobian(full, np.tile(x, (m, 1)))[:, :, law.unknown_columns] / size[:, None]
        left = np.clip(np.nan_to_num(left, nan=BEYOND), -BEYOND, BEYOND)
        return left.reshape(m, -1), np.where(np.abs(slopes) < np.sqrt(np.finfo(float).max), slopes, 0.0).reshape(m, -1, U)

    start, steps = _bending(lambda constants: at(constants)[1], U)
    multiples = np.arange(1, min(RANGE * len(f), MOST) + 1)[:, None]
    c = np.vstack(
        [start, *(np.where(np.arange(U) == i, steps[i] * multiples, start) for i in np.flatnonzero(np.isfinite(steps)))]
    )
    damping = np.where(np.isfinite(steps), HELD, 0.0) * np.ones((len(c), 1))  # linear ones go first
    r, J = at(c)
    for _ in range(TRIAL_STEPS):
        lengths = np.maximum(np.linalg.norm(J, axis=1), np.finfo(float).tiny)
        unit = J / lengths[:, None]
        H = np.einsum("mki,mkj->mij", unit, unit)
        np.einsum("mii->mi", H)[...] += damping + np.finfo(float).eps
        moved = c - np.linalg.solve(H, np.einsum("mki,mk->mi", unit, r)[:, :, None])[:, :, 0] / lengths
        new_r, new_J = at(moved)
        better = np.sum(new_r**2, axis=1) < np.sum(r**2, axis=1)
        c, r = np.where(better[:, None], moved, c), np.where(better[:, None], new_r, r)
        J = np.where(better[:, None, None], new_J, J)
        damping = np.where(damping.max(axis=1, keepdims=True) < HELD, damping * np.where(better, 0.2, 10.0)[:, None], DAMPED)
    cost = np.sum(r**2, axis=1)
    nearly = np.flatnonzero(cost <= NEARLY * cost.min())
    return c[nearly[np.argmin([_turns(J[i], c[i]) for i in nearly])]]


def _turns(slopes: np.ndarray, constants: np.ndarray) -> float:
    """How much a law changes on the way of all constants (U,) from zero; grows with the frequency of an oscillation."""
    return float(np.linalg.norm(slopes * constants))


def _slowest(results: Sequence[OptimizeResult]) -> OptimizeResult:
    """The lowest minimum; of nearly equal ones the slowest oscillation: even rows cannot tell w from 2 pi / spacing - w."""
    lowest = min(result.cost for result in results)
    return min((r for r in results if r.cost <= NEARLY * lowest), key=lambda result: _turns(result.jac, result.x))


def _bending(slopes: Callable[[np.ndarray], np.ndarray], U: int) -> tuple[np.ndarray, np.ndarray]:
    """Constants (U,) near zero, and steps (U,) over which the effect of each bends there; infinite for linear ones."""
    start, steps = np.ones(U), np.full(U, np.inf)
    for _ in range(SHRUNK):
        if not np.all(np.any(slopes(start[None])[0], axis=0)):  # a decay that is over before the first row
            start = 0.1 * start
            continue
        for i in range(U):
            apart = 1.0
            while True:  # until points are closer than the effect bends
                both = slopes(np.stack([start, start + np.where(np.arange(U) == i, apart, 0.0)]))[:, :, i]
                change = np.linalg.norm(both[1] - both[0]) / apart
                steps[i] = np.linalg.norm(both[0]) / change if change > 0 else np.inf
                if apart < 0.1 * steps[i] or apart < 1.0 / CURVED:
                    break
                apart *= 0.1
        steps[steps > CURVED] = np.inf
        near = np.where(np.isfinite(steps), np.minimum(start, 0.5 * steps), start)
        if np.allclose(near, start, rtol=0.1):
            break
        start = near
    return start, steps


def check_constants_matter(law: Law, data: Data, scaling: Scaling) -> None:
    """Raise ConstraintError where a law holds for any outputs once its unknown constants are zero: k*z**2 + m*v**2 = E."""
    f = np.zeros((len(data.x), law.n_columns))
    f[:, : law.unknown_columns.start] = 1.0
    f[:, : data.y.shape[1]] = scaling.y_shift + scaling.y_scale * np.random.default_rng(0).standard_normal(data.y.shape)
    with np.errstate(all="ignore"):
        trivial = np.all(law.residual(f, data.x) == 0, axis=0)
    if np.all(trivial):
        names = ", ".join(law.unknowns)
        raise ConstraintError(
            f"constants: {law.labels[0]!r} holds for any outputs where {names} are zero, so that only ratios of constants "
            f"matter; give the value of one of them, e.g. constants={{{law.unknowns[0]!r}: 1.0}}"
        )
