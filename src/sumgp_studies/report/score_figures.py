"""Figures made from records alone: error against the paper in every cell, and calibration of the intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from sumgp.report import Theme
from sumgp_studies.experiments import order
from sumgp_studies.metrics import CalibrationCurve, plot_calibration
from sumgp_studies.report.summary import Comparison

MARKERS = "osD^vPX<"
# Of the axis of ratios: the first with three or more in its range.
TICKS = (
    (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0),
    (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 2.0, 3.0),
)


def _look(method: str, theme: Theme) -> dict[str, Any]:
    """Marker and colour of a method, the same in every figure; hollow where its setting is not the default."""
    place = order(method)[0] - order("linearized")[0]
    hollow = "none" if " (" in method else "full"
    colour = theme.cycle[place % len(theme.cycle)]
    return {"marker": MARKERS[place % len(MARKERS)], "color": colour, "fillstyle": hollow}


def draw_ratios(comparisons: Sequence[Comparison], theme: Theme) -> Figure:
    """One row a cell, one mark a method: own RMSE over the paper's, on a logarithmic axis; left of 1 is better."""
    longest_first = sorted(comparisons, key=lambda entry: -len(entry.ratios))
    cells = list(dict.fromkeys((experiment, cell) for entry in longest_first for experiment, cell, _ in entry.ratios))
    # A line with the experiment's name stands above its cells: short labels leave room for the marks on a phone.
    names = list(dict.fromkeys(experiment for experiment, _ in cells))
    lines = [line for name in names for line in ((name, None), *(entry for entry in cells if entry[0] == name))]
    figure = Figure(figsize=(4.8, 0.23 * len(lines) + 1.6), layout="constrained")
    axes = figure.subplots()
    axes.axvline(1.0, color=theme.faint, linewidth=1.0, linestyle="--")
    for number, entry in enumerate(comparisons):
        # Marks of one cell are set a little apart, so that equal results do not hide each other.
        apart = 0.5 * (number / max(1, len(comparisons) - 1) - 0.5)
        rows = [lines.index((experiment, cell)) + apart for experiment, cell, _ in entry.ratios]
        ratios = [ratio for _, _, ratio in entry.ratios]
        axes.plot(ratios, rows, linestyle="", markersize=4.5, label=entry.method, **_look(entry.method, theme))
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    shown = next((kept for ticks in TICKS if len(kept := [t for t in ticks if low <= t <= high]) > 2), [1.0])
    axes.set_xticks(shown, [f"{tick:g}" for tick in shown])
    axes.minorticks_off()
    axes.set_yticks(range(len(lines)), [cell.label() if cell else name.replace("_", " ") for name, cell in lines])
    for label, (_, cell) in zip(axes.get_yticklabels(), lines, strict=True):
        label.set_fontweight("normal" if cell else "bold")
    axes.set_ylim(len(lines) - 0.3, -0.7)
    axes.set(xlabel="own / published RMSE (below 1 is better)")
    axes.grid(axis="y", color=theme.faint, alpha=0.2, linewidth=0.6)
    figure.legend(loc="outside upper left", ncols=2)
    return figure


def draw_calibration(curves: Mapping[str, Mapping[float, float]], theme: Theme) -> Figure:
    """Nominal against observed coverage of each method, averaged over all data sets."""
    figure = Figure(figsize=(5.0, 4.6 + 0.1 * len(curves)), layout="constrained")
    axes = figure.subplots()
    named = {
        name: CalibrationCurve(np.array(list(by)), np.array(list(by.values())), 0) for name, by in curves.items()
    }  # fmt: skip
    plot_calibration(named, axes)
    for line in axes.get_lines()[1:]:
        line.set(**_look(str(line.get_label()), theme))
    legend = axes.get_legend()
    if legend is not None:
        legend.remove()
    figure.legend(loc="outside lower center", ncols=2)
    return figure
