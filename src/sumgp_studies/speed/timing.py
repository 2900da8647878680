"""CPU seconds of a call, what a section of the results holds, and the machine it was measured on."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import scipy

LONG_ENOUGH = 1.0  # CPU seconds after which no further repeat is made
FEWEST_REPEATS, MOST_REPEATS = 2, 50
SHORT = 0.05  # calls shorter than this are made once unmeasured in each turn: the others' data fill the caches
WARM = 5.0  # a first call longer than this counts itself: warming up would cost more than it changes


@dataclass(frozen=True)
class Bar:
    """What was to be reached, what was, and whether it is enough."""

    what: str
    limit: float
    measured: float
    unit: str = "times"

    @property
    def met(self) -> bool:
        """True if the measured value is at most the limit."""
        return self.measured <= self.limit


@dataclass(frozen=True)
class Section:
    """One part of the results: a table with its explanation and bars; ``curves`` are (x, y) by name, for the figure."""

    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    bars: tuple[Bar, ...] = ()
    curves: dict[str, tuple[list[float], list[float]]] = field(default_factory=dict)
    x_label: str = "points"


def side_by_side(works: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """Least CPU seconds of each call over repeats in turn: what else the machine does then disturbs all of them alike."""
    taken: dict[str, list[float]] = {name: [] for name in works}
    while unfinished := [name for name in works if not _enough(taken[name])]:
        for name in unfinished:
            if taken[name] and taken[name][0] < SHORT:
                works[name]()
            taken[name].append(_once(works[name]))
    return {name: min(times) for name, times in taken.items()}


def _enough(times: list[float]) -> bool:
    if len(times) <= FEWEST_REPEATS:
        return bool(times) and times[0] > WARM
    return sum(times) >= LONG_ENOUGH or len(times) >= MOST_REPEATS


def cpu_seconds(work: Callable[[], object]) -> float:
    """Least CPU seconds of a call over repeats."""
    return side_by_side({"work": work})["work"]


def _once(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def lapack_cholesky(n: int) -> Callable[[], object]:
    """One LAPACK Cholesky factor of an (n, n) matrix: the least that any dense evidence costs."""
    matrix = _positive(n)
    return lambda: scipy.linalg.lapack.dpotrf(matrix, lower=1, clean=0, overwrite_a=0)


def lapack_eigen(n: int) -> Callable[[], object]:
    """One LAPACK symmetric eigendecomposition of an (n, n) matrix."""
    matrix = _positive(n)
    return lambda: np.linalg.eigh(matrix)


def _positive(n: int) -> np.ndarray:
    """A well-conditioned covariance in LAPACK's own memory order."""
    t = np.linspace(0.0, 1.0, n)
    return np.asfortranarray(np.exp(-np.abs(t[:, None] - t)) + np.eye(n))


def machine() -> str:
    """Processor, cores and versions, in one line."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        models = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
        name = models[0] if models else name
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}"
    return f"{name}, {os.cpu_count()} cores, {platform.system()}, {versions}"


def milliseconds(seconds: float) -> str:
    """Seconds as milliseconds with three digits."""
    return f"{seconds * 1e3:.3g}" if seconds < 1 else f"{seconds * 1e3:.0f}"
