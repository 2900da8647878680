"""Validated data: inputs, outputs with missing entries, names, and the scaling that hides units from inference."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from sumgp.data.calendar import Calendar, Dates
from sumgp.data.rising import borne_out
from sumgp.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

GAP = 100.0  # times further from the median than all others: a value so far away does not count for scales
FEWEST_FOR_GAP = 8  # values; with fewer, a gap may be how the output grows
LARGEST = 1e150  # of a value: squares of larger ones are no doubles
FEWEST_OF_A_GROUP = 16  # rows whose spread is compared with that of others
TIES = 0.5  # share of equal values among them from which on they are rounded, or nothing happens there
DIFFERENT = 8.0  # ratio of spreads in three groups of so many: equal ones differ as much with a chance of 1e-5 (2e6 draws)


class NotNumbersError(DataError, TypeError):
    """Entries that are no numbers at all (dictionaries, lists of unequal length)."""


@dataclass(frozen=True)
class Scaling:
    """Affine maps between the user's units and the unit-free ones used inside.

    Inputs: (x - x_shift) / x_scale, for the columns that kernels see; outputs: (y - y_shift) / y_scale, one scale per output
    or per group of outputs.
    """

    x_shift: np.ndarray
    x_scale: np.ndarray
    y_shift: np.ndarray
    y_scale: np.ndarray

    def inputs(self, x: np.ndarray) -> np.ndarray:
        """Unit-free inputs."""
        return (x[:, : len(self.x_shift)] - self.x_shift) / self.x_scale

    def outputs(self, y: np.ndarray) -> np.ndarray:
        """Unit-free outputs."""
        return (y - self.y_shift) / self.y_scale

    def restore(self, u: np.ndarray) -> np.ndarray:
        """Outputs in the user's units from unit-free ones."""
        return self.y_shift + self.y_scale * u


@dataclass(frozen=True)
class Data:
    """N rows of measurements in the user's units.

    ``x`` (N, D + E): inputs followed by columns that only the law needs; ``y`` (N, T) with NaN = not measured.
    """

    x: np.ndarray
    y: np.ndarray
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    extra_columns: tuple[str, ...] = ()

    @property
    def n_inputs(self) -> int:
        """Number of inputs D of the Gaussian process."""
        return len(self.input_names)

    @property
    def measured(self) -> np.ndarray:
        """(N, T) truth of whether an entry was measured."""
        return ~np.isnan(self.y)

    @property
    def order(self) -> np.ndarray:
        """(N,) positions of the rows sorted by inputs, then outputs: sums in this order are rounded alike for any other.

        Outputs count by size first, so that their own order makes no difference.
        """
        filled = np.where(np.isnan(self.y), np.inf, self.y)
        columns = [*np.sort(filled, axis=1).T, *filled.T]
        return np.lexsort((*columns[::-1], *self.x.T[::-1]))

    def at(self, rows: np.ndarray) -> Data:
        """These rows only, in this order."""
        return replace(self, x=self.x[rows], y=self.y[rows])


def is_from(value: Any, library: str, kind: str) -> bool:
    """True for an instance of a class of a library, told without loading the library: whoever holds one has loaded it."""
    loaded = getattr(sys.modules.get(library), kind, None)
    return loaded is not None and isinstance(value, loaded)


def is_frame(value: Any) -> bool:
    """True for a pandas DataFrame."""
    return is_from(value, "pandas", "DataFrame")


def is_series(value: Any) -> bool:
    """True for a pandas Series."""
    return is_from(value, "pandas", "Series")


class Columns(NamedTuple):
    """A table whose wanted columns are numbers, which of them were dates, and the names of all columns it had."""

    table: Any
    calendar: dict[str, Dates]
    names: tuple[str, ...] = ()


def read_columns(table: Any, wanted: Sequence[str] | None, argument: str, calendar: Calendar | None = None) -> Columns:
    """The wanted columns (None = all) of any table as floats; arrays of numbers pass unchanged. See ``read_table``."""
    if isinstance(table, np.ndarray) and table.dtype.kind in "fiu":
        return Columns(table, {})
    from sumgp.data.dataframes import read_table

    return read_table(table, wanted, argument, calendar)


