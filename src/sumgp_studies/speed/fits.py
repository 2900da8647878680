"""Sections on whole constrained fits: one, and many at once."""

from __future__ import annotations

import time

import numpy as np

from sumgp.estimator import ConstrainedGP
from sumgp.many import fit_many
from sumgp.strategies import Linearized
from sumgp_studies.experiments import Cell, HarmonicOscillator
from sumgp_studies.speed.timing import Bar, Section, cpu_seconds

PAPER = "50 to 90"  # CPU seconds of one fit by the paper's own program on two cores without GPU; quoted, not run
CELL = Cell(noise=0.1, missing=0.0)
THOUSAND = 1000
BAR_MINUTES = 5.0


def _model(uncertainty: str) -> ConstrainedGP:
    return ConstrainedGP(
        "k/2*z**2 + m/2*v**2 = E",
        outputs=["z", "v"],
        inputs=["t"],
        constants={"k": 1.0, "m": 1.0, "E": 0.8},
        strategy=Linearized(),
        uncertainty=uncertainty,
    )


def oscillator_section() -> Section:
    """Constrained fit + predict of the harmonic oscillator: 20 points, 2 outputs, 100 prediction points."""
    data = HarmonicOscillator().dataset(CELL, 0)
    rows = []
    for uncertainty in ("plug-in", "integrated"):
        error = np.nan

        def run(uncertainty: str = uncertainty) -> None:
            nonlocal error
            mean = _model(uncertainty).fit(data.X_train, data.Y_train).predict(data.X_test)
            error = float(np.sqrt(np.mean((mean - data.F_test) ** 2)))

        rows.append((f"sumgp, {uncertainty}", f"{cpu_seconds(run):.2f}", f"{error:.4f}"))
    rows.append(("the paper's program (quoted, not run)", PAPER, ""))
    note = "CPU seconds of one fit and prediction at 100 points; noise of sd 0.1, one data set."
    return Section("Constrained fit of the harmonic oscillator", note, ("program", "CPU [s]", "error"), tuple(rows))


def many_section(count: int = 100, jobs: int = 2) -> Section:
    """Throughput of ``fit_many``: independent harmonic oscillators, plug-in, 100 prediction points each."""
    problem = HarmonicOscillator()
    sets = [problem.dataset(CELL, seed) for seed in range(count)]
    start = time.perf_counter()
    table = fit_many([(d.X_train, d.Y_train, d.X_test) for d in sets], _model("plug-in"), jobs=jobs, progress=False)
    wall = time.perf_counter() - start
    each = float(table.cpu_seconds.mean())
    minutes = THOUSAND * each / jobs / 60.0
    failed = int((table.status == "failed").sum())
    clock = wall / count * THOUSAND / 60.0
    row = (str(count), str(jobs), f"{each:.3f}", f"{wall:.1f}", f"{clock:.1f}", f"{minutes:.1f}", str(failed))
    columns = (
        "fits",
        "processes",
        "CPU a fit [s]",
        "by the clock [s]",
        "1,000 by clock [min]",
        "by CPU [min]",
        "failed",
    )
    note = "Fit, prediction and intervals; the minutes by CPU time suppose that each process has a core of its own."
    bars = (Bar(f"1,000 fits on {jobs} processes, by CPU time", BAR_MINUTES, minutes, "min"),)
    return Section("Many fits at once", note, columns, (row,), bars)
