"""A person in front of the page, whose folder is removed afterwards; tasks without a process of their own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from app.person import Person, person_with

from sumgp.app import job, worker
from sumgp.app.store import Limits


def done_here(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Tasks of these names are done before their start returns, in the test's own process, which saves loading libraries."""
    monkeypatch.setattr(worker, "_end_with_the_server", lambda: None)
    monkeypatch.setattr(worker, "_limit_memory", lambda count: None)

    def started(command: list[str], **choices: Any) -> Any:
        folder = Path(command[-1])
        if json.loads((folder / job.TASK).read_text())["name"] not in names:
            return subprocess.Popen(command, **choices)
        worker.main(folder)
        return SimpleNamespace(poll=lambda: 0, wait=lambda: 0)

    monkeypatch.setattr(job, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": started}))


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No task has a process: the page is the subject."""
    done_here(monkeypatch, "read", "fit", "values")


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Iterator[Person]:
    """Tables are read at once; fits have their processes."""
    done_here(monkeypatch, "read")
    found = person_with(Limits(upload_bytes=200_000, form_bytes=50_000, rows=500, points=1_000))
    yield found
    found.workspace.close()
