"""The triangle's poses, and how far the predicted edges are from their lengths."""

from __future__ import annotations

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from sumgp.report import Theme
from sumgp_studies.experiments import length_errors
from sumgp_studies.report.curves import Curves

SMALLEST = 1e-16


def draw_triangle(curves: Curves, theme: Theme) -> Figure:
    """Left: true poses with measured corners. Right: mean error of the edges over the poses, one line a method."""
    figure = Figure(figsize=(10.0, 4.2), layout="constrained")
    poses, errors = figure.subplots(1, 2)
    data = curves.dataset
    # The part of each map that stands out from the panel.
    colours, first = (colormaps["viridis"], 0.1) if theme.name == "light" else (colormaps["plasma"], 0.35)
    n_poses = len(data.X_test)
    for row in np.linspace(0, n_poses - 1, 8).astype(int):
        corners = data.F_test[row].reshape(3, 2)[[0, 1, 2, 0]]
        shade = colours(first + 0.6 * row / n_poses)
        poses.plot(corners[:, 0], corners[:, 1], color=shade, linewidth=1.3)
        # A rim in the colour of the panel keeps the number readable where dots lie below it.
        rim = [withStroke(linewidth=3.0, foreground=theme.panel)]
        middle = corners[:3].mean(axis=0)
        poses.annotate(
            f"{data.X_test[row, 0]:.1f}", middle, color=theme.ink, fontsize=8, ha="center", va="center", path_effects=rim
        )
    measured = data.Y_train.reshape(-1, 2)
    poses.plot(measured[:, 0], measured[:, 1], "o", color=theme.cycle[0], markersize=2.5)
    poses.set(aspect="equal", title=f"poses, labelled by {data.inputs[0]}", xlabel="x", ylabel="y")
    if data.lengths is not None:
        for name, band in curves.fits.items():
            wrong = np.mean(np.abs(length_errors(band.mean, data.outputs, data.lengths)), axis=1)
            errors.plot(curves.grid[:, 0], np.maximum(wrong, SMALLEST), label=name)
    errors.set(yscale="log", xlabel=data.inputs[0], title="mean error of the three edges")
    errors.legend(loc="best")
    return figure
