"""Posteriors as tables and figures: pandas, xarray, matplotlib axes of the user's own."""

from __future__ import annotations

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import sumgp
from sumgp import DataError

X = np.linspace(0.0, 4.0, 8)
Y = np.column_stack([0.5 + 0.3 * np.sin(X), 0.5 - 0.3 * np.sin(X)]) + 0.02 * np.random.default_rng(0).standard_normal((8, 2))
Y[3, 1] = np.nan
DAYS = pd.DataFrame({"day": pd.date_range("2024-05-01", periods=8, tz="Europe/Berlin")})


def fitted(x, inputs: list[str]) -> sumgp.ConstrainedGP:
    settings = {"outputs": ["a", "b"], "inputs": inputs, "uncertainty": "plug-in", "restarts": 0}
    return sumgp.ConstrainedGP("a + b = 1", **settings).fit(x, Y)


@pytest.fixture(scope="module")
def posterior():
    return fitted(X, ["t"]).posterior(X + 0.1)


@pytest.fixture(scope="module")
def dated():
    return fitted(DAYS, ["day"]).posterior(DAYS)


def test_two_levels_of_columns(posterior) -> None:
    plain, two = posterior.to_frame(0.5), posterior.to_frame(0.5, multiindex=True)
    assert two.columns.names == ["output", "value"]
    assert two.index.name == "t"
    for name in ("a", "b"):
        np.testing.assert_array_equal(two[name]["mean"], plain[name])
        for part in ("sd", "lower", "upper"):
            np.testing.assert_array_equal(two[name, part], plain[f"{name}_{part}"])
    np.testing.assert_array_equal(two["law", "residual"], plain["law_residual"])
    np.testing.assert_array_equal(two.index, plain["t"])
    assert two.xs("mean", axis=1, level="value").columns.to_list() == ["a", "b"]


def test_two_inputs_make_a_two_level_index() -> None:
    x = np.column_stack([X, X[::-1] ** 2])
    frame = fitted(x, ["u", "w"]).posterior(x).to_frame(multiindex=True)
    assert frame.index.names == ["u", "w"]
    np.testing.assert_array_equal(np.array(frame.index.to_list()), x)


def test_xarray(posterior) -> None:
    data = posterior.to_xarray(0.8)
    assert data["mean"].dims == ("t", "output")
    np.testing.assert_array_equal(data["t"], X + 0.1)
    np.testing.assert_array_equal(data["mean"], posterior.mean)
    np.testing.assert_array_equal(data["upper"].sel(output="b"), posterior.interval(0.8)[1][:, 1])
    np.testing.assert_array_equal(data["residual"].sel(law="a + b = 1"), posterior.residual()[:, 0])
    assert data.attrs["level"] == 0.8


def test_xarray_with_two_inputs_and_with_dates(dated) -> None:
    x = np.column_stack([X, X**2])
    data = fitted(x, ["u", "w"]).posterior(x).to_xarray()
    assert data["mean"].dims == ("point", "output")
    np.testing.assert_array_equal(data["w"], X**2)
    times = dated.to_xarray()["day"].to_numpy()
    assert times[0] == np.datetime64("2024-04-30T22:00:00")


def test_dates_come_back_in_their_zone(dated) -> None:
    assert list(dated.to_frame()["day"]) == list(DAYS["day"])
    assert dated.to_frame(multiindex=True).index[0] == DAYS["day"][0]


def test_plot_draws_outputs_and_the_residual_only_if_asked(posterior) -> None:
    assert [axis.get_ylabel() for axis in posterior.plot().axes] == ["a", "b"]
    assert [axis.get_ylabel() for axis in posterior.plot(residual=True).axes] == ["a", "b", "law residual"]
    figure = posterior.plot(labels={"a": "share of A", "t": "time (s)"})
    assert [axis.get_ylabel() for axis in figure.axes] == ["share of A", "b"]
    assert figure.axes[-1].get_xlabel() == "time (s)"
    with pytest.raises(DataError, match="labels: expected names among"):
        posterior.plot(labels={"q": "x"})


def test_plot_on_given_axes(posterior) -> None:
    figure = Figure()
    one = figure.subplots()
    assert posterior.plot(ax=one) is figure
    assert [text.get_text() for text in one.get_legend().get_texts()] == ["a", "b"]
    np.testing.assert_allclose(one.lines[0].get_ydata(), posterior.mean[:, 0])
    several = Figure().subplots(3, 1)
    posterior.plot(ax=several, residual=True)
    assert several[2].get_ylabel() == "law residual"
    for wrong, asked in ((Figure().subplots(3, 1), False), (one, True)):
        with pytest.raises(DataError, match="ax: expected one Axes or"):
            posterior.plot(ax=wrong, residual=asked)


def test_axis_is_labelled_with_dates(dated) -> None:
    figure = dated.plot()
    figure.canvas.draw()
    axis = figure.axes[-1]
    assert isinstance(axis.xaxis.get_major_locator(), matplotlib.dates.AutoDateLocator)
    assert any("2024-05" in text.get_text() for text in axis.get_xticklabels())
    assert axis.get_xlabel() == "day"
