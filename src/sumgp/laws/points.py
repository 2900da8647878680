"""Where a law is imposed: its independent rows, typical points, sizes of outputs never measured, points between rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.stats import qmc

from sumgp.data import Data, Scaling, in_bulk
from sumgp.errors import ConstraintError
from sumgp.laws.geometry import UnitFreeLaw, make_unit_free, project
from sumgp.laws.law import Law, SumLaw
from sumgp.numerics import bisected


@dataclass(frozen=True)
class RightSides:
    """(S(x) - shift) / size for the kept rows of a law: its right sides (n, R) in unit-free outputs."""

    law: SumLaw
    keep: tuple[int, ...]
    shift: np.ndarray
    size: np.ndarray

    def __call__(self, x_law: np.ndarray) -> np.ndarray:
        """(n, R) right sides at law inputs in the user's units."""
        return (self.law.S(x_law)[:, list(self.keep)] - self.shift) / self.size


class TaskRows(NamedTuple):
    """A linear law over unit-free outputs u: F u = right sides up to ``noise``; rows of length one, all independent."""

    F: np.ndarray  # (R', T)
    noise: np.ndarray  # (R',)
    right_sides: RightSides
    dropped: tuple[str, ...]  # labels of rows that others imply


def task_rows(law: SumLaw, data: Data, scaling: Scaling) -> TaskRows:
    """The law as rows over the task covariance, where its coefficients are constant."""
    own = independent_rows(law, data, scaling)
    scaled = own.F * scaling.y_scale
    size = np.linalg.norm(scaled, axis=1)
    right_sides = RightSides(law, tuple(own.kept), own.F @ scaling.y_shift, size)
    dropped = tuple(law.labels[i] for i in range(law.n_rows) if i not in own.kept)
    return TaskRows(scaled / size[:, None], own.noise / size, right_sides, dropped)


DEPENDENT = 1e-10  # what is left of a row of length one, given the others, before it counts as one of its own
CONTRADICTION = 1e-8  # of the terms of two rows: more than round-off, less than a typed digit


def check_law(law: Law, data: Data, scaling: Scaling) -> None:
    """Raise ConstraintError where no outputs meet a linear law without derivatives at a training row."""
    if not isinstance(law, SumLaw) or not law.is_linear or law.derivatives:
        return
    _check_finite(law, data)
    if law.has_constant_coefficients and not law.unknowns:
        independent_rows(law, data, scaling)
    else:
        _check_each_row(law, data, scaling)


class IndependentRows(NamedTuple):
    """F (R', T), noise (R',) and positions of rows."""

    F: np.ndarray
    noise: np.ndarray
    kept: list[int]


def independent_rows(law: SumLaw, data: Data, scaling: Scaling | None = None) -> IndependentRows:
    """F (R', T), noise and positions of rows that are not combinations of earlier ones; with another total: an error.

    Rows are compared in unit-free outputs where ``scaling`` is given, so that units cannot make them look alike.
    """
    F, noise, S = law.as_matrix(), law.noise, law.S(data.x)
    y_shift, y_scale = (scaling.y_shift, scaling.y_scale) if scaling is not None else (np.zeros(F.shape[1]), 1.0)
    scaled = F * y_scale
    size = np.linalg.norm(scaled, axis=1)
    unit = scaled / size[:, None]
    right = (S - F @ y_shift) / size
    # Totals are the sum of large terms where the outputs lie far from zero: round-off there is no contradiction.
    reach = 1.0 + np.abs(S) / size + np.abs(F) @ np.abs(y_shift) / size
    keep: list[int] = []
    for row in range(len(F)):
        exact = [k for k in keep if noise[k] == 0]
        if noise[row] > 0 or not exact:
            keep.append(row)
            continue
        weights, *_ = np.linalg.lstsq(unit[exact].T, unit[row], rcond=None)
        if np.linalg.norm(unit[exact].T @ weights - unit[row]) > DEPENDENT:
            keep.append(row)
            continue
        tolerance = CONTRADICTION * (reach[:, row] + reach[:, exact] @ np.abs(weights))
        if np.any(np.abs(right[:, exact] @ weights - right[:, row]) > tolerance):
            others = ", ".join(repr(law.labels[k]) for k, w in zip(exact, weights, strict=True) if abs(w) > DEPENDENT)
            raise ConstraintError(
                f"constraint: the law {law.labels[row]!r} contradicts {others}: together they cannot be met; "
                "correct a total or remove one"
            )
    return IndependentRows(F[keep], noise[keep], keep)


