"""Where a law with derivatives is imposed: at training inputs and on a grid as fine as the lengthscales ask for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree
from scipy.stats import qmc

SAME_POINT = 1e-9  # of the range
# With several inputs: points of the grid, and of grid and rows together. Weights are as many, and a solve takes their cube.
MOST_ON_GRID, MOST_SPREAD = 600, 900
# With several inputs the grid is this much finer, and closer together at the edges (0: even, 1: Chebyshev's points), where
# residuals between points are largest. Heat equation, 4 fields: 7e-5 of the law's terms at most, without it 2.7e-4.
FINER, TOWARDS_ENDS = 1.2, 0.3
CLOSE = 0.5  # of the grid's spacing: rows nearer to a point than that bring no new one
BETWEEN = 8  # power of two of the places where several inputs are checked


class LawPoints(NamedTuple):
    """Points (n, D), by how much their grid is coarser than asked for (1 where it is not), and points (k, D) around them.

    Those around continue the grid by one step beyond each face of its box; with one input there are none.
    """

    z: np.ndarray
    coarser: float
    around: np.ndarray

    @property
    def alone(self) -> LawPoints:
        """The same without those around."""
        return self._replace(around=self.around[:0])


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
        return LawPoints(np.sort(together[first], axis=0), 1.0, np.zeros((0, 1)))
    coarser = 1.0 / FINER
    while np.prod(np.ceil(span / (coarser * spacing)) + 1) > MOST_ON_GRID:
        coarser *= 1.05
    counts = np.ceil(span / (coarser * spacing)).astype(int) + 1
    axes = [a + s * _towards_ends(n) for a, s, n in zip(low, span, counts, strict=True)]
    grid = _all_of(axes)
    # In an order of their own, so that a limit keeps rows from everywhere.
    rows = x[np.random.default_rng(0).permutation(len(x))]
    cell = CLOSE * np.where(counts > 1, span / np.maximum(counts - 1, 1), 1.0)
    apart, _ = cKDTree(grid / cell).query(rows / cell, p=np.inf)
    rows = rows[apart > 0.5]
    _, first = np.unique(np.round((rows - low) / cell), axis=0, return_index=True)
    z = np.concatenate([grid, rows[np.sort(first)]])[:MOST_SPREAD]
    return LawPoints(z, max(coarser, 1.0), _around(axes))


def _all_of(axes: list[np.ndarray]) -> np.ndarray:
    """(n, D) points of the grid with these axes."""
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def _around(axes: list[np.ndarray]) -> np.ndarray:
    """(k, D) points of the grid that is longer by its mean step at both ends of each axis, without those within."""
    steps = [np.ptp(axis) / max(len(axis) - 1, 1) for axis in axes]
    wider = _all_of([np.concatenate([[a[0] - s], a, [a[-1] + s]]) for a, s in zip(axes, steps, strict=True)])
    low, high = ([axis[end] for axis in axes] for end in (0, -1))
    return wider[np.any((wider < low) | (wider > high), axis=1)]


def _towards_ends(count: int) -> np.ndarray:
    """(count,) numbers from 0 to 1, closer together at both ends, where a curve has neighbours on one side only."""
    even = np.linspace(0.0, 1.0, count)
    return (1.0 - TOWARDS_ENDS) * even + TOWARDS_ENDS * 0.5 * (1.0 - np.cos(np.pi * even))


def places_between(z: np.ndarray) -> np.ndarray:
    """Where a law imposed at z (n, D) is checked: midway between neighbours; for several inputs, places all over the box."""
    if z.shape[1] == 1:
        return 0.5 * (z[:-1] + z[1:])
    low, high = z.min(axis=0), z.max(axis=0)
    return low + (high - low) * qmc.Sobol(z.shape[1], scramble=True, seed=0).random_base2(BETWEEN)


def with_ends(z: np.ndarray, count: int) -> np.ndarray:
    """Rising points z (n, 1) with ``count`` more beyond each end; with several inputs z as it is."""
    if z.shape[1] > 1 or count < 1:
        return z
    steps, gap = np.arange(1, count + 1)[:, None], np.max(np.diff(z[:, 0]))
    return np.concatenate([z[:1] - gap * steps[::-1], z, z[-1:] + gap * steps])
