"""One fit of a table with all its files, and values of the fitted model at points that a person gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sumgp.app.choice import Choice, choice_from
from sumgp.app.reading import TABLE, points_table
from sumgp.cli import arguments
from sumgp.cli.fit import MODEL, fitted_study, result_files
from sumgp.cli.points import as_points, default_count, points_from, require_filled
from sumgp.cli.tables import Reading, as_csv, number_columns
from sumgp.errors import DataError
from sumgp.estimator import ConstrainedGP
from sumgp.files import load, write_files
from sumgp.numerics import threads_for
from sumgp.report import render_fit_body

COMPLETED, BODY = "completed.csv", "body.html"


def fit_table(folder: Path, task: dict[str, Any], tell: Callable[[str], None]) -> dict[str, Any]:
    """Fit ``task["table"]`` as chosen; the folder then has everything that can be looked at and downloaded."""
    choice = choice_from(task["choice"])
    tell("reading the table")
    frame = chosen_columns(pd.read_csv(Path(task["table"]) / TABLE), choice, task["shown"])
    gp = estimator(choice)
    with threads_for(frame[list(choice.outputs)].size):
        title = f"{task['shown']}: {', '.join(choice.outputs)} over {', '.join(choice.inputs)}"
        found = fitted_study(gp, frame, default_count(len(choice.inputs)), title, tell)
        tell("figures and files")
        files = {**result_files(found, title), BODY: render_fit_body(found).encode()}
        if frame[list(choice.outputs)].isna().any(axis=None):
            files[COMPLETED] = as_csv(gp.complete(frame.drop(columns=list(choice.outputs)), frame[list(choice.outputs)]))
        write_files(folder, files)
    return {"points_like": _examples(gp.data_.x)}


def estimator(choice: Choice) -> ConstrainedGP:
    """The estimator behind a choice."""
    return ConstrainedGP(
        choice.law or None,
        outputs=list(choice.outputs),
        inputs=list(choice.inputs),
        constants=choice.values or None,
        kernel=choice.kernel or None,
        noise=arguments.noise(choice.noise or "per-output"),
        uncertainty="plug-in" if choice.quick else "integrated",
    )


def chosen_columns(table: pd.DataFrame, choice: Choice, shown: str) -> pd.DataFrame:
    """The numbers of the chosen columns; inputs and columns of the law must be filled."""
    needed = [*choice.inputs, *choice.extra]
    frame = number_columns(table, [*needed, *choice.outputs], shown)
    require_filled(frame, needed, shown)
    return frame


def _examples(x: np.ndarray) -> list[list[float]]:
    """Three rows to start from where values are asked for: the first, the middle and the last."""
    ordered = np.unique(x, axis=0)
    return [[float(v) for v in ordered[i]] for i in dict.fromkeys([0, len(ordered) // 2, len(ordered) - 1])]


VALUES, POINTS = "values.csv", "points.csv"
SHOWN = 200  # rows on the page; the file has all


def values_at(folder: Path, task: dict[str, Any]) -> dict[str, Any]:
    """Predict at the rows typed, or at those of a file; the table for the page, and all of it as a file."""
    gp = load(Path(task["fit"]) / MODEL)
    names = [*gp.data_.input_names, *gp.data_.extra_columns]
    path = folder / (task["file"] or POINTS)
    if not task["file"]:
        path.write_bytes(points_table(task["text"], names))
    try:
        points = as_points(gp, points_from(path, names, Reading()))
    except DataError as error:
        raise DataError(str(error).replace(str(path), task["shown"] or "points")) from error
    if len(points) > task["points"]:
        raise DataError("points", f"at most {task['points']}", str(len(points)), "ask for them in several parts")
    posterior = gp.posterior(points)
    frame = posterior.to_frame()
    (folder / VALUES).write_bytes(as_csv(frame))
    low, high = gp.data_.x.min(axis=0), gp.data_.x.max(axis=0)
    D = gp.data_.n_inputs
    beyond = int(np.any((points[:, :D] < low[:D]) | (points[:, :D] > high[:D]), axis=1).sum())
    rows = [[f"{v:.5g}" for v in row] for row in frame.to_numpy()[:SHOWN]]
    return {"header": [str(name) for name in frame.columns], "rows": rows, "total": len(frame), "beyond": beyond}
