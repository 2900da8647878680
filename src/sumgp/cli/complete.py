"""``sumgp complete``: a table with gaps to the same table with every gap filled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from rich.console import Console

from sumgp.cli import arguments
from sumgp.cli.fit import Settings, chosen_columns, model_of
from sumgp.cli.outputs import check_file, stages
from sumgp.cli.tables import Reading, as_csv, escape_note, read_table
from sumgp.errors import DataError
from sumgp.estimator import KERNELS, STRATEGIES, ConstrainedGP
from sumgp.files import write_file
from sumgp.numerics import threads_for
from sumgp.prediction import Completion
from sumgp.report import caught

LARGEST_WHOLE = 2.0**53  # whole numbers below are doubles without error


def complete(
    data: Annotated[Path, typer.Argument(help="Table: CSV, TSV, Parquet or Excel. Empty cells are the gaps.")],
    inputs: Annotated[str, typer.Option(help="Input columns, separated by commas.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="CSV file to write.")],
    constraint: arguments.Laws = None,
    outputs: Annotated[str | None, typer.Option(help="Output columns; all other columns if left out.")] = None,
    constant: arguments.Constants = None,
    noise: Annotated[str, typer.Option(help="per-output, shared, or known standard deviation(s).")] = "per-output",
    strategy: Annotated[str | None, typer.Option(help=f"{', '.join(STRATEGIES)}; chosen from the law if left out.")] = None,
    kernel: Annotated[str | None, typer.Option(help=f"{', '.join(KERNELS)}; several are tried if left out.")] = None,
    level: Annotated[float, typer.Option(help="Probability inside the intervals.")] = 0.95,
    smooth: Annotated[
        bool, typer.Option("--smooth-measured", help="Replace measured cells by the estimated true values too.")
    ] = False,
    plug_in: arguments.PlugIn = False,
    separator: Annotated[str | None, typer.Option(help="Separator of the table's columns: , ; tab ...")] = None,
    decimal: Annotated[str, typer.Option(help="Decimal sign of the table's numbers.")] = ".",
    panel: Annotated[
        str | None, typer.Option(help="Column that tells series apart, such as a country: each is fitted on its own.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed: the same seed gives the same numbers.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
) -> None:
    """Fill the gaps of a table from a fit, the cells measured in the same row, and a law.

    Writes each output's value, sd, lower, upper, and its source: "measured", "law" (fixed by the law from the measured cells
    of the row) or "fit". Measured cells stay as they are. sd and interval are those of a measurement, noise included.
    """
    check_file(out, force)
    console, constants = Console(stderr=as_json), arguments.constants(constant or [])
    reading, settings = Reading(separator, decimal), Settings(noise, strategy, kernel, plug_in, seed)
    labels = None if panel is None else _labels(data, panel, reading)
    if panel is not None and outputs is None:
        taken = {panel, *arguments.names(inputs, "--inputs"), *arguments.extra_columns(constants)}
        outputs = ",".join(f"`{name}`" for name in read_table(data, reading).columns if name not in taken)
    chosen = chosen_columns(data, inputs, outputs, constants, reading)
    parts = []
    for label, rows in _series(labels, len(chosen.frame)):
        gp, how = model_of(constraint, constants, chosen, settings), (level, smooth)
        parts.append((label, *_filled(gp, chosen.frame[rows], how, console)))
    write_file(out, as_csv(_table(parts, panel, chosen.frame, labels)))
    warned = [f"{label}: {text}" if label else text for label, _, told in parts for text in told]
    _say(console, as_json, [done for _, done, _ in parts], [*warned, escape_note([*chosen.frame.columns])], out)


def _labels(data: Path, panel: str, reading: Reading) -> pd.Series:
    """Which series each row belongs to, as text."""
    table = read_table(data, reading)
    if panel not in table.columns:
        names = ", ".join(map(str, table.columns))
        raise DataError("--panel", f"a column of {data}", repr(panel), f"choose one of {names}")
    if table[panel].isna().any():
        row = int(np.flatnonzero(table[panel].isna())[0]) + 1
        raise DataError(str(data), f"a name in every row of column {panel!r}", f"an empty cell in row {row}", "fill it in")
    return table[panel].astype(str)


def _series(labels: pd.Series | None, count: int) -> list[tuple[str, np.ndarray]]:
    """Each series' name and rows; one without a name if the table is no panel."""
    if labels is None:
        return [("", np.ones(count, dtype=bool))]
    return [(label, labels.to_numpy() == label) for label in dict.fromkeys(labels)]


def _table(
    parts: list[tuple[str, Completion, list[str]]], panel: str | None, given: pd.DataFrame, labels: pd.Series | None
) -> pd.DataFrame:
    """All series in the order of the rows given; inputs that are whole numbers are written as such."""
    series = _series(labels, len(given))
    frames = [done.to_frame().set_index(given.index[rows]) for (_, done, _), (_, rows) in zip(parts, series, strict=True)]
    table = pd.concat(frames).loc[given.index]
    for name in [name for name in given.columns if name in table.columns and name not in parts[0][1].output_names]:
        if (
            pd.api.types.is_float_dtype(table[name])
            and np.all(table[name] % 1 == 0)
            and table[name].abs().max() < LARGEST_WHOLE
        ):
            table[name] = table[name].astype("int64")
    if panel is not None and labels is not None:
        table.insert(0, panel, labels.to_numpy())
    return table


def _filled(
    gp: ConstrainedGP, frame: pd.DataFrame, how: tuple[float, bool], console: Console
) -> tuple[Completion, list[str]]:
    """Fit and fill; also the warnings. ``how``: level, and whether measured cells are smoothed."""
    names = list(gp.outputs or ())
    X, Y = frame.drop(columns=names), frame[names]
    with stages(console, "reading") as tell, threads_for(Y.size):
        _, told = caught(lambda: gp.fit(X, Y, progress=tell))
        tell("filling gaps")
        done, more = caught(lambda: gp.completion(X, Y, level=how[0], smooth_measured=how[1]))
    return done, [*told, *more]


def _say(console: Console, as_json: bool, parts: list[Completion], warned: list[str], out: Path) -> None:
    """What was filled, what to look at, and where it is."""
    warned = [text for text in warned if text]
    rows = sum(len(done.mean) for done in parts)
    gaps, by_law = (
        sum(int(a.sum()) for a in cells) for cells in ([~d.measured for d in parts], [d.determined for d in parts])
    )
    if as_json:
        found = {"rows": rows, "gaps": gaps, "determined_by_law": by_law, "warnings": warned, "file": str(out)}
        typer.echo(json.dumps(found, indent=2))
        return
    console.print(f"{rows} rows, {gaps} gaps filled, {by_law} of them determined by the law", highlight=False)
    for text in warned:
        console.print(f"look: {text}", markup=False, highlight=False, style="yellow")
    console.print(f"written: {out}", markup=False, highlight=False, soft_wrap=True)
