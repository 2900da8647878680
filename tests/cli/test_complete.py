"""``sumgp complete``: gaps of a CSV file filled."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def composition(tmp_path: Path) -> Path:
    """A CSV of closed rows with a gap in two of them, of one and of two cells."""
    t = np.linspace(0.0, 5.0, 14)
    noise = 0.05 * np.random.default_rng(1000).standard_normal((14, 2))
    a, b = 3.0 + np.sin(t) + noise[:, 0], 2.0 + np.cos(t) + noise[:, 1]
    frame = pd.DataFrame({"t": t, "a": a, "b": b, "c": 10.0 - a - b, "place": "north"})
    frame.loc[4, "b"] = np.nan
    frame.loc[8, ["a", "c"]] = np.nan
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    return path


def test_gaps_are_filled_and_the_rest_stays(sumgp, composition: Path, tmp_path: Path) -> None:
    out = tmp_path / "filled.csv"
    words = [
        "complete",
        composition,
        "--law",
        "a + b + c = 10",
        "--inputs",
        "t",
        "--outputs",
        "a,b,c",
        "--plug-in",
        "-o",
        out,
    ]
    result = sumgp(*words)
    assert (result.code, result.err) == (0, "")
    assert "14 rows, 3 gaps filled, 1 of them determined by the law" in result.out
    given, filled = pd.read_csv(composition), pd.read_csv(out)
    assert list(filled.columns[:6]) == ["t", "a", "a_sd", "a_lower", "a_upper", "a_determined"]
    for name in "abc":
        kept = given[name].notna()
        assert filled.loc[kept, name].to_numpy() == pytest.approx(given.loc[kept, name].to_numpy(), rel=1e-12)
        assert set(filled.loc[kept, f"{name}_source"]) == {"measured"}
    assert filled.loc[4, "b_source"] == "law"
    assert filled.loc[4, "b"] == pytest.approx(10.0 - given.loc[4, "a"] - given.loc[4, "c"], abs=1e-9)
    assert filled.loc[8, "a_source"] == "fit"
    assert filled[["a", "b", "c"]].sum(axis=1).to_numpy() == pytest.approx(10.0, abs=1e-9)
    assert sumgp(*words).code == 2  # the file exists
    again = sumgp(*words, "--force", "--json")
    assert json.loads(again.out)["determined_by_law"] == 1


def test_a_budget_is_written_as_it_was_read(sumgp, tmp_path: Path) -> None:
    """Whole years, cells without round-off, measured ones without a standard deviation."""
    rng = np.random.default_rng(1001)
    staff, rent = np.round(40.0 + np.arange(16) + rng.standard_normal(16), 1), np.round(12.0 + rng.standard_normal(16), 1)
    budget = pd.DataFrame({"year": np.arange(2000, 2016), "staff": staff, "rent": rent, "total": np.round(staff + rent, 1)})
    given = budget.astype({"staff": object})
    given.loc[[3, 5, 8], "staff"] = ""
    given.to_csv(tmp_path / "budget.csv", index=False)
    words = ["--inputs", "year", "--law", "staff + rent = total", "--law", "all >= 0", "--plug-in"]
    result = sumgp("complete", tmp_path / "budget.csv", *words, "-o", tmp_path / "filled.csv")
    assert result.code == 0
    lines = (tmp_path / "filled.csv").read_text().splitlines()
    for row in (3, 4, 5, 8):
        year, value, sd, lower, upper = lines[row + 1].split(",")[:5]
        assert (year, value, sd, lower, upper) == (f"{2000 + row}", f"{staff[row]}", "0.0", f"{staff[row]}", f"{staff[row]}")


def panel_table(path: Path) -> pd.DataFrame:
    """Two countries whose rows take turns, far apart, with gaps in one row each."""
    rng, year = np.random.default_rng(1002), np.repeat(np.arange(1990, 2004), 2)
    level = np.tile([10.0, 500.0], 14)
    a, b = level + np.sin(year / 3.0) + 0.1 * rng.standard_normal(28), 2.0 * level + 0.1 * rng.standard_normal(28)
    frame = pd.DataFrame({"country": np.tile(["AT", "BE"], 14), "year": year, "a": a, "b": b, "c": a + b})
    frame.loc[[12, 15], ["a", "b"]] = np.nan
    frame.to_csv(path, index=False)
    return frame.assign(a=a, b=b)


def test_panels_are_fitted_one_by_one(sumgp, tmp_path: Path) -> None:
    path, out = tmp_path / "panel.csv", tmp_path / "filled.csv"
    truth = panel_table(path)
    words = ["complete", path, "--inputs", "year", "--law", "a + b = c", "--plug-in", "-o", out, "--force"]
    result = sumgp(*words, "--panel", "country")
    assert (result.code, result.err) == (0, "")
    assert "28 rows, 4 gaps filled, 0 of them determined by the law" in result.out
    filled = pd.read_csv(out)
    assert list(filled.columns[:3]) == ["country", "year", "a"]
    assert filled["country"].tolist() == truth["country"].tolist()
    assert filled["a"].to_numpy() == pytest.approx(truth["a"].to_numpy(), abs=1.0)
    wrong = sumgp(*words, "--panel", "land")
    assert (wrong.code, "choose one of country, year, a, b, c" in wrong.err) == (2, True)
    unnamed = sumgp(*words)
    assert unnamed.code == 2
    assert "name the columns with --outputs, without it" in unnamed.err


def test_panels_need_a_name_in_every_row(sumgp, tmp_path: Path) -> None:
    path = tmp_path / "panel.csv"
    panel_table(path).assign(country=["AT", None] * 14).to_csv(path, index=False)
    result = sumgp("complete", path, "--inputs", "year", "--panel", "country", "-o", tmp_path / "filled.csv")
    assert (result.code, "an empty cell in row 2" in result.err) == (2, True)


def test_negative_fills_of_shares_are_pointed_out(sumgp, tmp_path: Path) -> None:
    """A share that falls to zero: between zeros, a smooth fit goes below them."""
    t = np.arange(20.0)
    wind = np.maximum(0.0, 0.5 - 0.06 * t)
    gas = 0.3 + 0.1 * np.sin(t)
    frame = pd.DataFrame({"t": t, "wind": wind, "gas": gas, "coal": 1.0 - wind - gas})
    frame.loc[[9, 10, 11], ["wind", "gas", "coal"]] = np.nan
    frame.to_csv(tmp_path / "shares.csv", index=False)
    words = ["complete", tmp_path / "shares.csv", "--inputs", "t", "--law", "wind + gas + coal = 1", "--plug-in", "--force"]
    told = sumgp(*words, "--kernel", "rbf", "-o", tmp_path / "filled.csv", "--json")
    warned = [text for text in json.loads(told.out)["warnings"] if "below zero" in text]
    assert len(warned) == 1
    assert warned[0].endswith("of 'wind' below zero, where no measured one is; if that cannot be, add the law 'wind >= 0'")
    bounded = sumgp(*words, "--kernel", "rbf", "--law", "wind >= 0", "-o", tmp_path / "filled.csv", "--json")
    assert not [text for text in json.loads(bounded.out)["warnings"] if "below zero" in text]
