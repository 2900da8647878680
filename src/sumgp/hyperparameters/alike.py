"""Outputs with kernels of their own that are still alike: what each says of lengthscale and noise of the others.

Few rows leave open whether an output is rough or noisy. So kernel and noise ratio of each output are drawn around common
ones c: p(c) prod_t sum_j B(c, j) L_t(j) with the likelihoods L_t of grid points j and B the probability of j around c. A law
that rows miss tells of the common noise too: the imbalance of a row is nothing but noise, g ~ N(0, sum_t J_t^2 sd_t^2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SAME = 0.15  # of log noise sds that outputs of one group share
ALIKE_LENGTH = 0.7  # of log lengthscales: a factor of two
ALIKE_RATIO = 0.7  # of log noise ratios
UNLIKE = 0.1  # share of outputs that have nothing in common with the others
NEGLIGIBLE = 1e-6  # weight of a grid point that says nothing
FAINT = 1e-12  # density that other outputs cannot rule out


@dataclass(frozen=True)
class LawNoise:
    """Imbalances g (M,) of measured rows under a law, unit-free, and the squares (M, T) of their slopes by the outputs."""

    g: np.ndarray
    squares: np.ndarray

    def log_density(self, variances: np.ndarray) -> np.ndarray:
        """(C,) for noise variances (T, C)."""
        total = np.maximum(self.squares @ variances, np.finfo(float).tiny)
        return -0.5 * np.sum(self.g[:, None] ** 2 / total + np.log(total), axis=0)


def around(points: np.ndarray, width: float, prior: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """(C, C) probabilities of grid points (C, p) around each of them, of one kind and within ``width``, or of any."""
    distance = np.sum((points[:, None] - points) ** 2, axis=2)
    near = np.exp(-0.5 * distance / width**2) * (kinds[:, None] == kinds) * prior
    return (1.0 - UNLIKE) * near / near.sum(axis=1, keepdims=True) + UNLIKE * prior / prior.sum()


def pool(
    likelihoods: np.ndarray,
    kernels: np.ndarray,
    ratios: np.ndarray,
    prior: np.ndarray,
    law: np.ndarray | None = None,
) -> np.ndarray:
    """Log weights (T, K, R) of grid points from log likelihoods (T, K, R); B is ``kernels`` (K, K) times ``ratios`` (R, R).

    ``prior`` (K, R) log of p(c); ``law`` (K, R) log density of imbalances at c.
    """
    L = np.exp(likelihoods - likelihoods.max(axis=(1, 2), keepdims=True))
    Z = np.maximum(np.einsum("ck,tkr,dr->tcd", kernels, L, ratios, optimize=True), np.finfo(float).tiny)
    common = prior + np.log(Z).sum(axis=0) + (0.0 if law is None else law)
    P = np.exp(common - np.max(common))
    expected = np.einsum("ck,tcd,dr->tkr", kernels, P / P.sum() / Z, ratios, optimize=True)
    with np.errstate(divide="ignore"):
        return np.log(L) + np.log(expected)


def share_noise(weights: np.ndarray, log_sd: np.ndarray, groups: Sequence[Sequence[int]]) -> None:
    """Multiply the weights of an output, as logarithms (T, K, R) with noise ``log_sd``, by what the others of its group say."""
    bins = np.arange(log_sd.min() - 1.0, log_sd.max() + 1.0, 0.5 * SAME)
    for group in groups:
        if len(group) < 2:
            continue
        said = {}
        for t in group:
            w = np.exp(weights[t] - weights[t].max()).ravel()
            heavy = w > NEGLIGIBLE
            z = (bins[:, None] - log_sd[t].ravel()[heavy]) / SAME
            said[t] = np.log(np.exp(-0.5 * z**2) @ w[heavy] / w.sum() + FAINT)
        for t in group:
            others = sum(said[u] for u in group if u != t)
            weights[t] += np.interp(log_sd[t], bins, others)
