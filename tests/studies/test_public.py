"""Public sets: choice by name, cases, competitors, hierarchies, page, resumed runs; on small files made here."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sumgp.errors import SumGPError
from sumgp_studies.commands.public import chosen_sets, data_folder, reproduce_public
from sumgp_studies.experiments import RecordFile
from sumgp_studies.public import Case, Part, hierarchy_scores, plan, read_hierarchy, sets_named, unfinished
from sumgp_studies.public.hierarchies import base_forecasts, gaussian_quantiles, scaled_crps, smoothing_errors
from sumgp_studies.public.methods import cells_at, predicted
from sumgp_studies.public.rivals import is_composition, log_ratios

DEPTHS = np.arange(1.0, 31.0)


@pytest.fixture
def folder(tmp_path):
    """A composition with the columns of the fossil set, and a hierarchy of two bottom series."""
    logits = np.column_stack([np.sin(DEPTHS / 9), np.cos(DEPTHS / 7), DEPTHS / 30, 0 * DEPTHS])
    shares = np.exp(logits + 0.1 * np.random.default_rng(0).standard_normal(logits.shape))
    table = pd.DataFrame(shares / shares.sum(axis=1, keepdims=True), columns=["a", "b", "c", "d"])
    table.insert(0, "depth_index", DEPTHS)
    (tmp_path / "real" / "foraminifera").mkdir(parents=True)
    table.to_csv(tmp_path / "real" / "foraminifera" / "foraminifera.csv", index=False)
    (tmp_path / "hierarchies").mkdir()
    generator = np.random.default_rng(1)
    bottom = 50 + 10 * np.sin(np.arange(48)[:, None] * np.pi / 2 + [0, 1]) + generator.standard_normal((48, 2))
    series = pd.DataFrame({"total": bottom.sum(axis=1), "n": bottom[:, 0], "s": bottom[:, 1]})
    series.to_csv(tmp_path / "hierarchies" / "tourismsmall.csv", index=False)
    summing = pd.DataFrame([[1, 1], [1, 0], [0, 1]], index=["total", "n", "s"], columns=["n", "s"])
    summing.to_csv(tmp_path / "hierarchies" / "tourismsmall_S.csv")
    return tmp_path


def test_names_are_checked_and_folders_looked_for(folder, monkeypatch):
    sets, trees = chosen_sets([], folder)
    assert [entry.name for entry in sets] == ["foraminifera"]
    assert trees == ["tourismsmall"]
    with pytest.raises(SumGPError, match="did you mean 'foraminifera'"):
        chosen_sets(["foraminifer"], folder)
    with pytest.raises(SumGPError, match="the folder of 'mars'"):
        chosen_sets(["mars"], folder)
    monkeypatch.delenv("SUMGP_DATA_DIR", raising=False)
    with pytest.raises(SumGPError, match="SUMGP_DATA_DIR"):
        data_folder(None)


def test_run_writes_page_and_resumes(folder, tmp_path, capsys):
    out = tmp_path / "out"
    reproduce_public(["foraminifera", "tourismsmall"], out, 1, True, folder)
    text = (out / "public.md").read_text()
    assert "geometric mean" in text
    assert "log-ratio GP" in text
    assert "| sumgp.reconcile |" in text
    assert (out / "public.png").stat().st_size > 10_000
    tasks = list(plan(sets_named(["foraminifera"]), folder, quick=True))
    assert unfinished(tasks, RecordFile(out / "public_quick.jsonl")) == []
    capsys.readouterr()
    reproduce_public(["foraminifera"], out, 1, True, folder)
    assert f"{len(tasks)} fits in all, {len(tasks)} done before" in capsys.readouterr().out
    # Another set beside it: the first stays on the page.
    reproduce_public(["tourismsmall"], out, 1, True, folder)
    assert "log-ratio GP" in (out / "public.md").read_text()


def test_hierarchy_by_reconcile_equals_the_textbook(folder):
    scores = hierarchy_scores(read_hierarchy(folder, "tourismsmall"))
    assert scores["sumgp.reconcile"] == pytest.approx(scores["MinT"], rel=1e-9)
    assert scores["sumgp.reconcile"] != pytest.approx(scores["bottom-up"], rel=1e-6)
    pytest.importorskip("hierarchicalforecast")
    assert scores["sumgp.reconcile"] == pytest.approx(scores["MinT of hierarchicalforecast"], rel=1e-6)


def test_smoothing_follows_a_trend_and_a_season_exactly():
    t = np.arange(40)
    y = 3.0 + 0.5 * t + np.tile([1.0, -2.0, 0.5, 0.5], 10)
    found = base_forecasts(y[:32, None], 4)
    # The start takes the season from the first year with its trend, so a small error is left.
    np.testing.assert_allclose(found.mean[:, 0], y[32:], atol=0.6)
    errors, ahead = smoothing_errors(np.tile([1.0, -2.0, 0.5, 0.5], 8), 4, np.array([0.3, 0.1, 0.1]))
    np.testing.assert_allclose(errors, 0.0, atol=1e-12)
    np.testing.assert_allclose(ahead, np.tile([1.0, -2.0, 0.5, 0.5], 2), atol=1e-12)


def test_scaled_crps_by_quadrature():
    # One value, N(0, 1): 2 x mean pinball loss over the quantiles, by a loop.
    from scipy.stats import norm

    truth = np.array([[0.7]])
    levels = np.linspace(0.05, 0.95, 19)
    losses = [max(p * (0.7 - q), (p - 1) * (0.7 - q)) for p, q in zip(levels, norm.ppf(levels), strict=True)]
    expected = 2 * np.mean(losses) / 0.7
    assert scaled_crps(truth, gaussian_quantiles(np.zeros((1, 1)), np.ones((1, 1)))) == pytest.approx(expected)


def test_log_ratios_keep_shares_and_only_suit_compositions():
    x = np.linspace(0, 1, 20)[:, None]
    y = np.column_stack([0.5 + 0.4 * x[:, 0], 0.5 - 0.4 * x[:, 0]])
    case = Case("s", "0", x, y, ("x",), ("a", "b"), ("a + b = 1",), (Part("p", x, y),))
    assert is_composition(case)
    found = log_ratios(case)(x, y)
    np.testing.assert_allclose(found.mean.sum(axis=1), 1.0)
    assert np.max(np.abs(found.mean - y)) < 0.05
    assert not is_composition(Case("s", "0", x, y, ("x",), ("a", "b"), ("a + b = total",), ()))
    assert not is_composition(Case("s", "0", x, np.where(x > 0.5, np.nan, y), ("x",), ("a", "b"), ("a + b = 1",), ()))


def test_cells_of_a_row_are_given_to_every_method():
    """One cell of a row of three is known, the law makes the sum of the others exact, and the known one stays."""
    x = np.linspace(0, 1, 24)[:, None]
    y = np.column_stack([np.sin(3 * x[:, 0]), np.cos(2 * x[:, 0]), -np.sin(3 * x[:, 0]) - np.cos(2 * x[:, 0])])
    hidden = y.copy()
    hidden[7, 1:] = np.nan
    part = Part("cells", x[7:8], np.where(np.isnan(hidden), y, np.nan)[7:8])
    case = Case("s", "0", x, hidden, ("x",), ("a", "b", "c"), ("a + b + c = 0",), (part,))
    assert cells_at(case, part.x, part.y)[0, 0] == y[7, 0]
    assert cells_at(case, part.x + 0.01, part.y) is None
    # What is scored there was measured in the table too: another row at the same place, not this one.
    assert cells_at(case, part.x, y[7:8]) is None
    for method in ("law", "scikit-learn"):
        found = predicted(case, method)(part.x, part.y)
        assert found.mean[0, 0] == pytest.approx(y[7, 0], abs=1e-7)
        assert found.mean[0, 1] + found.mean[0, 2] == pytest.approx(-y[7, 0], abs=1e-5)
        assert np.max(np.abs(found.mean[0] - y[7])) < 0.05
