"""Running public sets: every (case, method) pair once, in any number of processes, resumed from the file of records."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from sumgp.errors import SumGPWarning
from sumgp.numerics import Lost, limited_threads, spread
from sumgp_studies.experiments import Record, RecordFile
from sumgp_studies.public.case import Case
from sumgp_studies.public.catalogue import PublicSet
from sumgp_studies.public.competitors import COMPETITORS
from sumgp_studies.public.scores import scored

QUICK_VALUES = 160  # most values of a case in a quick run
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
    """All tasks: the first case of every set, then the second, so that a run cut short has something of each.

    A quick run takes the smallest case of each set, thinned to few rows: it shows that everything works, its scores are
    not those of the full rows.
    """
    cases = [(number, case) for entry in sets for number, case in enumerate(entry.load(folder))]
    if quick:
        names = dict.fromkeys(case.set_name for _, case in cases)
        small = [
            min((pair for pair in cases if pair[1].set_name == name), key=lambda pair: pair[1].y.size) for name in names
        ]
        cases = [(number, thinned(case, QUICK_VALUES)) for number, case in small]
    for number, case in sorted(cases, key=lambda pair: pair[0]):
        yield from (PublicTask(case, number, name) for name, rival in COMPETITORS.items() if rival.suits(case))


def thinned(case: Case, most: int) -> Case:
    """The case with evenly chosen rows, at most so many values in them."""
    keep = min(len(case.x), max(most // case.y.shape[1], 1))
    rows = np.unique(np.linspace(0, len(case.x) - 1, keep).round().astype(int))
    return replace(case, x=case.x[rows], y=case.y[rows])


def unfinished(tasks: Sequence[PublicTask], file: RecordFile) -> list[PublicTask]:
    """Tasks without a record."""
    done = {(r.experiment.partition("/")[0], r.dataset, r.method) for r in file.read()}
    return [task for task in tasks if task.key not in done]


def run_public_task(task: PublicTask) -> list[Record]:
    """Fit, predict and score; a method that fails gives a record that says so."""
    with warnings.catch_warnings(record=True) as told, limited_threads(1):
        warnings.simplefilter("always")
        try:
            parts = scored(task.case, COMPETITORS[task.method].fit)
        except FAILURES as error:
            return [_record(task, "all", f"failed: {type(error).__name__}: {error}")]
    # Doubts of our own fits belong to their scores.
    doubts = list(dict.fromkeys(str(w.message) for w in told if issubclass(w.category, SumGPWarning)))
    return [
        _record(
            task,
            p["part"],
            "ok",
            warnings=doubts,
            rmse=p["mse"] ** 0.5,
            coverage=p["coverage"],
            nlpd=p["nlpd"],
            cpu_seconds=p["cpu"],
        )
        for p in parts
    ]


def _record(task: PublicTask, part: str, status: str, **scores: Any) -> Record:
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
        **scores,
    )


def run_public(tasks: Sequence[PublicTask], file: RecordFile, jobs: int, advance: Callable[[], None]) -> None:
    """Run the tasks; records reach the disk one task at a time."""
    for position, result in spread(run_public_task, tasks, jobs):
        lost = isinstance(result, Lost)
        file.append([_record(tasks[position], "all", f"failed: {result.reason}")] if lost else result)
        advance()
