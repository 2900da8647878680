"""A long MCMC over hyperparameters and outputs: the slow answer that Linearized is compared with.

Each of many chains holds (theta, f). A step proposes theta and draws f given it; target over proposal is known exactly
(law_draws), so that a Metropolis step keeps the joint distribution whatever the shape of either. theta is proposed along
differences between chains of the other half (ter Braak 2006), later mostly from a Student t fitted to the early part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from support.law_draws import LawDraws, draw_outputs, linearise
from support.smeared_law import SmearedLaw

STEP = 1.4  # over sqrt(p), in differences; 2.38 / sqrt(2) would be best for a Gaussian
DIFFERENCES_EVERY = 4  # steps, between independent ones
DEGREES = 6.0


@dataclass(frozen=True)
class Samples:
    """``theta`` (kept, C, p) and ``f`` (kept, C, n, T) of C chains; ``accepted`` share of the independent steps."""

    theta: np.ndarray
    f: np.ndarray
    accepted: float


@dataclass(frozen=True)
class Proposal:
    """A Student t in p dimensions."""

    mean: np.ndarray
    root: np.ndarray

    @staticmethod
    def fitted(theta: np.ndarray) -> Proposal:
        """From theta (count, p) of the chains' early part, and fixed from then on."""
        return Proposal(theta.mean(axis=0), np.linalg.cholesky(np.cov(theta.T)))

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """(count, p)."""
        z = rng.standard_normal((count, len(self.mean))) * np.sqrt(DEGREES / rng.chisquare(DEGREES, size=(count, 1)))
        return self.mean + z @ self.root.T

    def log_density(self, theta: np.ndarray) -> np.ndarray:
        """(count,) up to a constant."""
        z = np.linalg.solve(self.root, (theta - self.mean).T)
        return -0.5 * (DEGREES + len(z)) * np.log1p(np.sum(z**2, axis=0) / DEGREES)


class Chains:
    """The chains' present state."""

    def __init__(self, target: SmearedLaw, theta: np.ndarray, rng: np.random.Generator) -> None:
        self.target, self.theta, self.rng = target, theta, rng
        drawn = self._drawn(theta)
        self.f, self.log_weight = drawn.f, drawn.log_weight

    def _drawn(self, theta: np.ndarray) -> LawDraws:
        given = self.target.given_data(theta)
        drawn = draw_outputs(self.target, given, linearise(self.target, given), self.rng)
        return LawDraws(drawn.f, drawn.log_weight + given.log_weight)

    def _accept(self, rows: np.ndarray, proposed: np.ndarray, log_ratio: np.ndarray | float) -> float:
        """Metropolis step of some chains; ``log_ratio`` is that of the proposals' densities. Returns the share moved."""
        drawn = self._drawn(proposed)
        level = self.log_weight[rows] - log_ratio + np.log(self.rng.uniform(size=len(rows)))
        moved = drawn.log_weight > level
        to = rows[moved]
        self.theta[to], self.f[to], self.log_weight[to] = proposed[moved], drawn.f[moved], drawn.log_weight[moved]
        return float(np.mean(moved))

    def jump(self, proposal: Proposal) -> float:
        """All chains, independently of where they are."""
        proposed = proposal.draw(len(self.theta), self.rng)
        log_ratio = proposal.log_density(self.theta) - proposal.log_density(proposed)
        return self._accept(np.arange(len(self.theta)), proposed, log_ratio)

    def move(self) -> None:
        """One half of the chains along differences between those of the other half, then the other way round."""
        halves = np.array_split(np.arange(len(self.theta)), 2)
        for own, other in (halves, halves[::-1]):
            first = self.rng.integers(len(other), size=len(own))
            second = (first + self.rng.integers(1, len(other), size=len(own))) % len(other)
            p = self.theta.shape[1]
            along = self.theta[other[first]] - self.theta[other[second]]
            jitter = 1e-4 * self.rng.standard_normal((len(own), p))
            self._accept(own, self.theta[own] + STEP / np.sqrt(p) * along + jitter, 0.0)


def sample(
    target: SmearedLaw, *, chains: int = 32, burn: int = 80, keep: int = 96, spread: float = 0.4, seed: int = 0
) -> Samples:
    """Run the chains from ``spread`` around the target's start."""
    rng = np.random.default_rng(seed)
    state = Chains(target, target.start + spread * rng.standard_normal((chains, len(target.start))), rng)
    early = []
    for step in range(burn):
        state.move()
        if step >= burn // 2:
            early.append(state.theta.copy())
    proposal = Proposal.fitted(np.concatenate(early))
    thetas, outputs, moves = [], [], []
    for step in range(keep):
        if step % DIFFERENCES_EVERY:
            moves.append(state.jump(proposal))
        else:
            state.move()
        thetas.append(state.theta.copy())
        outputs.append(state.f.reshape(chains, -1, 2).copy())
    return Samples(np.array(thetas), np.array(outputs), float(np.mean(moves)))


def tightened(target: SmearedLaw, thetas: np.ndarray, share: float, steps: int, seed: int) -> tuple[np.ndarray, float]:
    """f (C, n, T) | theta for each row of thetas, with a law sd of ``share`` times the target's, and the share accepted."""
    rng = np.random.default_rng(seed)
    tight = replace(target, law_sd=share * target.law_sd)
    given = tight.given_data(thetas)
    at = linearise(tight, given)
    here, moves = draw_outputs(tight, given, at, rng), []
    for _ in range(steps):
        there = draw_outputs(tight, given, at, rng)
        moved = there.log_weight > here.log_weight + np.log(rng.uniform(size=len(thetas)))
        here = LawDraws(np.where(moved[:, None], there.f, here.f), np.where(moved, there.log_weight, here.log_weight))
        moves.append(np.mean(moved))
    assert np.all(np.isfinite(here.log_weight))
    return here.f.reshape(len(thetas), -1, 2), float(np.mean(moves))


def r_hat(values: np.ndarray) -> np.ndarray:
    """(...) Gelman and Rubin's ratio of values (kept, chains, ...), each chain split in two."""
    half = len(values) // 2
    split = np.concatenate([values[:half], values[half : 2 * half]], axis=1)
    within = np.mean(np.var(split, axis=0, ddof=1), axis=0)
    between = np.var(np.mean(split, axis=0), axis=0, ddof=1)
    return np.sqrt(1.0 - 1.0 / half + between / within)
