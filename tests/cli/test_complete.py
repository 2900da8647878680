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
