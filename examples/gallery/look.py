"""How the figures of the pages look: one drawing, saved in the colours of the light and of the dark theme."""

import io
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images" / "gallery"
# Colour in the light theme -> in the dark one. Each is replaced as text in the finished SVG.
INK, FAINT = "#24292f", "#c9cdd2"
WITH, WITHOUT, DATA = "#3949ab", "#c2571a", "#24292e"
PARTS = ["#3949ab", "#c2571a", "#1b7f5c", "#8e3b8e", "#8a6d00", "#4a6572"]
DARK = {
    INK: "#e4e6ea",
    FAINT: "#4b5160",
    DATA: "#f0f1f4",
    **dict(zip(PARTS, ["#8c9eff", "#ff9e5e", "#58c9a0", "#d69ad6", "#d6b84a", "#9fb6c0"], strict=True)),
}
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "sumgp",
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": plt.cycler(color=PARTS),
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "figure.constrained_layout.use": True,
}
plt.rcParams.update(STYLE)


def band(axes, x, posterior, column, color, label=None):
    """Mean and 95 % interval of one output."""
    lower, upper = posterior.interval(0.95)
    axes.fill_between(x, lower[:, column], upper[:, column], color=color, alpha=0.2, linewidth=0)
    axes.plot(x, posterior.mean[:, column], color=color, label=label)


def dots(axes, x, y, color=DATA, **options):
    """Measured values; NaN is left out."""
    known = ~np.isnan(np.asarray(y, dtype=float))
    axes.plot(np.asarray(x)[known], np.asarray(y)[known], "o", color=color, markersize=3.5, **options)


def save(figure, name):
    """Write NAME-light.svg and NAME-dark.svg for the pages."""
    text = io.StringIO()
    figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    plt.close(figure)
    light = text.getvalue()
    dark = light
    for before, after in DARK.items():
        dark = dark.replace(before, after)
    IMAGES.mkdir(parents=True, exist_ok=True)
    (IMAGES / f"{name}-light.svg").write_text(light)
    (IMAGES / f"{name}-dark.svg").write_text(dark)
