"""One fit of a table: model, predictions, report, and the sections that the page shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sumgp.app.choice import Choice, choice_from
from sumgp.app.reading import TABLE
from sumgp.cli import arguments
from sumgp.cli.points import grid_over, require_filled
from sumgp.cli.tables import as_csv, number_columns
from sumgp.estimator import ConstrainedGP
from sumgp.files import model_bytes, write_files
from sumgp.numerics import threads_for
from sumgp.report import caught, render_fit, render_fit_body, study

MODEL, PREDICTIONS, COMPLETED = "model.sumgp", "predictions.csv", "completed.csv"
REPORT, BODY = "report.html", "body.html"
LINE_POINTS, MAP_POINTS = 200, 900  # over one input, and over two


def fit_table(folder: Path, task: dict[str, Any], tell: Callable[[str], None]) -> dict[str, Any]:
    """Fit ``task["table"]`` as chosen; the folder then has everything that can be looked at and downloaded."""
    choice = choice_from(task["choice"])
    tell("reading the table")
    frame = chosen_columns(pd.read_csv(Path(task["table"]) / TABLE), choice, task["shown"])
    gp = estimator(choice)
    with threads_for(frame[list(choice.outputs)].size):
        _, told = caught(
            lambda: gp.fit(frame.drop(columns=list(choice.outputs)), frame[list(choice.outputs)], progress=tell)
        )
        title = f"{task['shown']}: {', '.join(choice.outputs)} over {', '.join(choice.inputs)}"
        gp.fit_report_.details.update(title=title, warnings=list(told))
        found = study(gp, grid_over(gp.data_, grid_size(choice)), told, tell)
        tell("figures and files")
        files = {
            MODEL: model_bytes(gp),
            PREDICTIONS: as_csv(found.posterior.to_frame()),
            REPORT: render_fit(found, title).encode(),
            BODY: render_fit_body(found).encode(),
        }
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


def grid_size(choice: Choice) -> int:
    """Points at which a fit is shown."""
    return MAP_POINTS if len(choice.inputs) == 2 else LINE_POINTS


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
