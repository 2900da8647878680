"""Folders that cannot be written to, full disks, and folders that must not be written to."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sumgp import ConstrainedGP
from sumgp.cli.app import run
from sumgp.files import archive as files
from sumgp_studies.experiments.records import Record, RecordFile

t = np.linspace(0.0, 3.0, 10)
Y = np.column_stack([np.sin(t), 1.0 - np.sin(t)])


def failing(number: int) -> Callable[..., Any]:
    def fail(*arguments: Any, **choices: Any) -> None:
        raise OSError(number, os.strerror(number), "model.sumgp")

    return fail


def fitted() -> ConstrainedGP:
    return ConstrainedGP("p + q = 1", outputs=["p", "q"], uncertainty="plug-in", restarts=0).fit(t, Y)


# Simulated, because whoever runs the tests may be allowed to write everywhere.
@pytest.mark.parametrize(
    ("call", "number"),
    [
        ("mkstemp", errno.EACCES),
        ("mkstemp", errno.EROFS),
        ("mkstemp", errno.ENOSPC),
        ("fsync", errno.EIO),
        ("replace", errno.EACCES),
    ],
)
def test_a_model_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    gp, path = fitted(), tmp_path / "model.sumgp"
    gp.save(path)
    before = path.read_bytes()
    monkeypatch.setattr(files.tempfile if call == "mkstemp" else files.os, call, failing(number))
    with pytest.raises(OSError, match=os.strerror(number)):
        gp.save(path)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == before


def test_records_on_a_full_disk_keep_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = RecordFile(tmp_path / "records.jsonl")
    record = Record("free_fall", 0.05, 0.3, 0, "linearized", "integrated", "simulated", "converged", rmse=0.25)
    file.append([record])
    monkeypatch.setattr(os, "fsync", failing(errno.ENOSPC))
    with pytest.raises(OSError, match="No space left"):
        file.append([record])
    monkeypatch.undo()
    file.repair()
    assert file.read() == [record]


def test_a_fit_writes_nothing_outside_the_named_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path / "matplotlib"))  # its own cache, made where it is loaded first
    monkeypatch.chdir(work)
    (work / "data.csv").write_text("t,p,q\n" + "".join(f"{a},{b},{c}\n" for a, (b, c) in zip(t, Y, strict=True)))
    words = ["--inputs", "t", "--outputs", "p,q", "--plug-in", "--grid", "5", "--kernel", "rbf", "--out", "out"]
    assert run(["fit", "data.csv", "-c", "p + q = 1", *words]) == 0
    assert sorted(p.name for p in work.iterdir()) == ["data.csv", "out"]
    assert list(home.iterdir()) == []
    assert (work / "out" / "model.sumgp").is_file()
