"""What outputs and laws tell of noise: one sd for outputs in one unit, unless they clearly differ; imbalances of a law."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from sumgp.laws import UnitFreeLaw
from sumgp.strategies.problem import FitProblem, closed_imbalance

SAME = 0.15  # of log noise sds that outputs of one group share
NEGLIGIBLE = 1e-6  # weight of a grid point that says nothing
FAINT = 1e-12  # density that other outputs cannot rule out
APART = 1.0  # sd of log noise sds around their mean where they differ: by a factor of three


@dataclass(frozen=True)
class LawNoise:
    """Imbalances g (M,) of measured rows under a law, unit-free, and the squares (M, T) of their slopes by the outputs."""

    g: np.ndarray
    squares: np.ndarray

    def log_density(self, variances: np.ndarray) -> np.ndarray:
        """(C,) for noise variances (T, C)."""
        total = np.maximum(self.squares @ variances, np.finfo(float).tiny)
        return -0.5 * np.sum(self.g[:, None] ** 2 / total + np.log(total), axis=0)


def law_noise(problem: FitProblem, law: UnitFreeLaw | None) -> LawNoise | None:
    """How rows of which all that a law needs was measured miss it; None where their noise obeys the law too."""
    if law is None or closed_imbalance(problem) is not None:
        return None
    filled = np.where(np.isnan(problem.y), 0.0, problem.y)
    g, J = law.residual(filled, problem.data.x), law.jacobian(filled, problem.data.x)
    needed = np.einsum("nrt,nt->nr", J**2, np.isnan(problem.y)) == 0
    usable = needed & np.isfinite(g) & np.isfinite(J).all(axis=2) & np.any(J != 0, axis=2)
    return LawNoise(g[usable], J[usable] ** 2)


def share_noise(weights: np.ndarray, log_sd: np.ndarray, groups: Sequence[Sequence[int]]) -> None:
    """Multiply the weights of an output by what the others of its group say, in place.

    ``weights`` are logarithms (T, K, R), ``log_sd`` those of the noise sds.
    """
    bins = _bins(log_sd)
    for group in groups:
        said = _said(weights, log_sd, group, bins) if len(group) > 1 else {}
        for t in said:
            others = sum(said[u] for u in group if u != t)
            weights[t] += np.interp(log_sd[t], bins, others)


def noises_differ(weights: np.ndarray, log_sd: np.ndarray, group: Sequence[int]) -> bool:
    """Whether noises of their own are a more probable cause of the outputs of a group than a common one.

    With a flat prior on a log sd c: sum_c prod_t L_t(c) for one in common, L_t being the likelihoods, and
    sum_c prod_t sum_s N(s | c, APART^2) L_t(s) for noises around c.
    """
    bins = _bins(log_sd)
    said = np.stack(list(_said(weights, log_sd, group, bins).values()))
    around = np.exp(-0.5 * ((bins[:, None] - bins) / APART) ** 2)
    own = np.log(np.exp(said) @ (around / around.sum(axis=0)))
    return bool(logsumexp(own.sum(axis=0)) > logsumexp(said.sum(axis=0)))


def _bins(log_sd: np.ndarray) -> np.ndarray:
    return np.arange(log_sd.min() - 1.0, log_sd.max() + 1.0, 0.5 * SAME)


def _said(weights: np.ndarray, log_sd: np.ndarray, group: Iterable[int], bins: np.ndarray) -> dict[int, np.ndarray]:
    """Log likelihood of noise sds ``bins`` for each output of a group, up to a constant."""
    said = {}
    for t in group:
        w = np.exp(weights[t] - weights[t].max()).ravel()
        heavy = w > NEGLIGIBLE
        z = (bins[:, None] - log_sd[t].ravel()[heavy]) / SAME
        said[t] = np.log(np.exp(-0.5 * z**2) @ w[heavy] / w.sum() + FAINT)
    return said
