"""Sections on maps: tables filled, bars against rivals, scores as published."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from typer.testing import CliRunner

from sumgp.cli.app import app
from sumgp_studies.commands import bench as command
from sumgp_studies.public import Case, Part
from sumgp_studies.speed import (
    Section,
    accuracy_section,
    compositions_section,
    gpboost_section,
    map_rivals,
    satellite_section,
)


class FakeModel:
    """Predicts the mean of its data, as GPBoost's interface has it."""

    def __init__(self, **settings: Any) -> None:
        self.mean = np.nan

    def fit(self, y: np.ndarray, X: np.ndarray) -> None:
        assert y.flags.c_contiguous
        self.mean = y.mean()

    def predict(self, gp_coords_pred: np.ndarray, **settings: Any) -> dict[str, np.ndarray]:
        return {"mu": np.full(len(gp_coords_pred), self.mean), "var": np.ones(len(gp_coords_pred))}


@pytest.fixture
def gpboost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gpboost", SimpleNamespace(GPModel=FakeModel))
    monkeypatch.setattr(map_rivals, "has_gpboost", lambda: True)


@pytest.fixture(scope="module")
def beside_dense() -> Section:
    return accuracy_section((120,), ("Matern 3/2",))


def test_beside_dense_algebra(beside_dense: Section) -> None:
    assert len(beside_dense.rows) == 4
    assert [bar.met for bar in beside_dense.bars] == [True, True, True, True]


def test_beside_gpboost(gpboost: None) -> None:
    section = gpboost_section(200)
    assert [row[0] for row in section.rows] == ["sumgp", "GPBoost"]
    assert section.bars[1].measured == pytest.approx(float(section.rows[0][3]) / float(section.rows[1][3]), rel=0.01)
    assert section.bars[1].met


def test_composition_maps(gpboost: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(160, 2))
    a = 50.0 + 20.0 * np.sin(4.0 * x[:, 0]) + rng.standard_normal(160)
    y = np.column_stack([a, 100.0 - a])
    case = Case("tiny", "0", x[:100], y[:100], ("u", "v"), ("a", "b"), ("a + b = 100",), (Part("gap", x[100:], y[100:]),))
    monkeypatch.setattr(map_rivals, "sets_named", lambda names: [SimpleNamespace(load=lambda folder: [case])])
    monkeypatch.setattr(map_rivals, "gemas_gap", lambda folder: [])
    section = compositions_section(tmp_path)
    assert section.rows[0][:3] == ("tiny", "gap", "1")
    bars = {bar.what: bar for bar in section.bars}
    assert bars["tiny, gap: error / GPBoost"].measured < 0.3
    assert bars["tiny, gap: law residual / total"].met
    assert bars["tiny, gap: outside the 95 % intervals"].measured == pytest.approx(1.0 - float(section.rows[0][6]), abs=1e-3)


def test_satellite(tmp_path: Path) -> None:
    (tmp_path / "spatial").mkdir()
    side, rng = np.linspace(0.0, 1.0, 20), np.random.default_rng(0)
    values = np.add.outer(side, np.sin(5.0 * side)) + 0.01 * rng.standard_normal((20, 20))
    split = np.where(rng.uniform(size=(20, 20)) < 0.2, 2, 1)
    for name, table in (("satellite", values), ("split", split)):
        pd.DataFrame(table, index=pd.Index(side, name="lat"), columns=side).to_csv(tmp_path / "spatial" / f"{name}.csv")
    head = "method,mae,rmse,crps,interval_score_95,coverage_95,minutes,cores"
    (tmp_path / "spatial" / "published_satellite.csv").write_text(head + "\nFRK,2,2,2,2,.9,1,1\nNNGP_a,.5,.5,.3,1,.9,1,1\n")
    section = satellite_section(tmp_path)
    assert [row[0] for row in section.rows] == ["sumgp", "FRK", "NNGP_a"]
    assert [(bar.limit, bar.met) for bar in section.bars] == [(0.5, True), (0.3, True)]
    assert "not comparable" in satellite_section(tmp_path, 2).note


def test_scores_are_the_published_ones() -> None:
    """CRPS as the integral of the squared difference of distribution functions."""
    mean, sd, y = np.array([0.3]), np.array([0.7]), np.array([2.1])
    grid = np.linspace(-8.0, 10.0, 200_001)
    integral = np.sum((norm.cdf(grid, 0.3, 0.7) - (grid >= 2.1)) ** 2) * (grid[1] - grid[0])
    found = map_rivals._scores(mean, sd, y)
    assert found["crps"] == pytest.approx(integral, abs=1e-4)
    assert found["int"] == pytest.approx(2 * 1.96 * 0.7 + 40.0 * (1.8 - 1.96 * 0.7))
    assert found["cvg"] == 0.0


def test_the_command_lists_what_it_can_measure(
    beside_dense: Section, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("SUMGP_DATA_DIR", raising=False)
    assert len(command._maps(False, None)) == 3
    assert [name for name, _ in command._maps(False, tmp_path)][3:] == ["composition maps", "satellite"]
    assert [name for name, _ in command.QUICK_MAPS] == [name for name, _ in command._maps(False, None)]
    monkeypatch.setattr(command, "QUICK_MAPS", ((command.QUICK_MAPS[1][0], lambda: beside_dense),))
    done = CliRunner().invoke(app, ["bench", "--maps", "--quick", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "Maps beside dense algebra" in (tmp_path / "results.md").read_text()
