"""Tables from files: what pandas reads, with the failures that people meet put into words."""

from __future__ import annotations

import csv
import io
import os
import re
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from sumgp.data import text_as_dates
from sumgp.errors import DataError

TEXT = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": None, ".dat": None}
BINARY = (".parquet", ".pq", ".xlsx", ".xls", ".xlsm", ".ods")
MOST_COLUMNS = 10_000  # of a table: more is a file of another kind, or one read with the wrong separator
LONGEST_HEADER = 1_000_000  # characters
LARGEST_FILE = 2_000_000_000  # bytes
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
# What the readers of damaged Parquet and Excel files raise; Arrow's own errors are among them.
UNREADABLE = (ValueError, KeyError, IndexError, TypeError, OSError, EOFError, SyntaxError, zipfile.BadZipFile, zlib.error)
FORMULA_SIGNS = ("=", "+", "-", "@")  # a cell that begins with one is a formula to spreadsheets
DATE_LIKE = re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}.*|\d{4}-\d{2}.*")
# Numbers as people write them: 1,234.5 and 1.234,5, 1 234.5, 12 %, and a minus sign of its own.
WRITTEN_NUMBER = re.compile(r"[-+\u2212]?\s*\d[\d.,'\u2019\s]*[%\u2030]?")
MISSING = ["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "None", "-", "?"]


@dataclass(frozen=True)
class Reading:
    """How a text table is written: None = by the file's ending."""

    separator: str | None = None
    decimal: str = "."


def read_table(path: Path, reading: Reading = Reading()) -> pd.DataFrame:  # noqa: B008 - frozen
    """The table in a CSV, TSV, Parquet or Excel file, columns as text or numbers; DataError with a one-line reason."""
    _check_file(path)
    ending = path.suffix.lower()
    if ending in BINARY:
        frame = _read_binary(path, ending)
    elif ending in TEXT:
        frame = _read_text(path, reading)
    else:
        raise DataError(
            str(path),
            "a table ending in " + ", ".join([*TEXT, *BINARY]),
            f"{ending or 'no ending'!r}",
            "rename or convert it",
        )
    if not len(frame):
        raise DataError(str(path), "at least one row of data", "a header without rows", "check the file")
    return frame


def number_columns(
    frame: pd.DataFrame, names: Sequence[str], source: str, decimal: str = ".", may_be_dates: Sequence[str] = ()
) -> pd.DataFrame:
    """The named columns as floats, empty cells as NaN; a word in a number column is an error that names it.

    Columns that ``may_be_dates`` stay dates if all their cells are: 2024-05-31, 2024-05-31 12:00, 2024-05-31T12:00+02:00.
    """
    missing = [name for name in names if name not in frame.columns]
    if missing:
        shown = ", ".join(map(str, frame.columns[:12])) + (" ..." if len(frame.columns) > 12 else "")
        raise DataError(source, f"a column {missing[0]!r}", f"the columns {shown}", "correct the name or add the column")
    dates = {name: found for name in names if name in may_be_dates and (found := _dates(frame[name])) is not None}
    return pd.DataFrame({n: dates[n] if n in dates else _numbers(frame[n], n, source, decimal) for n in names})


def _dates(column: pd.Series) -> pd.Series | None:
    """The column as dates, empty cells as NaT; None for other columns."""
    if pd.api.types.is_datetime64_any_dtype(column):
        return column
    return None if pd.api.types.is_numeric_dtype(column) else text_as_dates(column)


def _numbers(column: pd.Series, name: str, source: str, decimal: str) -> np.ndarray:
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        values = column.to_numpy(dtype=float, na_value=np.nan)
        return _finite(values, name, source)
    if pd.api.types.is_bool_dtype(column) or pd.api.types.is_datetime64_any_dtype(column):
        remedy = "convert it to numbers; dates are for input columns"
        raise DataError(source, f"numbers in column {name!r}", str(column.dtype), remedy)
    values, filled = np.full(len(column), np.nan), np.flatnonzero(column.notna().to_numpy())
    for row in filled:
        word = str(column.iloc[row]).strip()
        try:
            values[row] = _as_float(word, decimal)
        except ValueError as error:
            remedy = "correct it; leave the cell empty if it was not measured"
            if DATE_LIKE.fullmatch(word):
                remedy = "write dates as year-month-day, 2024-05-31, in every row of an input column"
            elif decimal == "." and _is_number(word.replace(",", ".")):
                remedy = "it looks like a decimal comma: add --decimal ,"
                if re.fullmatch(r"\d{1,3},\d{3}", word):
                    remedy = "write 1234 without a comma between thousands, or add --decimal , if it is a decimal comma"
            elif WRITTEN_NUMBER.fullmatch(word):
                remedy = "write plain numbers, -1234.5, without signs between thousands and without %"
            elif row == filled[0] and not any(_is_number(str(cell).strip()) for cell in column.dropna()):
                remedy = "name the columns with --outputs, without it"
            got = f"{word[:40]!r} in row {row + 1}"
            raise DataError(source, f"numbers in column {name!r}", got, remedy) from error
    return _finite(values, name, source)


def _finite(values: np.ndarray, name: str, source: str) -> np.ndarray:
    if np.any(np.isinf(values)):
        row = int(np.flatnonzero(np.isinf(values))[0])
        got = f"infinity in row {row + 1}"
        raise DataError(source, f"finite numbers in column {name!r}", got, "leave the cell empty")
    return values


def _as_float(word: str, decimal: str) -> float:
    """The number a word stands for; ValueError where it is none, or is written as Python code would (1_000)."""
    if "_" in word or (decimal != "." and "." in word):
        raise ValueError(word)
    return float(word.replace(decimal, "."))


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _check_file(path: Path) -> None:
    if not path.exists():
        raise DataError(str(path), "a file", "nothing of that name", "check the path")
    if not path.is_file():
        raise DataError(str(path), "a file", "a folder or device", "give the path of a table")
    if not os.access(path, os.R_OK):
        raise DataError(str(path), "a file that may be read", "no permission", "change its rights or copy it")
    size = path.stat().st_size
    if size == 0:
        raise DataError(str(path), "a table", "an empty file", "check how it was written")
    if size > LARGEST_FILE:
        raise DataError(str(path), f"at most {LARGEST_FILE / 1e9:g} GB", f"{size / 1e9:.1f} GB", "use fewer rows")


def _read_binary(path: Path, ending: str) -> pd.DataFrame:
    try:
        frame = pd.read_parquet(path) if ending in (".parquet", ".pq") else pd.read_excel(path)
    except ImportError as error:
        extra = "parquet" if ending in (".parquet", ".pq") else "excel"
        raise DataError(
            f'{path}: reading {ending} files needs another package; pip install "sumgp[{extra}]", or convert the file to CSV'
        ) from error
    except UNREADABLE as error:
        raise DataError(
            f"{path}: cannot be read as {ending} ({_first_line(error)}); check the file or convert it to CSV"
        ) from error
    _check_names([str(c) for c in frame.columns], path)
    frame.columns = pd.Index([str(c).strip() for c in frame.columns])
    return frame


def _read_text(path: Path, reading: Reading) -> pd.DataFrame:
    first = header_line(path)
    separator = _separator(path, first, reading)
    header = [_unescaped(name.strip()) for name in next(csv.reader([first], delimiter=separator))]
    _check_names(header, path)
    try:
        with warnings.catch_warnings():
            # Rows longer than the header would lose their last cells with no more than a warning.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            # Cells stay text here: the numbers are read exactly, and only from columns that are used.
            frame = pd.read_csv(
                path,
                sep=separator,
                dtype=str,
                encoding="utf-8-sig",
                index_col=False,
                keep_default_na=False,
                na_values=MISSING,
                skipinitialspace=True,
            )
    except (pd.errors.ParserError, pd.errors.ParserWarning, pd.errors.EmptyDataError, csv.Error) as error:
        raise DataError(
            f"{path}: not a table of {len(header)} columns ({_first_line(error)}); check quotes and separators, and that "
            "the first line holds the names of the columns"
        ) from error
    except UnicodeDecodeError as error:
        raise _encoding(path) from error
    frame.columns = pd.Index(header)
    filled = np.flatnonzero(frame.notna().any(axis=1))
    return frame.iloc[: filled[-1] + 1 if len(filled) else 0]  # spreadsheets write empty rows after the last


def header_line(path: Path) -> str:
    """The first line of a text table, or DataError."""
    _check_file(path)
    try:
        with path.open(encoding="utf-8-sig", newline=None) as stream:
            line = stream.readline(LONGEST_HEADER)
    except UnicodeDecodeError as error:
        raise _encoding(path) from error
    if "\0" in line:
        raise DataError(str(path), "text", "zero bytes (a binary or UTF-16 file)", "save it as CSV in UTF-8")
    if len(line) >= LONGEST_HEADER:
        raise DataError(
            str(path), f"a header of at most {LONGEST_HEADER} characters", "a longer one", "keep only the columns you need"
        )
    if not line.strip():
        raise DataError(str(path), "a header with the names of the columns in the first line", "an empty line", "add it")
    return line.rstrip("\n")


def likely_separator(header: str) -> str | None:
    """The separator that a header uses most, outside of names in quotes, which may hold any sign; None for one column."""
    outside = "".join(part for number, part in enumerate(header.split('"')) if number % 2 == 0)
    likely = max(SEPARATORS, key=outside.count)
    return likely if likely in outside else None


def _separator(path: Path, header: str, reading: Reading) -> str:
    """The separator asked for, or the ending's; a header that plainly uses another one is an error."""
    asked = {"tab": "\t", "\\t": "\t"}.get(reading.separator or "", reading.separator)
    if asked is not None and len(asked) != 1:
        raise DataError("--separator", "one character or 'tab'", repr(asked), "e.g. --separator ';'")
    likely = likely_separator(header)
    separator = asked or TEXT[path.suffix.lower()] or likely or ","
    if separator not in header and likely is not None:
        name = SEPARATORS.get(separator, separator)
        raise DataError(str(path), f"columns separated by a {name}", f"a header that uses a {SEPARATORS[likely]}",
                   f"add --separator {'tab' if likely == chr(9) else repr(likely)}")  # fmt: skip
    return separator


def _check_names(header: Sequence[str], path: Path) -> None:
    if len(header) > MOST_COLUMNS:
        raise DataError(str(path), f"at most {MOST_COLUMNS} columns", f"{len(header)}", "keep only the columns you need")
    twice = [name for name, count in Counter(header).items() if count > 1 and name]
    if twice:
        raise DataError(str(path), "column names that differ", f"{twice[0]!r} twice", "rename one of them")
    if header and all(_is_number(name) for name in header):
        raise DataError(
            str(path), "the names of the columns in the first line", f"numbers ({', '.join(header[:3])})", "add a header"
        )


def _encoding(path: Path) -> DataError:
    return DataError(str(path), "text in UTF-8", "another encoding", "save it as CSV in UTF-8")


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:160]


def as_csv(frame: pd.DataFrame) -> bytes:
    """The table as CSV with every digit of every number; names that spreadsheets would run get an apostrophe in front."""
    buffer = io.StringIO()
    header = [f"'{name}" if is_formula(str(name)) else str(name) for name in frame.columns]
    frame.to_csv(buffer, index=False, header=header, lineterminator="\n")
    return buffer.getvalue().encode("utf-8")


def is_formula(name: str) -> bool:
    """True for a column name that a spreadsheet would take for a formula."""
    return name.startswith(FORMULA_SIGNS)


def escape_note(names: Sequence[str]) -> str:
    """What was done to such names in a file, for the terminal; empty where there are none."""
    escaped = [name for name in names if is_formula(name)]
    if not escaped:
        return ""
    return (
        f"column names such as {escaped[0]!r} have an apostrophe in front, so that spreadsheets do not run them as formulas"
    )


def _unescaped(name: str) -> str:
    """A name as it was before ``as_csv`` put an apostrophe in front of it."""
    return name[1:] if name.startswith("'") and is_formula(name[1:]) else name
