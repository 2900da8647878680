"""Sections on time series: the state-space form against dense algebra, its growth, and one long fit with a law."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from sklearn.gaussian_process.kernels import Matern

from sumgp.estimator import ConstrainedGP
from sumgp.priors import MultitaskPrior
from sumgp.solvers import DenseEvidence, Markov
from sumgp.solvers.markov import MarkovObjectiveEvidence
from sumgp_studies.speed.problems import Size, multitask, outputs_over
from sumgp_studies.speed.timing import Bar, Section, milliseconds, side_by_side

DENSE_SIZES = (100, 200, 400, 800, 1600)
GROWTH = (1_000, 5_000, 20_000, 100_000, 200_000)
GROWTH_BAR = (20_000, 200_000, 11.0)
LONG = 100_000
LONG_BARS = (120.0, 3.0)  # CPU seconds, gigabytes
OUTPUTS = 2


def markov_section(dense_sizes: tuple[int, ...] = DENSE_SIZES, growth: tuple[int, ...] = GROWTH) -> Section:
    """Evidence + gradient of two outputs with a Matern 5/2."""
    sizes = sorted({*dense_sizes, *growth})
    problems = {N: _series(N) for N in sizes}
    works: dict[str, Callable[[], object]] = {}
    for N, (prior, x, y) in problems.items():
        works[f"Markov {N}"] = partial(MarkovObjectiveEvidence(prior, x, y), prior.start())
        if N in dense_sizes:
            works[f"dense {N}"] = partial(DenseEvidence(prior, x, y), prior.start())
    taken = side_by_side(works)
    fast = {N: taken[f"Markov {N}"] for N in sizes}
    slow = {N: taken[f"dense {N}"] for N in dense_sizes}
    rows = []
    for N in sizes:
        beside = (milliseconds(slow[N]), f"{slow[N] / fast[N]:.2f}") if N in slow else ("", "")
        rows.append((f"{N:,}", milliseconds(fast[N]), f"{fast[N] / N * 1e6:.1f}", *beside))
    bars = []
    short, long, limit = GROWTH_BAR
    if short in fast and long in fast:
        bars.append(Bar(f"Markov: time at {long:,} / {short:,} points", limit, fast[long] / fast[short]))
    curves = {
        "Markov": ([float(N) for N in fast], list(fast.values())),
        "dense": ([float(N) for N in slow], list(slow.values())),
    }
    columns = ("points (2 outputs)", "Markov [ms]", "Markov [µs a point]", "dense [ms]", "dense / Markov")
    note = "Milliseconds of evidence + gradient, Matern 5/2."
    return Section("Markov against dense, and its growth", note, columns, tuple(rows), tuple(bars), curves)


def _series(N: int) -> tuple[MultitaskPrior, np.ndarray, np.ndarray]:
    """A series that goes on rather than one sampled ever more densely: steps and lengthscale stay as they are."""
    size = Size(N, OUTPUTS)
    x, y = outputs_over(size)
    return multitask(size, Matern(0.3, nu=2.5)), x * N / 100.0, y


def long_section(N: int = LONG) -> Section:
    """A whole fit with a nonlinear law at every point: hyperparameters, law, prediction at all points."""
    t = np.linspace(0.0, N / 100.0, N)
    truth = np.sqrt(1.6) * np.column_stack([np.sin(t), np.cos(t)])
    Y = truth + 0.1 * np.random.default_rng(0).standard_normal((N, OUTPUTS))
    gp = ConstrainedGP("z**2/2 + v**2/2 = 0.8", outputs=["z", "v"], solver=Markov())
    wall, start = time.perf_counter(), time.process_time()
    gp.fit(t, Y)
    fitted = time.process_time()
    posterior = gp.posterior(t)
    error = float(np.sqrt(np.mean((posterior.mean - truth) ** 2)))
    residual = float(np.max(np.abs(posterior.residual())))
    seconds, wall = time.process_time() - start, time.perf_counter() - wall
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    cells = (f"{fitted - start:.1f}", f"{seconds:.1f}", f"{wall:.1f}", f"{memory:.2f}", f"{error:.4f}", f"{residual:.1e}")
    columns = ("points", "fit, CPU [s]", "and predict [s]", "by the clock [s]", "peak memory [GB]", "error", "law residual")
    note = (
        "Oscillator with noise of sd 0.1 and its energy as law, hyperparameters included, predicted at all points; measured "
        "first, so that the peak of the memory is its own."
    )
    bars = []
    if N == LONG:
        bars.append(Bar(f"{N:,} points x {OUTPUTS} outputs with a law", LONG_BARS[0], seconds, "s"))
        bars.append(Bar("its memory", LONG_BARS[1], memory, "GB"))
    return Section("A long series with a nonlinear law", note, columns, ((f"{N:,}", *cells),), tuple(bars))
