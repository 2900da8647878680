"""The process that reads a table, fits, or predicts: ``python -m sumgp.app.worker FOLDER`` with the task in the folder."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from sumgp.app.job import ANSWER, PROGRESS, TASK


def main(folder: Path) -> None:
    """Do the task; the answer appears whole, in the end, as ``{"error": ...}`` where the task could not be done."""
    threading.Thread(target=_end_with_the_server, daemon=True).start()
    task = json.loads((folder / TASK).read_text(encoding="utf-8"))
    _limit_memory(int(task["memory"]))
    from sumgp.errors import SumGPError

    try:
        answer = _done(folder, task)
    except MemoryError:
        answer = {"error": "There is not enough memory for this; use fewer rows or columns."}
    except (SumGPError, OSError) as error:
        answer = {"error": str(error)}
    waiting = folder / f"{ANSWER}.part"
    waiting.write_text(json.dumps(answer), encoding="utf-8")
    os.replace(waiting, folder / ANSWER)


def _done(folder: Path, task: dict[str, Any]) -> dict[str, Any]:
    if task["name"] == "read":
        from sumgp.app.reading import read_upload

        return read_upload(folder, task)
    if task["name"] == "fit":
        from sumgp.app.fitting import fit_table

        return fit_table(folder, task, lambda stage: _tell(folder, stage))
    from sumgp.app.fitting import values_at

    return values_at(folder, task)


def _tell(folder: Path, stage: str) -> None:
    with (folder / PROGRESS).open("a", encoding="utf-8") as stream:
        stream.write(stage.replace("\n", " ") + "\n")


def _end_with_the_server() -> None:
    """The server never writes to this pipe: reading ends when the server does."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdin.buffer.read()
    os._exit(1)


def _limit_memory(count: int) -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (count, count))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
