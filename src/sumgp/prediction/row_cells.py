"""The rest of a row from the cells measured in it: the posterior of the row, then what the law says of the row's own noise.

A row has outputs f, measured as y = f + e. Given the data, one component of a fit says f ~ N(m, V) and e ~ N(0, N). Cells of
the row that the fit has used are in m and V already; others are conditioned on here: m + V_o (V_oo + N_oo)^-1 (y_o - m_o).
Outputs with kernels of their own have not heard of each other's cells: there m and V are those without the row, and all of
its cells count. What is not measured is then f_m + e_m; noise of closed data obeys the law, so that e_o tells of e_m.

Where the correlation of a row was estimated, with v degrees of freedom, the row has Student's distribution: given k cells at
the distance d^2 = r^T (V_oo + N_oo)^-1 r, the covariance of the others is (v + d^2) / (v + k - 2) times that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp

from sumgp.data import Data
from sumgp.laws import mean_on_law, project
from sumgp.numerics import LOG_2PI
from sumgp.prediction.row_balance import Balance, balanced
from sumgp.strategies import Cells, Fitted, LocalPosterior, OwnComponent, with_soft_errors

NOTHING_NEW = 1e-12  # of the largest variance of a row's cells: a combination that the law fixes, up to round-off
NO_NOISE = 1e-10  # share of the largest noise variance: a direction of closed data that has none


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
    """What one component says: columns (n, C), covariances (n, C, C), measurements likewise, and the log density (n,) of
    the new cells."""

    mean: np.ndarray
    covariance: np.ndarray
    y: np.ndarray
    y_covariance: np.ndarray
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


def given_cells(
    fitted: Fitted, rows: Rows, balance: Balance | None = None, closed: bool = False, freedom: float = np.inf
) -> RowGaussians:
    """The rows given the fit and their own cells: a mixture's mean and covariance; ``closed``: measurements obey the law.

    ``freedom``: degrees of freedom of the correlation that outputs with kernels of their own have. What a linear law says of
    measurements (``balance``) each component takes up on its own: moved onto the law together, those whose measurements
    meet it already would draw the others to themselves. Each counts as much more as it has foreseen the cells of a row that
    is new to the fit.
    """
    T, measured = rows.y.shape[1], ~np.isnan(rows.y)
    known = measured[:, :, None] | measured[:, None, :]
    noises = np.stack([c.noise for c in fitted.components])
    local = fitted.local_posteriors(rows.inputs, rows.x)
    parts = []
    for component, p in zip(fitted.components, local, strict=True):
        noise, new, own = component.noise_covariance, measured & ~rows.used, np.inf
        if isinstance(component, OwnComponent) and measured.any():
            p, new = component.without_cells(rows.inputs, rows.x, Cells(rows.y, rows.used), closed), measured
            noise, own = np.diag(component.noise), freedom
        part = _with_cells(p, noise, rows.y, new, own)
        y_covariance = np.where(known, 0.0, part.y_covariance)
        part = part._replace(y=np.where(measured, rows.y, part.y), y_covariance=y_covariance)
        if balance is not None and balance.is_linear:
            met = balanced(balance, part.y, y_covariance, np.broadcast_to(component.noise, measured.shape), rows.x)
            part = part._replace(y=met.y, y_covariance=met.covariance)
        if closed and isinstance(component, OwnComponent) and measured.any():
            part = _true_values(component, p, part, rows.x)
        parts.append(part)
    foreseen = np.where(rows.used.any(axis=1), 0.0, np.stack([p.log_density for p in parts]))
    log_weights = np.log(fitted.weights)[:, None] + foreseen
    weights = np.exp(log_weights - logsumexp(log_weights, axis=0))
    mean, covariance = _mixed(weights, [p.mean for p in parts], [p.covariance for p in parts])
    y, y_covariance = _mixed(weights, [p.y for p in parts], [p.y_covariance for p in parts])
    # An average of equal numbers has round-off, and no measured cell is to look open.
    y, y_covariance = np.where(measured, rows.y, y), np.where(known, 0.0, y_covariance)
    if fitted.law is not None and not (fitted.law.is_linear and len(weights) == 1):
        mean = mean_on_law(fitted.law, mean, covariance, rows.x)
    noise = np.einsum("kn,kt->nt", weights, noises)
    return RowGaussians(mean[:, :T], covariance[:, :T, :T], y, y_covariance, noise)


def _mixed(weights: np.ndarray, means: list[np.ndarray], covariances: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Mean (n, C) and covariance (n, C, C) of a mixture with weights (K, n)."""
    mean = np.einsum("kn,knc->nc", weights, np.stack(means))
    away = np.stack(means) - mean
    covariance = np.einsum("kn,kncd->ncd", weights, np.stack(covariances))
    return mean, covariance + np.einsum("kn,knc,knd->ncd", weights, away, away)


