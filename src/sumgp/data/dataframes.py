"""Tables of any library brought to one form: a pandas DataFrame of floats, dates turned into numbers.

pandas, polars, pyarrow and others through narwhals, xarray, and arrays of dates. Arrays of numbers pass unchanged. A
library is never loaded here unless its user already has: values are recognised by the modules that are loaded.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from sumgp.data.calendar import DATE_TEXT, Calendar, Dates, as_numbers, chosen_dates, text_as_dates
from sumgp.data.table import Columns, is_frame, is_from, is_series
from sumgp.errors import DataError

if TYPE_CHECKING:
    import pandas as pd


def read_table(table: Any, wanted: Sequence[str] | None, argument: str, calendar: Calendar | None = None) -> Columns:
    """The wanted columns (None = all) as floats, empty cells as NaN; text is refused by the column's name.

    ``calendar``: the dates of the fit, for new points. None = these are the data of a fit, whose dates choose it.
    """
    frame = as_pandas(table, wanted, argument)
    if frame is None:
        return Columns(table, {})
    names = tuple(str(name) for name in frame.columns)
    if len(set(names)) < len(names) or not set(map(str, wanted or ())) <= set(names):
        return Columns(frame, {}, names)  # the reader of columns has the words for that
    numbers: dict[str, np.ndarray] = {}
    found: dict[str, Dates] = {}
    for position, name in enumerate(names):
        if wanted is not None and name not in wanted:
            continue
        column = frame.iloc[:, position]
        times = _times(column, name, argument)
        expected = None if calendar is None else calendar.get(name)
        if times is None:
            if expected is not None:
                raise _no_dates(column, name, argument)
            numbers[name] = _numbers(column, name, argument)
            continue
        if calendar is not None and expected is None:
            raise DataError(argument, f"numbers in column {name!r}, as in the fit", "dates", "convert them")
        found[name] = expected or chosen_dates(*times)
        numbers[name] = as_numbers(*times, found[name], argument)
    import pandas as pd

    return Columns(pd.DataFrame(numbers, index=frame.index), found, names)


def _no_dates(column: pd.Series, name: str, argument: str) -> DataError:
    """The error about new points whose column is no dates although that of the fit was."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        got, remedy = f"numbers in column {name!r}", "convert them to dates"
    else:
        got = f"text such as {str(next(iter(column), None))[:40]!r}"
        remedy = "write year-month-day, 2024-05-31, in every row, or use pandas.to_datetime"
    return DataError(argument, f"dates in column {name!r}, as in the fit", got, remedy)


def as_pandas(table: Any, wanted: Sequence[str] | None, argument: str) -> pd.DataFrame | None:
    """The table as a pandas DataFrame; None for what holds plain numbers without names.

    Dates without a name of their own take the ``wanted`` names.
    """
    if is_frame(table):
        return table
    if is_series(table):
        return table.to_frame(name=table.name if isinstance(table.name, str) else argument.lower())
    if is_from(table, "pandas", "DatetimeIndex") and isinstance(table.name, str):
        return table.to_frame(index=False)
    if is_from(table, "xarray", "Dataset") or is_from(table, "xarray", "DataArray"):
        return _from_xarray(table, argument)
    if isinstance(table, np.ndarray | list | tuple) or is_from(table, "pandas", "DatetimeIndex"):
        return _from_dates(table, wanted)
    return _through_narwhals(table, argument)


def _from_xarray(table: Any, argument: str) -> pd.DataFrame:
    """Dimensions become columns; a two-dimensional array has its second dimension's labels as columns."""
    import pandas as pd

    if is_from(table, "xarray", "Dataset"):
        return table.to_dataframe().reset_index()
    if table.ndim == 1:
        return pd.DataFrame({str(table.name or argument.lower()): table.to_numpy()})
    if table.ndim == 2:
        labels = table.coords.get(table.dims[1])
        names = [f"{argument.lower()}{i + 1}" for i in range(table.shape[1])] if labels is None else labels.to_numpy()
        return pd.DataFrame(table.to_numpy(), columns=pd.Index([str(name) for name in names]))
    got = f"an array with the dimensions {list(table.dims)}"
    raise DataError(argument, "one or two dimensions", got, "stack or select some of them")


