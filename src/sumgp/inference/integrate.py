"""Averaging over hyperparameters: importance sampling around each maximum, weighted by the data and by the law.

Each candidate prior has its own maximum theta_k. A pool of draws comes from Student t distributions fitted to the
curvature there; its weights given the data are cheap. The law's evidence is not: half of the draws it is computed for are
picked by the data's weights, the other half by those times a regression of the law's evidence on the first half.
Candidates enter by the same weights, so that no separate choice between kernels is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, logsumexp
from scipy.stats import chi2, norm, qmc

from sumgp.inference.objective import REFUSED, Objective
from sumgp.inference.optimise import MapEstimate

DEGREES = 6.0
CURVATURE_FLOOR = 0.25
CAP = 1.5  # no weight exceeds CAP / sqrt(number of draws)
MIN_EFFECTIVE = 12.0  # weights are tempered until the effective sample size reaches this
TAIL = 8.0
FEWEST = 8  # scored draws of a candidate that a regression needs
POOL = 8  # draws in the pool for each that is picked in a round
EDGE = 2.0  # standard deviations within which the regression is trusted
NEGLIGIBLE = 0.3  # components of less than this share of the mean weight are dropped

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


@dataclass(frozen=True)
class _Proposal:
    mean: np.ndarray
    root: np.ndarray  # lower factor of the scale matrix

    def sample(self, count: int, seed: int) -> np.ndarray:
        """Quasi-random Student-t draws (scrambled Sobol), (count, p)."""
        p = len(self.mean)
        sobol = qmc.Sobol(p + 1, scramble=True, seed=seed)
        u = np.clip(sobol.random(count), 1e-9, 1.0 - 1e-9)
        scale = np.sqrt(DEGREES / chi2.ppf(u[:, p], DEGREES))
        return self.mean + (norm.ppf(u[:, :p]) * scale[:, None]) @ self.root.T

    def log_density(self, theta: np.ndarray) -> np.ndarray:
        """(count,) log densities."""
        p = len(self.mean)
        z = np.linalg.solve(self.root, (theta - self.mean).T)
        squares = np.sum(z**2, axis=0)
        constant = gammaln(0.5 * (DEGREES + p)) - gammaln(0.5 * DEGREES) - 0.5 * p * np.log(DEGREES * np.pi)
        return constant - np.sum(np.log(np.diagonal(self.root))) - 0.5 * (DEGREES + p) * np.log1p(squares / DEGREES)


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
    """``2 count`` draws picked from a larger pool, whose posterior density given the data costs little.

    ``score(candidate, theta)`` is the logarithm of what else weighs a draw: the evidence of the law, which costs most.
    None: nothing does.
    """
    if curvatures is None:
        curvatures = [curvature(o, m.theta) for o, m in zip(objectives, maxima, strict=True)]
    pool = _pool(objectives, maxima, curvatures, count * POOL, random_state)
    picks = np.random.default_rng([random_state, 9])
    counts, expected = pool.picked(pool.log_weights, count if score else 2 * count, picks)
    scores = np.zeros(len(counts))
    if score is not None:
        _score(pool, counts, scores, score)
        guess = _guessed(pool, counts, scores)
        more, more_expected = pool.picked(pool.log_weights + guess, count, picks)
        _score(pool, np.where(counts > 0, 0, more), scores, score)
        counts, expected = counts + more, expected + more_expected
    used = np.flatnonzero(counts)
    # Each draw stands for its share of the posterior over how often it was to be expected (balance heuristic).
    log_weights = pool.log_weights[used] + scores[used] + np.log(counts[used]) - np.log(expected[used])
    weights, temperature = tempered(log_weights)
    draws = [Draw(int(pool.owners[i]), pool.thetas[i], float(w)) for i, w in zip(used, weights, strict=True)]
    least = NEGLIGIBLE / len(draws)
    total = sum(d.weight for d in draws if d.weight > least)
    kept = tuple(Draw(d.candidate, d.theta, d.weight / total) for d in draws if d.weight > least)
    shares = tuple(float(np.sum(weights[pool.owners[used] == k])) for k in range(len(objectives)))
    return Integration(kept, float(1.0 / np.sum(weights**2)), temperature, shares)


@dataclass(frozen=True)
class _Pool:
    """Draws of all candidates with the log of posterior given the data over proposal."""

    thetas: list[np.ndarray]
    owners: np.ndarray
    log_weights: np.ndarray

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


def _pool(
    objectives: Sequence[Objective],
    maxima: Sequence[MapEstimate],
    curvatures: Sequence[np.ndarray],
    size: int,
    random_state: int,
) -> _Pool:
    """About ``size`` draws, shared equally by the candidates; those beyond the bounds or far out weigh nothing."""
    each = 1 << max(int(size / len(objectives)).bit_length() - 1, 3)  # Sobol points come in powers of two
    thetas: list[np.ndarray] = []
    log_weights: list[float] = []
    for k, (objective, maximum, H) in enumerate(zip(objectives, maxima, curvatures, strict=True)):
        values, vectors = np.linalg.eigh(H)
        root = np.linalg.cholesky(_symmetric((vectors / np.maximum(values, CURVATURE_FLOOR)) @ vectors.T))
        proposal = _Proposal(maximum.theta, root)
        sample = proposal.sample(each, 17 * random_state + k)
        low, high = np.array(objective.prior.bounds()).reshape(-1, 2).T
        for theta, density in zip(sample, proposal.log_density(sample), strict=True):
            value = objective.value(theta) if np.all((theta >= low) & (theta <= high)) else REFUSED
            far = value >= min(REFUSED, maximum.value + TAIL + len(theta))
            log_weights.append(-np.inf if far else -value - density)
        thetas.extend(sample)
    return _Pool(thetas, np.repeat(np.arange(len(objectives)), each), np.array(log_weights))


def _score(pool: _Pool, counts: np.ndarray, scores: np.ndarray, score: LogScore) -> None:
    """Fill in the scores of picked draws."""
    for i in np.flatnonzero(counts):
        scores[i] = score(int(pool.owners[i]), pool.thetas[i])


def _guessed(pool: _Pool, counts: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Scores of all draws from those of the picked ones: per candidate a ridge regression on parameters and squares."""
    guess = np.full(len(counts), float(np.median(scores[counts > 0])))
    for k in np.unique(pool.owners):
        own = pool.owners == k
        known = own & (counts > 0)
        if known.sum() < FEWEST:
            continue
        thetas = np.stack([pool.thetas[i] for i in np.flatnonzero(own)])
        seen = np.stack([pool.thetas[i] for i in np.flatnonzero(known)])
        centre, size = seen.mean(axis=0), seen.std(axis=0) + 1e-12
        # Beyond what was seen a parabola runs away: the guess there is that of the edge.
        z = np.clip((thetas - centre) / size, -EDGE, EDGE)
        features = np.hstack([z, z**2 - 1.0])
        z_seen = np.clip((seen - centre) / size, -EDGE, EDGE)
        design = np.hstack([z_seen, z_seen**2 - 1.0])
        target = np.maximum(scores[known], np.median(scores[known]) - TAIL)
        middle = target.mean()
        ridge = np.concatenate([np.ones(z.shape[1]), np.full(z.shape[1], 4.0)])
        solved = np.linalg.solve(design.T @ design + np.diag(ridge), design.T @ (target - middle))
        guess[own] = middle + features @ solved
    guess[counts > 0] = scores[counts > 0]
    return guess