def _check_finite(law: SumLaw, data: Data) -> None:
    with np.errstate(all="ignore"):
        F, S = law.F(data.x), law.S(data.x)
    bad = law.active(data.x) & ~(np.isfinite(F).all(axis=2) & np.isfinite(S))
    if bad.any():
        i, row = np.argwhere(bad)[0]
        raise ConstraintError(
            f"constraint: the law {law.labels[row]!r} has a coefficient or total that is not finite at x = "
            f"{data.x[i].tolist()} (row {i}); correct its function of X, or limit the law with where="
        )


def _check_each_row(law: SumLaw, data: Data, scaling: Scaling) -> None:
    """The same where F varies: least squares at every training row, in unit-free outputs."""
    U = len(law.unknowns)
    shift = np.concatenate([scaling.y_shift, np.zeros(U)])
    scale = np.concatenate([scaling.y_scale, np.ones(U)])
    with np.errstate(all="ignore"):
        at_mean = np.tile(shift, (len(data.x), 1))
        F, left = law.jacobian(at_mean, data.x) * scale, -law.residual(at_mean, data.x)
    hard = law.active(data.x) & (law.noise == 0)
    for i in range(len(data.x)):
        rows, right = F[i][hard[i]], left[i][hard[i]]
        size = np.linalg.norm(rows, axis=1)
        if not len(rows):
            continue
        reach = np.abs(F[i][hard[i]]) @ (1.0 + np.abs(shift) / scale) + np.abs(law.S(data.x[i : i + 1])[0][hard[i]])
        unit = rows / np.where(size > 0, size, 1.0)[:, None]
        solution, *_ = np.linalg.lstsq(unit, right / np.where(size > 0, size, 1.0), rcond=None)
        if np.any(np.abs(rows @ solution - right) > CONTRADICTION * reach):
            names = ", ".join(repr(law.labels[r]) for r in np.flatnonzero(hard[i]))
            raise ConstraintError(
                f"constraint: no outputs meet {names} at x = {data.x[i].tolist()} (row {i}); correct F or S there, "
                "or limit the law with where="
            )


UNKNOWN_VARIANCE = 100.0  # of a constant, in units of the spread with which single rows suggest it
MOST_POINTS = 300  # of a law besides the training rows: its factor takes n^3
MOST_SPREAD = 7  # power of two of the points between training rows with several inputs
MET = 1e-6  # of the largest term of a law: a residual at which it holds
DECADES = 30.0  # sizes of outputs that were never measured are looked for between 1e-30 and 1e30


@dataclass(frozen=True)
class LawSetup:
    """Unit-free law, prior variances of its own columns, and the points where it is imposed jointly."""

    law: UnitFreeLaw
    unknown: np.ndarray  # (U,) prior variances, unit-free
    x: np.ndarray  # (n, D) points as the kernels see them
    x_law: np.ndarray  # (n, D + E) the same in the user's units

    @property
    def nearly(self) -> bool:
        """Whether no row holds exactly, and no constant is unknown."""
        return len(self.law.soft_rows) == self.law.n_rows and not len(self.unknown)


