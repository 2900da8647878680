"""``sumgp complete``: a table with gaps to the same table with every gap filled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer
from rich.console import Console

from sumgp.cli import arguments
from sumgp.cli.fit import Settings, chosen_columns, model_of
from sumgp.cli.outputs import check_file, stages
from sumgp.cli.tables import Reading, as_csv, escape_note
from sumgp.estimator import KERNELS, STRATEGIES, ConstrainedGP
from sumgp.files import write_file
from sumgp.numerics import threads_for
from sumgp.prediction import Completion
from sumgp.report import caught


def complete(
    data: Annotated[Path, typer.Argument(help="Table: CSV, TSV, Parquet or Excel. Empty cells are the gaps.")],
    inputs: Annotated[str, typer.Option(help="Input columns, separated by commas.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="CSV file to write.")],
    constraint: Annotated[
        list[str] | None, typer.Option("--law", "--constraint", "-c", help='Law, e.g. "a + b = 1"; may be repeated.')
    ] = None,
    outputs: Annotated[str | None, typer.Option(help="Output columns; all other columns if left out.")] = None,
    constant: Annotated[
        list[str] | None, typer.Option(help="NAME=NUMBER, NAME=unknown or NAME=COLUMN; may be repeated.")
    ] = None,
    noise: Annotated[str, typer.Option(help="per-output, shared, or known standard deviation(s).")] = "per-output",
    strategy: Annotated[str | None, typer.Option(help=f"{', '.join(STRATEGIES)}; chosen from the law if left out.")] = None,
    kernel: Annotated[str | None, typer.Option(help=f"{', '.join(KERNELS)}; several are tried if left out.")] = None,
    level: Annotated[float, typer.Option(help="Probability inside the intervals.")] = 0.95,
    smooth: Annotated[
        bool, typer.Option("--smooth-measured", help="Replace measured cells by the estimated true values too.")
    ] = False,
    plug_in: Annotated[
        bool, typer.Option("--plug-in", help="Do not average over hyperparameters: faster, bands narrower.")
    ] = False,
    separator: Annotated[str | None, typer.Option(help="Separator of the table's columns: , ; tab ...")] = None,
    decimal: Annotated[str, typer.Option(help="Decimal sign of the table's numbers.")] = ".",
    seed: Annotated[int, typer.Option(help="Seed: the same seed gives the same numbers.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
) -> None:
    """Fill the gaps of a table from a fit, the cells measured in the same row, and a law.

    Writes each output's value, sd, lower, upper, and its source: "measured", "law" (fixed by the law from the measured cells
    of the row) or "fit". Measured cells stay as they are. sd and interval are those of a measurement, noise included.
    """
    check_file(out, force)
    console = Console(stderr=as_json)
    constants = arguments.constants(constant or [])
    chosen = chosen_columns(data, inputs, outputs, constants, Reading(separator, decimal))
    gp = model_of(constraint, constants, chosen, Settings(noise, strategy, kernel, plug_in, seed))
    _say(console, as_json, *_filled(gp, chosen.frame, (level, smooth), console, out), out)


def _filled(
    gp: ConstrainedGP, frame: pd.DataFrame, how: tuple[float, bool], console: Console, out: Path
) -> tuple[Completion, list[str]]:
    """Fit, fill and write the file; also the warnings. ``how``: level, and whether measured cells are smoothed."""
    names = list(gp.outputs or ())
    X, Y = frame.drop(columns=names), frame[names]
    with stages(console, "reading") as tell, threads_for(Y.size):
        _, told = caught(lambda: gp.fit(X, Y, progress=tell))
        tell("filling gaps")
        done, more = caught(lambda: gp.completion(X, Y, level=how[0], smooth_measured=how[1]))
        write_file(out, as_csv(done.to_frame()))
    if note := escape_note([*frame.columns]):
        told = (*told, note)
    return done, [*told, *more]


def _say(console: Console, as_json: bool, done: Completion, warned: list[str], out: Path) -> None:
    """What was filled, what to look at, and where it is."""
    gaps, by_law = int((~done.measured).sum()), int(done.determined.sum())
    if as_json:
        found = {"rows": len(done.mean), "gaps": gaps, "determined_by_law": by_law, "warnings": warned, "file": str(out)}
        typer.echo(json.dumps(found, indent=2))
        return
    console.print(f"{len(done.mean)} rows, {gaps} gaps filled, {by_law} of them determined by the law", highlight=False)
    for text in warned:
        console.print(f"look: {text}", markup=False, highlight=False, style="yellow")
    console.print(f"written: {out}", markup=False, highlight=False, soft_wrap=True)
