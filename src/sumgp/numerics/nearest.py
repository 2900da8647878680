"""Nearest points of polyhedra: many small problems at once, solved by active sets and checked.

A problem has C columns and the set {f : E f = e, lower <= f <= upper, G f <= h}; the distance is sum (f - start)^2 / sd^2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

MOST_STEPS = 12  # of the active-set iteration; most problems need 2 to 4
MET = 1e-9  # residual of a row of length one, in the largest of its terms, up to which a set counts as reached
RANK = 1e-11  # singular values of rows of length one that count as zero
POLISHING = 2  # corrections of the free columns, each to round-off
AT_ONCE = 8192  # problems: few enough for their matrices to stay in the processor's cache
ROUND_OFF = 4 * np.finfo(float).eps  # of a sum, in the largest of its terms


class Polyhedra(NamedTuple):
    """Sets of m problems; rows of zeros say nothing, bounds of plus or minus infinity neither."""

    E: np.ndarray  # (m, R, C)
    e: np.ndarray  # (m, R)
    lower: np.ndarray  # (m, C)
    upper: np.ndarray  # (m, C)
    G: np.ndarray  # (m, Q, C)
    h: np.ndarray  # (m, Q)

    def at(self, rows: np.ndarray | slice) -> Polyhedra:
        """Some of the problems."""
        return Polyhedra(*(part[rows] for part in self))

    def hold(self, f: np.ndarray) -> np.ndarray:
        """(m,) truth of whether the bounds, not the equations, hold at f (m, C) to the last bit."""
        inside = np.all((f >= self.lower) & (f <= self.upper), axis=1)
        return inside & np.all(np.einsum("mqc,mc->mq", self.G, f) <= self.h, axis=1)


class Nearest(NamedTuple):
    """Points (m, C), and whether each lies in its set; where it does not, the set is empty or out of reach."""

    points: np.ndarray
    met: np.ndarray


def nearest_points(start: np.ndarray, sds: np.ndarray, sets: Polyhedra) -> Nearest:
    """The point of each set that is nearest to ``start`` (m, C), columns measured in ``sds`` (C,).

    Columns with a standard deviation of zero stay where they are. Bounds on columns hold to the last bit, equations and
    bounds on sums of columns to round-off. Problems that the active sets do not settle go to a non-negative least
    squares solver, which also tells empty sets.
    """
    parts = [slice(i, i + AT_ONCE) for i in range(0, len(start), AT_ONCE)]
    found = [_nearest(start[part], sds, sets.at(part)) for part in parts]
    if not found:
        return Nearest(start.copy(), np.zeros(0, dtype=bool))
    return Nearest(np.concatenate([f.points for f in found]), np.concatenate([f.met for f in found]))


class _Scaled(NamedTuple):
    """Problems in columns of standard deviation one and rows of length one: z near z0, K z = r or K z <= r."""

    z0: np.ndarray  # (m, C)
    lower: np.ndarray
    upper: np.ndarray
    K: np.ndarray  # (m, P, C), the first ``equations`` rows are equations
    r: np.ndarray  # (m, P)
    equations: int

    def at(self, rows: np.ndarray) -> _Scaled:
        z0, lower, upper, K, r = (part[rows] for part in self[:-1])
        return _Scaled(z0, lower, upper, K, r, self.equations)

    def misses(self, z: np.ndarray) -> np.ndarray:
        """(m, P) by how much rows are missed, in the largest of their terms."""
        value = np.einsum("mpc,mc->mp", self.K, z) - self.r
        value[:, self.equations :] = np.maximum(value[:, self.equations :], 0.0)
        size = np.maximum(np.abs(self.K * z[:, None, :]).max(axis=2, initial=0.0), np.abs(self.r))
        return np.abs(value) / np.maximum(size, 1.0)


def _nearest(start: np.ndarray, sds: np.ndarray, sets: Polyhedra) -> Nearest:
    moving = sds > 0
    sd = np.where(moving, sds, 1.0)
    lower = np.where(moving, sets.lower, start)
    upper = np.where(moving, sets.upper, start)
    scaled = _scaled(start / sd, sd, sets._replace(lower=lower, upper=upper))
    z, settled = _active_sets(scaled)
    settled &= np.all(scaled.misses(z) <= MET, axis=1)
    for i in np.flatnonzero(~settled):
        z[i], settled[i] = _by_least_squares(scaled.at(np.array([i])))
    # Where the columns that stay put leave their own bounds, nothing can be done.
    settled &= np.all((lower <= upper) & ((sets.lower <= start) & (start <= sets.upper) | moving), axis=1)
    inside = np.clip(sd * z, lower, np.maximum(lower, upper))
    f = np.where(z <= scaled.lower, lower, np.where(z >= scaled.upper, upper, inside))
    return Nearest(_polished(f, np.where(moving, sds, 0.0), scaled, sets._replace(lower=lower, upper=upper)), settled)


def _scaled(z0: np.ndarray, sd: np.ndarray, sets: Polyhedra) -> _Scaled:
    K = np.concatenate([sets.E, sets.G], axis=1) * sd
    r = np.concatenate([sets.e, sets.h], axis=1)
    length = np.sqrt(np.sum(K**2, axis=2))
    size = np.where(length > 0, length, 1.0)
    return _Scaled(z0, sets.lower / sd, sets.upper / sd, K / size[:, :, None], r / size, sets.E.shape[1])


def _active_sets(problem: _Scaled) -> tuple[np.ndarray, np.ndarray]:
    """Points (m, C), and whether the active sets came to rest.

    With multipliers w of the rows, t = z0 - K^T w; columns of t outside their bounds are held there, rows of inequalities
    are held while their multiplier is positive. Each step solves for w with what is held (primal-dual active sets).
    """
    z, at_rest, R = problem.z0.copy(), np.zeros(len(problem.z0), dtype=bool), problem.equations
    live, now = np.arange(len(z)), problem
    inside = np.clip(z, problem.lower, problem.upper)
    t, held = z, np.ones(problem.r.shape, dtype=bool)
    held[:, R:] = np.einsum("mpc,mc->mp", problem.K[:, R:], inside) > problem.r[:, R:]
    for _ in range(MOST_STEPS):
        z0, lower, upper, K, r, _ = now
        low, high = t < lower, t > upper
        free = ~(low | high)
        fixed = np.where(low, lower, np.where(high, upper, 0.0))
        rows = K * held[:, :, None]
        open_rows = rows * free[:, None, :]
        wanted = np.einsum("mpc,mc->mp", rows, np.where(free, z0, fixed)) - r * held
        w = _solved(open_rows @ open_rows.mT, wanted)
        t = z0 - np.einsum("mpc,mp->mc", rows, w)
        z[live] = np.where(free, t, fixed)
        same = np.all(((t < lower) == low) & ((t > upper) == high), axis=1)
        if r.shape[1] > R:
            over = np.einsum("mpc,mc->mp", K[:, R:], z[live]) > r[:, R:]
            kept = np.where(held[:, R:], w[:, R:] > 0, over)
            same &= np.all(kept == held[:, R:], axis=1)
            held[:, R:] = kept
        at_rest[live[same]] = True
        if same.all():
            break
        more = ~same
        live, now, t, held = live[more], now.at(more), t[more], held[more]
    return z, at_rest


def _solved(S: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """(m, P) least-squares solutions of S w = wanted for positive semidefinite S (m, P, P)."""
    if S.shape[1] == 0:
        return wanted
    if S.shape[1] == 1:
        diagonal = S[:, :, 0]
        return np.divide(wanted, diagonal, out=np.zeros_like(wanted), where=diagonal > RANK)
    values, vectors = np.linalg.eigh(S)
    along = np.einsum("mpk,mp->mk", vectors, wanted)
    along = np.divide(along, values, out=np.zeros_like(along), where=values > RANK)
    return np.einsum("mpk,mk->mp", vectors, along)


def _by_least_squares(problem: _Scaled) -> tuple[np.ndarray, bool]:
    """The same for one problem: the shortest move within the equations that meets A z >= b (Lawson and Hanson, LDP)."""
    z0, lower, upper, K, r = (part[0] for part in problem[:-1])
    C, R = len(z0), problem.equations
    still, eye = lower == upper, np.eye(C)
    E, e = np.vstack([K[:R], eye[still]]), np.concatenate([r[:R], lower[still]])
    low, high = np.isfinite(lower) & ~still, np.isfinite(upper) & ~still
    A = np.vstack([eye[low], -eye[high], -K[R:]])
    b = np.concatenate([lower[low], -upper[high], -r[R:]])
    U, values, Vt = np.linalg.svd(E, full_matrices=True)
    rank = int(np.sum(values > np.sqrt(RANK)))
    N = Vt[rank:].T
    on_law = z0 + Vt[:rank].T @ ((U[:, :rank].T @ (e - E @ z0)) / values[:rank])
    u = _shortest(A @ N, b - A @ on_law)
    z = np.clip(on_law if u is None else on_law + N @ u, lower, np.maximum(lower, upper))
    return z, u is not None and bool(np.all(problem.misses(z[None]) <= MET))


def _shortest(A: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """The shortest u with A u >= b, None where there is none."""
    length = np.linalg.norm(A, axis=1)
    usable = length > np.sqrt(RANK)
    if np.any(b[~usable] > MET * np.maximum(1.0, np.abs(b).max(initial=0.0))):
        return None
    A, b = A[usable] / length[usable, None], b[usable] / length[usable]
    size = b.max(initial=0.0)
    if size <= 0.0:
        return np.zeros(A.shape[1])
    stacked = np.vstack([A.T, b / size])
    try:
        y, _ = nnls(stacked, np.append(np.zeros(A.shape[1]), 1.0), maxiter=30 * len(b))
    except RuntimeError:
        return None
    rest = stacked @ y
    rest[-1] -= 1.0
    return None if -rest[-1] <= MET else size * rest[:-1] / -rest[-1]


def _polished(f: np.ndarray, sds: np.ndarray, scaled: _Scaled, sets: Polyhedra) -> np.ndarray:
    """f with the equations and the inequalities that bind corrected to round-off by the columns inside their bounds."""
    K, R = np.concatenate([sets.E, sets.G], axis=1), scaled.equations
    for _ in range(POLISHING):
        free = (f > sets.lower) & (f < sets.upper)
        size = np.abs(K * f[:, None, :]).sum(axis=2)
        over = np.einsum("mpc,mc->mp", K, f) - np.concatenate([sets.e, sets.h], axis=1)
        # A bound on a sum is met with its round-off to spare, so that it holds in whatever order the sum is taken.
        over[:, R:] = np.maximum(over[:, R:] + ROUND_OFF * size[:, R:], 0.0)
        length = np.sqrt(np.sum((K * sds) ** 2, axis=2))
        unit = np.where(length > 0, length, 1.0)
        rows = K * sds / unit[:, :, None] * free[:, None, :]
        rows[:, R:] *= (over[:, R:] > 0)[:, :, None]
        w = _solved(rows @ rows.mT, over / unit)
        f = np.clip(f - sds * np.einsum("mpc,mp->mc", rows, w), sets.lower, np.maximum(sets.lower, sets.upper))
    return f
