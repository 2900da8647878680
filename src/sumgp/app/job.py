"""Work in a process of its own: it can be watched, stopped at any moment, and ends with the program that started it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TASK, ANSWER, PROGRESS, TROUBLE = "task.json", "answer.json", "progress.txt", "stderr.txt"
RUNNING, DONE, FAILED, CANCELLED, TOO_LONG = "running", "done", "failed", "cancelled", "too long"
LAST_LINES = 3  # of a dead process's own words, shown if it left nothing better


@dataclass(frozen=True)
class JobState:
    """``kind`` is one of the five words above; ``stages`` are what was done so far, the last one under way."""

    kind: str
    stages: tuple[str, ...]
    seconds: float
    message: str = ""


class Job:
    """A worker process on one folder; ``task`` is what it is to do."""

    def __init__(self, folder: Path, task: dict[str, Any], seconds: float, memory: int) -> None:
        self.folder = folder
        self._limit = seconds
        self._started, self._ended = time.monotonic(), 0.0
        self._stopped = ""
        (folder / TASK).write_text(json.dumps({**task, "memory": memory}), encoding="utf-8")
        # The worker's own temporary files and caches stay in the folder; -P keeps the folder out of the import path.
        place = {"TMPDIR": str(folder), "MPLCONFIGDIR": str(folder.parent / "matplotlib"), "MPLBACKEND": "Agg"}
        with (folder / TROUBLE).open("wb") as trouble:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "sumgp.app.worker", str(folder)],
                cwd=folder,
                env={**os.environ, **place},
                # The worker ends when this pipe closes, as it does when the server dies in whatever way.
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=trouble,
                start_new_session=True,
            )
        self._timer = threading.Timer(seconds, self._stop, (TOO_LONG,))
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        """Kill the process; what is done already stays done."""
        self._stop(CANCELLED)

    def wait(self) -> JobState:
        """The state once the process has ended."""
        self._process.wait()
        return self.state()

    def state(self) -> JobState:
        """Where the work stands."""
        code = self._process.poll()
        stages = _lines(self.folder / PROGRESS)
        if code is None:
            return JobState(RUNNING, stages, time.monotonic() - self._started)
        self._timer.cancel()
        self._ended = self._ended or time.monotonic()
        seconds = self._ended - self._started
        answer = self.answer()
        if "error" in answer:
            return JobState(FAILED, stages, seconds, str(answer["error"]))
        if answer:
            return JobState(DONE, stages, seconds)
        if self._stopped == TOO_LONG:
            return JobState(TOO_LONG, stages, seconds, f"Stopped after {self._limit:.0f} seconds, the longest time allowed.")
        if self._stopped:
            return JobState(CANCELLED, stages, seconds, "Stopped as you asked.")
        last = " ".join(_lines(self.folder / TROUBLE)[-LAST_LINES:])
        return JobState(FAILED, stages, seconds, f"The process that did the work died (code {code}). {last}".strip())

    def answer(self) -> dict[str, Any]:
        """What the worker wrote at its end; empty before."""
        path = self.folder / ANSWER
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}

    def _stop(self, reason: str) -> None:
        if self._process.poll() is not None:
            return
        self._stopped = self._stopped or reason
        if os.name == "posix":
            os.killpg(self._process.pid, signal.SIGKILL)
        else:
            self._process.kill()
        self._process.wait()


def _lines(path: Path) -> tuple[str, ...]:
    if not path.is_file():
        return ()
    return tuple(line for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip())
