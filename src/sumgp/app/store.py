"""Tables and fits of one run of the page, in one temporary folder that is gone afterwards, and how much they may take."""

from __future__ import annotations

import re
import secrets
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath
from typing import Any

from sumgp.app.choice import Choice, TableInfo, info_from
from sumgp.app.job import DONE, RUNNING, Job, JobState
from sumgp.errors import DataError

LONGEST_NAME = 80  # characters of a file's name that are kept


@dataclass(frozen=True)
class Table:
    """A table that was read; ``shown`` is the name of the file it came from, ``choice`` what is filled in at first."""

    key: str
    shown: str
    folder: Path
    info: TableInfo
    choice: Choice


@dataclass(frozen=True)
class Fit:
    """A fit that was started."""

    key: str
    table: Table
    choice: Choice
    folder: Path
    job: Job


class Workspace:
    """Everything that a run of the page keeps; ``close`` kills what still runs and removes the folder."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.folder = Path(tempfile.mkdtemp(prefix="sumgp-app-"))
        self.tables: dict[str, Table] = {}
        self.fits: dict[str, Fit] = {}
        self._jobs: list[Job] = []

    def close(self) -> None:
        """Kill all processes and remove all files."""
        for job in self._jobs:
            job.cancel()
        shutil.rmtree(self.folder, ignore_errors=True)

    def read(self, shown: str, content: bytes, choice: Choice | None = None) -> Table:
        """Read a file in a process of its own; DataError where that fails. Only its ending is taken from its name."""
        shown = plain_name(shown)
        folder = self._new_folder()
        name = f"upload{PurePath(shown).suffix.lower()}"
        (folder / name).write_bytes(content)
        limits = {"rows": self.limits.rows, "columns": self.limits.columns}
        job = self._started(folder, {"name": "read", "file": name, "shown": shown, **limits}, self.limits.read_seconds)
        answer = _answer(job, job.wait())
        table = Table(folder.name, shown, folder, info_from(answer["info"]), choice or Choice())
        self.tables[table.key] = table
        while len(self.tables) > self.limits.tables:
            self._forget(next(iter(self.tables.values())))
        return table

    def fit(self, table: Table, choice: Choice) -> Fit:
        """Start a fit; DataError where too many run already."""
        if sum(f.job.state().kind == RUNNING for f in self.fits.values()) >= self.limits.running:
            raise DataError(f"{self.limits.running} fits are under way already; wait for one or cancel it.")
        self.tables[table.key] = Table(table.key, table.shown, table.folder, table.info, choice)
        folder = self._new_folder()
        task = {"name": "fit", "table": str(table.folder), "shown": table.shown, "choice": asdict(choice)}
        job = self._started(folder, task, self.limits.fit_seconds)
        made = Fit(folder.name, table, choice, folder, job)
        self.fits[made.key] = made
        return made

    def values(self, fit: Fit, text: str, shown: str = "", content: bytes = b"") -> dict[str, Any]:
        """Values at points typed as text or given as a file; the answer names the folder that holds them all."""
        folder = self._new_folder()
        name = f"points{PurePath(plain_name(shown)).suffix.lower()}" if content else ""
        if content:
            (folder / name).write_bytes(content)
        task = {"name": "values", "fit": str(fit.folder), "file": name, "shown": plain_name(shown) if content else ""}
        job = self._started(folder, {**task, "text": text, "points": self.limits.points}, self.limits.values_seconds)
        answer = _answer(job, job.wait())
        (fit.folder / "values.csv").write_bytes((folder / "values.csv").read_bytes())
        shutil.rmtree(folder, ignore_errors=True)
        return answer

    def _started(self, folder: Path, task: dict[str, Any], seconds: float) -> Job:
        job = Job(folder, task, seconds, self.limits.memory_bytes)
        self._jobs.append(job)
        return job

    def _new_folder(self) -> Path:
        folder = self.folder / secrets.token_hex(8)
        folder.mkdir()
        return folder

    def _forget(self, table: Table) -> None:
        for fit in [fit for fit in self.fits.values() if fit.table.key == table.key]:
            fit.job.cancel()
            shutil.rmtree(fit.folder, ignore_errors=True)
            del self.fits[fit.key]
        shutil.rmtree(table.folder, ignore_errors=True)
        del self.tables[table.key]


def plain_name(name: str) -> str:
    """The last part of a file's name without signs that mean something elsewhere; never a path."""
    last = re.split(r"[/\\]", name)[-1]
    kept = "".join(c for c in last if c.isprintable() and c not in '<>:"|?*').strip(" .")
    return kept[-LONGEST_NAME:] or "table.csv"


def _answer(job: Job, state: JobState) -> dict[str, Any]:
    if state.kind != DONE:
        raise DataError(state.message)
    return job.answer()


@dataclass(frozen=True)
class Limits:
    """Bounds that keep a page on somebody's own machine usable, whatever file is dropped on it."""

    upload_bytes: int = 20_000_000
    form_bytes: int = 1_000_000  # of a request without a file
    rows: int = 20_000
    columns: int = 200
    points: int = 5_000  # at which values are asked for at a time
    read_seconds: float = 120.0
    fit_seconds: float = 1_800.0
    values_seconds: float = 300.0
    memory_bytes: int = 8_000_000_000  # address space of a process that reads or fits
    tables: int = 20  # kept at a time; the oldest is forgotten
    running: int = 2  # fits at a time
