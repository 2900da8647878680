"""Averaging over hyperparameters: adaptive importance sampling, weighted by the data and by the law.

Each candidate prior has its own maximum theta_k. A pool of draws comes from Student t distributions fitted to the
curvature there; its weights given the data are cheap. The law's evidence is not, and it moves the distribution: it is
computed for a few draws and guessed for the others, the pool is extended where data and guess together are high, and so
on for some rounds. Candidates enter by the same weights, so that no separate choice between kernels is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sumgp.hyperparameters.draws import Pool
from sumgp.hyperparameters.objective import Objective
from sumgp.hyperparameters.optimise import MapEstimate
from sumgp.hyperparameters.surrogate import guessed
from sumgp.hyperparameters.weights import effective, tempered

POOL = 8  # draws in the first pool for each that is asked for
FOLLOWING = 2  # the same for those that follow
ROUNDS = 4  # after the first
FIRST = 0.25  # share of the first round in the draws that the law's evidence is computed for
FEWEST = 4  # values of the law's evidence that a guess needs
NEGLIGIBLE = 0.3  # draws of less than this share of the mean weight are dropped

LogScore = Callable[[int, np.ndarray], float]


@dataclass(frozen=True)
class Draw:
    """One set of hyperparameters of one candidate, with its weight in the mixture."""

    candidate: int
    theta: np.ndarray
    weight: float


@dataclass(frozen=True)
class Integration:
    """Weighted draws and how well they represent the distribution."""

    draws: tuple[Draw, ...]
    effective: float
    temperature: float
    candidate_weights: tuple[float, ...]


def curvature(objective: Objective, theta: np.ndarray, step: float = 1e-4) -> np.ndarray:
    """Hessian of the objective by differences of its closed-form gradient.

    One-sided ones: half of what central ones cost, and precise enough for the width of a proposal.
    """
    p = len(theta)
    here = objective(theta)[1]
    H = np.empty((p, p))
    for i in range(p):
        shift = np.zeros(p)
        shift[i] = step
        H[i] = (objective(theta + shift)[1] - here) / step
    return 0.5 * (H + H.T)


def integrate(
    objectives: Sequence[Objective],
    maxima: Sequence[MapEstimate],
    score: LogScore | None,
    count: int,
    random_state: int,
    curvatures: Sequence[np.ndarray] | None = None,
) -> Integration:
    """At most ``2 count`` draws, picked from a larger pool whose posterior density given the data costs little.

    ``score(candidate, theta)`` is the logarithm of what else weighs a draw: the evidence of the law, which costs most.
    None: nothing does.
    """
    if curvatures is None:
        curvatures = [curvature(o, m.theta) for o, m in zip(objectives, maxima, strict=True)]
    pool = Pool(objectives, maxima, curvatures, random_state)
    pool.begin(count * POOL)
    picks = np.random.default_rng([random_state, 9])
    if score is None:
        pool.follow(np.zeros(len(pool.owners)), count * POOL // 2)
        counts, expected = pool.picked(pool.log_weights, 2 * count, picks)
        used = np.flatnonzero(counts)
        scores = np.zeros(len(used))
    else:
        used, scores, counts, expected = _learnt(pool, score, count, picks)
    # Each draw stands for its share of the posterior over how often it was to be expected (balance heuristic).
    log_weights = pool.log_weights[used] + scores + np.log(counts[used]) - np.log(expected[used])
    weights, temperature = tempered(log_weights)
    owners = pool.owners[used]
    kept = weights > NEGLIGIBLE / len(weights)
    total = float(weights[kept].sum())
    draws = tuple(Draw(int(owners[i]), pool.thetas[used[i]], float(weights[i]) / total) for i in np.flatnonzero(kept))
    shares = tuple(float(np.sum(weights[owners == k])) for k in range(len(objectives)))
    return Integration(draws, effective(weights), temperature, shares)


def _learnt(
    pool: Pool, score: LogScore, count: int, picks: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Picks in several rounds: positions used and their scores, and how often all draws were picked and to be expected."""
    first = max(FEWEST, round(FIRST * 2 * count))
    known: dict[int, float] = {}
    counts, expected = pool.picked(pool.log_weights, first, picks)
    _score(pool, counts, known, score)
    for left in range(ROUNDS, 0, -1):
        pool.follow(_guess(pool, known), count * FOLLOWING)
        grown = len(pool.owners) - len(counts)
        counts, expected = np.append(counts, np.zeros(grown, dtype=int)), np.append(expected, np.zeros(grown))
        wanted = round((2 * count - counts.sum()) / left)
        more, more_expected = pool.picked(pool.log_weights + _guess(pool, known), wanted, picks)
        _score(pool, more, known, score)
        counts, expected = counts + more, expected + more_expected
    used = np.flatnonzero(counts)
    return used, np.array([known[int(i)] for i in used]), counts, expected


def _score(pool: Pool, counts: np.ndarray, known: dict[int, float], score: LogScore) -> None:
    """Add the scores of picked draws that are not known yet."""
    for i in np.flatnonzero(counts):
        if int(i) not in known:
            known[int(i)] = score(int(pool.owners[i]), pool.thetas[i])


def _guess(pool: Pool, known: dict[int, float]) -> np.ndarray:
    """Scores of all draws: those that are known as they are, others guessed from them, candidate by candidate."""
    guess = np.full(len(pool.owners), float(np.median(list(known.values()))))
    for k, proposal in enumerate(pool.first):
        own = np.flatnonzero(pool.owners == k)
        seen = [i for i, position in enumerate(own) if int(position) in known]
        if len(seen) >= FEWEST:
            places = proposal.whitened(pool.of(k))
            values = np.array([known[int(own[i])] for i in seen])
            guess[own] = guessed(places[seen], values, places)
    for position, value in known.items():
        guess[position] = value
    return guess
