"""Static pictures and the script's figures show the same numbers, whatever the values and names are."""

from __future__ import annotations

import json
import re
from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pytest

from sumgp.report.drawing import (
    DARK,
    LIGHT,
    MOST_POINTS,
    NARROW,
    WIDTH,
    Band,
    Curve,
    Map,
    Panel,
    Points,
    Theme,
    figure,
    thinned,
)
from sumgp.report.interactive import interactive

SVG = "{http://www.w3.org/2000/svg}"


def paths(svg: bytes, colour: str) -> list[np.ndarray]:
    """(n, 2) places of every line drawn in a colour."""
    found = [p for p in ElementTree.fromstring(svg).iter(f"{SVG}path") if f"stroke: {colour}" in p.get("style", "")]
    return [np.array(re.findall(r"[ML] ([-\d.]+) ([-\d.]+)", p.attrib["d"]), dtype=float) for p in found]


def panels_of(*panels: Panel) -> list[dict]:
    """What the script reads from the page."""
    return json.loads(interactive("name", panels, "t").as_json())["panels"]


def test_a_line_is_drawn_where_its_values_are() -> None:
    x, y = np.array([0.0, 1.0, 4.0]), np.array([-40.0, 12.5, 77.0])
    drawn = next(
        p for p in paths(figure([Panel((Curve(x, y, "#123456"),), "y")], "t", LIGHT, 140.0), "#123456") if len(p) == 3
    )
    for values, places, sign in ((x, drawn[:, 0], 1), (y, drawn[:, 1], -1)):
        slope, offset = np.polyfit(values, places, 1)
        np.testing.assert_allclose(places, slope * values + offset, atol=0.01)
        assert np.sign(slope) == sign
    (trace,) = panels_of(Panel((Curve(x, y, "#123456"),), "y"))[0]["data"]
    assert (trace["x"], trace["y"]) == (x.tolist(), y.tolist())


def test_panels_share_the_range_of_x() -> None:
    panels = [Panel((Curve(np.array([0.0, k]), np.array([0.0, 1.0]), "#123456"),), f"y{k}") for k in (1, 2, 3)]
    ends = [p[1, 0] for p in paths(figure(panels, "t", LIGHT, 100.0), "#123456") if len(p) == 2]
    np.testing.assert_allclose(np.diff(ends), np.diff(ends)[0], atol=0.5)
    assert len({str(panel["layout"]["xaxis"]["range"]) for panel in panels_of(*panels)}) == 1


def test_a_logarithmic_panel_says_so() -> None:
    panel = Panel((Curve(np.arange(3.0), np.array([1e-16, 3e-9, 2.0]), "#123456"),), "g", logarithmic=True)
    drawn = next(p for p in paths(figure([panel], "t", LIGHT, 140.0), "#123456") if len(p) == 3)
    logs = np.log10([1e-16, 3e-9, 2.0])
    np.testing.assert_allclose(np.polyval(np.polyfit(logs, drawn[:, 1], 1), logs), drawn[:, 1], atol=0.01)
    assert panels_of(panel)[0]["layout"]["yaxis"]["type"] == "log"


def test_very_many_points_keep_their_extremes() -> None:
    y = np.random.default_rng(0).normal(size=50_000)
    y[31_234], y[44_444], y[7] = 9.0, -9.0, np.nan
    x, kept = thinned(np.arange(50_000.0), y)
    assert len(kept) <= MOST_POINTS
    assert {31_234.0, 44_444.0} <= set(x)
    np.testing.assert_array_equal(kept, y[x.astype(int)])


def test_hostile_names_stay_text() -> None:
    bad = '<script>"&$x$]]>'
    panel = Panel((Points(np.ones(1), np.ones(1), "#123456", bad),), bad, title=bad)
    svg = figure([panel], bad, LIGHT, 140.0)
    assert [t.text for t in ElementTree.fromstring(svg).iter(f"{SVG}text")].count(bad) == 4
    assert b"<script" not in svg
    script = interactive("name", [panel], bad).as_json()
    assert "<" not in script
    found = json.loads(script)["panels"][0]
    assert found["data"][0]["name"] == '&lt;script&gt;"&amp;$x$]]&gt;'
    assert "<" not in found["layout"]["xaxis"]["title"]["text"] + found["layout"]["title"]["text"]


