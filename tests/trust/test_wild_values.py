"""One wild cell: scales do not hang on it, the law holds, and it is named with what to do."""

import warnings

import numpy as np
import pytest

from sumgp import ConstrainedGP, Markov, SumGPWarning
from sumgp.data.table import Data, choose_scaling, in_bulk
from sumgp.estimator.soundness import find_wild_values, warn_of_wild_values

T = np.linspace(0.0, 6.0, 24)
ASKED = np.linspace(0.0, 6.0, 15)
NOISE = 0.05 * np.random.default_rng(3).standard_normal((24, 2))
CIRCLE = np.column_stack([np.sin(T), np.cos(T)]) + NOISE
LINE = np.column_stack([np.sin(T), 1.0 - np.sin(T)]) + NOISE
ROW = 7


def told(law, Y, **settings):
    """A fit and the texts of its warnings."""
    model = ConstrainedGP(law, outputs=["a", "b"], uncertainty="plug-in", **settings)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(T, Y)
    return model, [str(w.message) for w in caught if issubclass(w.category, SumGPWarning)]


def with_cell(Y, value, row=ROW):
    changed = Y.copy()
    changed[row, 0] = value
    return changed


def miss(law, values):
    return np.abs((values**2 if "**" in law else values).sum(axis=-1) - 1.0).max()


@pytest.mark.parametrize("value", [1e5, -1e10, 1e20])
@pytest.mark.parametrize("settings", [{"restarts": 0}, {"solver": Markov()}], ids=["dense", "Markov"])
@pytest.mark.parametrize(("law", "Y"), [("a**2 + b**2 = 1", CIRCLE), ("a + b = 1", LINE)], ids=["circle", "line"])
def test_the_law_holds_and_the_cell_is_named(law, Y, settings, value):
    model, texts = told(law, with_cell(Y, value), **settings)
    posterior = model.posterior(ASKED)
    assert miss(law, posterior.mean) < 1e-12
    assert miss(law, posterior.sample(5)) < 1e-12
    # The output without wild cells is as good as before.
    truth = np.cos(ASKED) if "**" in law else 1.0 - np.sin(ASKED)
    assert np.sqrt(np.mean((posterior.mean[:, 1] - truth) ** 2)) < 0.1
    assert any(f"row {ROW}, output 'a' is {value:g}" in text and "NaN" in text for text in texts)
    assert model.fit_report_.status != "converged"


@pytest.mark.parametrize("code", [-9999.0, 99999.0, -999.0, 9999.0, 999.9, 1e20, -1e30, 9.969209968386869e36, -32768.0])
def test_codes_for_missing_are_pointed_out(code):
    y = with_cell(with_cell(CIRCLE, code), code, 11)
    found = find_wild_values(Data(T[:, None], y, ("t",), ("a", "b")))
    assert [(w.output, w.rows, w.is_code) for w in found] == [("a", (ROW, 11), True)]
    assert "probably a code" in found[0].words


def test_a_code_among_equal_values():
    y = with_cell(np.column_stack([np.full(24, 5.0), CIRCLE[:, 1]]), -9999.0)
    assert [w.rows for w in find_wild_values(Data(T[:, None], y, ("t",), ("a", "b")))] == [(ROW,)]


def test_many_wild_values_are_one_warning(recwarn):
    y = CIRCLE.copy()
    y[::3, 0] = 1e6 + np.arange(8)
    warn_of_wild_values(find_wild_values(Data(T[:, None], y, ("t",), ("a", "b"))))
    (text,) = [str(w.message) for w in recwarn]
    assert "row 0, output 'a' is 1e+06 (7 more values as far outside, rows 3, 6, 9, 12, ...)" in text


