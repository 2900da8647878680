"""Thousands of independent fits, and predictions of large maps: one call, one progress bar, several processes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from sumgp.errors import DataError, SumGPError
from sumgp.estimator import ConstrainedGP
from sumgp.numerics import Lost, limited_threads, spread

if TYPE_CHECKING:
    import pandas as pd

FAILED = "failed"
PART = 4096  # points predicted at a time: seconds of work, and a file of a few hundred kilobytes


@dataclass(frozen=True)
class FitResult:
    """What became of one data set: mean, lower and upper (n, T) at the prediction points, or the reason of a failure."""

    status: str
    message: str = ""
    log_evidence: float = np.nan
    cpu_seconds: float = np.nan
    mean: np.ndarray | None = None
    lower: np.ndarray | None = None
    upper: np.ndarray | None = None


@dataclass(frozen=True)
class _Work:
    model: ConstrainedGP
    level: float

    def __call__(self, dataset: tuple[Any, ...]) -> FitResult:
        X, Y, at = dataset
        start = time.process_time()
        with warnings.catch_warnings(record=True) as caught, limited_threads(1):
            warnings.simplefilter("always")
            try:
                fitted = clone(self.model).fit(X, Y)
                posterior = fitted.posterior(at)
                lower, upper = posterior.interval(self.level)
                mean = posterior.mean
            except (SumGPError, ValueError, ArithmeticError, MemoryError) as error:
                return FitResult(FAILED, f"{type(error).__name__}: {error}", cpu_seconds=time.process_time() - start)
        report = fitted.fit_report_
        message = "; ".join(sorted({str(w.message) for w in caught}))
        return FitResult(report.status, message, report.log_evidence, time.process_time() - start, mean, lower, upper)


@contextmanager
def _progress(what: str, total: int, shown: bool) -> Iterator[Callable[[int], None]]:
    """A bar on the terminal; the function that is given is called with how many more are done."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    with Progress(TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), disable=not shown) as bar:
        task = bar.add_task(what, total=total)
        yield lambda count: bar.advance(task, count)


def fit_many(
    datasets: Iterable[tuple[Any, ...]],
    model: ConstrainedGP,
    *,
    at: Any = None,
    level: float = 0.95,
    jobs: int = 2,
    dask: str | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Fit a copy of ``model`` to each data set (X, Y) or (X, Y, X_new) and predict at its X_new, at ``at``, or at X.

    Returns one row per data set, in the order given: status, message, log_evidence, cpu_seconds, and the arrays mean,
    lower and upper (n, T). A fit that fails is a row with status "failed" and its reason. ``jobs`` processes, or a
    Dask cluster at the address ``dask``.
    """
    import pandas as pd

    items = [_complete(dataset, at, position) for position, dataset in enumerate(datasets)]
    results: dict[int, FitResult] = {}
    with _progress("fits", len(items), progress) as advance:
        for position, result in spread(_Work(model, level), items, jobs, dask):
            results[position] = FitResult(FAILED, result.reason) if isinstance(result, Lost) else result
            advance(1)
    return pd.DataFrame([vars(results[i]) for i in range(len(items))], columns=list(FitResult.__dataclass_fields__))


def _complete(dataset: Any, at: Any, position: int) -> tuple[Any, Any, Any]:
    if not isinstance(dataset, tuple) or len(dataset) not in (2, 3):
        raise DataError(
            "datasets",
            "tuples (X, Y) or (X, Y, X_new)",
            f"{type(dataset).__name__} at position {position}",
            "wrap it as (X, Y)",
        )
    X, Y = dataset[:2]
    return X, Y, dataset[2] if len(dataset) == 3 else (X if at is None else at)


@dataclass(frozen=True)
class PredictedMap:
    """Means, standard deviations and ends of the interval (n, T) at all points, in the user's units."""

    mean: np.ndarray
    std: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


@dataclass(frozen=True)
class _Prediction:
    """Predicts one part of the points; a part that is in its file already is read."""

    model: ConstrainedGP
    level: float
    folder: Path | None

    @property
    def _fit(self) -> np.ndarray:
        """Numbers that tell one fit from another."""
        data = self.model.data_
        return np.array([self.model.fit_report_.log_evidence, data.x.sum(), np.nansum(data.y)])

    def __call__(self, part: tuple[int, np.ndarray]) -> np.ndarray:
        """(4, n, T): mean, std, lower, upper."""
        number, x = part
        file = None if self.folder is None else self.folder / f"part-{number:06d}.npz"
        if file is not None and file.is_file():
            with np.load(file, allow_pickle=False) as stored:
                same = np.array_equal(stored["x"], x) and np.array_equal(stored["fit"], self._fit)
                if same and float(stored["level"]) == self.level:
                    return stored["found"]
            raise DataError(f"folder: {file} holds other points, another fit or another level; give an empty folder")
        with limited_threads(1):
            posterior = self.model.posterior(x)
            found = np.stack([posterior.mean, posterior.std, *posterior.interval(self.level)])
        if file is not None:
            unfinished = file.with_suffix(".tmp.npz")
            np.savez(unfinished, x=x, fit=self._fit, level=self.level, found=found)
            unfinished.replace(file)
        return found


def predict_map(
    model: ConstrainedGP,
    X: Any,
    *,
    level: float = 0.95,
    jobs: int = 2,
    dask: str | None = None,
    folder: Any = None,
    progress: bool = True,
) -> PredictedMap:
    """Predictions of a fitted model at very many points, part by part in ``jobs`` processes or a Dask cluster at ``dask``.

    With a ``folder`` each part is written as soon as it is there, and parts that are there are not computed again.
    """
    x = model.posterior(X).x
    place = None if folder is None else Path(folder)
    if place is not None:
        place.mkdir(parents=True, exist_ok=True)
    parts = [(i, x[start : start + PART]) for i, start in enumerate(range(0, len(x), PART))]
    found = np.empty((4, len(x), model.n_outputs_))
    with _progress("points", len(x), progress) as advance:
        for position, result in spread(_Prediction(model, level, place), parts, jobs, dask):
            if isinstance(result, Lost):
                raise SumGPError(f"predict_map: part {position} was lost, {result.reason}; try again with fewer jobs=")
            found[:, position * PART : position * PART + len(parts[position][1])] = result
            advance(len(parts[position][1]))
    return PredictedMap(*found)
