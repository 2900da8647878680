"""Calibration by leave-out: counts by a second way, honest words, a figure that shows them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm

import sumgp
from sumgp.paper_method import Transformed
from sumgp.report.drawing import LIGHT, Band, Points
from sumgp.report.fit_page import render_fit, score_tables
from sumgp.report.fit_study import FitStudy, as_numbers, study
from sumgp.report.scores import CURVE, FEW, LEVELS, Count, LeftOut, counts, leave_one_out, left_out_panel, remark, sentence
from sumgp.report.wording import advice
from sumgp.strategies import OwnComponent


def left_out(z: np.ndarray) -> LeftOut:
    return LeftOut(np.ones(z.shape[1]), np.ones(z.shape[1]), z)


def studied(names: tuple[str, str] = ("a", "b"), rows: int = 20, **settings: object) -> FitStudy:
    x = np.linspace(0.0, 5.0, rows)[:, None]
    Y = np.column_stack([np.sin(x[:, 0]), 1.0 - np.sin(x[:, 0])])
    Y += 0.1 * np.random.default_rng(1).standard_normal(Y.shape)
    Y[3, 0] = np.nan
    law = sumgp.LinearConstraint(np.ones((1, 2)), np.ones(1))
    gp = sumgp.ConstrainedGP(law, outputs=list(names), inputs=["x"], **{"uncertainty": "plug-in", **settings})
    return study(gp.fit(x, Y), x, (), lambda stage: None)


def test_counts_are_those_of_the_intervals_themselves() -> None:
    z = np.random.default_rng(0).standard_normal((50, 2))
    z[4, 1] = np.nan
    known = z[np.isfinite(z)]
    for count in counts(left_out(z)):
        lower, upper = norm.interval(count.level)
        assert count.inside == sum(lower <= value <= upper for value in known)
        assert count.total == 99
    of_second = counts(left_out(z), output=1)
    assert [c.total for c in of_second] == [49] * len(LEVELS)
    assert [c.inside for c in counts(left_out(z), output=0)] == [
        both.inside - second.inside for both, second in zip(counts(left_out(z)), of_second, strict=True)
    ]


def test_usual_counts_hold_the_probability_they_state() -> None:
    for total in (5, 20, 200):
        low, high = Count(0.8, 0, total).expected(0.95)
        assert binom.cdf(high, total, 0.8) - binom.cdf(low - 1, total, 0.8) >= 0.95
        assert binom.cdf(high - 1, total, 0.8) - binom.cdf(low, total, 0.8) < 0.95


def test_words() -> None:
    assert sentence(Count(0.95, 19, 20)) == "19 of 20 measurements lie within their 95 % leave-out interval"
    assert "few" in remark(FEW - 1)
    assert "few" not in remark(FEW)
    assert "17 to 20 of 20 at 95 %" in remark(20)


def test_nothing_is_said_where_nothing_could_be_left_out() -> None:
    assert counts(left_out(np.full((3, 2), np.nan))) == ()
    found = studied(strategy=Transformed(), rows=8)
    assert np.all(np.isnan(found.left_out.standardised))
    page = render_fit(found, "title")
    assert "leave-out" not in page
    assert 'id="figure-calibration"' not in page
    assert as_numbers(found)["left_out_coverage"] == []


def by_hand(model: sumgp.ConstrainedGP, component: Any, row: int, entry: int) -> tuple[float, float, float]:
    """Residual, variance left open and noise of an entry: its row left out, and conditioned anew by dense algebra."""
    y = model.scaling_.outputs(model.data_.y)
    G, _ = component.posterior.features.design(model.scaling_.inputs(model.data_.x))
    n, T, W = G.shape
    offset = component.posterior.features.offset
    mean = np.zeros((n, T)) if offset is None else offset(model.data_.x)
    others = ~np.isnan(y)
    others[row] = False
    rows = G[others] / np.sqrt(np.broadcast_to(component.noise, y.shape)[others])[:, None]
    values = (y - mean)[others] / np.sqrt(np.broadcast_to(component.noise, y.shape)[others])
    precision = np.eye(W) + rows.T @ rows
    g = G[row, entry]
    predicted = mean[row, entry] + g @ np.linalg.solve(precision, rows.T @ values)
    return y[row, entry] - predicted, g @ np.linalg.solve(precision, g), component.noise[entry]


def test_standardised_residuals_are_those_of_single_fits() -> None:
    """One row left out by hand, with the hyperparameters of the whole fit."""
    model = studied().model
    row, entry = 7, 0
    residual, open_, noise = by_hand(model, model.fitted_.components[0], row, entry)
    expected = residual / np.sqrt(open_ + noise)
    assert leave_one_out(model).standardised[row, entry] == pytest.approx(expected, rel=1e-5)


def test_outputs_with_kernels_of_their_own_are_weighed_anew() -> None:
    """A peak: 4 % of an average over kernels gave left-out rows an error of 965 by the form for a single posterior."""
    generator = np.random.default_rng(1000)
    t = np.linspace(0.0, 10.0, 40)
    z = 5.0 * np.exp(-2.0 * (t - 6.0) ** 2) + 1.0 + 0.1 * generator.standard_normal(40)
    model = sumgp.ConstrainedGP(None, outputs=["z"], inputs=["t"]).fit(t, z)
    assert any(isinstance(c, OwnComponent) for c in model.fitted_.components)
    assert leave_one_out(model).rmse == pytest.approx([0.12], abs=0.03)


def test_wider_bands_do_not_spoil_left_out_rows() -> None:
    """Few rows: each is known by its own measurement almost alone, so that a wider band is wider than the noise."""
    x = np.linspace(0.0, 10.0, 12)[:, None]
    Y = np.column_stack([np.sin(x[:, 0]), np.cos(x[:, 0])]) + 0.1 * np.random.default_rng(1).standard_normal((12, 2))
    model = sumgp.ConstrainedGP(None, outputs=["a", "b"], inputs=["x"]).fit(x, Y)
    widening = model.fit_report_["widening"]
    assert widening > 1.0
    found = leave_one_out(model)
    assert np.all(found.rmse < 1.0)
    row, entry = 5, 1
    parts = [by_hand(model, c.widened(1.0 / widening), row, entry) for c in model.fitted_.components]
    residuals, spread = np.array([p[0] for p in parts]), np.array([widening**2 * p[1] + p[2] for p in parts])
    weights = model.fitted_.weights
    mean = weights @ residuals
    expected = mean / np.sqrt(weights @ (spread + (residuals - mean) ** 2))
    assert found.standardised[row, entry] == pytest.approx(expected, rel=1e-4)


def test_page_table_advice_and_numbers_say_the_same() -> None:
    found = studied()
    of_all = counts(found.left_out)
    assert of_all[0].total == 39
    table = next(t for t in score_tables(found) if t.title == "Calibration by leave-out")
    assert table.rows[-1] == ("all outputs", *(f"{c.inside} of 39" for c in of_all))
    assert table.header == ("output", "inside 50 %", "inside 80 %", "inside 95 %")
    assert [c["inside"] for c in as_numbers(found)["left_out_coverage"]] == [c.inside for c in of_all]
    words = [entry.finding for entry in advice(found) if "leave-out interval" in entry.finding]
    assert len(words) == 1
    assert sentence(of_all[-1]) in words[0]
    assert "only large faults" in words[0]
    assert "figure-calibration" in render_fit(found, "title")


def test_narrow_and_wide_intervals_are_noticed() -> None:
    found = studied()
    z = found.left_out.standardised
    for factor, good, phrase in ((4.0, False, "too narrow"), (0.1, True, "wider than necessary")):
        faulty = FitStudy(**{**vars(found), "left_out": left_out(factor * z)})
        entries = [entry for entry in advice(faulty) if "leave-out interval" in entry.finding]
        assert [entry.good for entry in entries] == [good]
        assert phrase in entries[0].finding


def test_names_are_text() -> None:
    found = studied(("<b>bold</b>", "a & b"))
    page = render_fit(found, "title")
    assert "<b>bold" not in page
    assert "&lt;b&gt;bold" in page


def test_figure_shows_every_level() -> None:
    z = np.random.default_rng(3).standard_normal((30, 2))
    panel = left_out_panel(left_out(z), LIGHT)
    dots = next(mark for mark in panel.marks if isinstance(mark, Points))
    assert dots.x == pytest.approx(CURVE)
    assert dots.y == pytest.approx([c.share for c in counts(left_out(z), CURVE)])
    band = next(mark for mark in panel.marks if isinstance(mark, Band))
    assert np.all((band.lower <= band.x) & (band.x <= band.upper))