def typical_rows(data: Data, scaling: Scaling) -> np.ndarray:
    """(N, T) unit-free outputs with gaps filled by linear interpolation along the first input, else by the mean.

    Measurements at one place count by their mean, so that their order does not matter; those far outside the rest do not.
    """
    y = scaling.outputs(np.where(in_bulk(data.y), data.y, np.nan))
    along = data.x[:, 0]
    filled = np.zeros_like(y)
    for t in range(y.shape[1]):
        known = ~np.isnan(y[:, t])
        if known.any():
            places, place, counts = np.unique(along[known], return_inverse=True, return_counts=True)
            filled[:, t] = np.interp(along, places, np.bincount(place, y[known, t]) / counts)
    return filled


def solve_for_columns(law: Law, data: Data, scaling: Scaling, columns: np.ndarray) -> np.ndarray:
    """(n, columns) values in the user's units that meet the law row by row, all other columns as measured.

    Rows at which no value does are left out; where all are, or constants are unknown, natural sizes stand in. Used to
    learn the size of outputs that were never measured and of unknown constants.
    """
    C = law.n_columns
    shift = np.concatenate([scaling.y_shift, np.zeros(len(law.unknowns))])
    scale = np.concatenate([scaling.y_scale, np.ones(len(law.unknowns))])
    u = np.concatenate([typical_rows(data, scaling), np.zeros((len(data.x), len(law.unknowns)))], axis=1)
    u[:, columns] = 0.0
    scale[columns] = natural_sizes(law, shift + scale * u, data.x, columns)
    # Wanted columns start from their natural size: zero may be a place where the law has no slope.
    u[:, columns] = 1.0
    free = make_unit_free(law, shift, scale, u, data.x)
    padded = np.concatenate([u, np.zeros((len(u), free.n_columns - C))], axis=1)
    metric = np.zeros((len(u), free.n_columns, free.n_columns))
    metric[:, columns, columns] = 1.0
    solved = shift + scale * project(free, padded, metric, data.x).points[:, :C]
    # With an unknown constant left at zero, rows that happen to meet the law say nothing about an output's size.
    constants_known = len(law.unknowns) == 0 or columns.max() >= law.n_columns - len(law.unknowns)
    met = _is_met(law, solved, data.x) & constants_known
    return solved[:, columns][met] if met.any() else np.tile(shift[columns] + scale[columns], (len(u), 1))


