"""docs/fit-report.md lists the keys that reports of real fits have: none is missing there, none is invented."""

from __future__ import annotations

import re
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import Matern

import sumgp
from sumgp.cli.app import run

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "fit-report.md").read_text(encoding="utf-8")
ATTRIBUTES = {"status", "strategy", "kernel", "uncertainty", "log_evidence"}
SQUARES = "z**2 + v**2 = 1"
VARYING = "(1 + t)*z + v = 1"


def listed() -> set[str]:
    """Keys in the first column of the page's tables."""
    return set(re.findall(r"^\| `(\w+)` \|", PAGE, flags=re.MULTILINE))


def report_keys(law: Any, rows: int = 12, **settings: Any) -> set[str]:
    t = np.linspace(0.0, 3.0, rows)
    noise = 0.02 * np.random.default_rng(0).standard_normal((rows, 2))
    gp = sumgp.ConstrainedGP(law, outputs=["z", "v"], inputs=["t"], **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # laws that the data contradict do here
        gp.fit(t, np.column_stack([np.sin(t), np.cos(t)]) + noise)
    return ATTRIBUTES | set(gp.fit_report_.details)


@pytest.fixture(scope="module")
def real_keys() -> set[str]:
    """Keys of the reports of every strategy, averaged and plugged in, and of the solver for series."""
    quick = {"uncertainty": "plug-in", "kernel": Matern(nu=2.5), "restarts": 0}
    keys = report_keys(None) | report_keys(SQUARES, strategy=sumgp.Transformed(), **quick)
    for law, strategy in [(SQUARES, "Linearized"), (SQUARES, "Projected"), ("z + v = 1", "Conditioned"), (VARYING, None)]:
        keys |= report_keys(law, strategy=getattr(sumgp, strategy)() if strategy else None, **quick)
    keys |= report_keys(SQUARES, strategy=sumgp.Linearized(taper=None), **quick)
    keys |= report_keys("z + v = 1; z <= 0.9", **quick) | report_keys(SQUARES, kernel=Matern(nu=2.5))
    for law in (None, SQUARES, "z + v = 1"):
        keys |= report_keys(law, rows=40, solver=sumgp.Markov(), **quick)
    keys |= report_keys("z + v = 1", rows=60, solver=sumgp.Vecchia(), **quick)
    keys |= report_keys(f"{SQUARES} +- unknown", **quick) | report_keys(f"{SQUARES}; d(z, t) = v", **quick)
    keys |= report_keys("z + v = a + b", constants={"a": "unknown", "b": "unknown"}, **quick)
    keys |= report_keys("d(z, t) = v; d(v, t) = -k*z", constants={"k": "unknown"}, uncertainty="plug-in", restarts=0)
    return keys | dated_keys() | command_keys()


def dated_keys() -> set[str]:
    """Of a fit over dates."""
    days = pd.DataFrame({"t": pd.date_range("2024-01-01", periods=8)})
    gp = sumgp.ConstrainedGP(None, outputs=["z"], uncertainty="plug-in").fit(days, np.sin(np.arange(8.0))[:, None])
    return set(gp.fit_report_.details)


def command_keys() -> set[str]:
    """Of a fit by ``sumgp fit``."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        table.write_text("t,z\n" + "\n".join(f"{i},{np.sin(i)}" for i in range(8)), encoding="utf-8")
        assert run(["fit", str(table), "--inputs", "t", "--plug-in", "--out", f"{folder}/out", "--json"]) == 0
        return set(sumgp.load(f"{folder}/out/model.sumgp").fit_report_.details)


def test_every_key_of_a_report_is_on_the_page(real_keys: set[str]) -> None:
    assert real_keys - listed() == set()


def test_every_key_on_the_page_is_in_a_report(real_keys: set[str]) -> None:
    assert listed() - real_keys == set()
