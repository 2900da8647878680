"""Where a law with derivatives is imposed: at training inputs and on a grid as fine as the lengthscales ask for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import qmc

SAME_POINT = 1e-9  # of the range
# With several inputs: points of the grid, and of grid and rows together. Weights are as many, and a solve takes their cube.
MOST_ON_GRID, MOST_SPREAD = 600, 900
CLOSE = 0.5  # of the grid's spacing: rows nearer to a point than that bring no new one
BETWEEN = 8  # power of two of the places where several inputs are checked


class LawPoints(NamedTuple):
    """Points (n, D), and by how much their grid is coarser than asked for (1 where it is not)."""

    z: np.ndarray
    coarser: float


def law_points(x: np.ndarray, spacing: np.ndarray) -> LawPoints:
    """Training inputs x (N, D) and an even grid of a ``spacing`` (D,) over their box, none twice.

    One input: as many as it takes. Several: at most MOST_SPREAD; the grid is made coarser, and rows close to others count
    as one.
    """
    low, span = x.min(axis=0), np.ptp(x, axis=0)
    if x.shape[1] == 1:
        grid = np.linspace(low, low + span, int(np.ceil(span[0] / spacing[0])) + 1)
        together = np.concatenate([x, grid])
        _, first = np.unique(np.round((together - low) / max(span[0], 1e-300) / SAME_POINT), return_index=True)
        return LawPoints(np.sort(together[first], axis=0), 1.0)
    coarser = 1.0
    while np.prod(np.ceil(span / (coarser * spacing)) + 1) > MOST_ON_GRID:
        coarser *= 1.05
    counts = np.ceil(span / (coarser * spacing)).astype(int) + 1
    axes = [np.linspace(a, a + s, n) for a, s, n in zip(low, span, counts, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(counts))
    # In an order of their own, so that a limit keeps rows from everywhere.
    rows = x[np.random.default_rng(0).permutation(len(x))]
    together = np.concatenate([grid, rows])
    cell = CLOSE * np.where(counts > 1, span / np.maximum(counts - 1, 1), 1.0)
    _, first = np.unique(np.round((together - low) / cell), axis=0, return_index=True)
    return LawPoints(together[np.sort(first)[:MOST_SPREAD]], coarser)


def places_between(z: np.ndarray) -> np.ndarray:
    """Where a law imposed at z (n, D) is checked: midway between neighbours; for several inputs, places all over the box."""
    if z.shape[1] == 1:
        return 0.5 * (z[:-1] + z[1:])
    low, high = z.min(axis=0), z.max(axis=0)
    return low + (high - low) * qmc.Sobol(z.shape[1], scramble=True, seed=0).random_base2(BETWEEN)
