"""Two inputs: each output as a map, with the law, without it, and how sure it is."""

from __future__ import annotations

import numpy as np

from sumgp.prediction import Posterior
from sumgp.report.drawing import Map, Panel, Points
from sumgp.report.fit_study import FitStudy
from sumgp.report.style import Theme

MAP_COLUMNS = 3  # maps side by side: those of one output in a row
MOST_MAPPED = 4  # outputs
MAPS = (
    "Each output as a map over both inputs: with the law, without it in the same colours, and the standard deviation of the "
    "fit with the law. Dots are the measured rows."
)


def is_map(posterior: Posterior) -> bool:
    """True where the predictions stand on a full grid over two inputs."""
    if posterior.data.n_inputs != 2:
        return False
    sides = [len(np.unique(posterior.x[:, i])) for i in (0, 1)]
    return min(sides) > 1 and sides[0] * sides[1] == len(posterior.x) == len(np.unique(posterior.x[:, :2], axis=0))


def map_panels(found: FitStudy, theme: Theme) -> list[Panel]:
    """Three panels an output; the first outputs where there are many."""
    posterior, second = found.posterior, found.posterior.data.input_names[1]
    panels = []
    for t, name in enumerate(found.outputs[:MOST_MAPPED]):
        plain = posterior.mean if found.plain is None else found.plain.mean
        both = np.concatenate([posterior.mean[:, t], plain[:, t]])
        limits = float(both.min()), float(both.max())
        rows = _measured(posterior, t, theme)
        own = _map(posterior, posterior.mean[:, t], *limits)
        panels.append(Panel((own, rows), second, title=f"{name}, with the law" if found.violation is not None else name))
        if found.plain is not None:
            panels.append(Panel((_map(posterior, plain[:, t], *limits), rows), second, title=f"{name}, without the law"))
        sd = posterior.std[:, t]
        panels.append(Panel((_map(posterior, sd, 0.0, float(sd.max())), rows), second, title=f"{name}, standard deviation"))
    return panels


def _map(posterior: Posterior, values: np.ndarray, low: float, high: float) -> Map:
    """``values`` (n,) at the points of the grid, whatever their order."""
    x, y = np.unique(posterior.x[:, 0]), np.unique(posterior.x[:, 1])
    order = np.lexsort((posterior.x[:, 0], posterior.x[:, 1]))
    return Map(x, y, values[order].reshape(len(y), len(x)), low, high)


def _measured(posterior: Posterior, t: int, theme: Theme) -> Points:
    rows = posterior.data.x[posterior.data.measured[:, t]]
    return Points(rows[:, 0], rows[:, 1], theme.panel, "", 3.0)
