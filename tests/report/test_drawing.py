"""Figures written as SVG: what is drawn lies where the axis says, whatever the values and names are."""

from __future__ import annotations

import re
from itertools import combinations, pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

from sumgp.report.axes import axis_over, round_values, written
from sumgp.report.drawing import MOST_POINTS, NARROW, WIDTH, Band, Curve, Panel, Points, figure
from sumgp.report.theme import DARK, LIGHT, Theme

SVG = "{http://www.w3.org/2000/svg}"


def paths(svg: bytes, colour: str) -> list[str]:
    return [p.attrib["d"] for p in ElementTree.fromstring(svg).iter(f"{SVG}path") if p.get("stroke") == colour]


def numbers(path: str) -> np.ndarray:
    """(n, 2) places that a path names."""
    return np.array([[float(a), float(b)] for a, b in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path)])


def read_axis(svg: bytes, anchor: str, attribute: str) -> np.ndarray:
    """Slope and offset of place over value, read back from the texts beside the ticks."""
    found = []
    for text in ElementTree.fromstring(svg).iter(f"{SVG}text"):
        words = (text.text or "").replace("\u2212", "-")
        if text.get("text-anchor") == anchor and re.fullmatch(r"-?[\d.]+(e[+-]\d+)?", words):
            found.append((float(words), float(text.attrib[attribute])))
    values, places = np.array(found).T
    return np.polyfit(values, places, 1)


def test_points_lie_where_the_ticks_say() -> None:
    x, y = np.array([0.3, 1.7, 9.2]), np.array([-40.0, 12.5, 77.0])
    svg = figure([Panel((Points(x, y, "#123456", "measured"),), "y")], "t", LIGHT, 140.0)
    drawn = numbers(paths(svg, "#123456")[1])
    across, down = read_axis(svg, "middle", "x"), read_axis(svg, "end", "y")
    np.testing.assert_allclose(drawn[:, 0], np.polyval(across, x), atol=0.2)
    # Texts are written 3.5 below the middle of their tick.
    np.testing.assert_allclose(drawn[:, 1], np.polyval(down, y) - 3.5, atol=0.2)


def test_logarithmic_panel_lies_where_the_ticks_say() -> None:
    y = np.array([1e-16, 3e-9, 2.0])
    svg = figure([Panel((Curve(np.arange(3.0), y, "#123456"),), "g", logarithmic=True)], "t", LIGHT, 140.0)
    texts = [t for t in ElementTree.fromstring(svg).iter(f"{SVG}text") if t.get("text-anchor") == "end"]
    decades = np.array([[np.log10(float(t.text or "")), float(t.attrib["y"])] for t in texts])
    down = np.polyfit(decades[:, 0], decades[:, 1], 1)
    np.testing.assert_allclose(numbers(paths(svg, "#123456")[0])[:, 1], np.polyval(down, np.log10(y)) - 3.5, atol=0.2)


def test_panels_in_columns_share_the_range_of_x() -> None:
    panels = [Panel((Curve(np.array([0.0, k]), np.array([0.0, 1.0]), "#123456"),), f"y{k}") for k in range(1, 6)]
    ends = [numbers(path)[1, 0] for path in paths(figure(panels, "t", LIGHT, 100.0, columns=2), "#123456")]
    assert ends[4] > ends[2] > ends[0]
    widths = np.diff([ends[0], ends[2], ends[4]])
    np.testing.assert_allclose(widths[0], widths[1], atol=0.2)
    assert ends[1] > 310.0


def test_lines_are_broken_where_values_are_missing_and_bands_are_closed() -> None:
    x, y = np.arange(5.0), np.array([0.0, 1.0, np.nan, 2.0, 3.0])
    panel = Panel((Curve(x, y, "#123456"), Band(x, y - 1, y + 1, "#654321")), "y")
    svg = figure([panel], "t", LIGHT, 140.0)
    assert re.sub(r"[^ML]", "", paths(svg, "#123456")[0]) == "MLML"
    band = next(p.attrib["d"] for p in ElementTree.fromstring(svg).iter(f"{SVG}path") if p.get("fill") == "#654321")
    assert re.sub(r"[^MLz]", "", band) == "MLLLLLLLz"


