"""Running experiments: every (data set, method) pair once, in any number of processes, with the same numbers."""

from __future__ import annotations

import gc
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from sumgp.errors import SumGPError
from sumgp.numerics import Lost, limited_threads, spread
from sumgp_studies import metrics
from sumgp_studies.experiments.methods import Method, Settings
from sumgp_studies.experiments.problem import Cell, Dataset, Problem
from sumgp_studies.experiments.records import FAILED, Key, Record, RecordFile

LEVEL = 0.95
RECORDED_LEVELS = (0.2, 0.4, 0.6, 0.8, LEVEL)
CRPS_NODES = 12  # of the score of transformed outputs, whose distribution functions take long
# What a fit may end with; a run of many hours must outlive all of these and report them.
FIT_FAILURES = (
    SumGPError, ArithmeticError, AttributeError, ImportError, LookupError, MemoryError, RuntimeError, TypeError, ValueError
)  # fmt: skip


@dataclass(frozen=True)
class Task:
    """One method on one data set."""

    problem: Problem
    cell: Cell
    seed: int
    method: Method
    uncertainty: str = "integrated"

    @property
    def key(self) -> Key:
        """The key of the record this task will give."""
        return (
            self.problem.name, self.cell.noise, self.cell.missing, self.seed, self.method.name, self.uncertainty, self.data
        )  # fmt: skip

    @property
    def data(self) -> str:
        """Kind of data, part of the key so that a simulated pendulum is never taken for the recorded one."""
        return "real" if self.problem.name == "double_pendulum" and self.problem.comparable() else "simulated"


def plan(
    problems: Sequence[Problem],
    methods_for: Callable[[Problem], Sequence[Method]],
    seeds: Sequence[int],
    uncertainty: str = "integrated",
) -> list[Task]:
    """All tasks, seed by seed, so that a run stopped early has touched every cell; unsuited methods are left out."""
    tasks = []
    for seed in seeds:
        for problem in problems:
            methods = [method for method in methods_for(problem) if method.suits(problem.name)]
            tasks += [Task(problem, cell, seed, method, uncertainty) for cell in problem.cells for method in methods]
    return tasks


def run_task(task: Task) -> Record:
    """Fit, predict and score; a fit that fails gives a record that says so."""
    _collect_rarely()
    with warnings.catch_warnings(record=True) as caught, limited_threads(1):
        warnings.simplefilter("always")
        try:
            scores = _scores(task)
        except FIT_FAILURES as error:
            scores = {"status": f"{FAILED}: {type(error).__name__}: {error}"}
    texts = sorted({f"{entry.category.__name__}: {entry.message}" for entry in caught})
    return _record(task, scores, texts)


@cache
def _collect_rarely() -> None:
    """Once per process: thousands of fits leave few cycles, and looking for them takes a twentieth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def _record(task: Task, scores: dict[str, Any], texts: Sequence[str] = ()) -> Record:
    return Record(
        experiment=task.problem.name,
        noise=task.cell.noise,
        missing=task.cell.missing,
        dataset=task.seed,
        method=task.method.name,
        uncertainty=task.uncertainty,
        data=task.data,
        warnings=list(texts),
        version=_version(),
        **scores,
    )


def _scores(task: Task) -> dict[str, Any]:
    dataset = task.problem.dataset(task.cell, task.seed)
    cpu_start, start = time.process_time(), time.perf_counter()
    fitted = task.method.fit(dataset, Settings(task.uncertainty, task.seed))
    fit_end = time.perf_counter()
    posterior = fitted.predict(dataset.X_test)
    mean, interval = np.asarray(posterior.mean), posterior.interval(LEVEL)
    end, cpu_end = time.perf_counter(), time.process_time()
    if not np.all(np.isfinite(mean)):
        raise ValueError("the prediction is not finite")
    return {
        "status": fitted.status,
        "fit_seconds": fit_end - start,
        "predict_seconds": end - fit_end,
        "cpu_seconds": cpu_end - cpu_start,
        **dataset.violations(mean),
        **_quality(dataset, posterior, mean, interval),
    }


def _quality(dataset: Dataset, posterior: Any, mean: np.ndarray, interval: tuple[np.ndarray, np.ndarray]) -> dict[str, Any]:
    truth = dataset.F_test
    # Measured test values scatter about the curve, so they are compared with the prediction of a measurement.
    if dataset.truth_is_measured:
        posterior = posterior.observed()
        interval = posterior.interval(LEVEL)
    coverages = metrics.coverage_at(posterior, truth, RECORDED_LEVELS)
    return {
        "rmse": metrics.rmse(mean, truth),
        "rmse_norm": metrics.rmse_norm(mean, truth),
        "coverage": metrics.coverage(*interval, truth),
        "width": metrics.sharpness(*interval),
        "nlpd": metrics.nlpd(posterior, truth),
        "crps": metrics.crps(posterior, truth, CRPS_NODES),
        "coverages": {f"{level:g}": float(share) for level, share in zip(RECORDED_LEVELS, coverages, strict=True)},
    }


def run(
    tasks: Sequence[Task],
    file: RecordFile,
    jobs: int = 1,
    dask_address: str | None = None,
    on_record: Callable[[Record], None] | None = None,
    retry_failed: bool = False,
) -> None:
    """Do the tasks that have no record yet and append each record as it comes.

    Stopped at any moment, even by kill -9, and started again, it goes on with what is left.
    """
    file.repair()
    todo = unfinished(tasks, file, retry_failed)
    for position, result in spread(run_task, todo, jobs, dask_address):
        lost = isinstance(result, Lost)
        record = _record(todo[position], {"status": f"{FAILED}: {result.reason}"}) if lost else result
        file.append([record])
        if on_record is not None:
            on_record(record)


def unfinished(tasks: Sequence[Task], file: RecordFile, retry_failed: bool = False) -> list[Task]:
    """Tasks without a record, or with that of a failure that is to be tried again."""
    done = {record.key for record in file.read() if not (retry_failed and record.failed)}
    return [task for task in tasks if task.key not in done]


def _version() -> str:
    try:
        return metadata.version("sumgp")
    except metadata.PackageNotFoundError:
        return "not installed"


def records_path(out: Path) -> Path:
    """Where the records of a run stand."""
    return out / "records.jsonl"
