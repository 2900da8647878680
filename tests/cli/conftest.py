"""Calls of the program inside the test's own process, and a table to fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sumgp.cli.app import run

LAW = "k/2*z**2 + m/2*v**2 = E"
CONSTANTS = ["--constant", "k=1", "--constant", "m=1", "--constant", "E=0.8"]


@dataclass(frozen=True)
class Result:
    """Exit code and what was printed."""

    code: int
    out: str
    err: str


@pytest.fixture
def sumgp(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Run the program with these words."""

    def call(*words: object) -> Result:
        code = run([str(word) for word in words])
        return Result(code, *capsys.readouterr())

    return call


@pytest.fixture
def oscillator(tmp_path: Path) -> Path:
    """A CSV of ten rows with two empty cells."""
    t = np.linspace(0.0, 6.0, 10)
    Y = np.sqrt(1.6) * np.column_stack([np.sin(t), np.cos(t)]) + 0.05 * np.random.default_rng(3).standard_normal((10, 2))
    frame = pd.DataFrame({"t": t, "z": Y[:, 0], "v": Y[:, 1]})
    frame.loc[2, "z"] = frame.loc[6, "v"] = np.nan
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture
def fit_words(oscillator: Path) -> list[str]:
    """The words of a quick fit, without --out."""
    return [
        "fit",
        str(oscillator),
        "--constraint",
        LAW,
        "--inputs",
        "t",
        "--outputs",
        "z,v",
        *CONSTANTS,
        "--plug-in",
        "--grid",
        "20",
    ]
