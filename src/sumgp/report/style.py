"""Colours and settings of figures in a light and a dark theme, and figures as SVG text that is the same on every run."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Theme:
    """Colours of a figure; ``cycle`` is told apart also by colour-blind readers."""

    name: str
    ink: str
    faint: str
    panel: str
    cycle: tuple[str, ...]


LIGHT = Theme("light", "#1c2733", "#8a97a5", "#ffffff", ("#1f6fb4", "#d9661f", "#1b8a6b", "#6d1a56", "#665200", "#5b6b7a"))
DARK = Theme("dark", "#dde5ee", "#74828f", "#171d24", ("#6cb2f2", "#f2a05c", "#5fd0ac", "#ffc9ef", "#fff0a0", "#a9b8c6"))


@contextmanager
def drawing_with(theme: Theme) -> Iterator[None]:
    """Matplotlib settings of a theme, put back afterwards."""
    import matplotlib as mpl
    from cycler import cycler

    settings: dict[Any, Any] = {
        "figure.facecolor": theme.panel,
        "axes.facecolor": theme.panel,
        "axes.edgecolor": theme.faint,
        "axes.labelcolor": theme.ink,
        "axes.titlecolor": theme.ink,
        "axes.titlesize": 10.5,
        "axes.titleweight": "bold",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.prop_cycle": cycler(color=theme.cycle),
        "xtick.color": theme.ink,
        "ytick.color": theme.ink,
        "text.color": theme.ink,
        "legend.frameon": False,
        "legend.fontsize": 8.5,
        "font.size": 9.0,
        "date.converter": "concise",
        "lines.linewidth": 1.5,
        "svg.hashsalt": "sumgp",  # without it the ids in the file differ from run to run
    }
    with mpl.rc_context(settings):
        yield


def as_svg(draw: Callable[[Theme], Figure], theme: Theme) -> bytes:
    """The drawn figure as SVG."""
    with drawing_with(theme):
        figure = draw(theme)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()
