"""The tables of a fit, whatever library they are of: numbers, dates turned into numbers, rows that have weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sumgp.data import Dates, read_columns
from sumgp.errors import DataError, worded
from sumgp.laws import Constraint, FormulaConstraint, Law


class FitTables(NamedTuple):
    """X and Y as arrays or DataFrames of numbers, and the inputs that were dates."""

    X: Any
    Y: Any
    calendar: dict[str, Dates]


class Wanted(NamedTuple):
    """Names that the user gave: inputs, outputs (None = all columns), and columns that the law needs besides."""

    inputs: Sequence[str] | None
    outputs: Sequence[str] | None
    extra: Sequence[str]


def read_fit_tables(X: Any, Y: Any, wanted: Wanted, constraint: Constraint | Law | None) -> FitTables:
    """The columns to fit; names of the law that only a column of the data has are pointed out."""
    x = read_columns(X, None if wanted.inputs is None else [*wanted.inputs, *wanted.extra], "X")
    y = read_columns(Y, wanted.outputs, "Y")
    if y.calendar:
        got = f"dates in {next(iter(y.calendar))!r}"
        raise DataError(worded("Y", "numbers", got, "convert them, e.g. to seconds since the first"))
    if isinstance(constraint, FormulaConstraint):
        inputs = wanted.inputs if wanted.inputs is not None else [name for name in x.names if name not in wanted.extra]
        constraint.check_columns(wanted.outputs or y.names, inputs, {*x.names, *y.names})
    return FitTables(x.table, y.table, x.calendar)
