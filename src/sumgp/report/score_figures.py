"""Figures made from records alone: error against the paper in every cell, and calibration of the intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from sumgp.metrics import CalibrationCurve, plot_calibration
from sumgp.report.style import Theme
from sumgp.report.summary import Comparison

MARKERS = "osD^vPX*"


def draw_ratios(comparisons: Sequence[Comparison], theme: Theme) -> Figure:
    """One row a cell, one mark a method: own RMSE over the paper's, on a logarithmic axis; left of 1 is better."""
    longest_first = sorted(comparisons, key=lambda entry: -len(entry.ratios))
    cells = list(dict.fromkeys((experiment, cell) for entry in longest_first for experiment, cell, _ in entry.ratios))
    figure = Figure(figsize=(8.0, 0.23 * len(cells) + 1.6), layout="constrained")
    axes = figure.subplots()
    axes.axvline(1.0, color=theme.faint, linewidth=1.0, linestyle="--")
    for number, entry in enumerate(comparisons):
        # Marks of one cell are set a little apart, so that equal results do not hide each other.
        apart = 0.5 * (number / max(1, len(comparisons) - 1) - 0.5)
        rows = [cells.index((experiment, cell)) + apart for experiment, cell, _ in entry.ratios]
        ratios = [ratio for _, _, ratio in entry.ratios]
        marker, colour = MARKERS[number % len(MARKERS)], theme.cycle[number % len(theme.cycle)]
        axes.plot(ratios, rows, marker, color=colour, markersize=4.5, label=entry.method)
    axes.set_xscale("log")
    ticks = np.array([0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0])
    low, high = axes.get_xlim()
    shown = ticks[(ticks >= low) & (ticks <= high)]
    axes.set_xticks(shown, [f"{tick:g}" for tick in shown])
    axes.minorticks_off()
    axes.set_yticks(range(len(cells)), [f"{experiment.replace('_', ' ')}: {cell.label()}" for experiment, cell in cells])
    axes.invert_yaxis()
    axes.set(xlabel="own RMSE / published RMSE of the counterpart (below 1 is better)")
    axes.grid(axis="y", color=theme.faint, alpha=0.2, linewidth=0.6)
    figure.legend(loc="outside upper center", ncols=3)
    return figure


def draw_calibration(curves: Mapping[str, Mapping[float, float]], theme: Theme) -> Figure:
    """Stated against observed coverage of each method, averaged over all data sets."""
    figure = Figure(figsize=(7.0, 4.6), layout="constrained")
    axes = figure.subplots()
    named = {
        name: CalibrationCurve(np.array(list(by)), np.array(list(by.values())), 0) for name, by in curves.items()
    }  # fmt: skip
    plot_calibration(named, axes)
    for number, line in enumerate(axes.get_lines()[1:]):
        line.set_marker(MARKERS[number % len(MARKERS)])
    legend = axes.get_legend()
    if legend is not None:
        legend.remove()
    figure.legend(loc="outside right upper")
    return figure
