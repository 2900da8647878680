"""Forecasts, laws and uncertainties in the forms people have them, as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sumgp.data import is_frame, read_columns
from sumgp.errors import ConstraintError, DataError
from sumgp.estimator import as_constraint
from sumgp.laws import BoundConstraint, Law, LinearConstraint, bind_constraint

SYMMETRIC = 1e-8  # difference between a covariance and its transpose, of its largest entry, that round-off explains
NEGATIVE = -1e-8  # eigenvalue of a covariance, of its largest, that round-off explains
FEWEST_DRAWS = 3  # for a covariance of draws
ROUND_OFF = 1e-14  # of the largest error: a smaller spread is none


class Forecasts(NamedTuple):
    """Means (n, T), draws (M, n, T) if they came so, what the law takes besides them (n, D), and names."""

    mean: np.ndarray
    draws: np.ndarray | None
    x: np.ndarray
    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    index: Any


def read_forecasts(forecasts: Any, outputs: Sequence[str] | None, law: Any) -> Forecasts:
    """A DataFrame (n, T) of means, an array of means, or an array (M, n, T) of draws."""
    read = read_columns(forecasts, None, "forecasts")
    if is_frame(read.table):
        return _from_frame(read.table, outputs, law)
    try:
        values = np.asarray(forecasts, dtype=float)
    except (TypeError, ValueError) as error:
        raise DataError("forecasts", "numbers", type(forecasts).__name__, "give an array or a DataFrame") from error
    draws = values if values.ndim == 3 else None
    mean = values if draws is None else values.mean(axis=0)
    if mean.ndim != 2 or (draws is not None and len(draws) < FEWEST_DRAWS):
        remedy = f"one row per forecast, one column per output; at least {FEWEST_DRAWS} draws first where there are draws"
        raise DataError("forecasts", "(n, T) means or (M, n, T) draws", f"shape {values.shape}", remedy)
    names = tuple(outputs) if outputs is not None else _names_of(law, mean.shape[1])
    if len(names) != mean.shape[1]:
        raise DataError("outputs", f"{mean.shape[1]} names, one per column", f"{len(names)}", "name every column")
    _check_finite(values, names)
    return Forecasts(mean, draws, np.empty((len(mean), 0)), names, (), None)


def _from_frame(frame: Any, outputs: Sequence[str] | None, law: Any) -> Forecasts:
    columns = [str(name) for name in frame.columns]
    in_law = tuple(columns) if _summing(law) is None else _names_of(law, len(columns))
    names = in_law if outputs is None else tuple(outputs)
    missing = [name for name in names if name not in columns]
    if missing:
        raise DataError("forecasts", f"the columns {list(names)}", f"none called {missing[0]!r}", "rename or add it")
    inputs = tuple(name for name in columns if name not in names)
    values = frame.set_axis(columns, axis=1)
    mean = values[list(names)].to_numpy(dtype=float)
    _check_finite(mean, names)
    return Forecasts(mean, None, values[list(inputs)].to_numpy(dtype=float), names, inputs, frame.index)


def _names_of(law: Any, count: int) -> tuple[str, ...]:
    """Series of a hierarchy, else y1, y2, ..."""
    summing = _summing(law)
    return tuple(f"y{i + 1}" for i in range(count)) if summing is None else tuple(str(name) for name in summing.index)


def _summing(law: Any) -> Any:
    """The summing matrix of a hierarchy, which may stand in a list beside bounds; None where there is none."""
    parts = law if isinstance(law, (list, tuple)) else [law]
    return next((part for part in parts if is_frame(part)), None)


def _check_finite(values: np.ndarray, names: Sequence[str]) -> None:
    wrong = np.argwhere(~np.isfinite(values))
    if len(wrong):
        *_, row, column = wrong[0]
        where = f"{values[tuple(wrong[0])]} in row {row} of {names[column]!r}"
        raise DataError("forecasts", "finite numbers", where, "drop that row or forecast it first")


def bound_law(law: Any, constants: Mapping[str, Any] | None, given: Forecasts) -> BoundConstraint:
    """The law and the bounds for the forecasts' outputs; one of them may be None."""
    constraint = as_constraint(_without_matrix(law, given.outputs), constants)
    if constraint is None:
        raise ConstraintError("law", "a law to move the forecasts onto", "None", "e.g. 'a + b = total'")
    found = bind_constraint(constraint, given.outputs, given.inputs, ())
    if found.law is not None:
        _check_law(found.law, given)
    return found


def _without_matrix(law: Any, outputs: tuple[str, ...]) -> Any:
    """The law with a hierarchy's summing matrix as a constraint."""
    if isinstance(law, (list, tuple)):
        return [_without_matrix(part, outputs) for part in law]
    return _hierarchy(law, outputs) if is_frame(law) else law


def _check_law(bound: Law, given: Forecasts) -> None:
    if bound.outputs != given.outputs:
        got = f"one for {list(bound.outputs)}"
        raise ConstraintError("law", f"a law for the outputs {list(given.outputs)}", got, "bind it to these")
    if bound.derivatives:
        remedy = "a single forecast has no slope; fit ConstrainedGP to the series instead"
        raise ConstraintError("law", "values of outputs only", bound.derivatives[0].name, remedy)
    if bound.unknowns:
        got = f"{bound.unknowns[0]!r} unknown"
        remedy = "reconcile has no data to estimate it from; add it as an output with its own forecast"
        raise ConstraintError("law", "numbers for all constants", got, remedy)
    absent = [name for name in bound.extra_columns if name not in given.inputs]
    if absent:
        raise DataError("forecasts", f"a column {absent[0]!r}, which the law needs", "none", "add it")


