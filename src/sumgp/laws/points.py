"""A law and the data: its independent rows, how measured rows meet it, and the points where it is imposed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.stats import qmc

from sumgp.data import Data, Scaling, in_bulk
from sumgp.errors import ConstraintError
from sumgp.laws.geometry import UnitFreeLaw, make_unit_free
from sumgp.laws.law import Law, SumLaw
from sumgp.laws.shared_constants import check_constants_matter, shared_constants
from sumgp.laws.sizes import solve_for_columns, typical_spread


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
    kept = independent_rows(law, data, scaling)
    F = law.as_matrix()[kept]
    scaled = F * scaling.y_scale
    size = np.linalg.norm(scaled, axis=1)
    right_sides = RightSides(law, tuple(kept), F @ scaling.y_shift, size)
    dropped = tuple(law.labels[i] for i in range(law.n_rows) if i not in kept)
    return TaskRows(scaled / size[:, None], law.noise[kept] / size, right_sides, dropped)


DEPENDENT = 1e-10  # what is left of a row of length one, given the others, before it counts as one of its own
CONTRADICTION = 1e-8  # of the terms of two rows: more than round-off, less than a typed digit


def check_law(law: Law, data: Data, scaling: Scaling) -> None:
    """Raise ConstraintError where no outputs meet a linear law without derivatives at a training row, or all do."""
    if law.unknowns:
        check_constants_matter(law, data, scaling)
    if not isinstance(law, SumLaw) or not law.is_linear or law.derivatives:
        return
    _check_finite(law, data)
    if law.has_constant_coefficients and not law.unknowns:
        independent_rows(law, data, scaling)
    else:
        _check_each_row(law, data, scaling)


def independent_rows(law: SumLaw, data: Data, scaling: Scaling) -> list[int]:
    """Positions of rows that are not combinations of earlier ones; such a combination with another total is an error.

    Rows are compared in unit-free outputs, so that units cannot make them look alike.
    """
    F, noise, S, y_shift = law.as_matrix(), law.noise, law.S(data.x), scaling.y_shift
    scaled = F * scaling.y_scale
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
    return keep


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


UNKNOWN_VARIANCE = 100.0  # of a constant, in units of the spread with which single rows, or slopes, suggest it
MOST_POINTS, FEWEST = 300, 20  # of a law besides the training rows: its factor takes n^3
ROWS_PER_POINT = 2  # of the grid for one input, at most: with more of them errors are no lower
TOO_FINE = 0.1  # of the mean distance of rows: lengthscales are below half of it then, and no row tells of the next
MOST_SPREAD = 6  # power of two of the points between rows with several inputs; with 7 errors are the same (24 tables)


@dataclass(frozen=True)
class LawSetup:
    """Unit-free law and the points where it is imposed jointly."""

    law: UnitFreeLaw
    x: np.ndarray  # (n, D) points as the kernels see them
    x_law: np.ndarray  # (n, D + E) the same in the user's units


def typical_rows(data: Data, scaling: Scaling) -> np.ndarray:
    """(N, T) unit-free outputs with gaps filled by linear interpolation along the first input, else by the mean.

    Measurements at one place count by their mean, so that their order does not matter; those far outside the rest do not.
    """
    y = scaling.outputs(np.where(in_bulk(data.y, data.x[:, : data.n_inputs]), data.y, np.nan))
    along = data.x[:, 0]
    filled = np.zeros_like(y)
    for t in range(y.shape[1]):
        known = ~np.isnan(y[:, t])
        if known.any():
            places, place, counts = np.unique(along[known], return_inverse=True, return_counts=True)
            filled[:, t] = np.interp(along, places, np.bincount(place, y[known, t]) / counts)
    return filled


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
            "measure it, drop it, or give a law that contains it"
        )
    if len(never) == data.y.shape[1]:
        raise ConstraintError("Y: nothing was measured at all; give at least one value")
    if law.derivatives:
        # Of the size of the others until the law itself tells, from slopes that are not known here.
        scale = scaling.y_scale.copy()
        scale[never] = np.exp(np.mean(np.log(np.delete(scaling.y_scale, never))))
        return replace(scaling, y_shift=np.where(np.isin(range(len(scale)), never), 0.0, scaling.y_shift), y_scale=scale)
    values = solve_for_columns(law, typical_rows(data, scaling), data.x, scaling, never)
    shift, scale = scaling.y_shift.copy(), scaling.y_scale.copy()
    shift[never] = np.where(in_bulk(values), values, 0.0).sum(axis=0) / np.maximum(in_bulk(values).sum(axis=0), 1)
    spread = typical_spread(values)
    size = np.abs(shift[never])
    scale[never] = np.where(spread > 1e-8 * size, spread, np.where(size > 0, size, 1.0))
    return Scaling(scaling.x_shift, scaling.x_scale, shift, scale)


def set_up_law(law: Law, data: Data, scaling: Scaling, spacing: float) -> LawSetup:
    """Prepare a law for a fit; ``spacing`` is the distance wanted between law points, as the kernels see inputs."""
    return LawSetup(unit_free_law(law, data, scaling), *law_points(law, data, scaling, spacing))


def unit_free_law(law: Law, data: Data, scaling: Scaling) -> UnitFreeLaw:
    """The law seen from unit-free outputs and constants, rows divided by their sizes at the data."""
    T, U = len(law.outputs), len(law.unknowns)
    shift, scale = scaling.y_shift, scaling.y_scale
    typical = typical_rows(data, scaling)
    if U:
        values = solve_for_columns(law, typical, data.x, scaling, np.arange(T, T + U))
        centre, spread = np.median(values, axis=0), typical_spread(values)
        if U > 1 and data.measured.any(axis=0).all():
            centre, spread = shared_constants(law, shift + scale * typical, data.x, centre) or (centre, spread)
        size = np.maximum(spread, 1e-3 * np.abs(centre))
        shift = np.concatenate([shift, centre])
        scale = np.concatenate([scale, np.where(size > 0, size, 1.0)])
        typical = np.concatenate([typical, np.zeros((len(typical), U))], axis=1)
    return make_unit_free(law, shift, scale, typical, data.x)


def law_points(law: Law, data: Data, scaling: Scaling, spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """Training inputs and a grid between them, as the kernels see them (n, D) and in the user's units.

    The grid is evenly spaced for one input, where rows are thinned to twice as many, and a Sobol set in the box for
    several. Where one row tells nothing of the next, a fine grid tells nothing of them either. It is laid where inputs have
    no offset, which would take digits from the distances. A law with columns of its own is known at the training rows only.
    """
    rows = np.unique(data.x, axis=0)
    if len(rows) > MOST_POINTS:
        rows = rows[np.linspace(0, len(rows) - 1, MOST_POINTS).round().astype(int)]
    inputs, every = scaling.inputs(rows), scaling.inputs(data.x)
    low, high = every.min(axis=0), every.max(axis=0)
    if law.extra_columns or np.all(high <= low):
        return inputs, rows
    if data.n_inputs == 1:
        steps = (high - low)[0] / spacing
        apart = TOO_FINE * steps > len(rows) - 1
        grid = np.linspace(low, high, 1 + (FEWEST if apart else int(np.clip(np.ceil(steps), FEWEST, MOST_POINTS - 100))))
        if len(rows) > ROWS_PER_POINT * len(grid) and not apart:  # curves have no room to leave the law between these
            some = np.linspace(0, len(rows) - 1, ROWS_PER_POINT * len(grid)).round().astype(int)
            rows, inputs = rows[some], inputs[some]
    else:
        count = int(np.clip(np.prod(np.maximum((high - low) / spacing, 1.0)), 32, 2**MOST_SPREAD))
        # The first points of a set of 2^6: any other number would be warned of.
        grid = low + (high - low) * qmc.Sobol(data.n_inputs, scramble=True, seed=0).random_base2(MOST_SPREAD)[:count]
    if len(rows) + len(grid) > MOST_POINTS:
        grid = grid[np.linspace(0, len(grid) - 1, max(MOST_POINTS - len(rows), FEWEST)).round().astype(int)]
    points = np.vstack([inputs, grid])
    in_units = np.vstack([rows, scaling.x_shift + scaling.x_scale * grid])
    # A grid point on top of a training row would only repeat its law.
    places = np.round((points - low) / np.where(high > low, high - low, 1.0), 9)
    keep = np.sort(np.unique(places, axis=0, return_index=True)[1])
    return points[keep], in_units[keep]


def linear_rows(law: UnitFreeLaw, data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (N, R, C) and right sides (N, R) of a linear law at the training rows, unit-free."""
    zero = np.zeros((len(data.x), law.n_columns))
    return law.jacobian(zero, data.x), -law.residual(zero, data.x)


