"""Sections on maps: many points in two inputs with a law, by blocks with neighbours and by dense algebra."""

from __future__ import annotations

import resource
import time
from typing import NamedTuple

import numpy as np

from sumgp.estimator import ConstrainedGP
from sumgp.solvers import Dense, Vecchia
from sumgp_studies.speed.timing import Bar, Section

LAW, NAMES = "a + b + c = 1", ["a", "b", "c"]
LENGTH, WAVES, NOISE = 0.1, 800, 0.3  # of the region; random waves that make up a Matern 3/2 field; sd
SIZES = (1_000, 3_100, 10_000, 20_000, 100_000)
DENSE_SIZES = (330, 500)
PREDICTED = 4  # rows fitted for each point predicted
ROWS_AT_ONCE = 4096
BARS = {3_100: 3.0, 20_000: 12.0, 100_000: 45.0}  # CPU seconds
GROWTH = (10_000, 100_000, 11.0)
MEMORY_BAR = 600.0  # MB


class _Run(NamedTuple):
    fit: float  # CPU seconds
    total: float
    error: float
    coverage: float
    residual: float


def maps_section(sizes: tuple[int, ...] = SIZES, dense_sizes: tuple[int, ...] = DENSE_SIZES) -> Section:
    """Three shares that sum to one over a region: fit, hyperparameters included, and predictions at new points."""
    rows, bars, totals = [], [], {}
    for N, solver in [*((N, Vecchia()) for N in sizes), *((N, Dense()) for N in dense_sizes)]:
        run = _measured(N, solver)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
        cells = (f"{run.fit:.2f}", f"{run.total:.2f}", f"{run.error:.4f}", f"{run.coverage:.3f}", f"{run.residual:.0e}")
        rows.append((f"{N:,}", type(solver).__name__, *cells, f"{memory:.0f}"))
        if isinstance(solver, Vecchia):
            totals[N] = run.total
            if N in BARS:
                bars.append(
                    Bar(f"map of {N:,} x 3 with its law, fit and {N // PREDICTED:,} predictions", BARS[N], run.total, "s")
                )
            if GROWTH[1] == N:
                bars.append(Bar("its memory, the program's own included", MEMORY_BAR, memory, "MB"))
    short, long, limit = GROWTH
    if short in totals and long in totals:
        bars.append(Bar(f"map: time at {long:,} / {short:,} rows", limit, totals[long] / totals[short]))
    columns = (
        "rows (3 outputs)",
        "solver",
        "fit, CPU [s]",
        "and predict [s]",
        "error",
        "coverage",
        "law residual",
        "peak [MB]",
    )
    note = (
        f"Matern 3/2 fields of lengthscale {LENGTH} with noise of sd {NOISE}, a point predicted for each {PREDICTED} rows; "
        "hyperparameters and the choice of the kernel included. The peak of the memory is that of all runs so far."
    )
    curves = {"Vecchia": ([float(N) for N in totals], list(totals.values()))}
    return Section("Maps with a linear law", note, columns, tuple(rows), tuple(bars), curves, "rows")


def _measured(N: int, solver: object) -> _Run:
    x, f, y = _map(N + N // PREDICTED)
    start = time.process_time()
    gp = ConstrainedGP(LAW, outputs=NAMES, solver=solver).fit(x[:N], y[:N])
    fitted = time.process_time()
    posterior = gp.posterior(x[N:])
    mean, (lower, upper) = posterior.mean, posterior.interval()
    total = time.process_time() - start
    inside = (lower <= f[N:]) & (f[N:] <= upper)
    error, residual = float(np.sqrt(np.mean((mean - f[N:]) ** 2))), float(np.max(np.abs(posterior.residual())))
    return _Run(fitted - start, total, error, float(inside.mean()), residual)


def _map(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points (n, 2) in the unit square, shares (n, 3) and measurements (n, 3)."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(count, 2))
    a, b = random_field(x, rng), random_field(x, rng)
    f = np.column_stack([a, 0.5 * a + b, 1.0 - 1.5 * a - b])
    return x, f, f + NOISE * rng.standard_normal(f.shape)


def random_field(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A sum of waves whose frequencies are drawn from the spectrum of a Matern 3/2, a Student t of three degrees."""
    waves = rng.standard_normal((2, WAVES)) / LENGTH / np.sqrt(rng.chisquare(3.0, WAVES) / 3.0)
    phases, sizes = rng.uniform(0.0, 2.0 * np.pi, WAVES), rng.standard_normal(WAVES) * np.sqrt(2.0 / WAVES)
    parts = [np.cos(x[i : i + ROWS_AT_ONCE] @ waves + phases) @ sizes for i in range(0, len(x), ROWS_AT_ONCE)]
    return np.concatenate(parts)
