"""Figures of a posterior: what was measured, what was not, what is predicted, and how well the law is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sumgp.prediction.posterior import Posterior

# Okabe and Ito's colours, which the colour-blind can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def plot_posterior(posterior: Posterior, level: float = 0.95) -> Figure:
    """One panel per output over the first input, and one for the law's residual."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    names = posterior.output_names
    residual = posterior.residual()
    n_panels = len(names) + (residual.shape[1] > 0)
    figure = Figure(figsize=(7.0, 1.2 + 1.9 * n_panels), layout="constrained")
    FigureCanvasAgg(figure)
    axes = np.atleast_1d(figure.subplots(n_panels, 1, sharex=True))
    order = np.argsort(posterior.x[:, 0], kind="stable")
    x = posterior.x[order, 0]
    lower, upper = posterior.interval(level)
    mean = posterior.mean
    data = posterior.data
    for t, (name, axis) in enumerate(zip(names, axes, strict=False)):
        colour = COLOURS[t % len(COLOURS)]
        axis.fill_between(x, lower[order, t], upper[order, t], color=colour, alpha=0.2, lw=0, label=f"{level:.0%} interval")
        axis.plot(x, mean[order, t], color=colour, label="mean")
        seen = data.measured[:, t]
        axis.plot(data.x[seen, 0], data.y[seen, t], "o", color="black", ms=4, label="measured")
        if not seen.all():
            at = np.full((~seen).sum(), 0.02)
            axis.plot(
                data.x[~seen, 0], at, "|", color="grey", ms=9, transform=axis.get_xaxis_transform(), label="not measured"
            )
        axis.set_ylabel(name)
        axis.legend(loc="upper right", fontsize="x-small", ncols=4, framealpha=0.8)
        axis.margins(y=0.25)
    if residual.shape[1]:
        axes[-1].plot(x, residual[order], lw=1)
        axes[-1].set_ylabel("law residual")
        axes[-1].ticklabel_format(axis="y", style="sci", scilimits=(-2, 2))
    axes[-1].set_xlabel(data.input_names[0])
    return figure