def tempered(log_weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Normalised weights, flattened by a power until enough draws count, and capped.

    Returns the weights and the power (1 = the weights as they are).
    """
    finite = np.isfinite(log_weights)
    if not finite.any():
        return np.full(len(log_weights), 1.0 / len(log_weights)), 0.0
    needed = min(MIN_EFFECTIVE, 0.5 * float(finite.sum()))
    low, high = 0.0, 1.0
    if _effective(log_weights, 1.0) >= needed:
        low = 1.0
    else:
        for _ in range(30):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if _effective(log_weights, middle) >= needed else (low, middle)
    weights = _normalised(log_weights, low)
    cap = max(CAP / np.sqrt(len(weights)), 1.0 / float(finite.sum()))
    for _ in range(20):
        over = weights > cap
        if not over.any():
            break
        rest = weights[~over].sum()
        if rest <= 0:
            break
        weights = np.where(over, cap, weights * (1.0 - cap * over.sum()) / rest)
    return weights / weights.sum(), low


def _normalised(log_weights: np.ndarray, power: float) -> np.ndarray:
    scaled = np.where(np.isfinite(log_weights), log_weights * power, -np.inf)
    return np.exp(scaled - logsumexp(scaled))


def _effective(log_weights: np.ndarray, power: float) -> float:
    return float(1.0 / np.sum(_normalised(log_weights, power) ** 2))


def _symmetric(matrix: np.ndarray) -> np.ndarray:
    return 0.5 * (matrix + matrix.T)
