"""Geometry of a law: its unit-free form, the projection of points onto it, and its bend.

What the curvature of a law adds to a Gaussian that lies in its tangent.
A value on the law near f0 is f0 + t + c(t) with t ~ N(0, V) in the tangent and the bend c(t) = -G (t^T g'' t) / 2, where
G takes the law's residual back to the outputs. With t = L e, e ~ N(0, I), and H_r = L^T g_r'' L,

    E c = -G tr(H) / 2,        Cov c = G [tr(H_r H_s)] G^T / 2,        Cov(t, c) = 0.

At a turning point (an oscillator at rest) t has no share of one output, and the bend is all that is uncertain there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from sumgp.laws.law import Law, SumLaw, near_pole


@dataclass(frozen=True)
class UnitFreeLaw:
    """``law`` seen from unit-free columns u: outputs, unknown constants, then one error column per soft row.

    f = shift + scale * u; each row is divided by its ``row_scale``; a soft row reads g(f) / row_scale + error = 0.
    Rows that do not hold at x are zero there.
    """

    law: Law
    shift: np.ndarray  # (T + U,)
    scale: np.ndarray  # (T + U,)
    row_scale: np.ndarray  # (R,)

    @cached_property
    def _everywhere(self) -> bool:
        return all(where is None for where in self.law.where)

    @cached_property
    def soft_rows(self) -> np.ndarray:
        """Rows that hold only up to an error."""
        return np.flatnonzero(self.law.noise > 0)

    @property
    def is_soft(self) -> bool:
        """True if no row holds exactly."""
        return len(self.soft_rows) == self.n_rows

    @property
    def n_rows(self) -> int:
        """Number of rows R."""
        return self.law.n_rows

    @cached_property
    def n_columns(self) -> int:
        """C: outputs, then unknown constants, then soft errors."""
        return self.law.n_columns + len(self.soft_rows)

    @property
    def constants(self) -> slice:
        """Columns of the unknown constants, one value for all points."""
        return self.law.unknown_columns

    @property
    def is_linear(self) -> bool:
        """True if no row bends."""
        return isinstance(self.law, SumLaw) and self.law.is_linear

    @property
    def soft_variances(self) -> np.ndarray:
        """Variances of the soft rows' errors, in units of their rows."""
        return (self.law.noise / self.row_scale)[self.soft_rows] ** 2

    def residual(self, u: np.ndarray, x: np.ndarray) -> np.ndarray:
        """(n, R) scaled residual, zero where a row does not hold."""
        n_columns = self.law.n_columns
        with np.errstate(all="ignore"):
            values = self.law.residual(self.shift + self.scale * u[:, :n_columns], x) / self.row_scale
        if self.n_columns > n_columns:
            values[:, self.soft_rows] += u[:, n_columns:]
        return values if self._everywhere else np.where(self.law.active(x), values, 0.0)

    def jacobian(self, u: np.ndarray, x: np.ndarray) -> np.ndarray:
        """(n, R, columns) derivative of the scaled residual."""
        n_columns = self.law.n_columns
        result = np.zeros((len(u), self.n_rows, self.n_columns))
        with np.errstate(all="ignore"):
            inner = self.law.jacobian(self.shift + self.scale * u[:, :n_columns], x)
        result[:, :, :n_columns] = inner * self.scale / self.row_scale[:, None]
        for position, row in enumerate(self.soft_rows):
            result[:, row, n_columns + position] = 1.0
        return result if self._everywhere else np.where(self.law.active(x)[:, :, None], result, 0.0)