def read_inputs(X: Any, names: Sequence[str] | None, extra: Sequence[str] = ()) -> tuple[np.ndarray, tuple[str, ...]]:
    """(N, D + E) finite inputs and their D names, from an array, Series or DataFrame.

    With a DataFrame and ``names``, columns are taken by name; ``extra`` columns are appended.
    """
    if sparse.issparse(X):
        raise DataError("X", "a dense array", "a sparse matrix", "call X.toarray() first")
    if is_series(X):
        X = X.to_frame(name=X.name if isinstance(X.name, str) else "x")
    if is_frame(X):
        wanted = list(names) if names is not None else [str(c) for c in X.columns if str(c) not in extra]
        return _numbers(_columns(X, [*wanted, *extra], "X"), "X"), tuple(wanted)
    values = _numbers(X, "X")
    if values.ndim == 0:
        raise DataError("X", "a table of inputs (N, D)", "a single number", "wrap it as [[value]]")
    flat = values.ndim == 1
    values = values[:, None] if flat else values
    if values.ndim != 2:
        raise DataError("X", "an array of shape (N,) or (N, D)", f"shape {values.shape}", "reshape it")
    n_columns = len(names) + len(extra) if names is not None else values.shape[1] - len(extra)
    if names is not None and values.shape[1] != n_columns:
        also = f"; the law needs {list(extra)} at prediction too" if extra else ""
        remedy = f"Reshape your data to ({len(values)}, {n_columns})" if flat else f"give one column per input{also}"
        raise DataError(
            f"X: X has {values.shape[1]} features, but ConstrainedGP is expecting {n_columns} features "
            f"as input: {[*names, *extra][:20]}; {remedy}"
        )
    if n_columns < 1:
        got = f"{values.shape[1]} column(s), of which the law takes {list(extra)}"
        raise DataError("X", "at least one input", got, "add the input as a first column")
    default = ("x",) if values.shape[1] == 1 else tuple(f"x{i + 1}" for i in range(values.shape[1] - len(extra)))
    return values, tuple(names) if names is not None else default


def read_outputs(Y: Any, names: Sequence[str] | None, n_rows: int) -> tuple[np.ndarray, tuple[str, ...]]:
    """(N, T) outputs with NaN for what was not measured, and their names."""
    if sparse.issparse(Y):
        raise DataError("Y", "a dense array", "a sparse matrix", "call Y.toarray() first")
    if is_series(Y):
        Y = Y.to_frame(name=Y.name if isinstance(Y.name, str) else "y")
    if is_frame(Y):
        found = tuple(names) if names is not None else tuple(str(c) for c in Y.columns)
        values = _floats(_columns(Y, found, "Y"), "Y")
    else:
        if Y is None:
            raise DataError("Y: requires y to be passed, but the target y is None; give the measured outputs")
        values = _floats(Y, "Y")
        values = values[:, None] if values.ndim == 1 else values
        found = tuple(names) if names is not None else _default_outputs(values)
    if values.ndim != 2 or values.shape[1] != len(found):
        expected = f"{len(found)} column(s) {list(found)}"
        raise DataError("Y", expected, f"shape {values.shape}", "give one column per output")
    if len(values) != n_rows:
        got = f"{len(values)} rows"
        raise DataError("Y", f"{n_rows} rows as in X", got, "X and Y need one row per measurement")
    if np.any(np.isinf(values)):
        row, column = np.argwhere(np.isinf(values))[0]
        got = f"infinity in row {row}, output {found[column]!r}"
        raise DataError("Y", "finite numbers or NaN", got, "write NaN for what was not measured")
    _check_size(values, "Y")
    return values, found


def _default_outputs(values: np.ndarray) -> tuple[str, ...]:
    count = values.shape[1] if values.ndim == 2 else 0
    return ("y",) if count == 1 else tuple(f"y{i + 1}" for i in range(count))


