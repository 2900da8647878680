"""``sumgp fit``: from a table and a law to a model, predictions and a report."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pandas as pd
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sumgp import report
from sumgp.cli import arguments
from sumgp.cli.outputs import check_folder, load_plotting, stages
from sumgp.cli.points import as_points, default_count, grid_over, points_from, require_filled
from sumgp.cli.tables import Reading, as_csv, escape_note, number_columns, read_table
from sumgp.estimator import KERNELS, STRATEGIES, ConstrainedGP, kernel_named, strategy_named
from sumgp.files import model_bytes, plain, write_files
from sumgp.laws import FormulaConstraint
from sumgp.numerics import threads_for

MODEL, PREDICTIONS, REPORT = "model.sumgp", "predictions.csv", "report.html"


def fit(
    data: Annotated[Path, typer.Argument(help="Table: CSV, TSV, Parquet or Excel. Empty cells are missing outputs.")],
    inputs: Annotated[str, typer.Option(help="Input columns, separated by commas.")],
    out: Annotated[Path, typer.Option(help="New folder for model, predictions and report.")],
    constraint: arguments.Laws = None,
    outputs: Annotated[str | None, typer.Option(help="Output columns; all other columns if left out.")] = None,
    constant: arguments.Constants = None,
    noise: Annotated[str, typer.Option(help="per-output, shared, or known standard deviation(s).")] = "per-output",
    strategy: Annotated[str | None, typer.Option(help=f"{', '.join(STRATEGIES)}; chosen from the law if left out.")] = None,
    kernel: Annotated[str | None, typer.Option(help=f"{', '.join(KERNELS)}; several are tried if left out.")] = None,
    at: Annotated[Path | None, typer.Option(help="Table with the inputs to predict at.")] = None,
    grid: Annotated[
        int | None,
        typer.Option(help="Number of points over the data's range, where --at is not given: 200, or 900 of a map."),
    ] = None,
    plug_in: arguments.PlugIn = False,
    separator: Annotated[str | None, typer.Option(help="Separator of the table's columns: , ; tab ...")] = None,
    decimal: Annotated[str, typer.Option(help="Decimal sign of the table's numbers.")] = ".",
    seed: Annotated[int, typer.Option(help="Seed: the same seed gives the same numbers.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Write into a folder that has files.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Fit a table under a law; writes model.sumgp, predictions.csv and report.html."""
    check_folder(out, force)
    console = Console(stderr=as_json)
    reading = Reading(separator, decimal)
    constants = arguments.constants(constant or [])
    chosen = chosen_columns(data, inputs, outputs, constants, reading)
    gp = model_of(constraint, constants, chosen, Settings(noise, strategy, kernel, plug_in, seed))
    x_names = chosen.inputs
    grid = default_count(len(x_names)) if grid is None else grid
    points = grid if at is None else points_from(at, [*x_names, *arguments.extra_columns(constants)], reading)
    title = f"{data.name}: {', '.join(chosen.outputs)} over {', '.join(x_names)}"
    found, files = _results(gp, chosen.frame, points, title, console)
    write_files(out, files)
    _tell_summary(console, found, [out / name for name in files], as_json)


def _results(
    gp: ConstrainedGP, frame: pd.DataFrame, points: pd.DataFrame | int, title: str, console: Console
) -> tuple[report.FitStudy, dict[str, bytes]]:
    """The fit with its scores at the prediction points, and the files with it."""
    with stages(console, "fit") as tell, threads_for(frame[list(gp.outputs or ())].size):
        found = fitted_study(gp, frame, points, title, tell)
        tell("report and files")
        load_plotting()
        return found, result_files(found, title)


def fitted_study(
    gp: ConstrainedGP, frame: pd.DataFrame, points: pd.DataFrame | int, title: str, tell: Callable[[str], None]
) -> report.FitStudy:
    """Fit the columns of a table and score the fit at points of another, or at so many over the range of the data."""
    outputs = list(gp.outputs or ())
    _, told = report.caught(lambda: gp.fit(frame.drop(columns=outputs), frame[outputs], progress=tell))
    gp.fit_report_.details.update(title=title, warnings=list(told))  # for the report, also when it is written again
    at = grid_over(gp.data_, points) if isinstance(points, int) else as_points(gp, points)
    return report.study(gp, at, told, tell)