def make_unit_free(law: Law, shift: np.ndarray, scale: np.ndarray, u: np.ndarray, x: np.ndarray) -> UnitFreeLaw:
    """Relax the law beyond its domain and choose the rows' sizes from their slopes at typical values u (n, T + U)."""
    f = shift + scale * u
    size = np.maximum(np.abs(shift), scale)
    relaxed = law.relaxed(np.where(np.median(f, axis=0) < 0, -size, size), near_pole(law, f, scale, x))
    active = relaxed.active(x)
    with np.errstate(all="ignore"):
        squares = np.sum((relaxed.jacobian(f, x) * scale) ** 2, axis=2)
        magnitude = relaxed.magnitude(f, x)
    # Only inputs at which a row holds say how large it is.
    count = np.maximum(active.sum(axis=0), 1)
    slope = np.sqrt(np.sum(np.where(active, squares, 0.0), axis=0) / count)
    fallback = np.max(np.where(active, magnitude, 0.0), axis=0, initial=0.0)
    usable = np.isfinite(slope) & (slope > 0)
    row_scale = np.where(usable, slope, np.where(np.isfinite(fallback) & (fallback > 0), fallback, 1.0))
    return UnitFreeLaw(relaxed, shift, scale, row_scale)


RANK_TOLERANCE = 1e-12  # eigenvalue of the rows' correlations below which a row repeats others
ROUND_OFF = 1e-14  # relative error of a sum of products of doubles, with a margin of a hundred
NEAREST_STEPS = 4  # towards the nearest point, before plain Newton steps go on to round-off
HARD_STEPS = 12  # after which a point that is still off the law is taken for a hard one
UNMET = 1e-10  # scaled residual
MOST_STEPS = 60  # of a projection
HALVINGS = 30  # of a step that does not come closer to the law: among thousands of draws some start where it is almost flat
# Standard deviations of the metric that the first steps may move an output. Where a law is almost flat (a pendulum near
# its top) an unlimited step leads to a branch that nothing supports, and the law may be met there as well.
REACH = 1.0


@dataclass(frozen=True)
class Projection:
    """Points on the law, the tangent projectors A = I - G J (n, C, C) with J A = 0, and G (n, C, R)."""

    points: np.ndarray
    projectors: np.ndarray
    gain: np.ndarray
    unmet: np.ndarray  # (n,) largest scaled residual left


def regular_inverse(S: np.ndarray, round_off: np.ndarray | None = None) -> np.ndarray:
    """Pseudo-inverses of (n, R, R) positive semidefinite matrices: rows that repeat others, or vanish, drop out.

    ``round_off`` (n, R) is the error to be expected on the diagonal, below which directions count as repeated.
    """
    squares = np.einsum("nrr->nr", S)
    diagonal = np.sqrt(np.where(squares < np.finfo(float).tiny, 0.0, squares))  # of smaller ones the inverse is infinite
    size = np.where(diagonal > 0, diagonal, 1.0)
    if S.shape[1] == 1:
        return np.where(diagonal > 0, 1.0 / size**2, 0.0)[:, :, None]
    correlation = S / (size[:, :, None] * size[:, None, :])
    values, vectors = np.linalg.eigh(correlation)
    tolerance = np.full((len(S), 1), RANK_TOLERANCE)
    if round_off is not None:
        tolerance = np.maximum(tolerance, np.max(round_off / size**2, axis=1, keepdims=True))
    kept = values > tolerance * np.maximum(values[:, -1:], 1.0)
    inverse = np.where(kept, 1.0 / np.maximum(values, 1e-300), 0.0)
    return np.einsum("nrk,nk,nsk->nrs", vectors, inverse, vectors) / (size[:, :, None] * size[:, None, :])


