"""Draws that belong to a point: the same standard normal numbers at every point, moved onto the law there.

What is read off them at one point (interval ends, spread, probabilities) does not depend on which other points are
predicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from sumgp.laws import UnitFreeLaw
from sumgp.strategies import Unprojected, projected_draws

POWER = 9  # 512 draws: ends of 95 % intervals within 0.05 sd of those of many draws
SEED = 0  # of the scrambled Sobol numbers
NEGLIGIBLE = 1e-9  # eigenvalues of correlations that round-off may make
TIE = 1e-3  # bias that tells equal variances apart, in correlations
GOLDEN = 0.618  # ratio of the weights that tell a direction's two sides apart
AT_ONCE = 4_000_000  # draws times points times entries of a covariance: 32 MB an array


@dataclass(frozen=True, eq=False)
class CommonNumbers:
    """Which component each of M draws comes from (M,), standard normal numbers (M, C), and (M,) for the noise.

    ``rank`` (C,): places of the columns in an order that does not depend on the one they are given in.
    """

    owners: np.ndarray
    normal: np.ndarray
    noise: np.ndarray
    rank: np.ndarray


def common_numbers(weights: np.ndarray, rank: np.ndarray) -> CommonNumbers:
    """Scrambled Sobol numbers; components get their share of the draws by weight, rounded up or down."""
    columns = len(rank)
    uniform = qmc.Sobol(columns + 2, scramble=True, seed=SEED).random_base2(POWER)
    owners = np.searchsorted(np.cumsum(weights) / np.sum(weights), uniform[:, 0], side="right")
    normal = ndtri(np.clip(uniform[:, 1:], 2.0**-40, 1.0 - 2.0**-40))
    return CommonNumbers(np.minimum(owners, len(weights) - 1), normal[:, :columns], normal[:, columns], rank)


def point_draws(
    law: UnitFreeLaw | None, parts: Sequence[Unprojected], numbers: CommonNumbers, x: np.ndarray
) -> np.ndarray:
    """(M, n, C) draws of the components' single points, each moved onto the law at x (n, ...) in the user's units.

    Parts without a metric, whose Gaussian lies on a linear law already, need not be moved.

    A draw of component k is m_k + S_k e with S_k S_k^T its covariance (see ``principal_root``).
    """
    n, C = parts[0].mean.shape
    step = max(1, AT_ONCE // (len(numbers.owners) * C * C))
    rows = [slice(start, start + step) for start in range(0, n, step)]
    return np.concatenate([_some(law, parts, numbers, x, some) for some in rows], axis=1)


def _some(
    law: UnitFreeLaw | None, parts: Sequence[Unprojected], numbers: CommonNumbers, x: np.ndarray, rows: slice
) -> np.ndarray:
    draws = np.empty((len(numbers.owners), *parts[0].mean[rows].shape))
    moves = law is not None and parts[0].metric is not None
    metrics = np.empty((*draws.shape, draws.shape[2])) if moves else draws
    for k in np.unique(numbers.owners):
        part, own = parts[k], numbers.owners == k
        root = principal_root(part.covariance[rows], numbers.rank)
        draws[own] = part.mean[rows] + np.einsum("ncd,kd->knc", root, numbers.normal[own])
        if part.metric is not None and moves:
            metrics[own] = part.metric[rows]
    return projected_draws(law, draws, metrics, x[rows]) if law is not None and moves else draws


def principal_root(covariance: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """(n, C, C) S with S S^T = covariance, the directions of largest variance first, where Sobol numbers are most even.

    S = R V: R is the symmetric root of the covariance, V are eigenvectors of its correlations. A small bias towards the
    columns of low ``rank`` (C,), and a fixed side for each direction, make V the same whatever round-off does.
    """
    C = covariance.shape[1]
    sd = np.sqrt(np.maximum(np.einsum("ncc->nc", covariance), 0.0))
    size = np.where(sd > 0, sd, 1.0)
    correlation = covariance / (size[:, :, None] * size[:, None, :])
    values, vectors = np.linalg.eigh(correlation)
    # Directions that round-off alone would open stay closed.
    roots = np.sqrt(np.where(values > NEGLIGIBLE, values, 0.0))
    root = (vectors * roots[:, None, :]) @ vectors.transpose(0, 2, 1)
    _, V = np.linalg.eigh(correlation + TIE * np.diag((C - rank) / C))
    V = V[:, :, ::-1]
    side = np.where(np.einsum("c,ncd->nd", GOLDEN**rank, V) < 0, -1.0, 1.0)
    return sd[:, :, None] * (root @ (V * side[:, None, :]))


__all__ = ["CommonNumbers", "common_numbers", "point_draws", "principal_root"]
