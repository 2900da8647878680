"""Coverage of intervals on problems whose truth is drawn from the package's own prior, under a linear law.

    python tools/coverage_from_prior.py --problems 200

prints the share of true values inside their 50, 80 and 95 % intervals, with hyperparameters averaged over and plugged in.

What is drawn, for outputs a, b, c with a + b + c = 1 over x in [0, 1]: the kernel, RBF or RationalQuadratic (alpha 2), one
half each; log lengthscale from N(log 1/2, 1) cut to [0.1, 2] (the hyperprior's wide upper side only says that long ones
are allowed); the task covariance D expm(S) D with log amplitudes N(0, 0.5^2) and entries of S from N(0, 1) (the
hyperprior's 2.5 and 1.5 are for lack of knowledge: they would draw outputs that differ a hundredfold); noise sd over the
outputs' typical sd from a log-normal around 0.05 with log sd 1, cut to [0.005, 0.5] (the hyperprior's: log sd 2). The
functions are drawn from this prior conditioned on the law, with a constant mean of variance 4. Measured are 25 inputs drawn
evenly from [0, 1], a tenth of the values missing.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import expm
from sklearn.gaussian_process.kernels import RBF, RationalQuadratic

from sumgp import ConstrainedGP
from sumgp.errors import SumGPWarning

LAW = "a + b + c = 1"
LEVELS = (0.5, 0.8, 0.95)
ROWS, TESTED, MISSING = 25, 40, 0.1
LENGTHS, NOISES = (0.1, 2.0), (0.005, 0.5)
MEAN_VARIANCE = 4.0
FIRST_SEED = 5000


@dataclass(frozen=True)
class Drawn:
    """Measured inputs (N, 1) and outputs (N, 3) with NaN = missing; asked inputs (n, 1) and the true outputs (n, 3)."""

    X: np.ndarray
    Y: np.ndarray
    asked: np.ndarray
    truth: np.ndarray


def draw_problem(seed: int) -> Drawn:
    """One problem; the text at the top says what is drawn."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([np.sort(rng.uniform(size=ROWS)), np.linspace(0.0, 1.0, TESTED)])[:, None]
    length = _between(rng, np.log(0.5), 1.0, LENGTHS)
    kernel = RBF(length) if rng.uniform() < 0.5 else RationalQuadratic(length, alpha=2.0)
    S = np.zeros((3, 3))
    S[np.triu_indices(3, 1)] = rng.standard_normal(3)
    amplitudes = np.exp(0.5 * rng.standard_normal(3))
    Sigma = amplitudes[:, None] * expm(S + S.T) * amplitudes
    gain, task_root = given_the_sum(Sigma)
    values, vectors = np.linalg.eigh(kernel(x) + MEAN_VARIANCE)
    spread = vectors * np.sqrt(np.maximum(values, 0.0))
    f = gain + spread @ rng.standard_normal((len(x), 3)) @ task_root.T
    noise = _between(rng, np.log(0.05), 1.0, NOISES) * f[:ROWS].std(axis=0)
    Y = f[:ROWS] + noise * rng.standard_normal((ROWS, 3))
    Y[rng.uniform(size=Y.shape) < MISSING] = np.nan
    return Drawn(x[:ROWS], Y, x[ROWS:], f[ROWS:])


def given_the_sum(Sigma: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean (T,) and a root (T, T) of the covariance of outputs with covariance Sigma, given that they sum to one.

    With gain = Sigma 1 / 1^T Sigma 1 the covariance is A Sigma A^T, A = I - gain 1^T, whose columns sum to zero.
    """
    gain = Sigma.sum(axis=0) / Sigma.sum()
    return gain, (np.eye(len(Sigma)) - gain[:, None]) @ np.linalg.cholesky(Sigma)


def _between(rng: np.random.Generator, centre: float, sd: float, ends: tuple[float, float]) -> float:
    """A log-normal number, drawn until it lies between the ends."""
    while True:
        value = float(np.exp(centre + sd * rng.standard_normal()))
        if ends[0] <= value <= ends[1]:
            return value


def inside(problem: Drawn, uncertainty: str, levels: Sequence[float] = LEVELS) -> np.ndarray:
    """(levels,) share of the true values inside their intervals, for one fit."""
    gp = ConstrainedGP(LAW, outputs=["a", "b", "c"], uncertainty=uncertainty)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SumGPWarning)
        posterior = gp.fit(problem.X, problem.Y).posterior(problem.asked)
    shares = []
    for level in levels:
        lower, upper = posterior.interval(level)
        # A tolerance of round-off: where noise is tiny, so are intervals.
        slack = 1e-9 * np.abs(problem.truth).max()
        shares.append(np.mean((problem.truth >= lower - slack) & (problem.truth <= upper + slack)))
    return np.array(shares)


def main(words: Sequence[str] | None = None) -> int:
    """Run the problems and print a table of coverages with their standard errors over problems."""
    parser = argparse.ArgumentParser(description="Coverage of intervals when the truth is drawn from the prior.")
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--uncertainty", choices=["integrated", "plug-in", "both"], default="both")
    asked = parser.parse_args(words)
    kinds = ["integrated", "plug-in"] if asked.uncertainty == "both" else [asked.uncertainty]
    for kind in kinds:
        started = time.process_time()
        seeds = range(asked.first_seed, asked.first_seed + asked.problems)
        shares = np.array([inside(draw_problem(seed), kind) for seed in seeds])
        errors = shares.std(axis=0) / np.sqrt(len(shares))
        parts = [f"{p:.0%}: {m:.1%} +- {e:.1%}" for p, m, e in zip(LEVELS, shares.mean(axis=0), errors, strict=True)]
        seconds = (time.process_time() - started) / len(shares)
        print(f"{kind:<11} {', '.join(parts)}  ({seconds:.2f} s a problem)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
