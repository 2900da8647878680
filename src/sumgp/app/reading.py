"""From the file that was given to a table of numbers and words."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from sumgp.app.choice import Column, TableInfo
from sumgp.cli.tables import TEXT, Reading, as_csv, header_line, likely_separator, number_columns, read_table
from sumgp.errors import DataError

TABLE = "table.csv"
SHOWN = 4  # cells of a column on the page
LONGEST_CELL = 24  # characters of a cell on the page
UNPACKED_BYTES = 300_000_000  # of a workbook: about fifteen times the largest upload, as XML unpacks


def read_upload(folder: Path, task: dict[str, Any]) -> dict[str, Any]:
    """Read ``task["file"]`` of the folder, write ``table.csv`` and describe the columns; errors speak of the user's name."""
    path = folder / task["file"]
    try:
        frame, info = _table(path, task)
    except DataError as error:
        raise DataError(str(error).replace(str(path), task["shown"])) from error
    (folder / TABLE).write_bytes(as_csv(frame))
    return {"info": asdict(info)}


def _check_unpacked(path: Path) -> None:
    """Refuse a workbook that would become huge: a few megabytes can hold gigabytes of one letter."""
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as packed:
        size = sum(part.file_size for part in packed.infolist())
    if size > UNPACKED_BYTES:
        got = f"{size / 1e6:.0f} MB"
        raise DataError(str(path), f"at most {UNPACKED_BYTES / 1e6:.0f} MB unpacked", got, "save the table as CSV")


def _table(path: Path, task: dict[str, Any]) -> tuple[pd.DataFrame, TableInfo]:
    _check_unpacked(path)
    separator = likely_separator(header_line(path)) if path.suffix in TEXT else None
    frame = read_table(path, Reading(separator))
    for name, count, most in (("rows", len(frame), task["rows"]), ("columns", len(frame.columns), task["columns"])):
        if count > most:
            raise DataError(str(path), f"at most {most} {name}", str(count), "keep only those you need")
    if any(not name for name in frame.columns):
        raise DataError(str(path), "a name for every column in the first line", "an empty one", "name the column")
    marks = (".", ",") if path.suffix in TEXT else (".",)
    numeric = {mark: {name: _as_numbers(frame, name, mark) for name in frame.columns} for mark in marks}
    decimal = max(marks, key=lambda mark: sum(values is not None for values in numeric[mark].values()))
    found = {n: _Numbers(frame[n].astype(str)) if v is None else _Numbers(v) for n, v in numeric[decimal].items()}
    found |= {n: dates for n, v in numeric[decimal].items() if v is None and (dates := _days(frame[n])) is not None}
    if not any(numbers.is_number for numbers in found.values()):
        raise DataError(str(path), "at least one column of numbers", "words in every column", "check the file")
    table = pd.DataFrame({name: numbers.values for name, numbers in found.items()})
    columns = tuple(_described(name, frame[name], numbers) for name, numbers in found.items())
    return table, TableInfo(len(frame), columns, _reading(path, separator, decimal))


class _Numbers(NamedTuple):
    """A column as it is used: numbers, or words; ``origin`` is the day from which dates are counted."""

    values: Any
    origin: str = ""

    @property
    def is_number(self) -> bool:
        return isinstance(self.values, np.ndarray)


def _days(column: pd.Series) -> _Numbers | None:
    """Dates as (n,) days since the first of them, NaN for empty cells; None where a cell is no date."""
    try:
        dates = pd.to_datetime(column, format=None if pd.api.types.is_datetime64_any_dtype(column) else "ISO8601")
        first = dates.min()
        days = ((dates - first) / pd.Timedelta(days=1)).to_numpy(dtype=float)
    except (ValueError, TypeError, OverflowError):
        return None
    return None if np.isnan(days).all() else _Numbers(days, first.isoformat())


def _as_numbers(frame: pd.DataFrame, name: str, decimal: str) -> np.ndarray | None:
    """(n,) numbers with NaN for empty cells, or None where a cell is a word."""
    try:
        return number_columns(frame, [name], "", decimal)[name].to_numpy()
    except DataError:
        return None


def _described(name: str, column: pd.Series, numbers: _Numbers) -> Column:
    first = tuple("" if pd.isna(cell) else _short(str(cell)) for cell in column.iloc[:SHOWN])
    missing = int(column.isna().sum())
    if not numbers.is_number or np.isnan(numbers.values).all():
        return Column(name, numbers.is_number, missing, "", "", first)
    low, high = np.nanmin(numbers.values), np.nanmax(numbers.values)
    return Column(name, True, missing, f"{low:.6g}", f"{high:.6g}", first, numbers.origin)


def _short(cell: str) -> str:
    return cell if len(cell) <= LONGEST_CELL else cell[: LONGEST_CELL - 1] + "\u2026"


def _reading(path: Path, separator: str | None, decimal: str) -> dict[str, Any]:
    """Arguments of pandas that read the same numbers."""
    if path.suffix not in TEXT:
        return {}
    arguments: dict[str, Any] = {}
    if separator not in (None, ","):
        arguments["sep"] = separator
    if decimal != ".":
        arguments["decimal"] = decimal
    return {**arguments, "skipinitialspace": True, "na_values": ["-", "?"]}


def points_table(text: str, names: Sequence[str]) -> bytes:
    """Rows of numbers as typed, one a line, as CSV with a header; DataError names the line that is no such row."""
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        cells = [cell for cell in line.replace(";", " ").replace("\t", " ").replace(",", " ").split() if cell]
        if len(cells) != len(names):
            expected = f"{len(names)} number{'s' if len(names) > 1 else ''} ({', '.join(names)})"
            raise DataError(f"line {number}", expected, repr(line.strip()[:40]), "separate them by spaces")
        rows.append(cells)
    if not rows:
        raise DataError("points", "at least one line of numbers", "nothing", "type one value per line, for example")
    return as_csv(pd.DataFrame(rows, columns=list(names)))
