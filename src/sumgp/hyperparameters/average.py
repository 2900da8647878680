"""Average over hyperparameters: draws, their weights, and a guess of scores not yet computed.

Averaging over hyperparameters: adaptive importance sampling, weighted by the data and by the law.
Each candidate prior has its own maximum theta_k. A pool of draws comes from Student t distributions fitted to the
curvature there; its weights given the data are cheap. The law's evidence is not, and it moves the distribution: it is
computed for a few draws and guessed for the others, the pool is extended where data and guess together are high, and so
on for some rounds. Candidates enter by the same weights, so that no separate choice between kernels is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from sumgp.hyperparameters.optimise import REFUSED, MapEstimate, Objective, Proposal, values_at
from sumgp.numerics import bisected

CAP = 1.5  # no weight exceeds CAP / sqrt(number of draws)
MIN_EFFECTIVE = 12.0  # weights are tempered until the effective sample size reaches this


def tempered(log_weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Normalised weights, flattened by a power until enough draws count, and capped.

    Returns the weights and the power (1 = the weights as they are).
    """
    finite = np.isfinite(log_weights)
    if not finite.any():
        return np.full(len(log_weights), 1.0 / len(log_weights)), 0.0
    weights, power = flattened(log_weights, MIN_EFFECTIVE)
    cap = max(CAP / np.sqrt(len(weights)), 1.0 / float(finite.sum()))
    for _ in range(20):
        over = weights > cap
        if not over.any():
            break
        rest = weights[~over].sum()
        if rest <= 0:
            break
        weights = np.where(over, cap, weights * (1.0 - cap * over.sum()) / rest)
    return weights / weights.sum(), power


def flattened(log_weights: np.ndarray, least: float) -> tuple[np.ndarray, float]:
    """Normalised weights to the highest power up to 1 that leaves ``least`` effective draws, and that power.

    Where fewer than twice as many have any weight, half of those have to do.
    """
    needed = min(least, 0.5 * float(np.isfinite(log_weights).sum()))
    power = 1.0
    if not effective(_normalised(log_weights, 1.0)) >= needed:
        power, _ = bisected(lambda power: not effective(_normalised(log_weights, power)) >= needed, 0.0, 1.0, 30)
    return _normalised(log_weights, power), float(power)


def effective(weights: np.ndarray) -> float:
    """Effective sample size of normalised weights."""
    return float(1.0 / np.sum(weights**2))


def log_total(log_weights: np.ndarray) -> float:
    """Log of the sum of weights, minus infinity if there are none."""
    top = float(np.max(log_weights))
    return top + float(np.log(np.sum(np.exp(log_weights - top)))) if np.isfinite(top) else -np.inf


def _normalised(log_weights: np.ndarray, power: float) -> np.ndarray:
    """Weights to a power, of sum one; draws without weight have none at any power."""
    finite = np.isfinite(log_weights)
    scaled = np.where(finite, log_weights * power, -np.inf) if power == 0.0 else log_weights * power
    return np.exp(scaled - log_total(scaled))


AMPLITUDE = 40.0  # of the log evidence
LENGTHSCALE = 2.0  # times the square root of the number of parameters, in standard deviations given the data
ERROR = 0.3  # of a value near the highest; lower ones matter less, and their error grows by e every GAP
GAP = 16.0  # log evidence below the highest over which the error of a guess grows by e
LOWEST = 40.0  # below the highest: as good as any lower value
HIGHEST = 3.0  # above the highest: no guess goes further
MOST = 400  # values that a guess rests on, the highest of all