def _columns(frame: pd.DataFrame, wanted: Sequence[str], argument: str) -> np.ndarray:
    """The wanted columns; names compare as text, so that a frame with numbered columns works too."""
    present = [str(c) for c in frame.columns]
    missing = [c for c in wanted if str(c) not in present]
    if missing:
        got = f"no column {missing[0]!r} among {present[:20]}"
        raise DataError(argument, f"the columns {list(wanted)}", got, "add that column or correct its name")
    if len(set(present)) < len(present):
        raise DataError(argument, "column names that differ", "duplicated column names", "rename one of them")
    return frame.iloc[:, [present.index(str(c)) for c in wanted]].to_numpy()


def _floats(values: Any, argument: str) -> np.ndarray:
    try:
        masked = isinstance(values, np.ma.MaskedArray) and values.dtype.kind in "biuf"
        array = np.asarray(values.astype(float).filled(np.nan) if masked else values)
        # As floats, dates would be counts of a hidden unit, and a missing date a huge negative number.
        if array.dtype.kind not in "cmM":
            return np.array(array, dtype=float)
    except (TypeError, ValueError) as error:
        kind = NotNumbersError if isinstance(error, TypeError) else DataError
        raise kind(argument, "numbers", f"something else ({error})", "convert text columns to numbers") from error
    if array.dtype.kind == "c":
        raise DataError(argument, "real numbers", "Complex data not supported", "take the real part")
    raise DataError(argument, "numbers", "dates or times", "convert them, e.g. to seconds since the first")


def _numbers(values: Any, argument: str) -> np.ndarray:
    array = _floats(values, argument)
    if array.ndim and len(array) == 0:
        got = f"0 sample(s) (shape={array.shape})"
        raise DataError(argument, "a minimum of 1 row", got, "give at least one row")
    if array.ndim == 2 and array.shape[1] == 0:
        got = f"0 feature(s) (shape={array.shape}) while a minimum of 1 is required"
        raise DataError(argument, "an input column", got, "give at least one")
    if not np.all(np.isfinite(array)):
        where = np.argwhere(~np.isfinite(array))
        got = f"NaN or infinity (inf) in row {where[0][0]}" if array.ndim else "NaN or infinity (inf)"
        raise DataError(argument, "finite numbers", got, "drop that row; only outputs may be missing")
    _check_size(array, argument)
    return array


def _check_size(values: np.ndarray, argument: str) -> None:
    """Refuse sizes whose squares overflow in double precision."""
    size = np.where(np.isnan(values), 0.0, np.abs(values))
    if np.any(size > LARGEST):
        place = np.argwhere(size > LARGEST)[0]
        where = f" in row {place[0]}" if len(place) else ""
        got = f"{values[tuple(place)]:.3g}{where}"
        raise DataError(argument, f"values of at most {LARGEST:g} in size", got, "change the units")


def choose_scaling(data: Data, groups: Sequence[Sequence[int]], unit_inputs: bool, n_columns: int | None = None) -> Scaling:
    """Scaling from the data: outputs to unit variance per group, inputs to unit range where ``unit_inputs``.

    ``n_columns`` of ``data.x`` are inputs of the kernels; None = the inputs alone.

    Values set apart from all others (see ``in_bulk``) do not count: one wild cell would make the rest look constant.
    Outputs that were never measured get 0 and 1; the strategy replaces them once the law says more.
    """
    x = data.x[:, : data.n_inputs if n_columns is None else n_columns]
    lower, upper = x.min(axis=0), x.max(axis=0)
    span = upper - lower
    middle = lower + 0.5 * span
    x_scale = np.where(span > 0, span, np.maximum(np.abs(middle), 1.0)) if unit_inputs else np.ones(x.shape[1])
    counted = in_bulk(data.y, data.x[:, : data.n_inputs])
    counts = counted.sum(axis=0)
    filled = np.where(counted, data.y, 0.0)
    y_shift = filled.sum(axis=0) / np.maximum(counts, 1)
    squares = (np.where(counted, data.y - y_shift, 0.0) ** 2).sum(axis=0)
    y_scale = np.ones(data.y.shape[1])
    for group in groups:
        members = list(group)
        total = counts[members].sum()
        size = np.abs(y_shift[members]).max()
        spread = float(np.sqrt(squares[members].sum() / total)) if total else 0.0
        # A constant output has no spread of its own: its own size, or one, stands in for the unit.
        y_scale[members] = spread if spread > 1e-10 * size else (size if size > 0 else 1.0)
    return Scaling(middle, x_scale, y_shift, y_scale)


