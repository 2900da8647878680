"""``sumgp report``: write the report of a folder again, of a fit or of a reproduction."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sumgp.cli.fit import MODEL, PREDICTIONS, REPORT
from sumgp.cli.outputs import stages
from sumgp.cli.points import as_points, default_count, grid_over, points_from
from sumgp.cli.tables import Reading
from sumgp.errors import DataError
from sumgp.files import load, write_files
from sumgp.report import render_fit, study

RECORDS = "records.jsonl"


def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a fit (model.sumgp) or of a reproduction (records.jsonl).")],
    figures: Annotated[bool, typer.Option("--figures", help="Of a reproduction: fit and draw its figures again.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the files written as JSON.")] = False,
) -> None:
    """Write report.html of a folder again, from the model or the records in it."""
    console = Console(stderr=as_json)
    if (folder / MODEL).is_file():
        _of_fit(folder, console)
    elif (folder / RECORDS).is_file():
        # The studies are loaded only where their records are to be read.
        import_module("sumgp_studies.commands.records_report").write_records_report(folder, console, figures)
    else:
        raise DataError("folder", f"one with {MODEL} or {RECORDS}", f"{str(folder)!r} without them", "check the path")
    if as_json:
        typer.echo(json.dumps({"files": [str(folder / REPORT)]}))
    else:
        console.print(f"written: {folder / REPORT}", markup=False, highlight=False, soft_wrap=True)


def _of_fit(folder: Path, console: Console) -> None:
    with stages(console, "loading") as tell:
        gp = load(folder / MODEL)
        names = [*gp.data_.input_names, *gp.data_.extra_columns]
        asked = folder / PREDICTIONS
        points = (
            as_points(gp, points_from(asked, names, Reading()))
            if asked.is_file()
            else grid_over(gp.data_, default_count(gp.data_.n_inputs))
        )
        details = gp.fit_report_.details
        found = study(gp, points, tuple(details.get("warnings", ())), tell)
        tell("report")
        words = f"{', '.join(gp.data_.output_names)} over {', '.join(gp.data_.input_names)}"
        page = render_fit(found, details.get("title", words))
    write_files(folder, {REPORT: page.encode()})
