"""Values and sizes, by the law alone, of columns that were never measured: outputs and unknown constants."""

from __future__ import annotations

import numpy as np

from sumgp.data import Data, Scaling, in_bulk
from sumgp.laws.geometry import make_unit_free, project
from sumgp.laws.law import Law
from sumgp.numerics import bisected

MET = 1e-6  # of the largest term of a law: a residual at which it holds
DECADES = 30.0  # sizes of outputs that were never measured are looked for between 1e-30 and 1e30


def solve_for_columns(law: Law, typical: np.ndarray, x: np.ndarray, scaling: Scaling, columns: np.ndarray) -> np.ndarray:
    """(n, columns) values in the user's units that meet the law row by row at inputs x (n, D).

    All other columns are as in the unit-free rows ``typical`` (n, T).
    Rows at which no value does are left out; where all are, or constants are unknown, natural sizes stand in. Used to
    learn the size of outputs that were never measured and of unknown constants.
    """
    C = law.n_columns
    shift = np.concatenate([scaling.y_shift, np.zeros(len(law.unknowns))])
    scale = np.concatenate([scaling.y_scale, np.ones(len(law.unknowns))])
    u = np.concatenate([typical, np.zeros((len(x), len(law.unknowns)))], axis=1)
    u[:, columns] = 0.0
    scale[columns] = natural_sizes(law, shift + scale * u, x, columns)
    # Wanted columns start from their natural size: zero may be a place where the law has no slope.
    u[:, columns] = 1.0
    free = make_unit_free(law, shift, scale, u, x)
    padded = np.concatenate([u, np.zeros((len(u), free.n_columns - C))], axis=1)
    metric = np.zeros((len(u), free.n_columns, free.n_columns))
    metric[:, columns, columns] = 1.0
    with np.errstate(all="ignore"):  # constants of single rows may grow without bounds
        solved = shift + scale * project(free, padded, metric, x).points[:, :C]
    # With an unknown constant left at zero, rows that happen to meet the law say nothing about an output's size.
    constants_known = len(law.unknowns) == 0 or columns.max() >= law.n_columns - len(law.unknowns)
    met = _is_met(law, solved, x) & constants_known
    return solved[:, columns][met] if met.any() else np.tile(shift[columns] + scale[columns], (len(u), 1))


def _is_met(law: Law, f: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(n,) truth of whether the law itself, not its continuation beyond its domain, holds at f (n, C)."""
    with np.errstate(all="ignore"):
        residual, magnitude = law.residual(f, x), law.magnitude(f, x)
    met = np.isfinite(residual) & (np.abs(residual) <= MET * magnitude + np.finfo(float).tiny)
    return np.all(met | ~law.active(x) | (law.noise > 0), axis=1)


def typical_spread(values: np.ndarray) -> np.ndarray:
    """(columns,) standard deviations of the bulk of each column."""
    bulk = in_bulk(values)
    return np.array([column[kept].std() for column, kept in zip(values.T, bulk.T, strict=True)])


def column_effects(law: Law, data: Data) -> np.ndarray:
    """(E,) how far one standard deviation of each column of the law moves its outputs, in theirs; inf if that is not known.

    In each row of the law as far as its slopes say, at the middle one of the data's rows, the largest of the law's rows.
    """
    if law.unknowns or law.derivatives or not data.measured.any(axis=0).all():
        return np.full(len(data.extra_columns), np.inf)
    middle, sd = np.nanmedian(data.y, axis=0), np.nanstd(data.y, axis=0)
    f = np.where(data.measured, data.y, middle)
    effects = []
    with np.errstate(all="ignore"):
        g, slope = law.residual(f, data.x), np.linalg.norm(law.jacobian(f, data.x) * sd, axis=2)
        for column in range(data.n_inputs, data.x.shape[1]):
            moved = data.x.copy()
            moved[:, column] += np.std(data.x[:, column])
            jump = np.abs(law.residual(f, moved) - g) / slope
            effects.append(np.max(np.median(np.where(np.isfinite(jump), jump, 0.0), axis=0)))
    return np.array(effects)


def natural_sizes(law: Law, f: np.ndarray, x: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """(columns,) values at which a column, alone, changes the residual by as much as is left without it.

    They carry the column's unit, whatever the user's choice of it; ``f`` (N, C) holds the others in the user's units. One
    where the law says nothing of the kind.
    """
    with np.errstate(all="ignore"):
        left = law.residual(f, x)
    left = np.where(np.isfinite(left), left, 0.0)
    return np.array([_natural_size(law, f, x, column, left) for column in columns])


def _natural_size(law: Law, f: np.ndarray, x: np.ndarray, column: int, left: np.ndarray) -> float:
    """Bisection over the decades that floating-point numbers have."""
    size = np.where(left != 0, np.abs(left), np.inf)

    def reaches(decade: float) -> bool:
        moved = f.copy()
        moved[:, column] = 10.0**decade
        with np.errstate(all="ignore"):
            change = np.abs(law.residual(moved, x) - left) / size
        return bool(np.any(change[np.isfinite(change)] >= 1.0))

    if reaches(-DECADES) or not reaches(DECADES):
        return 1.0
    return float(10.0 ** bisected(reaches, -DECADES, DECADES, 40)[1])
