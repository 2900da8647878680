"""Figures of the simulated problems: unconstrained fit, transformed outputs, constrained fit; and the engines compared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sumgp.report import Theme
from sumgp_studies.report.curves import Band, Curves, sum_law, term_values

MARK_HEIGHT = 0.045  # of a panel, for the marks of one output's missing values


def draw_sum_problem(curves: Curves, theme: Theme) -> Figure:
    """Three panels: the first method's outputs, the terms of the law, the last method's outputs with the others dashed."""
    first, last = next(iter(curves.fits)), list(curves.fits)[-1]
    figure = Figure(figsize=(11.0, 3.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    _outputs(left, curves, curves.fits[first], first, theme)
    if curves.transformed is not None:
        _law_terms(middle, curves, curves.transformed, theme)
    _outputs(right, curves, curves.fits[last], last, theme)
    for name in list(curves.fits)[1:-1]:
        for column in range(len(curves.dataset.outputs)):
            right.plot(
                curves.grid[:, 0],
                curves.fits[name].mean[:, column],
                color=theme.cycle[column],
                linestyle="--",
                linewidth=1.0,
            )
    _share_limits((left, right), curves)
    _legend(figure, curves, theme, list(curves.fits)[1:-1])
    return figure


def draw_engines(curves: Curves, theme: Theme) -> Figure:
    """One panel for each method, on the same data."""
    names = list(curves.fits)
    n_columns = 3 if len(names) > 4 else max(1, (len(names) + 1) // 2) if len(names) > 3 else len(names)
    n_rows = -(-len(names) // n_columns)
    figure = Figure(figsize=(11.0, 2.9 * n_rows + 0.4), layout="constrained")
    axes = list(figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False).ravel())
    for name, panel in zip(names, axes, strict=False):
        _outputs(panel, curves, curves.fits[name], name, theme)
        panel.label_outer()
    for panel in axes[len(names) :]:
        panel.set_visible(False)
    _share_limits(axes[: len(names)], curves)
    _legend(figure, curves, theme, [])
    return figure


def _outputs(axes: Axes, curves: Curves, band: Band, title: str, theme: Theme) -> None:
    data = curves.dataset
    x = curves.grid[:, 0]
    for column in range(len(data.outputs)):
        colour = theme.cycle[column]
        axes.fill_between(x, band.lower[:, column], band.upper[:, column], color=colour, alpha=0.22, linewidth=0)
        axes.plot(x, band.mean[:, column], color=colour)
        axes.plot(data.X_test[:, 0], data.F_test[:, column], color=theme.ink, linestyle=":", linewidth=1.0)
        axes.plot(data.X_train[:, 0], data.Y_train[:, column], "o", color=colour, markersize=3.5)
        missing = data.X_train[np.isnan(data.Y_train[:, column]), 0]
        # Missing values have no height: they are marked at the lower edge, one row for each output.
        height = MARK_HEIGHT * (0.6 + column)
        axes.plot(
            missing, np.full(len(missing), height), "x", color=colour, markersize=5, transform=axes.get_xaxis_transform()
        )
    axes.set(title=title, xlabel=data.inputs[0])


def _law_terms(axes: Axes, curves: Curves, band: Band, theme: Theme) -> None:
    data, x = curves.dataset, curves.grid[:, 0]
    law = sum_law(data)
    measured = term_values(data, data.Y_train, data.X_train)
    for term, (column, transform) in enumerate(law.columns):
        colour = theme.cycle[column]
        axes.fill_between(x, band.lower[:, term], band.upper[:, term], color=colour, alpha=0.22, linewidth=0)
        label = _with_factor(law.F(curves.grid)[:, 0, term], transform.label(data.outputs[column]))
        axes.plot(x, band.mean[:, term], color=colour, label=label)
        axes.plot(data.X_train[:, 0], measured[:, term], "o", color=colour, markersize=3.5)
        heights = np.interp(curves.virtual[term], x, band.mean[:, term])
        axes.plot(curves.virtual[term], heights, "s", color=theme.cycle[3], markersize=5.5, fillstyle="none")
    axes.plot(x, law.S(curves.grid)[:, 0], color=theme.cycle[2], linewidth=1.2, label="total")
    axes.set(title="terms of the law", xlabel=data.inputs[0])
    axes.legend(loc="best", handlelength=1.2)


def _with_factor(factors: np.ndarray, term: str) -> str:
    """A term of the law as written, with the factor before it where that is one number."""
    return term if np.ptp(factors) > 0 or factors[0] == 1.0 else f"{factors[0]:g}*{term}"


def _share_limits(panels: Sequence[Axes], curves: Curves) -> None:
    """Same height for panels that are compared, with room below for the marks of missing values."""
    lows, highs = zip(*(panel.get_ylim() for panel in panels), strict=True)
    low, high = min(lows), max(highs)
    below = MARK_HEIGHT * curves.dataset.Y_train.shape[1] if np.any(np.isnan(curves.dataset.Y_train)) else 0.0
    for panel in panels:
        panel.set_ylim(low - below / (1.0 - below) * (high - low), high)


def _legend(figure: Figure, curves: Curves, theme: Theme, dashed: Sequence[str]) -> None:
    handles = [Line2D([], [], color=theme.cycle[column], label=name) for column, name in enumerate(curves.dataset.outputs)]
    handles += [
        Line2D([], [], color=theme.ink, linestyle=":", linewidth=1.0, label="truth"),
        Line2D([], [], color=theme.faint, marker="o", linestyle="", markersize=3.5, label="measured"),
    ]
    if np.any(np.isnan(curves.dataset.Y_train)):
        handles.append(Line2D([], [], color=theme.faint, marker="x", linestyle="", markersize=5, label="not measured"))
    if any(len(points) for points in curves.virtual):
        handles.append(
            Line2D([], [], color=theme.cycle[3], marker="s", linestyle="", fillstyle="none", label="virtual measurement")
        )
    handles += [Line2D([], [], color=theme.faint, linestyle="--", linewidth=1.0, label=name) for name in dashed]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
