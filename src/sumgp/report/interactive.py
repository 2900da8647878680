"""What every page is made of: figures inside the page, static or drawn by a script, templates that escape all text."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from sumgp.report.drawing import LIGHT, Band, Curve, Map, Mark, Panel, Points, dark_colours, heights, thinned

DIGITS = 7  # of numbers in the page: hover shows no more
SYMBOLS = {"dot": "circle", "cross": "x-thin-open", "tick": "line-ns-open"}
FONT_SIZE = 13  # pixels
STANDOFF = 8  # pixels between the label of the vertical axis and its numbers
MARGIN = 0.02  # of the range of x, left free at both ends
BAND_ALPHA = "40"  # last two digits of a colour: a quarter opaque


@dataclass(frozen=True)
class Interactive:
    """Panels that the script draws: ``linked`` ones share the range of x when one is zoomed."""

    name: str
    panels: tuple[dict[str, Any], ...]
    linked: bool = True

    def as_json(self) -> str:
        """Text for the page; ``<`` is written as an escape, so that no name can end the element it stands in."""
        found = {"name": self.name, "linked": self.linked, "panels": self.panels, "dark": dark_colours()}
        return json.dumps(found, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def interactive(name: str, panels: Sequence[Panel], x_label: str) -> Interactive:
    """The panels in colours of the light theme; the script replaces them by those of the dark one."""
    if any(isinstance(mark, Map) for panel in panels for mark in panel.marks):
        return Interactive(name, tuple(_panel(panel, x_label, {}, set()) for panel in panels), linked=False)
    seen: set[str] = set()  # labels that the legend of an earlier panel has
    limits = _limits([mark.x for panel in panels for mark in panel.marks])
    return Interactive(name, tuple(_panel(panel, x_label, limits, seen) for panel in panels))


def _limits(given: Sequence[np.ndarray]) -> dict[str, Any]:
    """The common range of x with a margin; dates have one that the script chooses."""
    if any(x.dtype.kind == "M" for x in given):
        return {"type": "date"}
    x = np.concatenate([np.zeros(0), *given])
    x = x[np.isfinite(x)]
    edge = MARGIN * float(np.ptp(x)) if len(x) else 0.0
    return {"range": [float(x.min()) - edge, float(x.max()) + edge]} if edge else {}


def _panel(panel: Panel, x_label: str, limits: dict[str, Any], seen: set[str]) -> dict[str, Any]:
    values, theme = heights(panel), LIGHT
    # Ticks for what was not measured stand at the lowest value.
    floor = float(values.min()) if len(values) else 0.0
    size = {"size": FONT_SIZE}
    axis = {"color": theme.ink, "gridcolor": theme.faint + "33", "zeroline": False, "automargin": True}
    layout: dict[str, Any] = {
        "paper_bgcolor": theme.panel,
        "plot_bgcolor": theme.panel,
        "font": {"color": theme.ink, **size},
        "margin": {"l": 60, "r": 12, "t": 12, "b": 44},
        "xaxis": {**axis, **limits, "title": {"text": _text(x_label), "font": size}},
        "yaxis": {**axis, "title": {"text": _text(panel.y_label), "font": size, "standoff": STANDOFF}},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "xanchor": "left"},
        "hovermode": "closest" if any(isinstance(m, Map) for m in panel.marks) else "x",
    }
    if panel.logarithmic:
        layout["yaxis"] |= {"type": "log", "exponentformat": "power", "dtick": _decades(values)}
    if panel.title:
        layout["title"] = {"text": _text(panel.title), "font": {"size": 14}, "x": 0.02, "y": 0.97}
        layout["margin"]["t"] = 40
    traces = [trace for mark in panel.marks for trace in _traces(mark, floor)]
    for trace in traces:
        # One entry in the legends of all panels for all that are shown and hidden together.
        if trace.get("showlegend", False):
            trace["showlegend"] = trace["legendgroup"] not in seen
            seen.add(trace["legendgroup"])
    layout["showlegend"] = any(trace.get("showlegend", False) for trace in traces)
    return {"data": traces, "layout": layout}


def _traces(mark: Mark, floor: float) -> list[dict[str, Any]]:
    match mark:
        case Band():
            edge = {"type": "scatter", "mode": "lines", "line": {"width": 0, "color": mark.colour}, "hoverinfo": "skip"}
            group = {"legendgroup": mark.label, "name": _text(mark.label)}
            lower = {**edge, **group, "x": _list(mark.x), "y": _list(mark.lower), "showlegend": False}
            upper = {**edge, **group, "x": _list(mark.x), "y": _list(mark.upper), "fill": "tonexty", "showlegend": True}
            return [lower, {**upper, "fillcolor": mark.colour + BAND_ALPHA}]
        case Curve():
            x, y = thinned(mark.x, mark.y)
            line = {"color": mark.colour, "width": mark.width + 0.3, "dash": mark.dash}
            return [{**_named(mark.label), "x": _list(x), "y": _list(y), "mode": "lines", "line": line}]
        case Points():
            y = np.full(len(mark.x), floor) if mark.shape == "tick" else mark.y
            marker = {"color": mark.colour, "size": mark.size + 2.5, "symbol": SYMBOLS[mark.shape]}
            if mark.shape != "dot":
                marker["line"] = {"color": mark.colour, "width": 1.5}
            return [{**_named(mark.label), "x": _list(mark.x), "y": _list(y), "mode": "markers", "marker": marker}]
        case Map():
            values = [_list(row) for row in mark.values]
            scale = {"zmin": float(mark.low), "zmax": float(mark.high), "colorscale": "Viridis"}
            return [{"type": "heatmap", "x": _list(mark.x), "y": _list(mark.y), "z": values, **scale}]


def _named(label: str) -> dict[str, Any]:
    return {"type": "scatter", "name": _text(label), "legendgroup": label, "showlegend": bool(label)}


def _decades(values: np.ndarray) -> int:
    """Powers of ten between ticks, so that about six are written."""
    positive = values[values > 0]
    return max(1, round(float(np.ptp(np.log10(positive))) / 6)) if len(positive) else 1


def _text(label: str) -> str:
    """Plotly reads some HTML in texts: every sign that could begin it is written as an entity."""
    return label.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _list(values: np.ndarray) -> list[Any]:
    """Numbers with seven digits, None where there is none, which breaks a line; dates as ISO text."""
    if values.dtype.kind == "M":
        return np.datetime_as_string(values, unit="ms").tolist()
    return [float(f"{v:.{DIGITS}g}") if np.isfinite(v) else None for v in np.asarray(values, dtype=float).tolist()]


@dataclass(frozen=True)
class Picture:
    """A figure in both themes as SVG, or the reason why there is none.

    ``interactive`` is what the page's script draws in its place, where there is a script.
    """

    name: str
    experiment: str
    caption: str
    light: bytes = b""
    dark: bytes = b""
    trouble: str = ""
    interactive: Interactive | None = None


def templates(package: str = "sumgp.report", folder: str = ".") -> Environment:
    """The templates in a folder of a package, and those next to this file; text is escaped, a misspelt name is an error."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package, folder), PackageLoader("sumgp.report", ".")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["data_uri"] = data_uri
    environment.filters["whole"] = whole
    return environment


def data_uri(svg: bytes) -> str:
    """The image inside the page itself."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode("ascii")


def whole(text: str) -> str:
    """The text with each per cent sign kept on the line of its number."""
    return text.replace(" %", "\u00a0%")


def version(name: str) -> str:
    """Version of an installed package."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
