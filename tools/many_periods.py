"""Curves of many periods: is the short lengthscale found, with and without a law?

    python tools/many_periods.py [--seeds 5] [--first-seed 0] [--all] [--jobs 1]

Prints for each problem the mean and worst error in units of the signal's standard deviation, that of a Gaussian process
told its best lengthscale, amplitude and noise, the least share of the truth in the 95 % intervals, and the CPU seconds of
a fit. ``--all``: every combination of periods and rows a period within 20 to 400 rows; otherwise a few of them.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from scipy.linalg import cho_factor, cho_solve

import sumgp

PERIODS = (5, 10, 25)
ROWS = (4, 6, 10, 20)  # a period
NOISE = 0.05
PREDICTED = 500  # points of the test grid
ENERGY = "z**2/2 + v**2/2 = 0.5"
SPHERE = "z**2 + v**2 + w**2 = 1"
OUTPUTS = ("z", "v", "w")
REACHED = 0.3  # error of the well-informed Gaussian process up to which a problem counts as solvable
BAR, COVERED = 0.5, 0.85  # largest error and least coverage then


@dataclass(frozen=True)
class Case:
    """Rows of a curve with ``periods`` periods; ``law`` a formula or None."""

    periods: int
    rows_a_period: int
    n_outputs: int
    law: str | None

    @property
    def n_rows(self) -> int:
        """Number of rows N."""
        return self.periods * self.rows_a_period

    def truth(self, t: np.ndarray) -> np.ndarray:
        """(n, T) noise-free outputs: a sine, an oscillator, or a point that circles on a sphere."""
        angle = 2.0 * np.pi * self.periods * t
        if self.n_outputs < 3:
            return np.column_stack([np.sin(angle), np.cos(angle)])[:, : self.n_outputs]
        tilt = 1.0 + 0.3 * np.sin(5.0 * t)
        return np.column_stack([np.sin(tilt) * np.cos(angle), np.sin(tilt) * np.sin(angle), np.cos(tilt)])

    def data(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Inputs (N,), evenly spaced up to a fifth of the distance, and noisy outputs (N, T)."""
        generator = np.random.default_rng([seed, self.periods, self.rows_a_period, self.n_outputs])
        N = self.n_rows
        t = (np.arange(N) + 0.5 + 0.2 * generator.uniform(-1.0, 1.0, N)) / N
        return t, self.truth(t) + NOISE * generator.standard_normal((N, self.n_outputs))


@dataclass(frozen=True)
class Score:
    """Error and that of the well-informed Gaussian process, in sds of the signal; coverage; CPU seconds; status."""

    error: float
    informed: float
    coverage: float
    seconds: float
    status: str

    @property
    def passes(self) -> bool:
        """True unless a solvable problem was not solved."""
        return self.informed > REACHED or (self.error < BAR and self.coverage >= COVERED)


def cases(every: bool) -> list[Case]:
    """The problems, from 20 to 400 rows."""
    sizes = [(p, r) for p in PERIODS for r in ROWS if 20 <= p * r <= 400]
    if not every:
        sizes = [(5, 4), (10, 10), (25, 4), (25, 10)]
    kinds = [(1, None), (2, None), (2, ENERGY), (3, None), (3, SPHERE)]
    return [Case(p, r, T, law) for p, r in sizes for T, law in kinds]


def informed_error(case: Case, t: np.ndarray, Y: np.ndarray, t_new: np.ndarray) -> float:
    """Root mean square error in sds of the signal with amplitude, noise and best of 60 lengthscales known."""
    truth = case.truth(t_new)
    centre, spread = truth.mean(axis=0), truth.std(axis=0)
    best = np.inf
    for length in np.geomspace(0.1, 3.0, 60) / (2.0 * np.pi * case.periods) * 2.0:
        K = np.exp(-0.5 * ((t[:, None] - t) / length) ** 2)
        k = np.exp(-0.5 * ((t_new[:, None] - t) / length) ** 2)
        noisy = [cho_factor(K + (NOISE / sd) ** 2 * np.eye(len(t))) for sd in spread]
        moving = [k @ cho_solve(factor, y) for factor, y in zip(noisy, (Y - centre).T, strict=True)]
        best = min(best, relative_error(centre + np.column_stack(moving), truth))
    return best


def relative_error(mean: np.ndarray, truth: np.ndarray) -> float:
    """Largest root mean square error of an output that circles, in sds of its signal; of a sphere's slow axis not."""
    moving = slice(0, 2)
    errors = np.sqrt(np.mean((mean - truth) ** 2, axis=0)) / truth.std(axis=0)
    return float(np.max(errors[moving]))


def score(case: Case, seed: int) -> Score:
    """Fit with default settings."""
    t, Y = case.data(seed)
    t_new = np.linspace(t.min(), t.max(), PREDICTED)
    truth = case.truth(t_new)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gp = sumgp.ConstrainedGP(case.law, outputs=list(OUTPUTS[: case.n_outputs])).fit(t, Y)
        posterior = gp.posterior(t_new)
        mean, (low, high) = posterior.mean, posterior.interval(0.95)
    seconds = time.process_time() - start
    covered = float(np.mean((truth >= low) & (truth <= high)))
    error = relative_error(mean, truth)
    return Score(error, informed_error(case, t, Y, t_new), covered, seconds, gp.fit_report_.status)


def main() -> None:
    """Run all problems and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--all", action="store_true", help="every combination of periods and rows")
    parser.add_argument("--jobs", type=int, default=1)
    chosen = parser.parse_args()
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.seeds)
    print("periods rows outputs law   error (mean, worst)  informed  coverage  seconds  failed")
    failed = total = 0
    for case in cases(chosen.all):
        scores = Parallel(chosen.jobs)(delayed(score)(case, seed) for seed in seeds)
        errors = [s.error for s in scores]
        bad = sum(not s.passes for s in scores)
        failed, total = failed + bad, total + len(scores)
        print(
            f"{case.periods:7d} {case.n_rows:4d} {case.n_outputs:7d} {'yes' if case.law else 'no':3s} "
            f"{np.mean(errors):9.3f} {np.max(errors):9.3f} {np.mean([s.informed for s in scores]):10.3f} "
            f"{min(s.coverage for s in scores):9.3f} {np.mean([s.seconds for s in scores]):8.2f} {bad:7d}",
            flush=True,
        )
    print(f"{failed} of {total} fits above {BAR} or below {COVERED:.0%} coverage where {REACHED} can be reached")


if __name__ == "__main__":
    main()
