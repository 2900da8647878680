"""What a figure of a fit shows, apart from any plotting library, its colours in two themes, and its static picture."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


WIDTH, NARROW = 620.0, 360.0  # points, for a page and for a phone: text keeps its size, panels do not
LEFT, RIGHT, BOTTOM, BETWEEN, TITLE = 58.0, 12.0, 38.0, 16.0, 20.0  # points around panels
LEGEND_COLUMN, LEGEND_LINE = 165.0, 14.0  # points an entry of the legend takes
MOST_POINTS = 4000  # of one line; more are drawn as the extremes of short pieces, which looks the same
MANY = 400  # points above which they are one small image, which takes less room than each on its own
LONGEST_LABEL = 26  # characters beside an axis
BAND = 0.25  # opacity
POINTS_PER_INCH = 72.0  # of print
LARGEST = 1e290  # the plotting library cannot draw values beyond


@dataclass(frozen=True, eq=False)
class Curve:
    """A line through (n,) points, broken where a value is not finite."""

    x: np.ndarray
    y: np.ndarray
    colour: str
    label: str = ""
    width: float = 1.5
    dash: str = "solid"  # solid, dash or dot


@dataclass(frozen=True, eq=False)
class Band:
    """The area between (n,) lower and upper values."""

    x: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    colour: str
    label: str = ""


@dataclass(frozen=True, eq=False)
class Points:
    """Separate points (n,): dots, crosses, or ticks at the panel's lower edge (then ``y`` is not used)."""

    x: np.ndarray
    y: np.ndarray
    colour: str
    label: str = ""
    size: float = 4.0
    shape: str = "dot"  # dot, cross or tick


@dataclass(frozen=True, eq=False)
class Map:
    """Values (len(y), len(x)) on a grid as colours from ``low`` to ``high``."""

    x: np.ndarray
    y: np.ndarray
    values: np.ndarray
    low: float
    high: float


Mark = Curve | Band | Points | Map


@dataclass(frozen=True)
class Panel:
    """Marks over common axes; those listed later lie above."""

    marks: tuple[Mark, ...]
    y_label: str
    logarithmic: bool = False
    title: str = ""