def _hierarchy(summing: Any, outputs: tuple[str, ...]) -> LinearConstraint:
    """The law y = S b of a hierarchy: each series that is no bottom series minus its sum of bottom series is zero."""
    series, bottom = [str(name) for name in summing.index], [str(name) for name in summing.columns]
    lost = [name for name in (*series, *bottom) if name not in outputs] + [name for name in bottom if name not in series]
    if lost:
        remedy = "the rows of the summing matrix are all series, its columns the bottom ones"
        raise ConstraintError("law", f"{lost[0]!r} among forecasts and rows of the matrix", "no such name", remedy)
    S = summing.to_numpy(dtype=float)
    rows = []
    for position, name in enumerate(series):
        if name in bottom:
            continue
        row = np.zeros(len(outputs))
        row[outputs.index(name)] = 1.0
        row[[outputs.index(b) for b in bottom]] -= S[position]
        rows.append(row)
    if not rows:
        raise ConstraintError("law", "a series that is a sum of others", "bottom series only", "add the totals")
    return LinearConstraint(np.array(rows), 0.0)


class Errors(NamedTuple):
    """Covariances (n, T, T): ``weights`` decide who moves, ``spread`` is the forecasts' own, None = not known."""

    weights: np.ndarray
    spread: np.ndarray | None


def error_covariances(given: Forecasts, covariance: Any, errors: Any) -> Errors:
    """As given, from past errors, from the draws, or the identity.

    With both, past errors decide who moves, and the covariance is the uncertainty of the forecasts, which differs from
    that of past errors where they were made for other steps ahead.
    """
    n, T = given.mean.shape
    stated = None
    if covariance is not None:
        values = covariance.loc[list(given.outputs), list(given.outputs)] if is_frame(covariance) else covariance
        stated = np.broadcast_to(_checked(np.asarray(values, dtype=float), n, T), (n, T, T))
    if errors is not None:
        values = errors[list(given.outputs)] if is_frame(errors) else errors
        past = np.asarray(values, dtype=float)
        if past.ndim != 2 or past.shape[1] != T:
            raise DataError("errors", f"{T} columns, one per output", f"shape {past.shape}", "one row per past time")
        weights = np.broadcast_to(shrunk_covariance(past), (n, T, T))
        return Errors(weights, weights if stated is None else stated)
    if stated is not None:
        return Errors(stated, stated)
    if given.draws is not None:
        own = np.stack([shrunk_covariance(given.draws[:, i] - given.mean[i]) for i in range(n)])
        return Errors(own, own)
    return Errors(np.broadcast_to(np.eye(T), (n, T, T)), None)


def _checked(V: np.ndarray, n: int, T: int) -> np.ndarray:
    if V.shape not in ((T, T), (n, T, T)):
        raise DataError("covariance", f"shape {(T, T)} or {(n, T, T)}", f"{V.shape}", "one row and column an output")
    size = np.max(np.abs(V), initial=0.0)
    if not np.isfinite(size) or np.max(np.abs(V - V.mT)) > SYMMETRIC * size:
        raise DataError("covariance", "a finite symmetric matrix", "another", "use (V + V.T) / 2")
    if np.min(np.linalg.eigvalsh(V)) < NEGATIVE * size:
        raise DataError("covariance", "no negative eigenvalue", "one", "estimate it from errors= instead")
    return V


def shrunk_covariance(errors: np.ndarray) -> np.ndarray:
    """(T, T) covariance of the errors (m, T) about their means, correlations shrunk towards none.

    With errors z about their means in units of their standard deviations, and r_ij the mean of w_kij = z_ki z_kj over the m
    rows, the share taken off is

        lambda = sum_{i != j} Var(r_ij) / sum_{i != j} r_ij^2,   Var(r_ij) = sum_k (w_kij - r_ij)^2 / (m (m - 1)),

    the value that makes the expected squared error of the correlations least (Schafer and Strimmer, 2005). It makes the
    matrix positive definite even where there are more series than rows. Variances are divided by m - 1.
    """
    if errors.ndim != 2 or len(errors) < 3 or not np.all(np.isfinite(errors)):
        shape = f"shape {errors.shape}" if errors.ndim != 2 or len(errors) < 3 else "values that are not finite"
        raise DataError("errors", "at least three rows of finite past errors", shape, "drop incomplete rows")
    sd = errors.std(axis=0)
    equal = sd <= ROUND_OFF * np.max(np.abs(errors), axis=0)
    if np.any(equal):
        which = int(np.flatnonzero(equal)[0])
        raise DataError("errors", "errors that vary in every series", f"equal ones in column {which}", "give a covariance")
    z = (errors - errors.mean(axis=0)) / sd
    m = len(z)
    r = z.T @ z / m
    # sum_k (w_kij - r_ij)^2 = sum_k z_ki^2 z_kj^2 - m r_ij^2
    spread = ((z**2).T @ z**2 - m * r**2) / (m * (m - 1))
    off = ~np.eye(len(r), dtype=bool)
    total = np.sum(r[off] ** 2)
    share = 1.0 if total == 0 else float(np.clip(np.sum(spread[off]) / total, 0.0, 1.0))
    return m / (m - 1) * sd[:, None] * (share * np.eye(len(r)) + (1.0 - share) * r) * sd[None, :]
