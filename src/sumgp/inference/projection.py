"""Pointwise projection onto the law: the nearest point in the metric of a local covariance, one point at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sumgp.inference.unitfree import UnitFreeLaw

RANK_TOLERANCE = 1e-12


@dataclass(frozen=True)
class Projection:
    """Points on the law and the tangent projectors A (n, C, C) with J A = 0."""

    points: np.ndarray
    projectors: np.ndarray
    unmet: np.ndarray  # (n,) largest scaled residual left


def regular_inverse(S: np.ndarray) -> np.ndarray:
    """Pseudo-inverses of (n, R, R) positive semidefinite matrices: rows that repeat others, or vanish, drop out."""
    diagonal = np.sqrt(np.maximum(np.einsum("nrr->nr", S), 0.0))
    size = np.where(diagonal > 0, diagonal, 1.0)
    if S.shape[1] == 1:
        return np.where(diagonal > 0, 1.0 / size**2, 0.0)[:, :, None]
    correlation = S / (size[:, :, None] * size[:, None, :])
    values, vectors = np.linalg.eigh(correlation)
    inverse = np.where(values > RANK_TOLERANCE * np.maximum(values[:, -1:], 1.0), 1.0 / np.maximum(values, 1e-300), 0.0)
    return np.einsum("nrk,nk,nsk->nrs", vectors, inverse, vectors) / (size[:, :, None] * size[:, None, :])


def project(law: UnitFreeLaw, start: np.ndarray, metric: np.ndarray, x: np.ndarray, max_steps: int = 60) -> Projection:
    """Minimise (f - start)^T metric^-1 (f - start) subject to the law, point by point, without inverting the metric.

    f_{k+1} = start + M J^T (J M J^T)^+ (J (f_k - start) - g(f_k)), damped where the residual would grow, then plain
    Newton steps down to round-off. Points that are met stop early.
    """
    f = start.copy()
    g = law.residual(f, x)
    live = np.flatnonzero(np.max(np.abs(g), axis=1) > 0)
    for step in range(max_steps):
        if not len(live):
            break
        gained = _step(law, f, start, metric, x, g, live, nearest=step < 4)
        size = np.max(np.abs(g[live]), axis=1)
        live = live[(size > 1e-15) & gained]
    J = law.jacobian(f, x)
    MJ = np.einsum("ncd,nrd->ncr", metric, J)
    inverse = regular_inverse(np.einsum("nrc,ncs->nrs", J, MJ))
    projectors = np.eye(f.shape[1]) - np.einsum("ncr,nrs,nsd->ncd", MJ, inverse, J)
    return Projection(f, projectors, np.max(np.abs(g), axis=1))


def _step(
    law: UnitFreeLaw, f: np.ndarray, start: np.ndarray, metric: np.ndarray, x: np.ndarray, g: np.ndarray, live: np.ndarray, nearest: bool
) -> np.ndarray:
    """One damped step at the live points, in place; True where the residual shrank."""
    J = law.jacobian(f[live], x[live])
    MJ = np.einsum("ncd,nrd->ncr", metric[live], J)
    inverse = regular_inverse(np.einsum("nrc,ncs->nrs", J, MJ))
    target = -g[live]
    base = f[live]
    if nearest:
        target = target + np.einsum("nrc,nc->nr", J, f[live] - start[live])
        base = start[live]
    aim = base + np.einsum("ncr,nrs,ns->nc", MJ, inverse, target)
    direction = np.where(np.isfinite(aim), aim, f[live]) - f[live]
    before = np.linalg.norm(g[live], axis=1)
    pending = np.arange(len(live))
    gained = np.zeros(len(live), dtype=bool)
    length = 1.0
    for _ in range(8):
        rows = live[pending]
        trial = f[rows] + length * direction[pending]
        value = law.residual(trial, x[rows])
        size = np.linalg.norm(value, axis=1)
        better = np.isfinite(size) & (size < before[pending])
        f[rows[better]] = trial[better]
        g[rows[better]] = value[better]
        gained[pending[better]] = True
        pending = pending[~better]
        if not len(pending):
            break
        length *= 0.5
    return gained
