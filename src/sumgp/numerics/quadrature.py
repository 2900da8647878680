"""Quadrature over normal densities, and roots of many functions at once inside their brackets."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

LOG_2PI = float(np.log(2.0 * np.pi))  # of normal densities
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

    ``kinks`` (n, k) are latent values at which p is not smooth, NaN for none. A row without a kink within 8.3 sd gets
    the Gauss-Hermite rule; else that window is cut there and each panel gets nodes clustered towards its ends.
    """
    cuts = np.clip((np.nan_to_num(kinks, nan=np.inf) - mean[:, None]) / sd[:, None], -_WINDOW, _WINDOW)
    smooth = np.all(np.abs(cuts) == _WINDOW, axis=1)
    z, log_weights = _smooth_rows(len(mean), n_nodes, 1 if smooth.all() else 1 + kinks.shape[1])
    if not smooth.all():
        z[~smooth], log_weights[~smooth] = _split_rows(cuts[~smooth], n_nodes)
    return mean[:, None] + sd[:, None] * z, log_weights


def _smooth_rows(n_rows: int, n_nodes: int, panels: int) -> tuple[np.ndarray, np.ndarray]:
    """The Gauss-Hermite rule in each row, padded with nodes of no weight to the length of ``panels`` panels."""
    nodes, weights = standard_normal(n_nodes)
    z, log_weights = np.zeros((n_rows, panels * n_nodes)), np.full((n_rows, panels * n_nodes), -np.inf)
    z[:, :n_nodes], log_weights[:, :n_nodes] = nodes, np.log(weights)
    return z, log_weights


def _split_rows(cuts: np.ndarray, n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Panels between the cuts (rows, k), in units of sd about the mean."""
    ends = np.full((len(cuts), 1), _WINDOW)
    edges = np.concatenate([-ends, np.sort(cuts, axis=1), ends], axis=1)
    x, weights = _clustered(n_nodes)
    half = 0.5 * np.diff(edges, axis=1)[:, :, None]
    middle = 0.5 * (edges[:, 1:] + edges[:, :-1])[:, :, None]
    z = (middle + half * x).reshape(len(cuts), -1)
    with np.errstate(divide="ignore"):
        log_weights = np.log(half * weights).reshape(len(cuts), -1) - 0.5 * z**2
    # An empty panel has weight zero; the sum of the others is one up to the rule's own error.
    return z, log_weights - np.log(np.sum(np.exp(log_weights), axis=1, keepdims=True))


STEPS = 60  # of a search whose brackets halve at least every third
FEW = 0.6  # share of rows that are left, at which the others are set aside


class Bracket(NamedTuple):
    """Ends (n, ...) around each root, and the functions' values there: ``below`` zero or less, ``above`` zero or more."""

    low: np.ndarray
    high: np.ndarray
    below: np.ndarray
    above: np.ndarray

    def at(self, rows: np.ndarray) -> Bracket:
        """Some of the rows."""
        return Bracket(*(part[rows] for part in self))


Values = Callable[[np.ndarray, np.ndarray], np.ndarray]  # at arguments (m, ...) of the rows with these numbers (m,)
Close = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]  # smallest values, widths, rows -> done (m, ...)


def bracketed_roots(values: Values, bracket: Bracket, close: Close) -> np.ndarray:
    """(n, ...) roots by false position; rows are looked at until all their entries are ``close``.

    An end that stays twice has its value halved (Illinois), and a bracket that two steps did not halve is bisected: where a
    function jumps, false position has no slope to use.
    """
    result = 0.5 * (bracket.low + bracket.high)
    rows, before = np.arange(len(result)), np.full(result.shape, 2)  # 2: neither end has stayed yet
    widths, nearest = bracket.high - bracket.low, np.full(result.shape, np.inf)
    for step in range(STEPS):
        low, high, below, above = bracket
        with np.errstate(all="ignore"):
            secant = low - below * (high - low) / (above - below)
        inside = np.isfinite(secant) & (secant > low) & (secant < high)
        if step % 3 == 2:
            inside, widths = inside & (high - low < 0.5 * widths), high - low
        here = np.where(inside, secant, 0.5 * (low + high))
        value = values(here, rows)
        left = value < 0
        # An end that stays twice would hold the secant back.
        again = np.where(left == before, 0.5, 1.0)
        below, above, before = np.where(left, value, again * below), np.where(left, again * above, value), left
        bracket = Bracket(np.where(left, here, low), np.where(left, high, here), below, above)
        nearer = np.abs(value) <= np.abs(nearest[rows])
        result[rows], nearest[rows] = np.where(nearer, here, result[rows]), np.where(nearer, value, nearest[rows])
        done = close(nearest[rows], bracket.high - bracket.low, rows)
        going = ~np.all(done.reshape(len(rows), -1), axis=1)
        if not going.any():
            break
        if going.sum() <= FEW * len(rows):
            # A few rows with jumps take many steps: the others need not wait with them.
            bracket, rows, before, widths = bracket.at(going), rows[going], before[going], widths[going]
    return result
