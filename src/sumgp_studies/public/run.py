"""Running public sets: every (case, method) pair once, in any number of processes, resumed from the file of records."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from sumgp.numerics import Lost, limited_threads, spread
from sumgp_studies.experiments import Record, RecordFile
from sumgp_studies.public.case import Case
from sumgp_studies.public.catalogue import PublicSet
from sumgp_studies.public.competitors import COMPETITORS
from sumgp_studies.public.scores import scored

QUICK_VALUES = 260  # most measured values of a case in a quick run
FAILURES = (ArithmeticError, LookupError, MemoryError, RuntimeError, TypeError, ValueError)


@dataclass(frozen=True)
class PublicTask:
    """One method on one case, the case's number within its set."""

    case: Case
    number: int
    method: str

    @property
    def key(self) -> tuple[str, int, str]:
        """What must not be computed twice."""
        return self.case.set_name, self.number, self.method


def plan(sets: Sequence[PublicSet], folder: Path, quick: bool) -> Iterator[PublicTask]:
    """All tasks, set by set; a quick run takes the first case of each set that is small enough."""
    for entry in sets:
        found = list(enumerate(entry.load(folder)))
        if quick:
            found = [(number, case) for number, case in found if case.y.size <= QUICK_VALUES][:1]
        for number, case in found:
            yield from (PublicTask(case, number, name) for name, rival in COMPETITORS.items() if rival.suits(case))


def unfinished(tasks: Sequence[PublicTask], file: RecordFile) -> list[PublicTask]:
    """Tasks without a record."""
    done = {(r.experiment.partition("/")[0], r.dataset, r.method) for r in file.read()}
    return [task for task in tasks if task.key not in done]


def run_public_task(task: PublicTask) -> list[Record]:
    """Fit, predict and score; a method that fails gives a record that says so."""
    with warnings.catch_warnings(), limited_threads(1):
        warnings.simplefilter("ignore")
        try:
            parts = scored(task.case, COMPETITORS[task.method].fit)
        except FAILURES as error:
            return [_record(task, "all", f"failed: {type(error).__name__}: {error}")]
    return [
        _record(task, p["part"], "ok", rmse=p["mse"] ** 0.5, coverage=p["coverage"], nlpd=p["nlpd"], cpu_seconds=p["cpu"])
        for p in parts
    ]


def _record(task: PublicTask, part: str, status: str, **scores: float) -> Record:
    return Record(
        experiment=f"{task.case.set_name}/{part}",
        noise=None,
        missing=None,
        dataset=task.number,
        method=task.method,
        uncertainty="integrated",
        data="public",
        status=status,
        version=metadata.version("sumgp"),
        **scores,  # type: ignore[arg-type]
    )


def run_public(tasks: Sequence[PublicTask], file: RecordFile, jobs: int, advance: Callable[[], None]) -> None:
    """Run the tasks; records reach the disk one task at a time."""
    for position, result in spread(run_public_task, tasks, jobs):
        lost = isinstance(result, Lost)
        file.append([_record(tasks[position], "all", f"failed: {result.reason}")] if lost else result)
        advance()
