"""Figures of a fit: each output with data, gaps and bands, with and without the law; and how well the law is kept."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from sumgp.report.fit_study import LEVEL, FitStudy
from sumgp.report.picture import Picture
from sumgp.report.style import DARK, LIGHT, Theme, as_svg

MOST_PANELS = 12
SMALLEST = 1e-17  # drawn in place of an exact zero on the logarithmic axis


def fit_pictures(found: FitStudy) -> list[Picture]:
    """The outputs, and the law where there is one."""
    over = found.posterior.data.input_names[0]
    shown = "" if len(found.outputs) <= MOST_PANELS else f" The first {MOST_PANELS} of {len(found.outputs)} outputs."
    several = "" if found.posterior.data.n_inputs == 1 else f" There are several inputs; the points are drawn over {over}."
    outputs = (
        f"Each output over {over}. The band holds 95 %; ticks at the bottom mark rows where the output was not measured."
        f"{shown}{several}"
    )
    law = "Size of left minus right side, logarithmic: measured rows, the fit without the law, and this fit."
    sketches = [("outputs", outputs, draw_outputs)]
    if found.violation is not None:
        sketches.append(("law", law, draw_law))
    pictures = []
    for name, caption, draw in sketches:
        light = as_svg(partial(draw, found), LIGHT)
        pictures.append(Picture(name, "fit", caption, light, in_dark(light)))
    return pictures


def in_dark(light: bytes) -> bytes:
    """The same figure in the dark theme: drawing again would take most of the report's time."""
    pairs = zip(
        (LIGHT.ink, LIGHT.faint, LIGHT.panel, *LIGHT.cycle), (DARK.ink, DARK.faint, DARK.panel, *DARK.cycle), strict=True
    )
    named = {old.encode(): new.encode() for old, new in pairs}
    return re.sub(b"|".join(named), lambda found: named[found[0]], light)


def draw_outputs(found: FitStudy, theme: Theme) -> Figure:
    """One panel per output, in two columns where there are many."""
    T = min(len(found.outputs), MOST_PANELS)
    columns = 1 if T <= 3 else 2
    rows = -(-T // columns)
    figure = _figure(2.0 * rows, 2)
    axes = figure.subplots(rows, columns, sharex=True, squeeze=False, gridspec_kw={"hspace": 0.12, "wspace": 0.32}).ravel()
    for t in range(T):
        _draw_output(axes[t], found, t, theme)
        # The same distance from the panel in inches, whether there are one or two columns.
        axes[t].yaxis.set_label_coords(-0.075 if columns == 1 else -0.175, 0.5)
    for axis in axes[T:]:
        axis.remove()
    for axis in axes[max(T - columns, 0) : T]:
        axis.set_xlabel(found.posterior.data.input_names[0])
        axis.tick_params(labelbottom=True)
    handles = {label: handle for axis in axes[:T] for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="upper center", ncols=3)
    return figure


def _figure(height: float, legend_lines: int) -> Figure:
    """A figure with ``height`` inches of panels; fixed margins, since finding the best ones takes as long as drawing."""
    left, right, bottom, top = 0.85, 0.15, 0.5, 0.2 + 0.19 * legend_lines
    width, total = 8.6, bottom + height + top
    figure = Figure(figsize=(width, total))
    figure.subplots_adjust(left / width, bottom / total, 1.0 - right / width, 1.0 - top / total)
    return figure


def _draw_output(axis: Axes, found: FitStudy, t: int, theme: Theme) -> None:
    posterior, data = found.posterior, found.posterior.data
    order = np.argsort(posterior.x[:, 0], kind="stable")
    x = posterior.x[order, 0]
    lower, upper = posterior.interval(LEVEL)
    line = "-" if data.n_inputs == 1 else "."
    own, other = theme.cycle[0], theme.cycle[1]
    label, band = ("with the law", "95 % interval with it") if found.violation is not None else ("fit", "95 % interval")
    if data.n_inputs == 1:
        axis.fill_between(x, lower[order, t], upper[order, t], color=own, alpha=0.25, lw=0, label=band)
        if found.plain is not None:
            ends = found.plain.interval(LEVEL)
            for end, name in zip(ends, ("95 % interval without", None), strict=True):
                axis.plot(x, end[order, t], ":", color=other, lw=1.0, label=name)
    if found.plain is not None:
        axis.plot(
            x, found.plain.mean[order, t], "--" if line == "-" else "x", color=other, lw=1.3, ms=4, label="without the law"
        )
    axis.plot(x, posterior.mean[order, t], line, color=own, lw=1.8, ms=4, label=label)
    seen = data.measured[:, t]
    axis.plot(data.x[seen, 0], data.y[seen, t], "o", color=theme.ink, ms=3.5 if len(data.x) < 200 else 1.5, label="measured")
    if not seen.all():
        at = np.full((~seen).sum(), 0.03)
        axis.plot(
            data.x[~seen, 0],
            at,
            "|",
            color=theme.cycle[3],
            ms=10,
            mew=1.6,
            transform=axis.get_xaxis_transform(),
            label="not measured",
        )
    axis.set_ylabel(found.outputs[t])
    axis.margins(x=0.02)


def draw_law(found: FitStudy, theme: Theme) -> Figure:
    """|g| at raw rows, without the law and with it; the largest law where there are several."""
    figure = _figure(2.3, 1)
    axis = figure.subplots()
    posterior, law = found.posterior, found.model.law_
    assert law is not None
    order = np.argsort(posterior.x[:, 0], kind="stable")
    x = posterior.x[order, 0]
    constants = posterior.constants()["mean"].to_numpy()

    def size(f: np.ndarray, at: np.ndarray) -> np.ndarray:
        columns = np.concatenate([f, np.broadcast_to(constants, (len(f), len(constants)))], axis=1)
        with np.errstate(all="ignore"):
            g = np.where(law.active(at), np.abs(law.residual(columns, at)), 0.0)
        return np.maximum(g.max(axis=1), SMALLEST)

    data = posterior.data
    complete = data.measured[:, law.involved()[: len(law.outputs)]].all(axis=1)
    if complete.any():
        filled = np.where(np.isnan(data.y), 0.0, data.y)[complete]
        axis.plot(data.x[complete, 0], size(filled, data.x[complete]), "o", color=theme.ink, ms=3.5, label="measured rows")
    if found.plain is not None:
        axis.plot(x, size(found.plain.mean, posterior.x)[order], "--", color=theme.cycle[1], label="without the law")
    own = np.maximum(np.abs(posterior.residual()).max(axis=1), SMALLEST)
    axis.plot(x, own[order], color=theme.cycle[0], label="with the law")
    axis.set_yscale("log")
    # Powers written as plain numbers: typesetting exponents takes longer than the rest of the figure.
    axis.yaxis.set_major_formatter(lambda value, position: f"{value:.0e}")
    axis.yaxis.set_minor_formatter(NullFormatter())
    axis.set_ylabel("|left − right side|")
    axis.set_xlabel(data.input_names[0])
    figure.legend(loc="upper center", ncols=3)
    return figure
