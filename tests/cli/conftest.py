"""Calls of the program inside the test's own process, and a table to fit."""

from __future__ import annotations

import contextlib
import io
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


def oscillator_table(folder: Path) -> Path:
    """A CSV of ten rows with two empty cells."""
    t = np.linspace(0.0, 6.0, 10)
    Y = np.sqrt(1.6) * np.column_stack([np.sin(t), np.cos(t)]) + 0.05 * np.random.default_rng(3).standard_normal((10, 2))
    frame = pd.DataFrame({"t": t, "z": Y[:, 0], "v": Y[:, 1]})
    frame.loc[2, "z"] = frame.loc[6, "v"] = np.nan
    path = folder / "data.csv"
    frame.to_csv(path, index=False)
    return path


def words_of_a_fit(table: Path) -> list[str]:
    words = ["fit", str(table), "--constraint", LAW, "--inputs", "t", "--outputs", "z,v", *CONSTANTS]
    return [*words, "--plug-in", "--grid", "20", "--kernel", "rbf"]


@pytest.fixture
def oscillator(tmp_path: Path) -> Path:
    """A CSV of ten rows with two empty cells."""
    return oscillator_table(tmp_path)


@pytest.fixture
def fit_words(oscillator: Path) -> list[str]:
    """The words of a quick fit, without --out."""
    return words_of_a_fit(oscillator)


@pytest.fixture(scope="module")
def quick_fit(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    """What that fit says, and the folder that it wrote: to look at, not to write in."""
    folder = tmp_path_factory.mktemp("quick")
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run([*words_of_a_fit(oscillator_table(folder)), "--out", str(folder / "results")])
    return Result(code, out.getvalue(), err.getvalue()), folder / "results"
