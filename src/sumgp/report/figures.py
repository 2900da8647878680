"""Figures of a fit: each output with data and bands or as a map, with and without the law; violations; calibration."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sumgp.data import Dates
from sumgp.prediction import Posterior, input_label
from sumgp.report.drawing import LIGHT, NARROW, WIDTH, Band, Curve, Map, Mark, Panel, Points, Theme, dark_colours, figure
from sumgp.report.fit_study import LEVEL, FitStudy
from sumgp.report.interactive import Picture, interactive
from sumgp.report.scores import counts, left_out_panel, residual_sizes

MOST_PANELS = 12  # of one figure: more outputs than that are left to the tables
OUTPUT_HEIGHT, LAW_HEIGHT, MAP_HEIGHT, CALIBRATION_HEIGHT = 140.0, 165.0, 150.0, 240.0  # points
NOMINAL = "nominal coverage"
SMALLEST = 1e-17  # drawn in place of an exact zero on the logarithmic axis
LAW = (
    "Size of left minus right side, logarithmic: measured rows, the fit without the law, and this fit. Exact zeros are "
    f"drawn at {SMALLEST:.0e}."
)
SORTED, SHARE = "Each sorted by size, as there are several inputs.", "share of the rows or points"
CALIBRATION = (
    "Are the intervals calibrated? Observed coverage of left-out measurements against the nominal coverage, from 10 to "
    "99 %; on the dashed line both are equal."
)


def fit_pictures(found: FitStudy) -> list[Picture]:
    """The outputs, the law where there is one, and calibration by leave-out where that is known."""
    over = _over(found)
    if is_map(found.posterior):
        pictures = [_picture("maps", MAPS, map_panels(found, LIGHT), input_label(found.posterior), MAP_HEIGHT)]
    else:
        panels = dated(output_panels(found, LIGHT), found)
        pictures = [_picture("outputs", _outputs_caption(found), panels, over, OUTPUT_HEIGHT)]
    if found.violation is not None:
        panels = [law_panel(found, LIGHT)]
        if found.posterior.data.n_inputs == 1:
            pictures.append(_picture("law", LAW, dated(panels, found), over, LAW_HEIGHT))
        else:
            pictures.append(_picture("law", f"{LAW} {SORTED}", panels, SHARE, LAW_HEIGHT))
    if counts(found.left_out):
        panels = [left_out_panel(found.left_out, LIGHT)]
        pictures.append(_picture("calibration", CALIBRATION, panels, NOMINAL, CALIBRATION_HEIGHT, NARROW))
    return pictures


def _picture(name: str, caption: str, panels: Sequence[Panel], over: str, height: float, width: float = WIDTH) -> Picture:
    """A figure in both themes, and what the script draws in its place."""
    columns = MAP_COLUMNS if name == "maps" else 1 if len(panels) <= 3 else 2
    light = figure(panels, over, LIGHT, height, columns, width)
    return Picture(name, "fit", caption, light, in_dark(light), interactive=interactive(name, panels, over))


def _outputs_caption(found: FitStudy) -> str:
    """What the figure of the outputs shows, and what it leaves out."""
    data = found.posterior.data
    over, lines = _over(found), data.n_inputs == 1
    parts = [f"Each output over {over}."]
    parts.append("The band holds 95 %." if lines else f"There are several inputs; the points are drawn over {over} alone.")
    if not data.measured.all():
        parts.append("Ticks at the bottom mark rows where the output was not measured.")
    if len(found.outputs) > MOST_PANELS:
        parts.append(f"The first {MOST_PANELS} of {len(found.outputs)} outputs.")
    return " ".join(parts)


def in_dark(light: bytes) -> bytes:
    """The same figure in the dark theme."""
    named = {old.encode(): new.encode() for old, new in dark_colours().items()}
    return re.sub(b"|".join(named), lambda found: named[found[0]], light)


def dated(panels: Sequence[Panel], found: FitStudy) -> list[Panel]:
    """The panels over dates where the first input was dates, in the time zone of the data."""
    dates = _dates(found)
    if dates is None:
        return list(panels)
    return [
        replace(p, marks=tuple(replace(m, x=dates.times(m.x).tz_localize(None).to_numpy()) for m in p.marks)) for p in panels
    ]


def _dates(found: FitStudy) -> Dates | None:
    return found.posterior.calendar.get(found.posterior.data.input_names[0])


def _over(found: FitStudy) -> str:
    """Name of the first input; dates need no unit."""
    dates = _dates(found)
    name = found.posterior.data.input_names[0]
    return input_label(found.posterior) if dates is None else name if dates.zone is None else f"{name} ({dates.zone})"


def output_panels(found: FitStudy, theme: Theme) -> list[Panel]:
    """One panel per output."""
    own = found.posterior.interval(LEVEL)
    plain = None if found.plain is None else (*found.plain.interval(LEVEL), found.plain.mean)
    shown = range(min(len(found.outputs), MOST_PANELS))
    return [Panel(_output_marks(found, t, own, plain, theme), found.outputs[t]) for t in shown]


def _output_marks(
    found: FitStudy,
    t: int,
    own: tuple[np.ndarray, np.ndarray],
    plain: tuple[np.ndarray, np.ndarray, np.ndarray] | None,
    theme: Theme,
) -> tuple[Mark, ...]:
    """Output t: ``own`` ends (n, T) of the band, and ``plain`` ends and mean of the fit without the law."""
    posterior, data = found.posterior, found.posterior.data
    order = np.argsort(posterior.x[:, 0], kind="stable")
    x, lines = posterior.x[order, 0], data.n_inputs == 1
    first, second = theme.cycle[0], theme.cycle[1]
    label, band = ("with the law", "95 % interval, with law") if found.violation is not None else ("fit", "95 % interval")
    marks: list[Mark] = []
    if lines:
        marks.append(Band(x, own[0][order, t], own[1][order, t], first, band))
    if plain is not None:
        ends, mean = [e[order, t] for e in plain[:2]], plain[2][order, t]
        if lines:
            marks += [Curve(x, end, second, "95 % interval, no law", 1.0, "dot") for end in ends]
        name = "without the law"
        marks.append(Curve(x, mean, second, name, 1.3, "dash") if lines else Points(x, mean, second, name, 4.5, "cross"))
    if posterior.ends is not None and lines:
        values = np.concatenate([own[0][:, t], own[1][:, t], data.y[:, t]])
        marks += [Curve(x, end[order], theme.faint, "bound", 1.0, "dot") for end in posterior.ends.shown(t, values)]
    mean = posterior.mean[order, t]
    marks.append(Curve(x, mean, first, label, 1.8) if lines else Points(x, mean, first, label, 3.2))
    seen = data.measured[:, t]
    size = 4.0 if len(data.x) < 200 else 2.0
    marks.append(Points(data.x[seen, 0], data.y[seen, t], theme.ink, "measured", size))
    if not seen.all():
        marks.append(Points(data.x[~seen, 0], data.y[~seen, t], theme.cycle[3], "not measured", 10.0, "tick"))
    return tuple(marks)


def law_panel(found: FitStudy, theme: Theme) -> Panel:
    """|g| at raw rows, without the law and with it; the largest law where there are several."""
    posterior, law = found.posterior, found.model.law_
    assert law is not None
    order = np.argsort(posterior.x[:, 0], kind="stable")

    def size(f: np.ndarray, at: np.ndarray) -> np.ndarray:
        g = np.where(law.active(at), residual_sizes(law, posterior, f, at), 0.0)
        return np.maximum(g.max(axis=1), SMALLEST)

    data, lines = posterior.data, posterior.data.n_inputs == 1

    def curve(sizes: np.ndarray, colour: str, name: str, width: float, dash: str = "solid") -> Curve:
        if lines:
            return Curve(posterior.x[order, 0], sizes[order], colour, name, width, dash)
        return Curve((np.arange(len(sizes)) + 0.5) / len(sizes), np.sort(sizes), colour, name, width, dash)

    complete = data.measured[:, law.involved()[: len(law.outputs)]].all(axis=1)
    marks: list[Mark] = []
    if complete.any() and not law.derivatives:
        rows = size(np.where(np.isnan(data.y), 0.0, data.y)[complete], data.x[complete])
        name = "measured rows"
        marks.append(
            Points(data.x[complete, 0], rows, theme.ink, name) if lines else curve(rows, theme.ink, name, 1.5, "dot")
        )
    if found.plain is not None and not law.derivatives:
        marks.append(curve(size(found.plain.mean, posterior.x), theme.cycle[1], "without the law", 1.5, "dash"))
    own = np.maximum(np.abs(posterior.residual()).max(axis=1), SMALLEST)
    marks.append(curve(own, theme.cycle[0], "with the law", 1.8))
    return Panel(tuple(marks), "|left \u2212 right side|", logarithmic=True)


MAP_COLUMNS = 3  # maps side by side: those of one output in a row
MOST_MAPPED = 4  # outputs
LARGEST_DOT, SMALLEST_DOT, LARGE_DOTS = 3.0, 0.5, 60  # sizes, and rows up to which dots are large: more hide the map
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
    size = float(np.clip(LARGEST_DOT * np.sqrt(LARGE_DOTS / max(len(rows), 1)), SMALLEST_DOT, LARGEST_DOT))
    return Points(rows[:, 0], rows[:, 1], theme.panel, "", size)