def _from_dates(table: Any, wanted: Sequence[str] | None) -> pd.DataFrame | None:
    """A table of an array or list of dates, None for any other."""
    try:
        array = np.asarray(table)
    except ValueError:
        return None
    first = array.flat[0] if array.dtype == object and array.size else None
    text = array.flat[0] if array.dtype.kind == "U" and array.size else first
    is_text = isinstance(text, str) and DATE_TEXT.match(text) is not None
    if array.dtype.kind != "M" and not isinstance(first, datetime.date) and not is_text:
        return None
    import pandas as pd

    columns = array.reshape(len(array), -1)
    count = columns.shape[1]
    default = ["x"] if count == 1 else [f"x{i + 1}" for i in range(count)]
    names = list(wanted) if wanted is not None and len(wanted) == count else default
    if is_from(table, "pandas", "DatetimeIndex"):
        return pd.DataFrame({names[0]: table})
    return pd.DataFrame({name: columns[:, i] for i, name in enumerate(names)})


def _through_narwhals(table: Any, argument: str) -> pd.DataFrame | None:
    import narwhals as nw
    import pandas as pd

    found: Any = nw.from_native(table, pass_through=True, allow_series=True)
    if isinstance(found, nw.LazyFrame):
        found = found.collect()
    if isinstance(found, nw.Series):
        found = found.alias(found.name or argument.lower()).to_frame()
    if not isinstance(found, nw.DataFrame):
        return None
    return pd.DataFrame({name: _native(found[name]) for name in found.columns})


def _native(series: Any) -> Any:
    """A narwhals series as pandas data; decimals, dates and gaps keep their meaning."""
    import narwhals as nw
    import pandas as pd

    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return series.cast(nw.Float64).fill_null(float("nan")).to_numpy()
    values = series.to_list()
    return pd.Series(pd.to_datetime(values)) if series.dtype.is_temporal() else pd.Series(values, dtype=object)


def _times(column: pd.Series, name: str, argument: str) -> tuple[np.ndarray, str | None] | None:
    """datetime64 values (in UTC if zoned) and the zone of a column of dates, or of text that is; None for other columns."""
    import pandas as pd

    if pd.api.types.infer_dtype(column, skipna=True) == "string":
        found = text_as_dates(column)
        column = column if found is None else found
    if column.dtype == object and len(column) and isinstance(column.iloc[0], datetime.date):
        try:
            column = pd.Series(pd.to_datetime(column))
        except ValueError as error:
            raise DataError(
                argument, f"dates of one time zone in {name!r}", "several", "use pandas.to_datetime(..., utc=True)"
            ) from error
    if isinstance(column.dtype, pd.PeriodDtype):
        column = column.dt.to_timestamp()
    if not pd.api.types.is_datetime64_any_dtype(column):
        return None
    if column.isna().any():
        row = int(np.flatnonzero(column.isna().to_numpy())[0])
        raise DataError(argument, f"a date in every row of {name!r}", f"none in row {row}", "drop that row")
    zone = str(column.dt.tz) if column.dt.tz is not None else None
    plain = column.dt.tz_convert("UTC").dt.tz_localize(None) if zone else column
    return plain.to_numpy().astype("datetime64[ns]"), zone


def _numbers(column: pd.Series, name: str, argument: str) -> np.ndarray:
    """The column as floats; NaN for None, NA and NaN."""
    import pandas as pd

    if pd.api.types.is_complex_dtype(column):
        raise DataError(argument, "real numbers", f"Complex data not supported in {name!r}", "take the real part")
    if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        return column.to_numpy(dtype=float, na_value=np.nan)
    if pd.api.types.is_timedelta64_dtype(column):
        remedy = f"use {name}.dt.total_seconds()"
        raise DataError(argument, f"numbers in column {name!r}", "time differences", remedy)
    values = np.full(len(column), np.nan)
    for row, (value, missing) in enumerate(zip(column, column.isna(), strict=True)):
        if missing:
            continue
        if not isinstance(value, int | float | Decimal | Fraction | np.number | np.bool_):
            kind = "text" if isinstance(value, str) else type(value).__name__
            got = f"{kind} ({str(value)[:40]!r} in row {row})"
            remedy = f"convert it with pandas.to_numeric, or leave {name!r} out"
            raise DataError(argument, f"numbers in column {name!r}", got, remedy)
        values[row] = float(value)
    return values
