"""Quadrature for expectations under a normal density, split where the integrand is not smooth."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

# Half-width, in standard deviations, of the window that stands for the whole line; 1e-16 of a normal lies outside.
_WINDOW = 8.3


@lru_cache(maxsize=8)
def standard_normal(n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Hermite nodes z (q,) and weights w (q,): sum_k w_k p(z_k) = E p(z), z ~ N(0, 1), exact to degree 2q - 1."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n_nodes)
    return _frozen(nodes, weights / weights.sum())


@lru_cache(maxsize=8)
def _clustered(n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre in the angle of x = sin(angle) on [-1, 1]: square-root ends of an integrand become smooth."""
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    angle = 0.5 * np.pi * nodes
    return _frozen(np.sin(angle), 0.5 * np.pi * weights * np.cos(angle))


def _frozen(nodes: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    nodes.setflags(write=False)
    weights.setflags(write=False)
    return nodes, weights


def normal_rule(mean: np.ndarray, sd: np.ndarray, kinks: np.ndarray, n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes u (n, q) and log weights (n, q): sum_k exp(log w_ik) p(u_ik) = E p(u), u ~ N(mean_i, sd_i^2).

    ``kinks`` (n, k) are latent values at which p is not smooth, NaN for none. Without any the rule is Gauss-Hermite;
    else the window of +-8.3 sd is cut there and each panel gets ``n_nodes`` nodes clustered towards its ends.
    """
    if kinks.shape[1] == 0:
        z, weights = standard_normal(n_nodes)
        return mean[:, None] + sd[:, None] * z, np.broadcast_to(np.log(weights), (len(mean), n_nodes))
    cuts = np.clip((np.nan_to_num(kinks, nan=np.inf) - mean[:, None]) / sd[:, None], -_WINDOW, _WINDOW)
    ends = np.full((len(mean), 1), _WINDOW)
    edges = np.concatenate([-ends, np.sort(cuts, axis=1), ends], axis=1)
    x, weights = _clustered(n_nodes)
    half = 0.5 * np.diff(edges, axis=1)[:, :, None]
    middle = 0.5 * (edges[:, 1:] + edges[:, :-1])[:, :, None]
    z = (middle + half * x).reshape(len(mean), -1)
    with np.errstate(divide="ignore"):
        log_weights = np.log(half * weights).reshape(len(mean), -1) - 0.5 * z**2
    # An empty panel has weight zero; the sum of the others is one up to the rule's own error.
    total = np.log(np.sum(np.exp(log_weights), axis=1))
    return mean[:, None] + sd[:, None] * z, log_weights - total[:, None]