def _weights(J: np.ndarray, metric: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """M J^T (n, C, R) and the pseudo-inverse of J M J^T (n, R, R)."""
    MJ = np.einsum("ncd,nrd->ncr", metric, J)
    # A metric that is itself a difference of covariances holds errors of round-off times its largest entry.
    round_off = ROUND_OFF * np.sum(J**2, axis=2) * np.einsum("ncc->nc", metric).max(axis=1)[:, None]
    return MJ, regular_inverse(np.einsum("nrc,ncs->nrs", J, MJ), round_off)


class PointwiseLaw(Protocol):
    """What a projection needs of a law: f (n, C) at inputs x (n, ...)."""

    @property
    def is_linear(self) -> bool:
        """True if no row bends."""

    def residual(self, f: np.ndarray, x: np.ndarray, /) -> np.ndarray:
        """(n, R), zero where a row does not hold."""

    def jacobian(self, f: np.ndarray, x: np.ndarray, /) -> np.ndarray:
        """(n, R, C)."""


def project(law: PointwiseLaw, start: np.ndarray, metric: np.ndarray, x: np.ndarray) -> Projection:
    """Minimise (f - start)^T metric^-1 (f - start) subject to the law, point by point, without inverting the metric.

    f_{k+1} = start + M J^T (J M J^T)^+ (J (f_k - start) - g(f_k)), damped where the residual would grow, then plain
    Newton steps down to round-off. Points that are met stop early; those that are far from it after twelve steps go on
    in a rounder metric and with steps of any size, since a metric that moves hardly known outputs only can zigzag past the
    law. Many halvings of a step find a way back from where the law is almost flat and steps are far too long.
    """
    walk = _Walk(law, start, x, start.copy(), law.residual(start, x))
    used = metric
    live = np.flatnonzero(np.max(np.abs(walk.g), axis=1) > 0)
    for step in range(MOST_STEPS):
        if not len(live):
            break
        nearest = step < NEAREST_STEPS
        if step == HARD_STEPS:
            used = _rounded(metric)
        reach = REACH if step < HARD_STEPS and not law.is_linear else np.inf
        gained = walk.step(used, live, nearest, reach)
        size = np.max(np.abs(walk.g[live]), axis=1)
        # A step towards the nearest point may fail where a plain Newton step still comes closer to the law.
        live = live[(size > 1e-15) & (gained | nearest | (step < HARD_STEPS))]
    walk.move_single_columns(metric)
    J = law.jacobian(walk.f, x)
    MJ, inverse = _weights(J, metric)
    gain = MJ @ inverse
    return Projection(walk.f, np.eye(start.shape[1]) - gain @ J, gain, np.max(np.abs(walk.g), axis=1))


def _rounded(metric: np.ndarray) -> np.ndarray:
    """The metric with every movable column at least a tenth as free as the freest."""
    diagonal = np.einsum("ncc->nc", metric)
    movable = np.where(diagonal > 0, 0.1 * diagonal.max(axis=1, keepdims=True), 0.0)
    return metric + movable[:, :, None] * np.eye(metric.shape[1])


@dataclass(frozen=True)
class _Walk:
    """Points f (n, C) on their way from ``start`` onto the law, and its residuals g (n, R) there; both change in place."""

    law: PointwiseLaw
    start: np.ndarray
    x: np.ndarray
    f: np.ndarray
    g: np.ndarray

    def step(self, metric: np.ndarray, live: np.ndarray, nearest: bool = False, reach: float = np.inf) -> np.ndarray:
        """One damped step of the live points; True where the residual shrank.

        ``nearest``: towards the point of the law nearest to the start, not to here; ``reach``: how many sds of the metric
        it may move an output.
        """
        f, g, x = self.f, self.g, self.x
        direction = self._direction(metric[live], live, nearest)
        before = np.linalg.norm(g[live], axis=1)
        pending = np.arange(len(live))
        gained = np.zeros(len(live), dtype=bool)
        length = np.ones(len(live))
        if np.isfinite(reach):
            sd = np.sqrt(np.einsum("ncc->nc", metric[live]))
            far = np.max(np.divide(np.abs(direction), sd, out=np.zeros_like(sd), where=sd > 0), axis=1)
            length = reach / np.maximum(far, reach)
        for _ in range(HALVINGS):
            rows = live[pending]
            trial = f[rows] + length[pending, None] * direction[pending]
            value = self.law.residual(trial, x[rows])
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

    def _direction(self, metric: np.ndarray, live: np.ndarray, nearest: bool) -> np.ndarray:
        """(live, C) full steps, zero where they are not finite."""
        here = self.f[live]
        J = self.law.jacobian(here, self.x[live])
        MJ, inverse = _weights(J, metric)
        target, base = -self.g[live], here
        if nearest:
            base = self.start[live]
            target = target + np.einsum("nrc,nc->nr", J, here - base)
        aim = base + np.einsum("ncr,nr->nc", MJ, np.einsum("nrs,ns->nr", inverse, target))
        return np.where(np.isfinite(aim), aim, here) - here

    def move_single_columns(self, metric: np.ndarray) -> None:
        """Points that are still off the law: one column at a time, the freest first, among equals the steepest.

        At a kink (an absolute value at zero) steps of all columns together go back and forth across it; another column
        may still meet the law alone.
        """
        left = np.flatnonzero(np.max(np.abs(self.g), axis=1) > UNMET)
        if not len(left):
            return
        freedom = np.einsum("ncc->nc", metric[left])
        slopes = np.sum(self.law.jacobian(self.f[left], self.x[left]) ** 2, axis=1)
        order = np.lexsort((-slopes, -freedom), axis=1)  # (left, C): each point has its own, whatever others are given
        for columns in order.T:
            alone = np.zeros_like(metric)
            alone[left, columns, columns] = metric[left, columns, columns]
            still = left[np.max(np.abs(self.g[left]), axis=1) > UNMET]
            for _ in range(HARD_STEPS):
                self.step(alone, still)


def mean_on_law(law: UnitFreeLaw, mean: np.ndarray, covariance: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Means (n, C) moved onto the law in their covariances (n, C, C); constants, one value for all points, stay put."""
    metric = covariance.copy()
    metric[:, law.constants, :] = 0.0
    metric[:, :, law.constants] = 0.0
    return project(law, mean, metric, x).points


def projected_draws(law: UnitFreeLaw, draws: np.ndarray, metric: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Draws (count, n, C) moved onto the law point by point, in one metric (n, C, C) for all or each in its own."""
    count, n, C = draws.shape
    metrics = np.broadcast_to(metric, (count, n, C, C)).reshape(count * n, C, C)
    moved = project(law, draws.reshape(count * n, C), metrics, np.tile(x, (count, 1)))
    return moved.points.reshape(count, n, C)


@dataclass(frozen=True)
class Bend:
    """Mean (n, C) and variance (n, C) of c at each point; infinite where the law's slopes overflow."""

    shift: np.ndarray
    variance: np.ndarray

    @property
    def size(self) -> np.ndarray:
        """(n, C) root mean square."""
        return np.sqrt(self.shift**2 + self.variance)


def bend(law: UnitFreeLaw, points: np.ndarray, covariance: np.ndarray, gain: np.ndarray, x: np.ndarray) -> Bend:
    """Bend at points (n, C) on the law with tangent covariance (n, C, C) and gain (n, C, R).

    Second derivatives are differences of the Jacobian one standard deviation to both sides, so that they speak of the
    region that matters.
    """
    n, C = points.shape
    values, vectors = np.linalg.eigh(covariance)  # the symmetric root is unique, unlike eigenvectors of equal values
    root = (vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]) @ vectors.mT
    roots = [root[:, :, a] for a in range(C) if np.any(root[:, :, a])]  # each (n, C)
    if not roots:
        return Bend(np.zeros((n, C)), np.zeros((n, C)))
    both = np.concatenate([points + r for r in roots] + [points - r for r in roots])
    J = law.jacobian(both, np.tile(x, (2 * len(roots), 1))).reshape(2, len(roots), n, law.n_rows, C)
    L = np.stack(roots)
    H = np.einsum("anrc,bnc->nrab", 0.5 * (J[0] - J[1]), L)
    beyond = ~np.all(np.isfinite(H), axis=(1, 2, 3))
    H = np.where(beyond[:, None, None, None], 0.0, 0.5 * (H + H.transpose(0, 1, 3, 2)))
    shift = -0.5 * np.einsum("ncr,nraa->nc", gain, H)
    together = np.einsum("nrab,nsab->nrs", H, H)
    variance = 0.5 * np.einsum("ncr,nrs,ncs->nc", gain, together, gain)
    return Bend(shift, np.where(beyond[:, None], np.inf, np.maximum(variance, 0.0)))
