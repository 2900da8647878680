"""Line figures as SVG text, written directly: loading a plotting library would take longer than a fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from sumgp.report.axes import Axis, axis_over
from sumgp.report.theme import Theme

WIDTH, NARROW = 620.0, 360.0  # for a page, and for a phone: text keeps its size, panels do not
LEFT, RIGHT, BOTTOM, BETWEEN = 62.0, 12.0, 38.0, 18.0
LEGEND_LINE, LEGEND_COLUMN = 15.0, 168.0
MOST_POINTS = 4000  # of one line; more are drawn as the extremes of short pieces, which looks the same
LONGEST_LABEL = 26
FONT = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif"


@dataclass(frozen=True, eq=False)
class Curve:
    """A line through (n,) points, broken where a value is not finite; ``dashes`` as in SVG."""

    x: np.ndarray
    y: np.ndarray
    colour: str
    label: str = ""
    width: float = 1.5
    dashes: str = ""


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
    shape: str = "dot"


Mark = Curve | Band | Points


@dataclass(frozen=True)
class Panel:
    """Marks over common axes; those listed later lie above."""

    marks: tuple[Mark, ...]
    y_label: str
    logarithmic: bool = False


def figure(
    panels: Sequence[Panel], x_label: str, theme: Theme, height: float, columns: int = 1, width: float = WIDTH
) -> bytes:
    """The panels, ``height`` each, in rows of ``columns`` over one common range of x, below one legend."""
    legend = list({mark.label: mark for panel in panels for mark in panel.marks if mark.label}.values())
    rows = -(-len(panels) // columns)
    # A narrow legend begins left of the panels: two columns are to fit.
    legend_left = LEFT if width >= WIDTH else RIGHT
    legend_columns = int((width - legend_left - RIGHT) // LEGEND_COLUMN)
    legend_lines = -(-len(legend) // legend_columns)
    top = 14.0 + LEGEND_LINE * legend_lines
    total = top + rows * height + (rows - 1) * BETWEEN + BOTTOM
    wide = (width - columns * (LEFT + RIGHT)) / columns
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {total:g}" width="{width:g}" height="{total:g}" '
        f'font-family="{FONT}" font-size="10" fill="{theme.ink}">',
        f'<rect width="100%" height="100%" fill="{theme.panel}"/>',
        *_legend(legend, legend_left, (width - legend_left - RIGHT) / legend_columns, legend_lines),
    ]
    for number, panel in enumerate(panels):
        row, column = divmod(number, columns)
        left = LEFT + column * (wide + LEFT + RIGHT)
        upper = top + row * (height + BETWEEN)
        x = axis_over([mark.x for p in panels for mark in p.marks], 0.02, left, left + wide)
        lines += _panel(panel, x, upper, height, theme, x_label if number + columns >= len(panels) else "")
    return "\n".join([*lines, "</svg>"]).encode()


def _panel(panel: Panel, x: Axis, upper: float, height: float, theme: Theme, x_label: str) -> Iterator[str]:
    y = axis_over((v for mark in panel.marks for v in _heights(mark)), 0.05, upper + height, upper, panel.logarithmic)
    for mark in panel.marks:
        yield _drawn(mark, x, y)
    floor = upper + height
    yield f'<path d="M{x.start:.1f} {upper:.1f}V{floor:.1f}H{x.end:.1f}" fill="none" stroke="{theme.faint}"/>'
    for place, text in y.ticks():
        yield f'<path d="M{x.start - 4:.1f} {place:.1f}h4" stroke="{theme.faint}"/>'
        yield f'<text x="{x.start - 7:.1f}" y="{place + 3.5:.1f}" text-anchor="end">{text}</text>'
    for place, text in x.ticks():
        yield f'<path d="M{place:.1f} {floor:.1f}v4" stroke="{theme.faint}"/>'
        if x_label:
            yield f'<text x="{place:.1f}" y="{floor + 15:.1f}" text-anchor="middle">{text}</text>'
    middle = 0.5 * (x.start + x.end)
    yield f'<text x="{middle:.1f}" y="{floor + 31:.1f}" text-anchor="middle">{_short(x_label)}</text>'
    beside, level = x.start - 48.0, upper + height / 2
    turned = f'text-anchor="middle" transform="rotate(-90 {beside:.1f} {level:.1f})"'
    yield f'<text x="{beside:.1f}" y="{level:.1f}" {turned}>{_short(panel.y_label)}</text>'


def _heights(mark: Mark) -> list[np.ndarray]:
    if isinstance(mark, Band):
        return [mark.lower, mark.upper]
    return [] if isinstance(mark, Points) and mark.shape == "tick" else [mark.y]


def _legend(marks: Sequence[Mark], start: float, column_width: float, lines: int) -> Iterator[str]:
    for number, mark in enumerate(marks):
        # Filled column by column; columns of equal width, because text cannot be measured here.
        column, line = divmod(number, lines)
        left = start + column * column_width
        middle = 12.0 + LEGEND_LINE * line
        yield _sample(mark, left, middle)
        yield f'<text x="{left + 32:.1f}" y="{middle + 3.5:.1f}">{escape(mark.label)}</text>'


def _sample(mark: Mark, left: float, middle: float) -> str:
    """The mark as shown in the legend."""
    if isinstance(mark, Band):
        return f'<path d="M{left:.1f} {middle - 4:.1f}h24v8h-24z" fill="{mark.colour}" fill-opacity="0.25"/>'
    if isinstance(mark, Curve):
        return _stroke(f"M{left:.1f} {middle:.1f}h24", mark)
    return _points(np.array([left + 12.0]), np.array([middle]), mark)


def _drawn(mark: Mark, x: Axis, y: Axis) -> str:
    across = x.places(mark.x)
    if isinstance(mark, Points):
        at_floor = np.full(len(across), y.start - 6.0)
        return _points(across, at_floor if mark.shape == "tick" else y.places(mark.y), mark)
    if isinstance(mark, Curve):
        return _stroke(_path(*_thinned(across, y.places(mark.y))), mark)
    lower, upper = _thinned(across, y.places(mark.lower)), _thinned(across, y.places(mark.upper))
    across, down = (np.concatenate([there, back[::-1]]) for there, back in zip(lower, upper, strict=True))
    outline = _path(across, down, joined=True)
    return f'<path d="{outline}" fill="{mark.colour}" fill-opacity="0.25" stroke="none"/>'


def _stroke(path: str, mark: Curve) -> str:
    dashes = f' stroke-dasharray="{mark.dashes}"' if mark.dashes else ""
    style = f'stroke="{mark.colour}" stroke-width="{mark.width:g}" stroke-linejoin="round"{dashes}'
    return f'<path d="{path}" fill="none" {style}/>'


def _points(across: np.ndarray, down: np.ndarray, mark: Points) -> str:
    """All points as one path; a line of no length with round ends is a dot."""
    r = 0.5 * mark.size
    move, drawn, width = {
        "dot": ((0.0, 0.0), "h0", mark.size),
        "cross": ((-r, -r), f"l{2 * r:g} {2 * r:g}m{-2 * r:g} 0l{2 * r:g} {-2 * r:g}", 1.2),
        "tick": ((0.0, -r), f"v{2 * r:g}", 1.6),
    }[mark.shape]
    shown = np.isfinite(across) & np.isfinite(down)
    pairs = zip(across[shown] + move[0], down[shown] + move[1], strict=True)
    path = "".join(f"M{a:.1f} {b:.1f}{drawn}" for a, b in pairs)
    ends = "round" if mark.shape == "dot" else "butt"
    return f'<path d="{path}" fill="none" stroke="{mark.colour}" stroke-width="{width:g}" stroke-linecap="{ends}"/>'


def _path(across: np.ndarray, down: np.ndarray, joined: bool = False) -> str:
    """M x y L x y ...: a new piece after every value that is not finite, or all pieces ``joined`` and closed."""
    steps, pen = [], "M"
    for a, b, shown in zip(across, down, np.isfinite(across) & np.isfinite(down), strict=True):
        if shown:
            steps.append(f"{pen}{a:.1f} {b:.1f}")
        pen = "L" if shown or (joined and steps) else "M"
    return "".join(steps) + ("z" if joined and steps else "")


def _thinned(across: np.ndarray, down: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest point of each short piece, in their order, where there are very many points."""
    if len(across) <= MOST_POINTS:
        return across, down
    pieces = np.array_split(np.arange(len(across)), MOST_POINTS // 4)
    filled = np.where(np.isfinite(down), down, np.inf), np.where(np.isfinite(down), down, -np.inf)
    kept = [sorted({int(p[np.argmin(filled[0][p])]), int(p[np.argmax(filled[1][p])])}) for p in pieces]
    chosen = np.array([index for piece in kept for index in piece])
    return across[chosen], down[chosen]


def _short(label: str) -> str:
    return escape(label if len(label) <= LONGEST_LABEL else label[: LONGEST_LABEL - 1] + "\u2026")