def test_very_many_points_keep_their_extremes() -> None:
    y = np.random.default_rng(0).normal(size=50_000)
    y[31_234], y[44_444] = 9.0, -9.0
    curve = Curve(np.arange(50_000.0), y, "#123456")
    drawn = numbers(paths(figure([Panel((curve,), "y")], "t", LIGHT, 140.0), "#123456")[0])
    assert len(drawn) <= MOST_POINTS
    alone = Curve(np.array([31_234.0, 44_444.0]), np.array([9.0, -9.0]), "#abcdef")
    both = figure([Panel((curve, alone), "y")], "t", LIGHT, 140.0)
    wanted = numbers(paths(both, "#abcdef")[0])
    kept = {tuple(place) for place in drawn}
    assert {tuple(place) for place in wanted} <= kept


def test_hostile_names_stay_text() -> None:
    bad = '<script>"&]]>'
    svg = figure([Panel((Points(np.ones(1), np.ones(1), "#123456", bad),), bad)], bad, LIGHT, 140.0)
    texts = [t.text for t in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    assert texts.count(bad) == 3
    assert b"<script" not in svg


@pytest.mark.parametrize(
    "y",
    [[], [np.nan], [0.0], [5.0, 5.0], [1e-300, 2e-300], [-1e300, 1e300], [1e6, 1e6 + 1e-3], [np.inf, 1.0]],
    ids=str,
)
@pytest.mark.parametrize("logarithmic", [False, True])
def test_odd_values_are_drawn_with_finite_places(y: list[float], logarithmic: bool) -> None:
    values = np.array(y)
    marks = (Curve(np.arange(len(y) * 1.0), values, "#123456"), Band(np.arange(len(y) * 1.0), values, values, "#654321"))
    svg = figure([Panel(marks, "y", logarithmic)], "t", LIGHT, 140.0)
    ElementTree.fromstring(svg)
    assert b"nan" not in svg
    assert not re.search(rb"[ML ]-?inf", svg)
    places = [numbers(path) for path in paths(svg, "#123456") if path]
    assert all(np.all((place > 0) & (place < 640)) for place in places)


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (0.0, 1.0, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (-1.3, 1.4, ["\u22121", "0", "1"]),
        (0.0, 10.0, ["0", "2", "4", "6", "8", "10"]),
        (1000.2, 1000.7, ["1000.2", "1000.3", "1000.4", "1000.5", "1000.6", "1000.7"]),
        (0.0, 2e-5, ["0", "5e\u221206", "1e\u221205", "1.5e\u221205", "2e\u221205"]),
        (0.0, 3e7, ["0", "1e+07", "2e+07", "3e+07"]),
    ],
)
def test_ticks_are_round_numbers(low: float, high: float, texts: list[str]) -> None:
    assert written(round_values(low, high)) == texts


def test_an_axis_shows_every_value_with_room_at_both_ends() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        values = rng.normal(size=7) * 10.0 ** rng.integers(-12, 12)
        axis = axis_over([values], 0.05, 100.0, 0.0)
        places = np.sort(axis.places(values))
        np.testing.assert_allclose(places[[0, -1]], [100 * 0.05 / 1.1, 100 * 1.05 / 1.1], rtol=1e-9)
        assert 2 <= len(axis.ticks()) <= 7
        assert all(-1e-6 <= place <= 100 + 1e-6 for place, _ in axis.ticks())
        assert len({text for _, text in axis.ticks()}) == len(axis.ticks())


@pytest.mark.parametrize("width", [WIDTH, NARROW])
def test_legend_and_panels_stay_inside_the_figure(width: float) -> None:
    x, labels = (
        np.linspace(0.0, 1.0, 5),
        ["usual for right intervals", "95 % interval, with law", "measured", "not measured"],
    )
    marks = tuple(Curve(x, k + x, "#123456", label) for k, label in enumerate(labels))
    root = ElementTree.fromstring(figure([Panel(marks, "y")], "t", LIGHT, 140.0, width=width))
    assert root.attrib["viewBox"].split()[2] == f"{width:g}"
    texts = [t for t in root.iter(f"{SVG}text") if t.text in labels]
    assert [t.text for t in texts] == labels
    # A sign of the font is about half as wide as it is high.
    places = sorted(
        (float(t.attrib["y"]), float(t.attrib["x"]), float(t.attrib["x"]) + 5.2 * len(t.text or "")) for t in texts
    )
    assert all(end <= width for _, _, end in places)
    assert all(b[1] - a[2] >= 32.0 for a, b in pairwise(places) if a[0] == b[0])
    for path in paths(ElementTree.tostring(root), "#123456"):
        assert numbers(path)[:, 0].max() <= width


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