def _with_cells(p: LocalPosterior, noise: np.ndarray, y: np.ndarray, new: np.ndarray, freedom: float) -> _Part:
    """Condition columns (n, C) with covariances V (n, C, C) on the cells ``new`` (n, T) of y; rows alike at once."""
    mean, V, log_density = p.mean.copy(), p.covariance.copy(), np.zeros(len(y))
    for rows, seen in _alike(new):
        if not len(seen):
            continue
        cross = V[rows][:, :, seen]
        P = cross[:, seen] + noise[np.ix_(seen, seen)]
        values, vectors = np.linalg.eigh(P)
        # Cells of closed data that the law fixes from the others of their row tell nothing new, whatever their rounding.
        told = values > NOTHING_NEW * values[:, -1:]
        white = (vectors * np.where(told, 1.0 / np.sqrt(np.where(told, values, 1.0)), 0.0)[:, None, :]).swapaxes(1, 2)
        half, z = white @ cross.swapaxes(1, 2), np.einsum("nkl,nl->nk", white, y[rows][:, seen] - mean[rows][:, seen])
        mean[rows] += np.einsum("nkc,nk->nc", half, z)
        left, away = V[rows] - half.swapaxes(1, 2) @ half, np.sum(z**2, axis=1)
        if np.isfinite(freedom):
            wider = (freedom + away) / (freedom + len(seen) - 2.0)
            lost = np.setdiff1d(np.arange(len(noise)), seen)
            left *= wider[:, None, None]
            left[:, lost, lost] += (wider[:, None] - 1.0) * np.diagonal(noise)[lost]
        V[rows] = left
        size = 0.5 * np.sum(np.log(np.where(told, values, 1.0)), axis=1)
        log_density[rows] = _student(away, len(seen), freedom) - size
    return _Part(mean, V, *_measurements(mean, V, noise, y), log_density)


def _measurements(mean: np.ndarray, V: np.ndarray, noise: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means (n, T) and covariances (n, T, T) of f + e for noise e of covariance (T, T), given the cells y (n, T).

    What was measured shows e_o = y_o - f_o, and G e_o with G = N_mo N_oo^-1 is expected of the rest: f_m + G (y_o - f_o).
    """
    T = len(noise)
    expected, covariance = mean[:, :T].copy(), np.empty((len(y), T, T))
    for rows, seen in _alike(~np.isnan(y)):
        lost = np.setdiff1d(np.arange(T), seen)
        inverse = np.linalg.pinv(noise[np.ix_(seen, seen)], rcond=NO_NOISE, hermitian=True)
        G = np.zeros((T, T))
        G[np.ix_(lost, seen)] = noise[np.ix_(lost, seen)] @ inverse
        A = np.eye(T) - G
        expected[rows] += np.where(np.isnan(y[rows]), 0.0, y[rows] - mean[rows, :T]) @ G.T
        covariance[rows] = A @ V[rows][:, :T, :T] @ A.T + (noise - G @ noise)
    # Of a cell that the law fixes only round-off is left, of either sign.
    covariance[:, range(T), range(T)] = np.maximum(covariance[:, range(T), range(T)], NO_NOISE * np.diagonal(noise))
    return expected, covariance


def _true_values(own: OwnComponent, before: LocalPosterior, part: _Part, x: np.ndarray) -> _Part:
    """The part with outputs f as its measurements y tell of them: f_t given y_t with m, v ``before`` the row, on the law.

    The correlation of closed rows is that of measurements. Taken for that of f beside independent noise, it would leave f
    less than no variance where the other cells of the row tell most of y.
    """
    T = own.n_outputs
    m, v = before.mean[:, :T], np.einsum("ncc->nc", before.covariance)[:, :T]
    share = v / np.maximum(v + own.noise, np.finfo(float).tiny)
    mean, left = m + share * (part.y - m), v * (1.0 - share)
    covariance = share[:, :, None] * part.y_covariance * share[:, None, :] + np.eye(T) * left[:, None, :]
    if own.law is not None:
        mean, covariance = with_soft_errors(mean, covariance, own.error_variances)
        moved = project(own.law, mean, covariance, x)
        mean, covariance = moved.points, moved.projectors @ covariance @ moved.projectors.swapaxes(1, 2)
    return part._replace(mean=mean, covariance=covariance)


def _alike(cells: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows of (n, T) that are true for the same outputs, and these outputs."""
    patterns, place = np.unique(cells, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        yield np.flatnonzero(place.reshape(-1) == number), np.flatnonzero(pattern)


def _student(away: np.ndarray, k: int, freedom: float) -> np.ndarray:
    """Log densities of k values of unit scale at squared distances ``away``; Gaussian for infinite ``freedom``."""
    if not np.isfinite(freedom):
        return -0.5 * away - 0.5 * k * LOG_2PI
    whole = freedom + k
    constant = gammaln(0.5 * whole) - gammaln(0.5 * freedom) - 0.5 * k * np.log(np.pi * freedom)
    return np.asarray(constant - 0.5 * whole * np.log1p(away / freedom))
