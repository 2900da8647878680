"""``sumgp predict``: a saved model at new inputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from sumgp.cli.outputs import check_file, stages
from sumgp.cli.points import as_points, points_from
from sumgp.cli.tables import Reading, as_csv, escape_note
from sumgp.files import load, write_file


def predict(
    model: Annotated[Path, typer.Argument(help="Model file written by 'sumgp fit' or ConstrainedGP.save.")],
    new: Annotated[Path, typer.Argument(help="Table with the inputs to predict at.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="CSV file to write.")],
    level: Annotated[float, typer.Option(help="Probability inside the intervals.")] = 0.95,
    separator: Annotated[str | None, typer.Option(help="Separator of the table's columns: , ; tab ...")] = None,
    decimal: Annotated[str, typer.Option(help="Decimal sign of the table's numbers.")] = ".",
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
) -> None:
    """Predict mean, sd, lower and upper of each output, and the law's residual, at the rows of a table."""
    check_file(out, force)
    console = Console(stderr=as_json)
    with stages(console, "loading") as tell:
        gp = load(model)
        names = [*gp.data_.input_names, *gp.data_.extra_columns]
        points = as_points(gp, points_from(new, names, Reading(separator, decimal)))
        tell("predictions")
        posterior = gp.posterior(points)
        write_file(out, as_csv(posterior.to_frame(level)))
    worst = float(np.abs(posterior.residual()).max()) if gp.law_ is not None else None
    if as_json:
        typer.echo(
            json.dumps(
                {"rows": len(points), "outputs": list(posterior.output_names), "worst_violation": worst, "file": str(out)}
            )
        )
        return
    law = "" if worst is None else f"; the law holds to within {worst:.1e}"
    console.print(f"{len(points)} rows predicted{law}", highlight=False)
    if note := escape_note([*gp.data_.input_names, *gp.data_.extra_columns, *posterior.output_names]):
        console.print(note, markup=False, highlight=False)
    console.print(f"written: {out}", markup=False, highlight=False, soft_wrap=True)