def figure(
    panels: Sequence[Panel], x_label: str, theme: Theme, height: float, columns: int = 1, width: float = WIDTH
) -> bytes:
    """The panels as SVG, ``height`` each, in rows of ``columns`` over one common range of x, below one legend."""
    import matplotlib as mpl

    # Names are text, never formulas; text stays text in the file.
    with drawing_with(theme), mpl.rc_context({"text.parse_math": False, "svg.fonttype": "none"}):
        legend = {mark.label for panel in panels for mark in panel.marks if not isinstance(mark, Map) and mark.label}
        fitting = max(1, int(width // LEGEND_COLUMN))
        drawn, axes = _empty_panels(panels, width, height, columns, -(-len(legend) // fitting))
        for number, (panel, axis) in enumerate(zip(panels, axes, strict=False)):
            _draw(panel, axis)
            if number + columns >= len(panels):
                axis.set_xlabel(_short(x_label))
                axis.tick_params(labelbottom=True)
        named = {label: h for a in axes for h, label in zip(*a.get_legend_handles_labels(), strict=True)}
        if named:
            shape = {"ncols": min(fitting, len(named)), "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.3}
            drawn.legend(list(named.values()), list(named), loc="upper left", **shape)
        buffer = io.BytesIO()
        with warnings.catch_warnings():
            # The page's own font draws signs that the measuring font lacks.
            warnings.filterwarnings("ignore", message="Glyph")
            drawn.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def _empty_panels(
    panels: Sequence[Panel], width: float, height: float, columns: int, legend_lines: int
) -> tuple[Figure, list[Axes]]:
    """Axes with fixed room for what is written around them: measuring texts would take longer than drawing."""
    from matplotlib.figure import Figure

    rows = -(-len(panels) // columns)
    between = BETWEEN + TITLE * any(panel.title for panel in panels)
    top = TITLE + LEGEND_LINE * legend_lines
    total = top + rows * height + (rows - 1) * between + BOTTOM
    drawn = Figure(figsize=(width / POINTS_PER_INCH, total / POINTS_PER_INCH))
    axes = list(drawn.subplots(rows, columns, sharex=True, squeeze=False).ravel())
    # Colours are explained at the right of a map.
    right = LEFT / 2 if any(isinstance(mark, Map) for panel in panels for mark in panel.marks) else RIGHT
    inner = (width - columns * (LEFT + right)) / columns
    drawn.subplots_adjust(
        LEFT / width, BOTTOM / total, 1 - right / width, 1 - top / total, (LEFT + right) / inner, between / height
    )
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    return drawn, axes[: len(panels)]


def _draw(panel: Panel, axis: Axes) -> None:
    for mark in panel.marks:
        if isinstance(mark, Map):
            _draw_map(mark, axis)
        elif isinstance(mark, Band):
            ends = _drawable(mark.lower), _drawable(mark.upper)
            axis.fill_between(mark.x, *ends, color=mark.colour, alpha=BAND, lw=0, label=mark.label)
        elif isinstance(mark, Curve):
            across, up = thinned(mark.x, mark.y)
            style = {"solid": "-", "dash": (0, (5, 2.5)), "dot": (0, (1.2, 2))}[mark.dash]
            axis.plot(across, _drawable(up), color=mark.colour, lw=mark.width, ls=style, label=mark.label)
        else:
            _draw_points(mark, axis)
    if panel.logarithmic and np.any(_drawable(heights(panel)) > 0):
        axis.set_yscale("log", nonpositive="mask")
    axis.set_ylabel(_short(panel.y_label))
    if panel.title:
        axis.set_title(_short(panel.title))


def _draw_points(mark: Points, axis: Axes) -> None:
    shape = {"dot": "o", "cross": "x", "tick": "|"}[mark.shape]
    if mark.shape == "tick":
        at = np.full(len(mark.x), 0.04)
        place = axis.get_xaxis_transform()
        axis.plot(mark.x, at, shape, color=mark.colour, ms=mark.size, transform=place, label=mark.label)
    else:
        many = len(mark.x) > MANY
        axis.plot(mark.x, _drawable(mark.y), shape, color=mark.colour, ms=mark.size, label=mark.label, rasterized=many)


def _draw_map(mark: Map, axis: Axes) -> None:
    half = 0.5 * np.array([mark.x[1] - mark.x[0], mark.y[1] - mark.y[0]])
    extent = (mark.x[0] - half[0], mark.x[-1] + half[0], mark.y[0] - half[1], mark.y[-1] + half[1])
    image = axis.imshow(
        mark.values, extent=extent, origin="lower", aspect="auto", vmin=mark.low, vmax=mark.high, cmap="viridis"
    )
    axis.figure.colorbar(image, ax=axis)


def heights(panel: Panel) -> np.ndarray:
    """All finite values that a panel draws upwards; ticks at its lower edge have none."""
    parts = [np.zeros(0)]
    for mark in panel.marks:
        if isinstance(mark, Band):
            parts += [mark.lower, mark.upper]
        elif isinstance(mark, Curve) or (isinstance(mark, Points) and mark.shape != "tick"):
            parts.append(mark.y)
    found = np.concatenate(parts)
    return found[np.isfinite(found)]


def _drawable(values: np.ndarray) -> np.ndarray:
    values = np.asarray(values, dtype=float)
    return np.where(np.abs(values) < LARGEST, values, np.nan)


def thinned(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest point of each short piece, in their order, where there are very many points."""
    if len(x) <= MOST_POINTS:
        return x, y
    pieces = np.array_split(np.arange(len(x)), MOST_POINTS // 4)
    filled = np.where(np.isfinite(y), y, np.inf), np.where(np.isfinite(y), y, -np.inf)
    kept = [sorted({int(p[np.argmin(filled[0][p])]), int(p[np.argmax(filled[1][p])])}) for p in pieces]
    chosen = np.array([index for piece in kept for index in piece])
    return x[chosen], y[chosen]


def _short(label: str) -> str:
    return label if len(label) <= LONGEST_LABEL else label[: LONGEST_LABEL - 1] + "\u2026"


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


def dark_colours() -> dict[str, str]:
    """The colour of the dark theme for each one of the light theme."""
    light, dark = ((t.ink, t.faint, t.panel, *t.cycle) for t in (LIGHT, DARK))
    return dict(zip(light, dark, strict=True))


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
