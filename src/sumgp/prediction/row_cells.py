"""The rest of a row from the cells measured in it: the posterior of the row, then what the law says of the row's own noise.

A row has outputs f, measured as y = f + e. Given the data, one component of a fit says f ~ N(m, V) and e ~ N(0, R), R
diagonal. Cells of the row that the fit has used are in m and V already; others are conditioned on here:
m + V_o (V_oo + R_oo)^-1 (y_o - m_o). Outputs with kernels of their own have not heard of each other's cells: there m and V
are those without the row, and all of its cells count. What is not measured then is y_m ~ N(m_m, V_mm + R_mm).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from sumgp.data import Data
from sumgp.laws import mean_on_law
from sumgp.numerics import LOG_2PI
from sumgp.strategies import Cells, Fitted, OwnComponent


class Rows(NamedTuple):
    """Rows of a table: inputs (n, D) as the kernels see them, ``x`` (n, D + E) in the user's units, unit-free cells ``y``
    (n, T) with NaN = not measured, and which of them the fit has used (n, T)."""

    inputs: np.ndarray
    x: np.ndarray
    y: np.ndarray
    used: np.ndarray


class RowGaussians(NamedTuple):
    """Unit-free rows given their cells: outputs f, and measurements y, in which measured cells have no variance.

    Means (n, T), covariances (n, T, T), and the noise variances (n, T) of a measurement.
    """

    f: np.ndarray
    f_covariance: np.ndarray
    y: np.ndarray
    y_covariance: np.ndarray
    noise: np.ndarray


class _Part(NamedTuple):
    """What one component says: columns (n, C), covariances (n, C, C), and the log density (n,) of the new cells."""

    mean: np.ndarray
    covariance: np.ndarray
    log_density: np.ndarray


def already_used(data: Data, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(n, T) truth of whether a cell of the rows x, y is one that was fitted: same inputs, same output, same value."""
    _, place = np.unique(np.vstack([data.x, x]), axis=0, return_inverse=True)
    place = place.reshape(-1)
    fitted, asked = place[: len(data.x)], place[len(data.x) :]
    order = np.argsort(fitted, kind="stable")
    first = np.searchsorted(fitted[order], asked)
    count = np.searchsorted(fitted[order], asked, side="right") - first
    used = np.zeros(y.shape, dtype=bool)
    for repeat in range(int(count.max(initial=0))):
        rows = np.flatnonzero(count > repeat)
        used[rows] |= data.y[order[first[rows] + repeat]] == y[rows]
    return used


def given_cells(fitted: Fitted, rows: Rows, closed: bool = False) -> RowGaussians:
    """The rows given the fit and their own cells: a mixture's mean and covariance; ``closed``: measurements obey the law.

    Each component counts as much more as it has foreseen the cells of a row that is new to the fit.
    """
    T, measured = rows.y.shape[1], ~np.isnan(rows.y)
    noises = np.stack([c.noise for c in fitted.components])
    local = fitted.local_posteriors(rows.inputs, rows.x)
    parts = []
    for component, p, noise in zip(fitted.components, local, noises, strict=True):
        new = measured & ~rows.used
        if isinstance(component, OwnComponent) and measured.any():
            p, new = component.without_cells(rows.inputs, rows.x, Cells(rows.y, rows.used), closed), measured
        parts.append(_with_cells(p.mean, p.covariance, noise, rows.y, new))
    foreseen = np.where(rows.used.any(axis=1), 0.0, np.stack([p.log_density for p in parts]))
    log_weights = np.log(fitted.weights)[:, None] + foreseen
    weights = np.exp(log_weights - logsumexp(log_weights, axis=0))
    means = np.stack([p.mean for p in parts])
    mean = np.einsum("kn,knc->nc", weights, means)
    away = means - mean
    covariance = np.einsum("kn,kncd->ncd", weights, np.stack([p.covariance for p in parts]))
    covariance += np.einsum("kn,knc,knd->ncd", weights, away, away)
    noise = np.einsum("kn,kt->nt", weights, noises)
    y_covariance = np.where(measured[:, :, None] | measured[:, None, :], 0.0, covariance[:, :T, :T])
    y_covariance[:, range(T), range(T)] += np.where(measured, 0.0, noise)
    y = np.where(measured, rows.y, mean[:, :T])
    if fitted.law is not None and not (fitted.law.is_linear and len(weights) == 1):
        mean = mean_on_law(fitted.law, mean, covariance, rows.x)
    return RowGaussians(mean[:, :T], covariance[:, :T, :T], y, y_covariance, noise)


def _with_cells(mean: np.ndarray, V: np.ndarray, noise: np.ndarray, y: np.ndarray, new: np.ndarray) -> _Part:
    """Condition columns (n, C) with covariances V (n, C, C) on the cells ``new`` (n, T) of y; rows alike at once."""
    mean, V, log_density = mean.copy(), V.copy(), np.zeros(len(y))
    patterns, place = np.unique(new, axis=0, return_inverse=True)
    for p, pattern in enumerate(patterns):
        seen = np.flatnonzero(pattern)
        if not len(seen):
            continue
        rows = np.flatnonzero(place.reshape(-1) == p)
        cross = V[rows][:, :, seen]
        P = cross[:, seen] + np.diag(noise[seen])
        L = np.linalg.cholesky(P)
        r = (y[rows][:, seen] - mean[rows][:, seen])[:, :, None]
        half, z = np.linalg.solve(L, cross.swapaxes(1, 2)), np.linalg.solve(L, r)
        mean[rows] += np.einsum("nkc,nk->nc", half, z[:, :, 0])
        V[rows] -= half.swapaxes(1, 2) @ half
        size = np.sum(np.log(np.einsum("nkk->nk", L)), axis=1)
        log_density[rows] = -0.5 * np.sum(z[:, :, 0] ** 2, axis=1) - size - 0.5 * len(seen) * LOG_2PI
    return _Part(mean, V, log_density)
