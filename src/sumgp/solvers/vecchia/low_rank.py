"""Fields so smooth that few functions carry them: the posterior of their weights, from all rows at once.

Averages over distant nodes lose what a smooth field tells over long distances. Such a field has few pivots z, and
f(x) = sqrt(lambda) [L^-1 k(z, x), sqrt(mean_variance)] beta with k(z, z) = L L^T and beta ~ N(0, I), up to a rest that is
measured and added to the variance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sumgp.numerics import cholesky, pivoted_cholesky, solve_lower
from sumgp.solvers.vecchia.covariance import ScaledCovariance
from sumgp.solvers.vecchia.evidence import squared_distances

LOOKED_AT = 1200  # rows among which pivots are looked for
MOST_PIVOTS = 400
MOST_WORK = 4e9  # rows times squared pivots: about two seconds
# The rest must be small beside the posterior variance, which is about (functions in use) / N in units of the noise.
REST = 1.0
LEAST_REST = 1e-12  # round-off
NEAR = 10.0  # times the rest that rows have, up to which a prediction point counts as being among them
ROWS_AT_ONCE = 4096


class GlobalWeights(NamedTuple):
    """Pivots (M, D) in lengthscales, L (M, M), and for each latent the mean and the inverse root of the weights."""

    pivots: np.ndarray
    lower: np.ndarray
    mean: np.ndarray  # (k, M + 1)
    inverse_roots: np.ndarray  # (k, M + 1, M + 1): covariance of beta = R^T R
    rest: float  # of the unit variance, which rows have on average at most

    def apply_at(self, rest: np.ndarray) -> np.ndarray:
        """Truth of whether points that the functions leave ``rest`` (n,) open are predicted from the weights."""
        return rest <= NEAR * self.rest


class Functions(NamedTuple):
    """Values (n, M + 1) of the functions, and what they leave open of the unit variance (n,)."""

    values: np.ndarray
    rest: np.ndarray


class Rows(NamedTuple):
    """Points (N, D) in lengthscales, their precisions (N,) and precision times value (N, k)."""

    points: np.ndarray
    precision: np.ndarray
    pulled: np.ndarray


def global_weights(
    rows: Rows, signal: np.ndarray, covariance: ScaledCovariance, mean_variance: float
) -> GlobalWeights | None:
    """The weights given all rows, None where too many functions would be needed."""
    N = len(rows.points)
    most = int(min(MOST_PIVOTS, np.sqrt(MOST_WORK / N), N))
    rest = max(REST / (max(N, REST) * float(rows.precision.mean()) * float(signal.max())), LEAST_REST)
    chosen = np.unique(np.linspace(0, N - 1, min(N, LOOKED_AT)).round().astype(int))
    K = covariance.values(squared_distances(rows.points[chosen][None], rows.points[chosen][None]))[0]
    pivots, factor = pivoted_cholesky(K, 0.5 * rest)
    if len(pivots) > most:
        return None
    weights = GlobalWeights(rows.points[chosen[pivots]], factor[pivots], np.zeros((0, 0)), np.zeros((0, 0, 0)), rest)
    gram, pulled = np.zeros((len(pivots) + 1,) * 2), np.zeros((len(pivots) + 1, len(signal)))
    for start in range(0, N, ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        found = functions(weights, rows.points[part], covariance, mean_variance)
        if float(found.rest.mean()) > rest:
            return None
        gram += found.values.T @ (rows.precision[part, None] * found.values)
        pulled += found.values.T @ rows.pulled[part]
    means, roots = [], []
    for i, size in enumerate(signal):
        L = cholesky(np.eye(len(gram)) + size * gram)
        root = solve_lower(L, np.eye(len(L)))
        roots.append(root)
        means.append(root.T @ (root @ (np.sqrt(size) * pulled[:, i])))
    return weights._replace(mean=np.stack(means), inverse_roots=np.stack(roots))


def functions(weights: GlobalWeights, points: np.ndarray, covariance: ScaledCovariance, mean_variance: float) -> Functions:
    """The functions at points (n, D) in lengthscales."""
    near = covariance.values(squared_distances(weights.pivots[None], points[None]))[0]
    values = solve_lower(weights.lower, near).T
    rest = np.maximum(1.0 - np.sum(values**2, axis=1), 0.0)
    return Functions(np.concatenate([values, np.full((len(points), 1), np.sqrt(mean_variance))], axis=1), rest)
