"""Text of the user's in a report is shown, never obeyed; nothing is read or written by pickle while the package works."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sumgp
from sumgp.cli.app import run
from sumgp_studies.experiments.records import Record, RecordFile

MARKUP = ["<script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "a & b </style>"]
t = np.linspace(0.0, 3.0, 10)


def test_column_names_with_markup_are_escaped(tmp_path: Path) -> None:
    frame = pd.DataFrame({MARKUP[0]: t, MARKUP[1]: np.sin(t), MARKUP[2]: 1.0 - np.sin(t)})
    frame.to_csv(tmp_path / "data.csv", index=False)
    words = ["--inputs", MARKUP[0], "--plug-in", "--grid", "5", "--kernel", "rbf", "--out", str(tmp_path / "out")]
    assert run(["fit", str(tmp_path / "data.csv"), *words]) == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "b </style>" not in page


def test_no_pickle_at_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **choices: Any) -> None:
        raise AssertionError("pickle was used")

    for name in ("load", "loads", "dump", "dumps", "Pickler", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    gp = sumgp.ConstrainedGP("p + q = 1", outputs=["p", "q"], restarts=0, uncertainty="plug-in")
    gp.fit(t, np.column_stack([np.sin(t), 1.0 - np.sin(t)]))
    gp.save(tmp_path / "m.sumgp")
    assert sumgp.load(tmp_path / "m.sumgp").predict(t).shape == (10, 2)
    with pytest.raises(AssertionError, match="pickle was used"):
        pickle.dumps(1)


def test_record_files_of_random_bytes_give_records_or_nothing(tmp_path: Path, rng: np.random.Generator) -> None:
    """No exception and no invented record, whatever the bytes; a good line among them is still found."""
    good = Record("free_fall", 0.05, 0.3, 0, "linearized", "integrated", "simulated", "converged", rmse=0.25)
    path = tmp_path / "records.jsonl"
    for _ in range(50):
        noise = rng.integers(0, 256, size=200, dtype=np.uint8).tobytes()
        path.write_bytes(noise + b"\n" + good.to_json().encode() + b"\n" + noise)
        with pytest.warns(sumgp.SumGPWarning, match="unreadable"):
            assert good in RecordFile(path).read()
