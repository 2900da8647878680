"""Thousands of independent fits: one call, one progress bar, one table of results, failures as rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from sumgp.errors import DataError, SumGPError, worded
from sumgp.estimator import ConstrainedGP
from sumgp.numerics import Lost, limited_threads, spread

if TYPE_CHECKING:
    import pandas as pd

FAILED = "failed"


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
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    items = [_complete(dataset, at, position) for position, dataset in enumerate(datasets)]
    results: dict[int, FitResult] = {}
    columns = (TextColumn("fits"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, disable=not progress) as bar:
        task = bar.add_task("fits", total=len(items))
        for position, result in spread(_Work(model, level), items, jobs, dask):
            results[position] = FitResult(FAILED, result.reason) if isinstance(result, Lost) else result
            bar.advance(task)
    return pd.DataFrame([vars(results[i]) for i in range(len(items))], columns=list(FitResult.__dataclass_fields__))


def _complete(dataset: Any, at: Any, position: int) -> tuple[Any, Any, Any]:
    if not isinstance(dataset, tuple) or len(dataset) not in (2, 3):
        raise DataError(
            worded(
                "datasets",
                "tuples (X, Y) or (X, Y, X_new)",
                f"{type(dataset).__name__} at position {position}",
                "wrap it as (X, Y)",
            )
        )
    X, Y = dataset[:2]
    return X, Y, dataset[2] if len(dataset) == 3 else (X if at is None else at)