def guessed(places: np.ndarray, values: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """(m,) values at places ``asked`` (m, p) from ``values`` (n,) at ``places`` (n, p)."""
    best = np.argsort(-values, kind="stable")[:MOST]
    places, values = places[best], values[best]
    top = float(values[0])
    known = np.maximum(values, top - LOWEST)
    middle = float(np.median(known))
    error = ERROR * np.exp((top - known) / GAP)
    factor = cho_factor(_kernel(places, places) + np.diag(error**2), lower=True)
    return np.minimum(middle + _kernel(asked, places) @ cho_solve(factor, known - middle), top + HIGHEST)


def _kernel(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(n, m) covariances of log evidences."""
    squares = np.sum(first**2, axis=1)[:, None] + np.sum(second**2, axis=1) - 2.0 * first @ second.T
    return AMPLITUDE**2 * np.exp(-0.5 * np.maximum(squares, 0.0) / (LENGTHSCALE**2 * first.shape[1]))


TAIL = 30.0  # a log density so far below the highest, and a bit more for each parameter, weighs nothing
FEWEST_PROPOSED = 8  # draws of a proposal
COUNTED = 0.02  # candidates of a smaller share are not proposed again
NARROW = 5.0  # log units between bounds: those of a period and of a wave's form, no others
SEEN = 12.0  # effective draws that moments are taken of, or two a parameter if that is more


def _box_precision(objective: Objective) -> np.ndarray:
    """(p,) precision of a flat density between narrow bounds: without it most draws of a period would lie beyond them."""
    width = np.ptp(np.array(objective.prior.bounds()).reshape(-1, 2), axis=1)
    return np.where(width < NARROW, 12.0 / width**2, 0.0)


class Pool:
    """Draws of all candidates, from proposals at their maxima and later ones that follow what was learnt.

    ``thetas`` and ``owners``: hyperparameters and candidate of each draw. ``log_weights``: log of the posterior density
    given the data over how often the draw was to be expected, all proposals of its candidate together.
    """

    def __init__(
        self, objectives: Sequence[Objective], maxima: Sequence[MapEstimate], curvatures: Sequence[np.ndarray], seed: int
    ) -> None:
        self.objectives = objectives
        each = zip(objectives, maxima, curvatures, strict=True)
        self.first = [Proposal.around(m.theta, H, _box_precision(o)) for o, m, H in each]
        self.thetas: list[np.ndarray] = []
        self.owners = np.zeros(0, dtype=int)
        self.log_weights = np.zeros(0)
        self._values = np.zeros(0)
        self._proposals: list[list[tuple[Proposal, int]]] = [[] for _ in objectives]
        self._seed = seed
        self._rounds = 0

    def begin(self, size: int) -> None:
        """About ``size`` draws around the maxima, shared equally by the candidates."""
        self._extend({k: (proposal, size / len(self.first)) for k, proposal in enumerate(self.first)})

    def follow(self, log_score: np.ndarray, size: int) -> None:
        """About ``size`` draws more, from the moments of the present ones weighted by data and ``log_score``."""
        target = self.log_weights + log_score
        whole = log_total(target)
        chosen: dict[int, tuple[Proposal, float]] = {}
        for k, first in enumerate(self.first):
            own = np.flatnonzero(self.owners == k)
            share = float(np.exp(log_total(target[own]) - whole)) if np.isfinite(whole) else 0.0
            if share > COUNTED:
                weights, _ = flattened(target[own], max(SEEN, 2.0 * len(first.mean)))
                chosen[k] = Proposal.of_moments(self.of(k), weights, first.scale), size * share
        self._extend(chosen)

    def of(self, candidate: int) -> np.ndarray:
        """(n, p) hyperparameters of a candidate's draws, in the order of the pool."""
        return np.stack([self.thetas[i] for i in np.flatnonzero(self.owners == candidate)])

    def picked(self, log_weights: np.ndarray, count: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """How often each draw is picked by systematic sampling, and how often it was to be expected.

        Draws are lined up by candidate and first parameter (a lengthscale), so that picks are spread over both; in the
        order of a Sobol sequence equal strides would pick a pattern.
        """
        weights, _ = tempered(log_weights)
        order = np.lexsort((np.array([theta[0] for theta in self.thetas]), self.owners))
        ends = np.floor(np.cumsum(weights[order]) * count + generator.uniform()).astype(int)
        counts = np.zeros(len(weights), dtype=int)
        counts[order] = np.diff(ends, prepend=0)
        return counts, count * weights

    def _extend(self, chosen: dict[int, tuple[Proposal, float]]) -> None:
        for k, (proposal, size) in chosen.items():
            count = 1 << max(
                int(size).bit_length() - 1, int(FEWEST_PROPOSED).bit_length() - 1
            )  # Sobol points come in powers of two
            sample = proposal.sample(count, np.random.default_rng([self._seed, self._rounds, k]))
            low, high = np.array(self.objectives[k].prior.bounds()).reshape(-1, 2).T
            inside = np.all((sample >= low) & (sample <= high), axis=1)
            values = np.full(count, REFUSED)
            values[inside] = values_at(self.objectives[k], sample[inside])
            self.thetas.extend(sample)
            self.owners = np.append(self.owners, np.full(count, k))
            self._values = np.append(self._values, values)
            self._proposals[k].append((proposal, count))
        self._rounds += 1
        self.log_weights = np.full(len(self.owners), -np.inf)
        for k in np.unique(self.owners):
            own = np.flatnonzero(self.owners == k)
            thetas, known = self.of(k), self._values[own]
            expected = np.logaddexp.reduce([p.log_density(thetas) + np.log(n) for p, n in self._proposals[k]])
            near = known < min(REFUSED, float(known.min()) + TAIL + thetas.shape[1])
            self.log_weights[own[near]] = -known[near] - expected[near]


POOL = 8  # draws in the first pool for each that is asked for
FOLLOWING = 6  # the same for those that follow; 2 gave errors 1.02 times as large with curved laws (158 simulated data sets)
FEW = 12  # up to so many draws, of large data whose evidence costs much, FOLLOWING_FEW in place of FOLLOWING
FOLLOWING_FEW = 2
ROUNDS = 4  # after the first
FIRST = 0.25  # share of the first round in the draws that the law's evidence is computed for
FEWEST_SCORED = 4  # values of the law's evidence that a guess needs
NEGLIGIBLE = 0.3  # draws of less than this share of the mean weight are dropped

LogScore = Callable[[Sequence[tuple[int, np.ndarray]]], Sequence[float]]


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

    ``score`` gives for pairs of candidate and theta the logarithm of what else weighs them: the evidence of the law.
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


class _Picks(NamedTuple):
    """Positions used and their scores, and how often all draws were picked and were to be expected."""

    used: np.ndarray
    scores: np.ndarray
    counts: np.ndarray
    expected: np.ndarray


def _learnt(pool: Pool, score: LogScore, count: int, picks: np.random.Generator) -> _Picks:
    """Picks in several rounds: positions used and their scores, and how often all draws were picked and to be expected."""
    first = max(FEWEST_SCORED, round(FIRST * 2 * count))
    following = count * (FOLLOWING if count > FEW else FOLLOWING_FEW)
    known: dict[int, float] = {}
    counts, expected = pool.picked(pool.log_weights, first, picks)
    _score(pool, counts, known, score)
    for left in range(ROUNDS, 0, -1):
        pool.follow(_guess(pool, known), following)
        grown = len(pool.owners) - len(counts)
        counts, expected = np.append(counts, np.zeros(grown, dtype=int)), np.append(expected, np.zeros(grown))
        wanted = max(0, round((2 * count - counts.sum()) / left))
        more, more_expected = pool.picked(pool.log_weights + _guess(pool, known), wanted, picks)
        _score(pool, more, known, score)
        counts, expected = counts + more, expected + more_expected
    used = np.flatnonzero(counts)
    return _Picks(used, np.array([known[int(i)] for i in used]), counts, expected)


def _score(pool: Pool, counts: np.ndarray, known: dict[int, float], score: LogScore) -> None:
    """Add the scores of picked draws that are not known yet."""
    new = [int(i) for i in np.flatnonzero(counts) if int(i) not in known]
    known.update(zip(new, score([(int(pool.owners[i]), pool.thetas[i]) for i in new]), strict=True))


def _guess(pool: Pool, known: dict[int, float]) -> np.ndarray:
    """Scores of all draws: those that are known as they are, others guessed from them, candidate by candidate."""
    guess = np.full(len(pool.owners), float(np.median(list(known.values()))))
    for k, proposal in enumerate(pool.first):
        own = np.flatnonzero(pool.owners == k)
        seen = [i for i, position in enumerate(own) if int(position) in known]
        if len(seen) >= FEWEST_SCORED:
            places = proposal.whitened(pool.of(k))
            values = np.array([known[int(own[i])] for i in seen])
            guess[own] = guessed(places[seen], values, places)
    for position, value in known.items():
        guess[position] = value
    return guess
