"""Where a fitted model is asked: the rows of a table, or a grid over the data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from sumgp.cli.tables import Reading, number_columns, read_table
from sumgp.data import Data, read_columns
from sumgp.errors import DataError
from sumgp.estimator import ConstrainedGP

MOST_POINTS = 1_000_000  # of a grid: more is taken for a typo


def points_from(path: Path, names: Sequence[str], reading: Reading) -> pd.DataFrame:
    """(n, D + E) inputs, and columns that the law needs, from a table; every cell must be filled."""
    frame = number_columns(read_table(path, reading), names, str(path), reading.decimal, may_be_dates=names)
    require_filled(frame, names, str(path))
    return frame


def as_points(gp: ConstrainedGP, frame: pd.DataFrame) -> np.ndarray:
    """(n, D + E) numbers that a fitted model takes, dates in the unit of its data."""
    names = [*gp.data_.input_names, *gp.data_.extra_columns]
    return read_columns(frame, names, "the table of points", gp.calendar_).table[names].to_numpy(dtype=float)


def require_filled(frame: pd.DataFrame, names: Sequence[str], source: str) -> None:
    """Inputs may not be missing; the error names row and column."""
    empty = np.argwhere(frame[list(names)].isna().to_numpy())
    if len(empty):
        row, column = empty[0]
        raise DataError(
            source, f"a value in every row of {names[column]!r}", f"an empty cell in row {row + 1}", "drop that row"
        )


def default_count(n_inputs: int) -> int:
    """Points of a grid where none is asked for: a map needs more of them than a curve."""
    return 900 if n_inputs == 2 else 200


def grid_over(data: Data, count: int) -> np.ndarray:
    """About ``count`` points over the range of the data.

    One or two inputs: evenly spaced. More inputs, or a law with columns of its own (known at the data only): the rows.
    """
    if not 2 <= count <= MOST_POINTS:
        raise DataError("--grid", f"a number of points from 2 to {MOST_POINTS}", str(count), "e.g. --grid 200")
    low, high = data.x.min(axis=0), data.x.max(axis=0)
    if data.extra_columns or data.n_inputs > 2:
        return np.unique(data.x, axis=0)
    if data.n_inputs == 1:
        return np.linspace(low, high, count)
    side = max(2, round(float(np.sqrt(count))))
    axes = np.meshgrid(*(np.linspace(a, b, side) for a, b in zip(low, high, strict=True)), indexing="ij")
    return np.column_stack([axis.ravel() for axis in axes])
