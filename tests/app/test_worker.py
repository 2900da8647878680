"""What the worker process does with its folder, without the process: read, fit, predict, or say why not."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sumgp
from sumgp.app import worker
from sumgp.app.choice import Choice, Constant
from sumgp.app.job import ANSWER, PROGRESS, TASK

CHOICE = Choice(("t",), ("a", "b"), "a + b = c", (Constant("c", "unknown"),), quick=True)


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Answers of tasks in folders of their own; the limits of a process of its own would hold for all later tests."""
    monkeypatch.setattr(worker, "_end_with_the_server", lambda: None)
    monkeypatch.setattr(worker, "_limit_memory", lambda count: None)

    def done(place: str, **task) -> dict:
        folder = tmp_path / place
        folder.mkdir(exist_ok=True)
        (folder / TASK).write_text(json.dumps({**task, "memory": 1}))
        worker.main(folder)
        assert not list(folder.glob("*.part"))
        return json.loads((folder / ANSWER).read_text())

    return done


def table(folder: Path) -> Path:
    """Two outputs that add up to 2, one cell of them missing."""
    folder.mkdir()
    t = np.linspace(0.0, 3.0, 12)
    noise = 0.02 * np.random.default_rng(0).standard_normal((12, 2))
    frame = pd.DataFrame({"t": t, "a": np.sin(t) + noise[:, 0], "b": 2.0 - np.sin(t) + noise[:, 1]})
    frame.loc[4, "b"] = np.nan
    frame.to_csv(folder / "upload.csv", index=False)
    return folder


def test_a_table_is_read_fitted_and_asked_for_values(work, tmp_path: Path) -> None:
    place = table(tmp_path / "read")
    info = work("read", name="read", file="upload.csv", shown="mine.csv", rows=50, columns=5)["info"]
    assert [column["name"] for column in info["columns"]] == ["t", "a", "b"]

    fitted = work("fit", name="fit", table=str(place), shown="mine.csv", choice=asdict(CHOICE))
    assert np.ravel(fitted["points_like"]) == pytest.approx([0.0, 18.0 / 11.0, 3.0])
    assert (tmp_path / "fit" / PROGRESS).read_text().splitlines()[0] == "reading the table"
    completed = pd.read_csv(tmp_path / "fit" / "completed.csv")
    assert np.isfinite(completed["b"][4])

    gp = sumgp.load(tmp_path / "fit" / "model.sumgp")
    assert gp.posterior([[1.0]]).constants().loc["c", "mean"] == pytest.approx(2.0, abs=0.05)
    answer = work("values", name="values", fit=str(tmp_path / "fit"), file="", shown="", text="1\n4", points=10)
    assert (answer["total"], answer["beyond"]) == (2, 1)
    assert answer["rows"][0][answer["header"].index("a")] == f"{gp.predict([[1.0]])[0, 0]:.5g}"


def test_what_cannot_be_done_is_an_error_in_the_users_words(work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = table(tmp_path / "read")
    few = work("read", name="read", file="upload.csv", shown="mine.csv", rows=5, columns=5)
    assert few["error"].startswith("mine.csv: expected at most 5 rows")

    def no_memory(folder: Path, task: dict) -> dict:
        raise MemoryError

    monkeypatch.setattr(worker, "_done", no_memory)
    assert "not enough memory" in work("fit", name="fit", table=str(place), shown="mine.csv", choice=asdict(CHOICE))["error"]
