"""Gauss-Hermite quadrature for expectations under a normal density."""

from __future__ import annotations

from functools import lru_cache

import numpy as np


@lru_cache(maxsize=8)
def standard_normal(n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes z (q,) and weights w (q,) with sum_k w_k p(z_k) = E p(z), z ~ N(0, 1), exact to degree 2q - 1."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n_nodes)
    weights = weights / weights.sum()
    nodes.setflags(write=False)
    weights.setflags(write=False)
    return nodes, weights
