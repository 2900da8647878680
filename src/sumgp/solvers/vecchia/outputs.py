"""From outputs under a linear law to latents and back: f(x) = S(x) D + base + loading g(x), whatever g is.

With G an orthonormal basis of the outputs that F does not see, y = F^+ S + G a + H b. b is noise alone. What a says about
the latents is w = M [W0 a, b, s], where b takes away the noise that it shares with a, and s, the varying totals, what
they say about a.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from sumgp.solvers.vecchia.mixing import LEAST_NOISE, MixedRows

NO_NOISE = 1e-6  # rms of b in sds of the outputs, below which rows obey the law exactly
VARYING = 1e-9  # sd of totals, in sds of the outputs, above which they vary
GUESSED_FROM = 3000  # rows whose nearest neighbours tell the first guess of the noise
LEAST_SIGNAL = 1e-2  # of the noise variance, in the first guess


class LinearRows(NamedTuple):
    """F (R, T) with totals (N, R), unit-free; R is zero without a law."""

    F: np.ndarray
    totals: np.ndarray


class KnownNoise(NamedTuple):
    """Noise variances (T,) that are known, up to the factors of rows."""

    variances: np.ndarray


class OutputModel(NamedTuple):
    """f(x) = S(x) @ D + base + loading g(x), and the noise's covariance (T, T) for a factor of one."""

    D: np.ndarray  # (R, T)
    base: np.ndarray  # (T,)
    loading: np.ndarray  # (T, q)
    noise: np.ndarray


@dataclass(frozen=True)
class OutputRows:
    """Complete rows as ``MixedRows``, a first guess of log signals (q,), and what leads back to the outputs."""

    mixed: MixedRows
    log_signal: np.ndarray
    G: np.ndarray  # (T, q)
    H: np.ndarray  # (T, r)
    lifted: np.ndarray  # (R, T): F^+ transposed
    b_scale: np.ndarray  # (r,), or (0,) where rows obey the law
    s_centre: np.ndarray  # (R,)
    s_scale: np.ndarray  # (R,), or (0,) where totals do not vary
    known: np.ndarray | None = None  # (T,) noise variances

    @property
    def log_constant(self) -> float:
        """What the whitening and b, which no hyperparameter changes, add to the log evidence."""
        value = float(np.linalg.slogdet(self.mixed.whitening)[1])
        return len(self.mixed.x) * (value - float(np.sum(np.log(self.b_scale) + 0.5 * np.log(2.0 * np.pi) + 0.5)))

    def model(self, mixing: np.ndarray) -> OutputModel:
        """The outputs for a mixing M (q, c)."""
        q, r = self.mixed.n_latents, len(self.b_scale)
        A = np.linalg.inv(mixing[:, :q] @ self.mixed.whitening)
        loading = self.G @ A
        D, base = self.lifted, np.zeros(len(self.G))
        if len(self.s_scale):
            by_total = (loading @ mixing[:, q + r :] / self.s_scale).T
            D, base = D - by_total, self.s_centre @ by_total
        if self.known is not None:
            return OutputModel(D, base, loading, np.diag(self.known))
        noise = loading @ loading.T
        if r:
            # H^T e = b, and G^T e = A (white - M_b b).
            mixed = self.H * self.b_scale - loading @ mixing[:, q : q + r]
            noise = noise + mixed @ mixed.T
        return OutputModel(D, base, loading, noise)