def _is_met(law: Law, f: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(n,) truth of whether the law itself, not its continuation beyond its domain, holds at f (n, C)."""
    with np.errstate(all="ignore"):
        residual, magnitude = law.residual(f, x), law.magnitude(f, x)
    met = np.isfinite(residual) & (np.abs(residual) <= MET * magnitude + np.finfo(float).tiny)
    return np.all(met | ~law.active(x) | (law.noise > 0), axis=1)


def _typical_spread(values: np.ndarray) -> np.ndarray:
    """(columns,) standard deviations of the bulk of each column."""
    bulk = in_bulk(values)
    return np.array([column[kept].std() for column, kept in zip(values.T, bulk.T, strict=True)])


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


def complete_scaling(law: Law | None, data: Data, scaling: Scaling) -> Scaling:
    """Shift and scale of outputs that were never measured, from the values the law gives them; else an error."""
    never = np.flatnonzero(~data.measured.any(axis=0))
    if not len(never):
        return scaling
    names = [data.output_names[i] for i in never]
    outside = names if law is None else [name for name in names if name in law.outputs_outside()]
    if law is None or outside:
        raise ConstraintError(
            f"Y: output {outside[0]!r} was never measured and no law determines it; "
            "measure it, drop it, or give a law that holds it"
        )
    if len(never) == data.y.shape[1]:
        raise ConstraintError("Y: nothing was measured at all; give at least one value")
    if law.derivatives:
        # Of the size of the others until the law itself tells, from slopes that are not known here.
        scale = scaling.y_scale.copy()
        scale[never] = np.exp(np.mean(np.log(np.delete(scaling.y_scale, never))))
        return replace(scaling, y_shift=np.where(np.isin(range(len(scale)), never), 0.0, scaling.y_shift), y_scale=scale)
    values = solve_for_columns(law, data, scaling, never)
    shift, scale = scaling.y_shift.copy(), scaling.y_scale.copy()
    shift[never] = np.where(in_bulk(values), values, 0.0).sum(axis=0) / np.maximum(in_bulk(values).sum(axis=0), 1)
    spread = _typical_spread(values)
    size = np.abs(shift[never])
    scale[never] = np.where(spread > 1e-8 * size, spread, np.where(size > 0, size, 1.0))
    return Scaling(scaling.x_shift, scaling.x_scale, shift, scale)


def set_up_law(law: Law, data: Data, scaling: Scaling, spacing: float) -> LawSetup:
    """Prepare a law for a fit; ``spacing`` is the distance wanted between law points, as the kernels see inputs."""
    T, U = len(law.outputs), len(law.unknowns)
    shift, scale = scaling.y_shift, scaling.y_scale
    typical = typical_rows(data, scaling)
    if U:
        values = solve_for_columns(law, data, scaling, np.arange(T, T + U))
        centre, spread = np.median(values, axis=0), _typical_spread(values)
        size = np.maximum(spread, 1e-3 * np.abs(centre))
        shift = np.concatenate([shift, centre])
        scale = np.concatenate([scale, np.where(size > 0, size, 1.0)])
        typical = np.concatenate([typical, np.zeros((len(typical), U))], axis=1)
    free = make_unit_free(law, shift, scale, typical, data.x)
    return LawSetup(free, np.full(U, UNKNOWN_VARIANCE), *law_points(law, data, scaling, spacing))


def law_points(law: Law, data: Data, scaling: Scaling, spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """Training inputs and a grid between them, as the kernels see them (n, D) and in the user's units.

    The grid is evenly spaced for one input, a Sobol set in the box for several. It is laid where inputs have no offset,
    which would take digits from the distances. A law with columns of its own is known at the training rows only.
    """
    rows = np.unique(data.x, axis=0)
    if len(rows) > MOST_POINTS:
        rows = rows[np.linspace(0, len(rows) - 1, MOST_POINTS).round().astype(int)]
    inputs = scaling.inputs(rows)
    if law.extra_columns:
        return inputs, rows
    every = scaling.inputs(data.x)
    low, high = every.min(axis=0), every.max(axis=0)
    if np.all(high <= low):
        return inputs, rows
    if data.n_inputs == 1:
        count = int(np.clip(np.ceil((high - low)[0] / spacing), 20, MOST_POINTS - 100))
        grid = np.linspace(low, high, count + 1)
    else:
        count = int(np.clip(np.prod(np.maximum((high - low) / spacing, 1.0)), 32, 2**MOST_SPREAD))
        # The first points of a set of 2^7: any other number would be warned of.
        grid = low + (high - low) * qmc.Sobol(data.n_inputs, scramble=True, seed=0).random_base2(MOST_SPREAD)[:count]
    if len(rows) + len(grid) > MOST_POINTS:
        grid = grid[np.linspace(0, len(grid) - 1, max(MOST_POINTS - len(rows), 20)).round().astype(int)]
    points = np.vstack([inputs, grid])
    in_units = np.vstack([rows, scaling.x_shift + scaling.x_scale * grid])
    # A grid point on top of a training row would only repeat its law.
    _, keep = np.unique(np.round((points - low) / np.where(high > low, high - low, 1.0), 9), axis=0, return_index=True)
    keep = np.sort(keep)
    return points[keep], in_units[keep]


def linear_rows(setup: LawSetup, data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (N, R, C) and right sides (N, R) of a linear law at the training rows, unit-free."""
    zero = np.zeros((len(data.x), setup.law.n_columns))
    return setup.law.jacobian(zero, data.x), -setup.law.residual(zero, data.x)