def _tell_summary(console: Console, found: report.FitStudy, files: list[Path], as_json: bool) -> None:
    if as_json:
        numbers = {**report.as_numbers(found), "files": list(map(str, files))}
        typer.echo(json.dumps(plain(numbers, lambda value: None), indent=2))  # NaN and infinities become null
        return
    print_summary(console, found, files)
    data = found.model.data_
    if note := escape_note([*data.input_names, *data.extra_columns, *data.output_names]):
        console.print(f"{PREDICTIONS}: {note}", markup=False, highlight=False)


class Chosen(NamedTuple):
    """The columns to fit as numbers and dates, the names of inputs and outputs, and all names of the file."""

    frame: pd.DataFrame
    inputs: list[str]
    outputs: list[str]
    available: list[str]


class Settings(NamedTuple):
    """How to fit, in the words of the command line."""

    noise: str
    strategy: str | None
    kernel: str | None
    plug_in: bool
    seed: int


def model_of(laws: list[str] | None, constants: dict[str, Any], chosen: Chosen, how: Settings) -> ConstrainedGP:
    """The model that a command line asks for; an error names what it got wrong."""
    if laws:
        FormulaConstraint(laws, constants).check_columns(chosen.outputs, chosen.inputs, chosen.available)
    return ConstrainedGP(
        list(laws) if laws else None,
        outputs=chosen.outputs,
        inputs=chosen.inputs,
        constants=constants or None,
        kernel=kernel_named(how.kernel, "--kernel"),
        noise=arguments.noise(how.noise),
        strategy=strategy_named(how.strategy, "--strategy"),
        uncertainty="plug-in" if how.plug_in else "integrated",
        random_state=how.seed,
    )


def chosen_columns(path: Path, inputs: str, outputs: str | None, constants: dict[str, Any], reading: Reading) -> Chosen:
    """The numbers of the named columns: inputs, columns that constants refer to, outputs."""
    table = read_table(path, reading)
    x_names, extra = arguments.names(inputs, "--inputs"), arguments.extra_columns(constants)
    others = [str(name) for name in table.columns if name not in (*x_names, *extra)]
    y_names = others if outputs is None else arguments.names(outputs, "--outputs")
    both = set(x_names) & set(y_names)
    if both:
        from sumgp.errors import DataError

        raise DataError("--outputs", "columns that are not inputs", f"{min(both)!r} in both", "remove it from one")
    wanted = list(dict.fromkeys([*x_names, *extra, *y_names]))
    frame = number_columns(table, wanted, str(path), reading.decimal, may_be_dates=x_names)
    needed = list(dict.fromkeys([*x_names, *extra]))
    require_filled(frame, needed, str(path))
    return Chosen(frame, x_names, y_names, [str(name) for name in table.columns])


def result_files(found: report.FitStudy, title: str) -> dict[str, bytes]:
    """Everything a fit leaves behind."""
    return {
        MODEL: model_bytes(found.model),
        PREDICTIONS: as_csv(found.posterior.to_frame()),
        REPORT: report.render_fit(found, title).encode(),
    }


def print_summary(console: Console, found: report.FitStudy, files: Sequence[Path]) -> None:
    """Data, law as understood, scores with and without the law, verdict, advice, files."""
    for name, value in report.data_facts(found):
        console.print(f"{name + ':':<19}{value}", markup=False, highlight=False)
    console.print("the law as understood", style="bold")
    for line in found.law_text.splitlines():
        console.print(f"  {line}", markup=False, highlight=False)
    for table in report.score_tables(found):
        console.print(rich_table(table))
    console.print(report.verdict(found).text, markup=False, highlight=False, style="bold")
    for entry in report.advice(found):
        mark, style = ("ok", "green") if entry.good else ("look", "yellow")
        console.print(f"{mark}: {entry.finding} {entry.remedy}".rstrip(), markup=False, highlight=False, style=style)
    for path in files:
        console.print(f"written: {path}", markup=False, highlight=False, soft_wrap=True)


def rich_table(table: report.PlainTable) -> Table:
    """The table of a page for the terminal."""
    made = Table(title=table.title, title_justify="left", title_style="bold")
    for position, name in enumerate(table.header):
        # Other headers break between their words; this one would lose its sign.
        made.add_column(name, justify="left" if position == 0 else "right", overflow="fold", no_wrap=name.endswith("%"))
    for number, row in enumerate(table.rows):
        # Names of columns are text, not markup.
        made.add_row(*(Text(cell, "bold" if (number, i) in table.best else "") for i, cell in enumerate(row)))
    return made