CLOSED = 3e-3  # rows that meet the law this well (in sds of the outputs) have noise that meets it too
ROUNDED = 1.5  # times the standard deviation that rounding of the values alone would cause
FEWEST_ROWS = 3  # complete rows: with fewer, meeting a law may be chance
MOST_MISPRINTS = 0.05  # of the rows
MOST_DIGITS = 9  # decimals looked for; values with more are not rounded
TRACE = 1e-12  # of the law's largest term: round-off of sums


@dataclass(frozen=True)
class Imbalance:
    """Left minus right side of a law's R rows at complete rows of the data, each divided by its slope.

    The slope of row r at outputs f is |J_r(f) y_scale|: the residual that one standard deviation of the outputs causes.
    ``bias``, ``sd``, ``count`` (R,): mean, standard deviation about it and number of complete rows; NaN with too few of
    them. ``closed`` (R,): the rows meet the law up to rounding. ``misprints``: positions of rows that miss a law which
    all others meet; they do not count.
    """

    bias: np.ndarray
    sd: np.ndarray
    count: np.ndarray
    closed: np.ndarray
    misprints: tuple[int, ...] = ()

    @property
    def all_closed(self) -> bool:
        """True if every row of the law is met up to rounding."""
        return bool(np.all(self.closed))


def measured_imbalance(law: Law, data: Data, scaling: Scaling, constants: np.ndarray | None = None) -> Imbalance:
    """The imbalance of the rows of ``data``; ``constants`` (U,) are the values of the law's unknown constants."""
    R, T = law.n_rows, len(law.outputs)
    bias, sd, count = np.full(R, np.nan), np.full(R, np.nan), np.zeros(R, dtype=int)
    closed, misprints = np.zeros(R, dtype=bool), set()
    if law.unknowns and constants is None:
        return Imbalance(bias, sd, count, closed)
    middle = np.where(np.isfinite(scaling.y_shift), scaling.y_shift, 0.0)
    filled = np.where(data.measured, data.y, middle)
    # No measured row tells a derivative: rows of the law that hold one are not to be judged from the data.
    f = np.full((len(filled), law.n_columns), np.nan)
    f[:, :T] = filled
    if constants is not None:
        f[:, law.unknown_columns] = constants
    with np.errstate(all="ignore"):
        g, J = law.residual(f, data.x), law.jacobian(f, data.x)[:, :, :T]
        magnitude = law.magnitude(f, data.x)
        slope = np.sqrt(np.sum((J * scaling.y_scale) ** 2, axis=2))
    unit = rounding_units(data.y)
    rounding = np.sqrt(np.sum((J * unit) ** 2, axis=2) / 12.0)
    active = law.active(data.x)
    for r in range(R):
        needed = np.any(J[:, r] != 0, axis=0)
        usable = active[:, r] & data.measured[:, needed].all(axis=1) & np.isfinite(g[:, r]) & (slope[:, r] > 0)
        usable &= np.isfinite(slope[:, r])
        rows = np.flatnonzero(usable)
        count[r] = len(rows)
        if len(rows) < FEWEST_ROWS:
            continue
        values = g[rows, r] / slope[rows, r]
        allowed = np.maximum(CLOSED, ROUNDED * rounding[rows, r] / slope[rows, r])
        allowed = allowed + TRACE * magnitude[rows, r] / slope[rows, r]
        odd = np.abs(values) > 2.0 * allowed
        closed[r] = odd.mean() <= MOST_MISPRINTS and float(np.mean((values / allowed)[~odd] ** 2)) <= 1.0
        if closed[r]:
            misprints |= set(rows[odd].tolist())
            values = values[~odd]
        bias[r], sd[r] = values.mean(), values.std(ddof=1)
    return Imbalance(bias, sd, count, closed, tuple(sorted(misprints)))


def rounding_units(y: np.ndarray) -> np.ndarray:
    """(T,) unit that the values of each output are multiples of, a power of ten; 0 where they are not rounded.

    Values far outside the others do not count: beside them all others would be rounded to nothing.
    """
    units = np.zeros(y.shape[1])
    for t, (column, bulk) in enumerate(zip(y.T, in_bulk(y).T, strict=True)):
        values = column[bulk & ~np.isnan(column)]
        size = float(np.abs(values).max(initial=0.0))
        if size == 0.0:
            continue
        top = int(np.ceil(np.log10(size)))
        for digits in range(1, MOST_DIGITS + 1):
            unit = 10.0 ** (top - digits)
            if np.all(np.abs(values / unit - np.rint(values / unit)) < 1e-9 * size / unit + 1e-9):
                units[t] = unit
                break
    return units