@pytest.mark.parametrize(
    "y",
    [[], [np.nan], [0.0], [5.0, 5.0], [1e-300, 2e-300], [-1e300, 1e300], [1e6, 1e6 + 1e-3], [np.inf, 1.0]],
    ids=str,
)
@pytest.mark.parametrize("logarithmic", [False, True])
def test_odd_values_are_drawn_with_finite_places(y: list[float], logarithmic: bool) -> None:
    values = np.array(y)
    x = np.arange(len(y) * 1.0)
    panel = Panel(
        (Curve(x, values, "#123456"), Band(x, values, values, "#654321"), Points(x, x, "#1c2733", "", 4.0, "tick")),
        "y",
        logarithmic,
    )
    svg = figure([panel], "t", LIGHT, 140.0)
    ElementTree.fromstring(svg)
    assert not re.search(rb"[ML] -?(nan|inf)", svg)
    panels_of(panel)


@pytest.mark.parametrize("width", [WIDTH, NARROW])
def test_a_figure_is_as_wide_as_asked(width: float) -> None:
    x = np.linspace(0.0, 1.0, 5)
    labels = ["expected range if calibrated", "95 % interval, with law", "measured", "not measured"]
    marks = tuple(Curve(x, k + x, "#123456", label) for k, label in enumerate(labels))
    root = ElementTree.fromstring(figure([Panel(marks, "y")], "t", LIGHT, 140.0, width=width))
    assert float(root.attrib["viewBox"].split()[2]) == pytest.approx(width)
    assert [t.text for t in root.iter(f"{SVG}text") if t.text in labels] == labels
    for drawn in paths(ElementTree.tostring(root), "#123456"):
        assert drawn[:, 0].max() <= width


def test_a_map_keeps_rows_and_columns() -> None:
    values = np.arange(6.0).reshape(2, 3)
    panel = Panel((Map(np.array([0.0, 1.0, 2.0]), np.array([10.0, 20.0]), values, 0.0, 5.0),), "q", title="a")
    assert b"<image" in figure([panel], "p", LIGHT, 150.0, 3)
    found = interactive("maps", [panel], "p")
    assert not found.linked
    (trace,) = json.loads(found.as_json())["panels"][0]["data"]
    assert (trace["type"], trace["z"], trace["y"]) == ("heatmap", values.tolist(), [10.0, 20.0])


def test_a_mark_that_only_a_later_panel_has_is_in_its_legend() -> None:
    x = np.arange(3.0)
    first = Panel((Curve(x, x, "#000000", "mean"),), "a")
    second = Panel((Curve(x, x, "#000000", "mean"), Points(x, x, "#000000", "not measured", shape="tick")), "b")
    drawn = interactive("outputs", [first, second], "t").panels
    assert [panel["layout"]["showlegend"] for panel in drawn] == [True, True]
    assert [trace["showlegend"] for trace in drawn[1]["data"]] == [False, True]


def test_what_is_shown_together_has_one_entry_in_the_legend() -> None:
    x = np.arange(3.0)
    panel = Panel(
        (Curve(x, x, "#123456", "end"), Curve(x, x + 1, "#123456", "end"), Band(x, x, x + 1, "#654321", "band")), "y"
    )
    shown = [(trace["name"], trace["showlegend"]) for trace in panels_of(panel)[0]["data"]]
    assert shown == [("end", True), ("end", False), ("band", False), ("band", True)]


def perceived(colour: str, vision: np.ndarray) -> np.ndarray:
    """(L, a, b) of a colour as seen through a matrix over linear red, green and blue."""
    signal = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    light = np.where(signal <= 0.04045, signal / 12.92, ((signal + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ np.clip(vision @ light, 0.0, 1.0) / [0.9505, 1.0, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_colours_are_told_apart_by_colour_blind_readers(theme: Theme) -> None:
    """Matrices of Machado, Oliveira and Fernandes (2009) for readers without red, green and blue cones."""
    visions = (
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    )
    for vision in visions:
        seen = [perceived(colour, np.array(vision)) for colour in theme.cycle]
        assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 10.0
