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
AS_LIKELY = 3.0  # difference of log likelihoods that data of chance have
FASTER = 2.0  # times an oscillation's frequency
APART = 3.0  # sds of the noise, rms
NOISELESS = 1e-6  # rms residual, in units of a law's terms, below which rows agree
ALIKE = 1.0 + 1e-9  # sums of squares that differ by round-off


def shared_constants(law: Law, f: np.ndarray, x: np.ndarray, first: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Constants (U,) that rows ``f`` (n, T) in the user's units have in common, and with which spread (U,) one row alone
    would suggest them if their size were known. None where ``first``, the suggestion of single rows, is to be kept: each
    row determines all constants, or all rows together do not.
    """
    U, n = len(law.unknowns), len(f)

    with np.errstate(all="ignore"):
        terms = law.magnitude(_filled(f, first), x)
        slopes = np.nan_to_num(law.jacobian(_filled(f, first), x)[:, :, law.unknown_columns], posinf=0.0, neginf=0.0)
    if np.all(np.linalg.matrix_rank(slopes * np.where(first != 0, first, 1.0)) == U) or not np.isfinite(terms).any():
        return None
    size = _size(terms)

    def scaled(constants: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            left = law.residual(_filled(f, constants), x) / size
        return np.clip(np.nan_to_num(left, nan=BEYOND), -BEYOND, BEYOND).ravel()

    def reached(start: np.ndarray) -> OptimizeResult:
        with np.errstate(all="ignore"):  # trials far from any sense
            return least_squares(scaled, start, x_scale="jac", max_nfev=STEPS)

    results = [reached(start) for start in (first, *np.outer(STARTS, np.ones(U)))]
    best = _slowest(results)
    with np.errstate(all="ignore"):
        there = law.magnitude(_filled(f, best.x), x) / size
    unmet = 2.0 * best.cost > UNMET**2 * np.sum(np.where(np.isfinite(there), there, 1.0) ** 2)
    if unmet or _turns(best.jac, best.x) > TURNED * np.sqrt(best.fun.size):
        best = _slowest([*results, reached(_tried(law, f, x, size, first))])
    found = best.x
    for i in np.flatnonzero(found < 0):  # of equal values, as r and -r of a circle, the positive one
        other = np.where(np.arange(U) == i, -found, found)
        found = other if 0.5 * np.sum(scaled(other) ** 2) <= ALIKE * best.cost else found
    length = np.linalg.norm(best.jac, axis=0)
    if not np.all(length > 0):
        return None
    own = np.maximum(np.abs(found), np.sqrt(best.fun.size) / length)  # or what changes the law by all of its terms
    noise = max(2.0 * best.cost / max(best.fun.size - U, 1), NOISELESS**2)
    alone = (best.jac * own).T @ (best.jac * own) / (n * noise) + np.eye(U)
    return found, own * np.sqrt(np.diagonal(np.linalg.inv(alone)))


def rival_constants(law: Law, f: np.ndarray, x: np.ndarray, found: np.ndarray, noise: np.ndarray) -> np.ndarray | None:
    """Constants (U,) under which rows ``f`` (n, T) are as near to the law as under those ``found``, though between rows the
    outputs differ by far more than their ``noise`` (T,); None where there are none. For laws that determine all outputs.

    An oscillation more than twice as fast is none: rows that show another well cannot exclude it.
    """
    with np.errstate(all="ignore"):
        trials = followed_trials(law, f, x, _size(law.magnitude(_filled(f, found), x)), found[None])
    n = trials.slopes.shape[1]
    close = trials.cost <= max(trials.cost[0] * np.exp(2.0 * AS_LIKELY / n), NOISELESS**2 * n)
    rows = np.unique(x, axis=0)
    between = 0.5 * (rows[1:] + rows[:-1])
    usual = _outputs(law, trials.constants[0], between)
    for constants in trials.constants[close & (trials.turns <= FASTER * trials.turns[0])]:
        gap = (_outputs(law, constants, between) - usual) / noise
        if np.any(np.mean(gap**2, axis=0) > APART**2):
            return constants
    return None


def _outputs(law: Law, constants: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(n, T) that a law linear in them gives."""
    f = _filled(np.zeros((len(x), law.unknown_columns.start)), constants)
    with np.errstate(all="ignore"):
        slopes = law.jacobian(f, x)[:, :, : law.unknown_columns.start]
        slopes = np.where(np.isfinite(slopes), slopes, 0.0)  # trials may overflow between rows
        return -np.einsum("ntr,nr->nt", np.linalg.pinv(slopes), law.residual(f, x))


def _filled(f: np.ndarray, constants: np.ndarray) -> np.ndarray:
    """(n, C) outputs and constants, the same in all rows."""
    return np.concatenate([f, np.tile(constants, (len(f), 1))], axis=1)


def _size(terms: np.ndarray) -> np.ndarray:
    """(R,) typical of a law's terms (n, R)."""
    return np.sqrt(np.nanmean(np.where(np.isfinite(terms), terms, np.nan) ** 2, axis=0))


def _tried(law: Law, f: np.ndarray, x: np.ndarray, size: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Constants (U,) from trials of all sizes; of nearly equal minima the slowest oscillation."""
    trials = followed_trials(law, f, x, size, first[None])
    nearly = np.flatnonzero(trials.cost <= NEARLY * trials.cost.min())
    return trials.constants[nearly[np.argmin(trials.turns[nearly])]]


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
