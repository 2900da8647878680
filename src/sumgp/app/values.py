"""Values of a fitted model at points that a person gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sumgp.app.fitting import MODEL
from sumgp.app.reading import points_table
from sumgp.cli.points import as_points, points_from
from sumgp.cli.tables import Reading, as_csv
from sumgp.errors import DataError, worded
from sumgp.files import load

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
        raise DataError(worded("points", f"at most {task['points']}", str(len(points)), "ask in several parts"))
    posterior = gp.posterior(points)
    frame = posterior.to_frame()
    (folder / VALUES).write_bytes(as_csv(frame))
    low, high = gp.data_.x.min(axis=0), gp.data_.x.max(axis=0)
    D = gp.data_.n_inputs
    beyond = int(np.any((points[:, :D] < low[:D]) | (points[:, :D] > high[:D]), axis=1).sum())
    rows = [[f"{v:.5g}" for v in row] for row in frame.to_numpy()[:SHOWN]]
    return {"header": [str(name) for name in frame.columns], "rows": rows, "total": len(frame), "beyond": beyond}