def output_rows(x: np.ndarray, y: np.ndarray, law: LinearRows, factor: np.ndarray, known: KnownNoise | None) -> OutputRows:
    """Complete rows y (N, T), unit-free, whose noise has the same covariance up to ``factor`` (N,)."""
    T = y.shape[1]
    left, values, right = np.linalg.svd(law.F, full_matrices=True)
    rank = int(np.sum(values > 1e-12)) if len(values) else 0
    H, G = right[:rank].T, right[rank:].T
    lifted = (left[:, :rank] / values[:rank]) @ right[:rank] if rank else np.zeros((0, T))
    centred = y - law.totals @ lifted
    a, b = centred @ G, centred @ H
    deviation = law.totals.std(axis=0)
    s_scale = deviation if len(deviation) and np.all(deviation > VARYING) else np.zeros(0)
    s = ((law.totals - law.totals.mean(axis=0)) / s_scale) if len(s_scale) else np.zeros((len(y), 0))
    if known is not None:
        precision = 1.0 / np.maximum(known.variances, LEAST_NOISE**2)
        noise_q = np.linalg.inv(G.T @ (precision[:, None] * G))
        a = centred @ (precision[:, None] * G) @ noise_q
        whitening, log_signal = _whitening(noise_q, np.cov(a.T).reshape(len(noise_q), -1))
        whitening *= _signs(a @ whitening.T)[:, None]
        mixed = MixedRows(x, np.concatenate([a @ whitening.T, s], axis=1), factor, whitening, noise_is_known=True)
        return OutputRows(mixed, log_signal, G, H, lifted, np.zeros(0), law.totals.mean(axis=0), s_scale, 1.0 / precision)
    b_scale = np.sqrt(np.mean(b**2, axis=0))
    if not np.all(b_scale > NO_NOISE):
        b, b_scale = b[:, :0], np.zeros(0)
    b_sign = _signs(b)
    b, H = b * b_sign, H[:, : len(b_sign)] * b_sign
    whitening, log_signal = _whitening(_guessed_noise(x, a), np.cov(a.T).reshape(a.shape[1], -1))
    whitening *= _signs(a @ whitening.T)[:, None]
    Z = np.concatenate([a @ whitening.T, b / b_scale, s], axis=1)
    return OutputRows(
        MixedRows(x, Z, factor, whitening), log_signal, G, H, lifted, b_scale, law.totals.mean(axis=0), s_scale
    )


def _signs(columns: np.ndarray) -> np.ndarray:
    """(k,) signs that make the cubes of each column about its mean add up to more than zero, whatever order outputs have."""
    return np.where(np.sum((columns - columns.mean(axis=0)) ** 3, axis=0) < 0, -1.0, 1.0)


def _guessed_noise(x: np.ndarray, a: np.ndarray) -> np.ndarray:
    """(q, q) half the covariance of differences between nearest neighbours, an upper guess."""
    size = np.ptp(x, axis=0)
    rows = np.unique(np.linspace(0, len(x) - 1, min(len(x), GUESSED_FROM)).astype(int))
    points = x / np.where(size > 0, size, 1.0)
    near = cKDTree(points).query(points[rows], k=2)[1]
    other = np.where(near[:, 0] == rows, near[:, 1], near[:, 0])
    apart = a[rows] - a[other]
    return 0.5 * apart.T @ apart / len(apart) + LEAST_NOISE**2 * np.eye(a.shape[1])


def _whitening(noise: np.ndarray, total: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """W (q, q) with W noise W^T = I and W total W^T diagonal, and the logarithms of its signal part."""
    values, vectors = np.linalg.eigh(noise)
    white = (vectors / np.sqrt(np.maximum(values, LEAST_NOISE**2))).T
    size, rotation = np.linalg.eigh(white @ total @ white.T)
    return rotation.T @ white, np.log(np.maximum(size - 1.0, LEAST_SIGNAL))


class RowInformation(NamedTuple):
    """What rows say about the latents: precisions (N,) or (N, q, q), and precision times value (N, q)."""

    precision: np.ndarray
    pulled: np.ndarray


def incomplete_information(y: np.ndarray, offset: np.ndarray, model: OutputModel, factor: np.ndarray) -> RowInformation:
    """Of rows y (N, T) with gaps: J = L_o^T R_oo^-1 L_o over the measured outputs o, and L_o^T R_oo^-1 (y - offset)_o."""
    q = model.loading.shape[1]
    precision, pulled = np.zeros((len(y), q, q)), np.zeros((len(y), q))
    regular = model.noise + LEAST_NOISE**2 * np.eye(len(model.noise))
    measured = ~np.isnan(y)
    patterns, which = np.unique(measured, axis=0, return_inverse=True)
    for number, seen in enumerate(patterns):
        if not seen.any():
            continue
        rows = np.flatnonzero(np.ravel(which) == number)
        weighted = np.linalg.solve(regular[np.ix_(seen, seen)], model.loading[seen])
        precision[rows] = (model.loading[seen].T @ weighted) / factor[rows, None, None]
        pulled[rows] = (y - offset)[np.ix_(rows, seen)] @ weighted / factor[rows, None]
    return RowInformation(precision, pulled)


def known_information(y: np.ndarray, offset: np.ndarray, model: OutputModel, variances: np.ndarray) -> RowInformation:
    """Of rows whose values have known independent noise variances (N, T) of their own."""
    weight = np.where(np.isnan(y), 0.0, 1.0 / np.maximum(variances, LEAST_NOISE**2))
    away = np.where(np.isnan(y), 0.0, y - offset)
    precision = np.einsum("nt,tq,tp->nqp", weight, model.loading, model.loading, optimize=True)
    return RowInformation(precision, (weight * away) @ model.loading)
