"""Evidence of independent latent processes on one kernel, block by block given the nearest earlier points.

Each latent w_i is N(0, lambda_i (K + mean_variance) + diag(noise)), its noise of variance one times a factor per row:
log p(w) ~ sum_b log N(w_b | w of the neighbours of b).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtrs

from sumgp.errors import NumericalError
from sumgp.numerics import LOG_2PI
from sumgp.solvers.vecchia.blocks import BlockGroup
from sumgp.solvers.vecchia.covariance import Profile, ScaledCovariance, Slopes

AT_ONCE = 150_000  # entries of the matrices of blocks that are worked on together: they stay in the processor's caches


class Latents(NamedTuple):
    """Values w (N, k), log signal variances relative to the noise (k,), and noise factors (N,)."""

    w: np.ndarray
    log_signal: np.ndarray
    noise: np.ndarray

    def some(self, which: slice) -> Latents:
        """Some of the latents."""
        return Latents(self.w[:, which], self.log_signal[which], self.noise)


class LatentEvidence(NamedTuple):
    """log p(w) and its derivatives: by the kernel's theta (p,), by log signal (k,), and by w (N, k)."""

    value: float
    by_kernel: np.ndarray
    by_signal: np.ndarray
    by_w: np.ndarray


def latent_evidence(
    blocks: tuple[BlockGroup, ...], x: np.ndarray, covariance: ScaledCovariance, latents: Latents, mean_variance: float
) -> LatentEvidence:
    """log p(w) and its gradient at inputs x (N, D)."""
    n_latents = latents.w.shape[1]
    scaled, ratios = x / covariance.lengthscales(x.shape[1]), covariance.ratios(x.shape[1])
    value = 0.0
    slopes = [Slopes(np.zeros(x.shape[1]), 0.0, 0.0)] * len(ratios)
    by_signal, by_w = np.zeros(n_latents), np.zeros_like(latents.w)
    for group in blocks:
        m = group.members.shape[1]
        step = max(1, AT_ONCE // m**2)
        for start in range(0, len(group.members), step):
            members = group.members[start : start + step]
            points = scaled[members]
            profiles = covariance.profiles(points)
            rows = np.empty((len(members), n_latents, group.n_new + 2, m))
            signs = np.full(rows.shape[1:3], -0.5)
            signs[:, 0] = 0.5
            signs *= np.exp(latents.log_signal)[:, None]
            unit = profiles[0].k
            if len(profiles) > 1:
                unit = np.asarray(sum(share * p.k for share, p in zip(covariance.shares, profiles, strict=True)))
            K = unit + mean_variance
            for i in range(n_latents):
                sums = _blocks_of_one(members, K, latents, i, rows[:, i], by_w)
                value += sums[0]
                by_signal[i] += sums[1]
            flat = rows.reshape(len(members), -1, m)
            weights = (flat * signs.reshape(-1, 1)).swapaxes(1, 2) @ flat
            whole = float(np.sum(weights * unit)) if len(ratios) > 1 else 0.0
            for j, (ratio, share) in enumerate(zip(ratios, covariance.shares, strict=True)):
                found = _term_slopes(profiles[j], share * weights, points / ratio, share * whole, len(ratios) > 1)
                slopes[j] = slopes[j].plus(found)
    return LatentEvidence(value, covariance.gradient(slopes), by_signal, by_w)


def latent_log_density(
    blocks: tuple[BlockGroup, ...], x: np.ndarray, covariance: ScaledCovariance, latents: Latents, mean_variance: float
) -> float:
    """log p(w) alone, at about a third of the cost."""
    found = surprises(blocks, x, covariance, latents, mean_variance)
    return -0.5 * float(np.sum(found.values**2)) - found.log_sizes - 0.5 * latents.w.size * LOG_2PI


class Surprises(NamedTuple):
    """What each row's w (N, k) is beyond what earlier rows say of it, as independent N(0, 1); log of their sizes, summed."""

    values: np.ndarray
    log_sizes: float


def surprises(
    blocks: tuple[BlockGroup, ...], x: np.ndarray, covariance: ScaledCovariance, latents: Latents, mean_variance: float
) -> Surprises:
    """L^-1 w with C = L L^T, in the rows that are new to their block."""
    scaled, result, log_sizes = x / covariance.lengthscales(x.shape[1]), np.empty_like(latents.w), 0.0
    for group in blocks:
        m, n = group.members.shape[1], group.n_new
        step = max(1, AT_ONCE // m**2)
        for start in range(0, len(group.members), step):
            members = group.members[start : start + step]
            K = covariance.within(scaled[members])
            K += mean_variance
            noise = latents.noise[members]
            for i, log_signal in enumerate(latents.log_signal):
                C = float(np.exp(log_signal)) * K
                C.reshape(len(C), -1)[:, :: m + 1] += noise
                for one, rows in zip(C, members, strict=True):
                    L = lower_factor(one)
                    result[rows[m - n :], i] = dtrtrs(L, latents.w[rows, i], lower=1)[0][m - n :]
                    log_sizes += float(np.sum(np.log(L.diagonal()[m - n :])))
    return Surprises(result, log_sizes)


def lower_factor(C: np.ndarray) -> np.ndarray:
    """L with L L^T = C, in its lower triangle; C is overwritten."""
    L, failed = dpotrf(C.T, lower=1, overwrite_a=1, clean=0)
    if failed:
        raise NumericalError("Vecchia: a covariance of neighbours is not positive definite; give a larger noise=")
    return np.asarray(L)


def _term_slopes(profile: Profile, weights: np.ndarray, points: np.ndarray, whole: float, in_sum: bool) -> Slopes:
    """By one term's parameters, from ``weights`` (B, m, m), d log p / dK times its share; overwrites them."""
    by_shape = 0.0 if profile.by_shape is None else float(np.sum(weights * profile.by_shape))
    by_weight = float(np.sum(weights * profile.k)) - whole if in_sum else 0.0
    weights *= profile.p
    # sum_jl M_jl (x_j - x_l)^2 = 2 (sum_j x_j^2 sum_l M_jl - x^T M x), one input at a time.
    local = points - points.mean(axis=1, keepdims=True)
    by_length = 2.0 * (np.einsum("bj,bjd->d", weights.sum(axis=2), local**2) - np.sum(local * (weights @ local), (0, 1)))
    return Slopes(by_length, by_shape, by_weight)


def _blocks_of_one(
    members: np.ndarray, K: np.ndarray, latents: Latents, i: int, rows: np.ndarray, by_w: np.ndarray
) -> tuple[float, float]:
    """Sums of log p and of its derivative by log signal for latent i; fills in ``rows`` (B, n + 2, m), adds to ``by_w``.

    With C = L L^T, z = L^-1 w and e its last n entries, log p needs e and the last entries of L's diagonal. With
    V = L^-T [0; I], beta = V e and alpha = L^-T z, 2 dlog p / dC = alpha alpha^T - (alpha - beta)(..)^T - V V^T; the rows
    are alpha, alpha - beta and V^T.
    """
    m, n = members.shape[1], rows.shape[1] - 2
    noise, w = latents.noise[members], latents.w[members, i]
    C = float(np.exp(latents.log_signal[i])) * K
    C.reshape(len(C), -1)[:, :: m + 1] += noise
    rows[:, 1:] = 0.0
    rows[:, range(2, n + 2), range(m - n, m)] = 1.0
    z, diagonal = np.empty((len(C), m)), np.empty((len(C), m))
    for b in range(len(C)):
        L = lower_factor(C[b])
        diagonal[b] = L.diagonal()
        z[b] = rows[b, 0] = dtrtrs(L, w[b], lower=1)[0]
        rows[b] = dtrtrs(L, rows[b].T, lower=1, trans=1)[0].T
    e = z[:, m - n :]
    beta = (e[:, None] @ rows[:, 2:])[:, 0]
    np.subtract(rows[:, 0], beta, out=rows[:, 1])
    square = float(np.sum(e**2))
    value = -0.5 * square - float(np.sum(np.log(diagonal[:, m - n :]))) - 0.5 * e.size * LOG_2PI
    # <dlog p / dC, C> is known from the residuals alone; what remains of it without the noise is the signal's part.
    by_noise = rows[:, 0] ** 2 - np.einsum("bnm,bnm->bm", rows[:, 1:], rows[:, 1:])
    np.subtract.at(by_w[:, i], members.ravel(), beta.ravel())
    return value, 0.5 * (square - e.size) - 0.5 * float(np.sum(by_noise * noise))
