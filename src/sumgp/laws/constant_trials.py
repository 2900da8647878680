"""Trials of unknown constants over all sizes that the data suggest, for laws whose sums of squares have many minima."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sumgp.laws.law import Law

ROWS = 300  # that trials are judged by: enough for as many turns of an oscillation as trials have
TURNS, MOST_TURNS = 3, 300  # frequencies for each row, and in all: as fast an oscillation as rows so dense can show
BENDS = 1.3  # over the range of the rows: the step of a frequency over which its effect bends
PLACES = 15  # quantiles of a variable where a peak or a step may lie
HALVINGS = 8  # of a range: widths of peaks and lengths of decays down to a 256th of it
NUMBERS = (0.3, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0)  # exponents, and phases all around a turn
WORK, FEWEST, MOST = 300_000, 1_000, 4_000  # rows times trials, and trials: a tenth of a second for each constant
PROBES = 30  # trials at which it is looked which constants are linear
KEPT = 100  # trials that are followed: all minima that one in twenty of the better trials leads to
STEPS = 30  # of Levenberg and Marquardt with each of them: with 10 half of the sums of two peaks were missed
HELD, DAMPED = 1e12, 1e-2  # damping of constants that do not move yet, and of the first step that moves all
RIDGE = 1e-12  # on slopes of length one: constants that occur in one combination only
SAME = 1e-9  # relative difference of slopes, above round-off, that tells a curved effect
SQUARED = (1e-150, 1e150)  # slopes whose sums of squares are numbers
BEYOND = 1e6  # residual, in units of a law's terms, where it has no value

Residuals = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


class Trials(NamedTuple):
    """What became of constants that were tried."""

    constants: np.ndarray  # (M, U)
    cost: np.ndarray  # (M,) sums of squares of the law's residuals, in units of its terms
    slopes: np.ndarray  # (M, rows, U) of these residuals

    @property
    def turns(self) -> np.ndarray:
        """(M,) how much the law changes on the way of all constants from zero; grows with an oscillation's frequency."""
        return np.linalg.norm(self.slopes * self.constants[:, None, :], axis=(1, 2))


def followed_trials(law: Law, f: np.ndarray, x: np.ndarray, size: np.ndarray, known: np.ndarray) -> Trials:
    """Where trials end, first those that start at the ``known`` (K, U), for rows ``f`` and terms of this ``size``.

    Constants of curved effect are drawn from the sizes that the variables suggest: places, widths, rates and frequencies,
    each size of each constant in turn beside random ones of the others. The linear ones are then solved for, and all of
    the best trials move by Levenberg and Marquardt's steps, all trials at once.
    """
    some = np.unique(np.linspace(0, len(f) - 1, ROWS).astype(int))
    at = _residuals(law, f[some], x[some], size)
    generator, U = np.random.default_rng(0), len(law.unknowns)
    kinds = _sizes(np.hstack([x, f[:, : law.unknown_columns.start]]))
    every = np.concatenate(kinds)
    likely = np.concatenate([np.full(len(kind), 1.0 / (len(kind) * len(kinds))) for kind in kinds])
    curved = _curved(at, generator.choice(every, (PROBES, U), p=likely))
    trials = int(np.clip(WORK // len(some), FEWEST, MOST))
    c = generator.choice(every, (trials, U), p=likely)
    for i, turn in zip(curved, np.array_split(np.arange(trials), max(len(curved), 1)), strict=False):
        c[turn, i] = np.resize(every, len(turn))
    held = np.zeros(c.shape)
    held[:, curved] = HELD
    c, r, J = _step(at, c, *at(c), held)[:3]
    best = np.argsort(np.sum(r**2, axis=1), kind="stable")[:KEPT]
    c = np.vstack([known, c[best]])
    r, J = at(c)
    damping = np.full((len(c), 1), DAMPED)
    for _ in range(STEPS):
        c, r, J, better = _step(at, c, r, J, damping)
        damping = damping * np.where(better, 0.2, 10.0)[:, None]
    return Trials(c, np.sum(r**2, axis=1), J)


def _step(at: Residuals, c: np.ndarray, r: np.ndarray, J: np.ndarray, damping: np.ndarray) -> tuple[np.ndarray, ...]:
    """One damped step of each trial, where it lowers the sum of squares: constants, residuals, slopes, whether it did."""
    lengths = np.maximum(np.linalg.norm(J, axis=1), SQUARED[0])
    unit = J / lengths[:, None]
    H = np.einsum("mki,mkj->mij", unit, unit)
    np.einsum("mii->mi", H)[...] += damping + RIDGE
    moved = c - np.linalg.solve(H, np.einsum("mki,mk->mi", unit, r)[:, :, None])[:, :, 0] / lengths
    new_r, new_J = at(moved)
    better = np.sum(new_r**2, axis=1) < np.sum(r**2, axis=1)
    return (
        np.where(better[:, None], moved, c),
        np.where(better[:, None], new_r, r),
        np.where(better[:, None, None], new_J, J),
        better,
    )


def _residuals(law: Law, f: np.ndarray, x: np.ndarray, size: np.ndarray) -> Residuals:
    """Residuals (M, rows) and slopes (M, rows, U) of trials (M, U), finite everywhere."""

    def at(constants: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        m, n = len(constants), len(f)
        full = np.concatenate([np.tile(f, (m, 1)), np.repeat(constants, n, axis=0)], axis=1)
        with np.errstate(all="ignore"):
            left = law.residual(full, np.tile(x, (m, 1))) / size
            slopes = law.jacobian(full, np.tile(x, (m, 1)))[:, :, law.unknown_columns] / size[:, None]
        left = np.clip(np.nan_to_num(left, nan=BEYOND), -BEYOND, BEYOND)
        slopes = np.where((np.abs(slopes) > SQUARED[0]) & (np.abs(slopes) < SQUARED[1]), slopes, 0.0)
        return left.reshape(m, -1), slopes.reshape(m, -1, constants.shape[1])

    return at


def _sizes(variables: np.ndarray) -> list[np.ndarray]:
    """What a constant may be like: a number, or a place on a variable's axis, a width, its inverse, a frequency, a size."""
    found = [np.array(NUMBERS)]
    halves = 2.0 ** np.arange(-HALVINGS, 3)
    for values in variables.T:
        if (across := np.ptp(values)) > 0:
            turns = np.arange(1, min(TURNS * len(values), MOST_TURNS) + 1)
            found += [np.quantile(values, np.linspace(0.0, 1.0, PLACES)), across * halves, 1.0 / (across * halves)]
            found += [BENDS / across * turns, np.abs(values).max() / halves]
    return found


def _curved(at: Residuals, probes: np.ndarray) -> np.ndarray:
    """Constants whose slopes change with their own value."""
    slopes = at(probes)[1]

    def is_curved(i: int) -> bool:
        other = probes.copy()
        other[:, i] *= 1.5
        here, there = slopes[:, :, i], at(other)[1][:, :, i]
        return bool(np.any(np.abs(there - here) > SAME * (np.abs(there) + np.abs(here))))

    return np.array([i for i in range(probes.shape[1]) if is_curved(i)], dtype=int)