def in_bulk(y: np.ndarray, x: np.ndarray | None = None) -> np.ndarray:
    """(N, T) truth of values that are no further from their output's median than GAP times all those nearer to it.

    The gap is among the further half of the distances, so that at least half of the values belong to the bulk. Ordinary
    data have no such gap, and all of them count; NaN do not. With inputs ``x`` (N, D), values outside that neighbouring
    rows bear out count too: an output that is next to zero for years and then grows has no outliers.
    """
    return np.column_stack([_in_bulk(column, x) for column in y.T]) if y.shape[1] else ~np.isnan(y)


def _in_bulk(values: np.ndarray, x: np.ndarray | None) -> np.ndarray:
    seen = ~np.isnan(values)
    if seen.sum() < FEWEST_FOR_GAP:
        return seen
    centre = float(np.median(values[seen]))
    distance = np.abs(np.where(seen, values, np.inf) - centre)
    ordered = np.sort(distance[seen])
    inner, outer = ordered[len(ordered) // 2 : -1], ordered[len(ordered) // 2 + 1 :]
    # More than half of the values may be equal up to round-off: the others are then no outliers.
    gaps = np.flatnonzero((outer > GAP * inner) & (inner > 1e-10 * abs(centre)))
    bulk = seen & (distance <= inner[gaps[0]]) if len(gaps) else seen
    return bulk if x is None or bulk.sum() == seen.sum() else bulk | borne_out(values - centre, seen & ~bulk, x)


def group_medians(sizes: np.ndarray, y: np.ndarray, groups: Sequence[np.ndarray]) -> np.ndarray:
    """(G,) median of ``sizes`` (n,) in groups of rows; all 1 where rows are few, or many ``y`` (n,) of one equal."""
    few = any(len(rows) < FEWEST_OF_A_GROUP or len(np.unique(y[rows])) < (1.0 - TIES) * len(rows) for rows in groups)
    medians = np.array([1.0 if few else np.median(sizes[rows]) for rows in groups])
    return medians if medians.min() > 0.0 else np.ones(len(groups))


def noise_reach(data: Data, scaling: Scaling, groups: Sequence[Sequence[int]]) -> np.ndarray:
    """(T,) how much larger than a unit the noise of each output may be: 1, or, with wild ones, the spread of all values."""
    reach = np.ones(data.y.shape[1])
    counted, unit_free = in_bulk(data.y, data.x[:, : data.n_inputs]), scaling.outputs(data.y)
    for group in groups:
        members = list(group)
        if np.any(data.measured[:, members] & ~counted[:, members]):
            reach[members] = np.sqrt(np.nanmean(unit_free[:, members] ** 2))
    return reach


def merged_groups(sets: Sequence[Sequence[str]]) -> list[list[str]]:
    """Disjoint groups of names: sets that share one are one group."""
    groups: list[list[str]] = []
    for names in sets:
        touching = [group for group in groups if set(group) & set(names)]
        groups = [group for group in groups if group not in touching]
        groups.append(list(dict.fromkeys(name for group in [*touching, names] for name in group)))
    return [group for group in groups if len(group) > 1]


def output_groups(groups: Sequence[Sequence[str | int]] | None, names: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """Partition of the outputs: the named groups, and each remaining output on its own."""
    seen: set[int] = set()
    result = []
    for group in groups or ():
        members = []
        for name in group:
            if isinstance(name, str) and name not in names:
                raise DataError("groups", f"names among {list(names)}", repr(name), "correct the name")
            position = list(names).index(name) if isinstance(name, str) else int(name)
            if position in seen or not 0 <= position < len(names):
                raise DataError("groups", "each output in at most one group", repr(name), "remove the repetition")
            seen.add(position)
            members.append(position)
        result.append(tuple(members))
    result += [(i,) for i in range(len(names)) if i not in seen]
    return tuple(result)
