"""Averaging over hyperparameters: importance sampling around each maximum, weighted by the data and by the law.

Each candidate prior has its own maximum theta_k. Draws come from a Student t fitted to the curvature there, then from
one refitted to the first weighted draws; both proposals together weigh every draw (balance heuristic). Candidates enter
by the same weights, so that no separate choice between kernels is made.
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
FEWEST = 8  # draws of a candidate per round
NEGLIGIBLE = 2e-3  # components of smaller weight are dropped

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


def curvature(objective: Objective, theta: np.ndarray, step: float = 1e-3) -> np.ndarray:
    """Hessian of the objective by central differences of its closed-form gradient."""
    p = len(theta)
    H = np.empty((p, p))
    for i in range(p):
        shift = np.zeros(p)
        shift[i] = step
        H[i] = (objective(theta + shift)[1] - objective(theta - shift)[1]) / (2.0 * step)
    return 0.5 * (H + H.T)


def integrate(
    objectives: Sequence[Objective],
    maxima: Sequence[MapEstimate],
    score: LogScore,
    count: int,
    random_state: int,
    curvatures: Sequence[np.ndarray] | None = None,
) -> Integration:
    """Draws shared by the candidates: ``count`` from the curvatures at their maxima, as many from refitted proposals.

    ``score(candidate, theta)`` is the logarithm of what else weighs a draw: the evidence of the law.
    """
    if curvatures is None:
        curvatures = [curvature(o, m.theta) for o, m in zip(objectives, maxima, strict=True)]
    each = max(count // len(objectives), FEWEST)
    thetas: list[np.ndarray] = []
    log_weights: list[np.ndarray] = []
    for k, (objective, maximum, H) in enumerate(zip(objectives, maxima, curvatures, strict=True)):

        def own_score(theta: np.ndarray, k: int = k) -> float:
            return score(k, theta)

        theta, weight = _candidate(objective, maximum, H, own_score, each, 17 * random_state + k)
        thetas.append(theta)
        log_weights.append(weight)
    owner = np.repeat(np.arange(len(thetas)), [len(t) for t in thetas])
    flat = np.concatenate(log_weights)
    weights, temperature = tempered(flat)
    rows = [theta for block in thetas for theta in block]
    draws = tuple(Draw(int(owner[i]), rows[i], float(w)) for i, w in enumerate(weights) if w > NEGLIGIBLE)
    total = sum(d.weight for d in draws)
    draws = tuple(Draw(d.candidate, d.theta, d.weight / total) for d in draws)
    shares = tuple(float(np.sum(weights[owner == k])) for k in range(len(thetas)))
    return Integration(draws, float(1.0 / np.sum(weights**2)), temperature, shares)


def _candidate(
    objective: Objective, maximum: MapEstimate, H: np.ndarray, score: Callable[[np.ndarray], float], count: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draws and log weights of one candidate from both proposals."""
    low, high = np.array(objective.prior.bounds()).reshape(-1, 2).T

    def target(thetas: np.ndarray) -> np.ndarray:
        values = np.full(len(thetas), -np.inf)
        for i, theta in enumerate(thetas):
            if np.all((theta >= low) & (theta <= high)):
                value = objective(theta)[0]
                # Far out in the tail the law's evidence, which costs most, cannot bring a draw back.
                if value < min(REFUSED, maximum.value + TAIL + len(theta)):
                    values[i] = -value + score(theta)
        return values

    values, vectors = np.linalg.eigh(H)
    root = np.linalg.cholesky(_symmetric((vectors / np.maximum(values, CURVATURE_FLOOR)) @ vectors.T))
    first = _Proposal(maximum.theta, root)
    theta = first.sample(count, seed)
    log_target = target(theta)
    second = _refitted(first, theta, log_target)
    more = second.sample(count, seed + 1000003)
    theta = np.vstack([theta, more])
    log_target = np.concatenate([log_target, target(more)])
    mixture = np.logaddexp(first.log_density(theta), second.log_density(theta)) - np.log(2.0)
    return theta, log_target - mixture


def _refitted(first: _Proposal, theta: np.ndarray, log_target: np.ndarray) -> _Proposal:
    """Proposal with the weighted mean and covariance of the first draws, shrunk towards the first proposal."""
    log_weights = log_target - first.log_density(theta)
    if not np.any(np.isfinite(log_weights)):
        return first
    weights, _ = tempered(log_weights)
    effective = 1.0 / np.sum(weights**2)
    p = len(first.mean)
    share = effective / (effective + p)
    mean = weights @ theta
    offset = theta - mean
    covariance = (offset.T * weights) @ offset * (DEGREES - 2.0) / DEGREES
    blended = share * covariance + (1.0 - share) * first.root @ first.root.T
    return _Proposal(share * mean + (1.0 - share) * first.mean, np.linalg.cholesky(_symmetric(blended)))


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
