"""Laws with derivatives on the command line: how they are understood, and a fit from file to report."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

import sumgp as package

LAW = "d(n, t) = r*n*(1 - n/K)"


def test_check_says_where_each_law_holds(sumgp) -> None:
    grown = sumgp("check", LAW, "--outputs", "n", "--inputs", "t", "--constant", "r=unknown", "--constant", "K=unknown")
    assert grown.code == 0
    assert "on a grid between them" in " ".join(grown.out.split())
    assert "strategy: Collocated" in grown.out
    moving = sumgp("check", "d(z, t) = v", "z**2 + v**2 = 1", "--outputs", "z,v", "--inputs", "t", "--json")
    told = json.loads(moving.out)
    assert told["held"] == [
        "holds everywhere, up to the small step that brings predictions onto the other laws",
        "holds at every prediction point",
    ]
    assert told["strategy"] == "Linearized"


def test_a_derivative_by_something_else_is_an_error(sumgp) -> None:
    result = sumgp("check", "d(z, v) = 1", "--outputs", "z,v", "--inputs", "t")
    assert result.code != 0
    assert "derivatives are taken by inputs" in " ".join(result.err.split())


def test_fit_writes_model_predictions_and_report(sumgp, tmp_path: Path) -> None:
    t = np.linspace(0.0, 5.0, 10)
    n = 2.0 / (1.0 + 9.0 * np.exp(-1.3 * t)) + 0.05 * np.random.default_rng(0).standard_normal(10)
    table, out = tmp_path / "growth.csv", tmp_path / "out"
    pd.DataFrame({"t": t, "n": n}).to_csv(table, index=False)
    constants = ["--constant", "r=unknown", "--constant", "K=unknown"]
    words = ["fit", table, "-c", LAW, "--inputs", "t", "--outputs", "n", *constants, "--kernel", "rbf", "--out", out]
    result = sumgp(*words)
    assert result.code == 0, result.err
    model = package.load(out / "model.sumgp")
    assert model.fit_report_.strategy == "Collocated"
    frame = pd.read_csv(out / "predictions.csv")
    assert frame["law_residual"].abs().max() < 1e-8
    assert "d(n, t)" in (out / "report.html").read_text(encoding="utf-8")
