"""Values far outside the others of their output that are a curve, since neighbouring rows bear them out."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

NEIGHBOURS = 2  # nearest rows along each input that may bear a value out
LIKE = 5.0  # times as far from the median as its neighbour, at most
FEWEST_OF_CURVE = 3  # neighbouring values outside, each like the next: a curve that rises, no outliers


def borne_out(away: np.ndarray, outside: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(N,) values outside that belong to a curve: several in neighbouring rows, unequal, on one side, of like size.

    ``away`` (N,) from the median, NaN = not measured; ``x`` (N, D).
    """
    seen = np.flatnonzero(~np.isnan(away))
    span = np.ptp(x, axis=0)
    places = x[seen] / np.where(span > 0, span, 1.0)
    count = min(1 + NEIGHBOURS * x.shape[1], len(seen))
    near = cKDTree(places).query(places, k=count)[1]
    start, end = np.repeat(seen, count), seen[near.ravel()]
    first, second = away[start], away[end]
    alike = outside[start] & outside[end] & (first != second) & (first * second > 0)
    alike &= (np.abs(first) <= LIKE * np.abs(second)) & (np.abs(second) <= LIKE * np.abs(first))
    links = coo_array((np.ones(alike.sum()), (start[alike], end[alike])), shape=(len(x), len(x)))
    _, part = connected_components(links, directed=False)
    return outside & (np.bincount(part)[part] >= FEWEST_OF_CURVE)
