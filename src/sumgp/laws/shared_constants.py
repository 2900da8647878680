"""Unknown constants that the rows of a law have in common: where a fit begins to look for them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import OptimizeResult, least_squares

from sumgp.data import Data, Scaling
from sumgp.errors import ConstraintError
from sumgp.laws.constant_trials import BEYOND, followed_trials
from sumgp.laws.law import Law

STARTS = (1.0, 0.1, 10.0)  # of constants that no single row tells, in the user's units, besides what single rows suggest
STEPS = 300  # of their search: an exponential with a large exponent takes about a hundred
UNMET = 0.1  # rms residual, in units of a law's terms, above which constants are tried over a whole range
TURNED = 3.0  # changes of a law by its own size, on the way of its constants from zero: slower ones may do as well
NEARLY = 1.01  # sums of squares that tell frequencies apart differ by more
ALIKE = 1.0 + 1e-9  # sums of squares that differ by round-off


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
    if not np.all(length > 0):
        return None
    own = np.maximum(np.abs(found), np.sqrt(best.fun.size) / length)  # or what changes the law by all of its terms
    noise = max(2.0 * best.cost / max(best.fun.size - U, 1), np.finfo(float).tiny)
    alone = (best.jac * own).T @ (best.jac * own) / (n * noise) + np.eye(U)
    return found, own * np.sqrt(np.diagonal(np.linalg.inv(alone)))


def _tried(law: Law, f: np.ndarray, x: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Constants (U,) from trials of all sizes; of nearly equal minima the slowest oscillation."""
    constants, cost, slopes = followed_trials(law, f, x, size)
    nearly = np.flatnonzero(cost <= NEARLY * cost.min())
    return constants[nearly[np.argmin([_turns(slopes[i], constants[i]) for i in nearly])]]


def _turns(slopes: np.ndarray, constants: np.ndarray) -> float:
    """How much a law changes on the way of all constants (U,) from zero; grows with the frequency of an oscillation."""
    return float(np.linalg.norm(slopes * constants))


def _slowest(results: Sequence[OptimizeResult]) -> OptimizeResult:
    """The lowest minimum; of nearly equal ones the slowest oscillation: even rows cannot tell w from 2 pi / spacing - w."""
    lowest = min(result.cost for result in results)
    return min((r for r in results if r.cost <= NEARLY * lowest), key=lambda result: _turns(result.jac, result.x))


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