def test_a_curve_that_rises_from_next_to_nothing_has_no_wild_values():
    grown = np.concatenate([np.linspace(0.0, 0.002, 14), 0.41 + 0.2 * np.arange(10)])
    order = np.random.default_rng(1).permutation(24)
    data = Data(T[order, None], np.column_stack([grown, grown[::-1]])[order], ("t",), ("a", "b"))
    assert find_wild_values(data) == ()
    assert np.allclose(choose_scaling(data, [(0,), (1,)], True).y_scale, grown.std(), rtol=1e-12)
    # Without neighbours that bear it out, the same value is wild; so is one that leaves the curve.
    apart = np.where(np.arange(24) == 4, 0.41, np.linspace(0.0, 0.002, 24))
    beyond = np.where(np.arange(24) == 20, 1e5, grown)
    found = find_wild_values(Data(T[:, None], np.column_stack([apart, beyond]), ("t",), ("a", "b")))
    assert [(w.output, w.rows) for w in found] == [("a", (4,)), ("b", (20,))]


def test_two_wild_neighbours_and_a_run_of_equal_ones_are_named():
    y = CIRCLE.copy()
    y[7:9, 0] = 1e5, 2e5
    y[7:12, 1] = 12345.0
    found = find_wild_values(Data(T[:, None], y, ("t",), ("a", "b")))
    assert [(w.output, w.rows) for w in found] == [("a", (7, 8)), ("b", (7, 8, 9, 10, 11))]


def test_a_hill_in_a_plane_is_no_wild_value():
    x = np.random.default_rng(2).uniform(size=(120, 2))
    hill = np.exp(-50.0 * np.sum((x - 0.5) ** 2, axis=1) / 0.5) + 1e-5 * np.random.default_rng(3).standard_normal(120)
    y = np.column_stack([hill, np.where(np.arange(120) == 3, 50.0, 1e-3 * hill)])
    found = find_wild_values(Data(x, y, ("u", "v"), ("a", "b")))
    assert [(w.output, w.rows) for w in found] == [("b", (3,))]


def test_the_fit_warns_of_codes():
    _, texts = told("a + b = 1", with_cell(LINE, -9999.0))
    assert any('probably a code for "missing"; write NaN' in text for text in texts)


def test_codes_among_values_of_their_size_are_data():
    y = np.column_stack([900.0 + 10.0 * np.arange(24), CIRCLE[:, 1]])
    y[9, 0] = 999.0
    assert find_wild_values(Data(T[:, None], y, ("t",), ("a", "b"))) == ()


def test_an_outlier_within_reach_of_noise_is_named_too():
    model, texts = told("a + b = 1", with_cell(LINE, 20.0))
    assert any(f"row {ROW}, output 'a' is 20 where the fit says" in text for text in texts)
    assert miss("a + b = 1", model.predict(ASKED)) < 1e-12


def test_a_value_that_the_stated_noise_excludes_is_named():
    _, texts = told("a + b = 1", with_cell(LINE, LINE[ROW, 0] + 1.5), noise=0.05)
    assert any(f"row {ROW}, output 'a' is" in text and "noise=" in text for text in texts)


def test_ordinary_data_are_scaled_as_by_their_standard_deviation():
    generator = np.random.default_rng(1000)
    columns = [
        np.sin(T),
        np.exp(T),  # four decades
        np.exp(-0.5 * ((T - 3.0) / 0.3) ** 2),  # a peak of few points
        1.0 / (T - 3.07),  # a pole between two rows
        (np.arange(24) == 5).astype(float),  # all equal but one
        generator.standard_t(2, 24),
    ]
    y = np.column_stack(columns)
    y[3, 0] = np.nan
    assert np.array_equal(in_bulk(y), ~np.isnan(y))
    scaling = choose_scaling(Data(T[:, None], y, ("t",), tuple("abcdef")), [(i,) for i in range(6)], True)
    assert np.allclose(scaling.y_scale, np.nanstd(y, axis=0), rtol=1e-12)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e12])
def test_the_bulk_knows_no_units_and_no_order(unit):
    y = with_cell(CIRCLE, 1e5)
    order = np.random.default_rng(0).permutation(len(y))
    assert np.array_equal(in_bulk(unit * y)[order], in_bulk((unit * y)[order]))
    assert list(np.argwhere(~in_bulk(unit * y))[0]) == [ROW, 0]
    assert (~in_bulk(unit * y)).sum() == 1


def test_ordinary_data_are_not_warned_of():
    _, texts = told("a**2 + b**2 = 1", CIRCLE)
    assert texts == []
