"""Fields so smooth that few functions carry them: the posterior of their weights, from all rows at once.

Averages over distant nodes lose what a smooth field tells over long distances. Such a field has few pivots z, and
f(x) = sqrt(lambda) [L^-1 k(z, x), sqrt(mean_variance)] beta with k(z, z) = L L^T and beta ~ N(0, I), up to a rest that is
measured and added to the variance.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from sumgp.numerics import cholesky, pivoted_cholesky, solve_lower, triangular_inverse
from sumgp.solvers.vecchia.covariance import ScaledCovariance

LOOKED_AT = 1200  # rows among which pivots are looked for
MOST_PIVOTS = 400  # functions; a field that needs more is told by neighbours instead
MOST_WORK = 4e9  # rows times squared pivots: about two seconds
# The rest must be small beside the posterior variance, which is about (functions in use) / N in units of the noise.
REST, REST_SHARE = 1.0, 0.01  # 1 / N, or this share of the functions in use / N where that is more
LEAST_REST = 1e-12  # round-off
NEAR = 10.0  # times the rest that rows have, up to which a prediction point counts as being among them
ROWS_AT_ONCE = 4096  # whose features are in memory: 13 MB with the most pivots


class GlobalWeights(NamedTuple):
    """Pivots (M, D) in lengthscales, L (M, M), and the weights' posterior.

    ``roots`` (k, r, M + 1): the covariance of the weights of latents i and j is roots_i^T roots_j where latents are solved
    for ``together``, else zero for different ones.
    """

    pivots: np.ndarray
    lower: np.ndarray
    mean: np.ndarray  # (k, M + 1)
    roots: np.ndarray
    together: bool
    rest: float  # of the unit variance, which rows have on average at most

    def covariance(self, values: np.ndarray, signal: np.ndarray) -> Iterator[tuple[int, int, np.ndarray, np.ndarray]]:
        """(i, j, U, V) for pairs of latents that are not independent: their covariance at points is U V^T."""
        parts = [np.sqrt(s) * (values @ root.T) for s, root in zip(signal, self.roots, strict=True)]
        for i, left in enumerate(parts):
            for j, right in enumerate(parts):
                if self.together or i == j:
                    yield i, j, left, right

    def apply_at(self, rest: np.ndarray) -> np.ndarray:
        """Truth of whether points that the functions leave ``rest`` (n,) open are predicted from the weights."""
        return rest <= NEAR * self.rest


class Functions(NamedTuple):
    """Values (n, M + 1) of the functions, and what they leave open of the unit variance (n,)."""

    values: np.ndarray
    rest: np.ndarray


class Rows(NamedTuple):
    """Points (N, D) in lengthscales, their precisions (N,) or (N, k, k), and precision times value (N, k)."""

    points: np.ndarray
    precision: np.ndarray
    pulled: np.ndarray


def global_weights(
    rows: Rows, signal: np.ndarray, covariance: ScaledCovariance, mean_variance: float
) -> GlobalWeights | None:
    """The weights given all rows, None where too many functions would be needed."""
    N, k, together = len(rows.points), len(signal), rows.precision.ndim == 3
    most = int(min(MOST_PIVOTS, np.sqrt(MOST_WORK / N), N))
    typical = float(np.einsum("nkk->nk", rows.precision).mean() if together else rows.precision.mean())
    rest = max(REST / (max(N, REST) * typical * float(signal.max())), LEAST_REST)
    chosen = np.unique(np.linspace(0, N - 1, min(N, LOOKED_AT)).round().astype(int))
    K = covariance.within(rows.points[chosen][None])[0]
    pivots, factor = pivoted_cholesky(K, 0.5 * rest)
    if REST_SHARE * len(pivots) > REST:
        rest *= REST_SHARE * len(pivots) / REST
        pivots, factor = pivoted_cholesky(K, 0.5 * rest)
    if len(pivots) > most:
        return None
    weights = GlobalWeights(
        rows.points[chosen[pivots]], factor[pivots], np.zeros((0, 0)), np.zeros((0, 0, 0)), together, rest
    )
    pairs = [(i, j) for i in range(k) for j in range(i + 1)] if together else [(0, 0)]
    m = len(pivots) + 1
    grams, pulled = np.zeros((len(pairs), m, m)), np.zeros((m, k))
    for start in range(0, N, ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        found = functions(weights, rows.points[part], covariance, mean_variance)
        if float(found.rest.mean()) > rest:
            return None
        for number, (i, j) in enumerate(pairs):
            precision = rows.precision[part, i, j] if together else rows.precision[part]
            grams[number] += found.values.T @ (precision[:, None] * found.values)
        pulled += found.values.T @ rows.pulled[part]
    scaled = np.sqrt(signal) * pulled
    if not together:
        return _solved_apart(weights, grams[0], scaled, signal)
    whole = np.zeros((k, m, k, m))
    for number, (i, j) in enumerate(pairs):
        whole[i, :, j] = whole[j, :, i] = np.sqrt(signal[i] * signal[j]) * grams[number]
    root = triangular_inverse(cholesky(np.eye(k * m) + whole.reshape(k * m, k * m)))
    mean = root.T @ (root @ scaled.T.ravel())
    return weights._replace(mean=mean.reshape(k, m), roots=root.reshape(k * m, k, m).swapaxes(0, 1))


def _solved_apart(weights: GlobalWeights, gram: np.ndarray, scaled: np.ndarray, signal: np.ndarray) -> GlobalWeights:
    """The weights of latents that every row measures alike, one latent at a time."""
    roots = np.stack([triangular_inverse(cholesky(np.eye(len(gram)) + s * gram)) for s in signal])
    mean = np.stack([root.T @ (root @ column) for root, column in zip(roots, scaled.T, strict=True)])
    return weights._replace(mean=mean, roots=roots)


def functions(weights: GlobalWeights, points: np.ndarray, covariance: ScaledCovariance, mean_variance: float) -> Functions:
    """The functions at points (n, D) in lengthscales."""
    near = covariance.between(weights.pivots[None], points[None])[0]
    values = solve_lower(weights.lower, near).T
    rest = np.maximum(1.0 - np.sum(values**2, axis=1), 0.0)
    return Functions(np.concatenate([values, np.full((len(points), 1), np.sqrt(mean_variance))], axis=1), rest)
