"""Lengths through the Gram matrix (section 4.2 and appendix C.5 of the paper): |z_i - z_j| is linear in Q = Z^T Z.

P moving points and A anchors (known points) in d dimensions are the columns of Z (d, P + A). The transformed outputs are
the upper triangle of Q, row by row: (n, M) with M = (P + A)(P + A + 1)/2. Coordinates are (n, P d), point by point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import null_space

from sumgp.errors import ConstraintError, NumericalError

Edge = tuple[int, int, float]


@dataclass(frozen=True, eq=False)
class Gram:
    """``points`` moving points, ``edges`` (i, j, length) between them, ``anchors`` (A, d) known positions.

    Point numbers start at 0; anchor a has the number points + a, so that an edge may end at an anchor. The anchors fix
    rotation and reflection when coordinates are recovered, so they must span the space as seen from the origin:
    at least d of them, linearly independent.
    """

    points: int
    edges: tuple[Edge, ...]
    anchors: np.ndarray

    def __init__(self, points: int, edges: Sequence[Sequence[float]], anchors: np.ndarray) -> None:
        object.__setattr__(self, "points", int(points))
        object.__setattr__(self, "edges", tuple((int(i), int(j), float(length)) for i, j, length in edges))
        object.__setattr__(self, "anchors", np.atleast_2d(np.asarray(anchors, dtype=float)))
        self._check()

    def _check(self) -> None:
        if self.points < 1:
            raise ConstraintError("points", "at least 1 moving point", str(self.points), "count the moving points")
        if self.dimension not in (2, 3):
            raise ConstraintError(
                "anchors", "2 or 3 coordinates each", f"shape {self.anchors.shape}", "give one row per anchor"
            )
        rank = np.linalg.matrix_rank(self.anchors, tol=1e-6 * np.max(np.abs(self.anchors)))
        if rank < self.dimension:
            raise ConstraintError(
                "anchors",
                f"{self.dimension} linearly independent known points",
                f"rank {rank}",
                "any fixed points will do, such as one on each axis; fewer leave a rotation or reflection open",
            )
        for i, j, length in self.edges:
            inside = 0 <= min(i, j) < self.points and max(i, j) < self.total and i != j
            if not (inside and length > 0 and np.isfinite(length)):
                expected = f"a moving point 0 to {self.points - 1}, another point up to {self.total - 1}, a length above 0"
                raise ConstraintError("edges", expected, str((i, j, length)), "points count from 0, anchors come last")

    @property
    def dimension(self) -> int:
        """Number of coordinates d of a point."""
        return self.anchors.shape[1]

    @property
    def total(self) -> int:
        """Moving points and anchors together."""
        return self.points + len(self.anchors)

    @cached_property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Row and column (M,), (M,) of each transformed output in Q."""
        return np.triu_indices(self.total)

    @cached_property
    def F(self) -> np.ndarray:
        """(R, M): Q_ii - 2 Q_ij + Q_jj per edge, then what the anchors say.

        The product of two anchors is known; and where there are more than d anchors, a combination c of them that
        vanishes, sum_a c_a anchor_a = 0, makes sum_a c_a Q_ia = 0 for every moving point i.
        """
        position, width = self._positions, len(self.pairs[0])
        edges = np.zeros((len(self.edges), width))
        for row, (i, j, _) in zip(edges, self.edges, strict=True):
            row[position[i, i]] += 1.0
            row[position[j, j]] += 1.0
            row[position[i, j]] -= 2.0
        first, second = self._anchor_pairs
        known = np.zeros((len(first), width))
        known[np.arange(len(first)), position[self.points + first, self.points + second]] = 1.0
        vanishing = null_space(self.anchors.T).T
        combined = np.zeros((self.points, len(vanishing), width))
        for i in range(self.points):
            combined[i][:, position[i, self.points :]] = vanishing
        return np.vstack([edges, known, combined.reshape(-1, width)])

    @cached_property
    def S(self) -> np.ndarray:
        """(R,): squared lengths, products of anchors, zeros."""
        first, second = self._anchor_pairs
        known = np.sum(self.anchors[first] * self.anchors[second], axis=1)
        squares = np.array([length**2 for _, _, length in self.edges])
        return np.concatenate([squares, known, np.zeros(self.points * (len(self.anchors) - self.dimension))])

    @property
    def _anchor_pairs(self) -> tuple[np.ndarray, np.ndarray]:
        return np.triu_indices(len(self.anchors))

    @cached_property
    def _positions(self) -> np.ndarray:
        """(P + A, P + A) place of each entry of Q among the transformed outputs."""
        table = np.zeros((self.total, self.total), dtype=int)
        table[self.pairs] = np.arange(len(self.pairs[0]))
        return np.maximum(table, table.T)

    def _with_anchors(self, coordinates: np.ndarray) -> np.ndarray:
        """(n, P + A, d) positions of all points."""
        moving = np.asarray(coordinates, dtype=float).reshape(-1, self.points, self.dimension)
        fixed = np.broadcast_to(self.anchors, (len(moving), *self.anchors.shape))
        return np.concatenate([moving, fixed], axis=1)

    def products(self, coordinates: np.ndarray) -> np.ndarray:
        """(n, P d) coordinates to (n, M) pairwise products; NaN where a coordinate of either point is missing."""
        Z = self._with_anchors(coordinates)
        return np.einsum("npd,nqd->npq", Z, Z)[:, self.pairs[0], self.pairs[1]]

    def product_moments(self, coordinates: np.ndarray, noise: float | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bias and variance (n, M) of products whose moving points carry independent noise of this sd.

        With noise variances s_i, s_j: bias d s_i for i = j, else 0; variance 4 |z_i|^2 s_i + 2 d s_i^2 for i = j, else
        |z_i|^2 s_j + |z_j|^2 s_i + d s_i s_j. ``coordinates`` are the noise-free ones, or an estimate of them.
        """
        i, j = self.pairs
        Z = self._with_anchors(coordinates)
        square = np.sum(Z**2, axis=2)
        variance = np.where(np.arange(self.total) < self.points, 1.0, 0.0) * np.asarray(noise, dtype=float) ** 2
        same = i == j
        bias = np.where(same, self.dimension * variance[i], 0.0)
        spread = square[:, i] * variance[j] + square[:, j] * variance[i] + self.dimension * variance[i] * variance[j]
        return np.broadcast_to(bias, spread.shape), np.where(same, 2.0 * spread, spread)

    def coordinates(self, products: np.ndarray) -> np.ndarray:
        """(n, M) products to (n, P d) coordinates: best rank-d factor of Q, turned so that the anchors fit best.

        The factor is that of the singular value decomposition (here an eigendecomposition, Q being symmetric). The
        orthogonal Procrustes problem min |R Z_anchors - anchors| gives rotation and reflection together.
        """
        products = np.asarray(products, dtype=float)
        Q = products[:, self._positions]
        values, vectors = np.linalg.eigh(Q)
        leading = np.sqrt(np.maximum(values[:, -self.dimension :], 0.0))
        Z = vectors[:, :, -self.dimension :] * leading[:, None, :]
        U, _, Vt = np.linalg.svd(np.einsum("nad,ae->nde", Z[:, self.points :], self.anchors))
        return (Z[:, : self.points] @ (U @ Vt)).reshape(len(Q), -1)

    def residual(self, coordinates: np.ndarray) -> np.ndarray:
        """(n, E) squared lengths minus what they should be."""
        i, j, lengths = self._edge_arrays
        Z = self._with_anchors(coordinates)
        return np.sum((Z[:, i] - Z[:, j]) ** 2, axis=2) - lengths**2

    @cached_property
    def _edge_arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if not self.edges:
            return np.empty(0, dtype=int), np.empty(0, dtype=int), np.empty(0)
        i, j, lengths = zip(*self.edges, strict=True)
        return np.array(i), np.array(j), np.array(lengths)

    def jacobian(self, coordinates: np.ndarray) -> np.ndarray:
        """(n, E, P d) derivative of the residual."""
        i, j, _ = self._edge_arrays
        Z = self._with_anchors(coordinates)
        difference = 2.0 * (Z[:, i] - Z[:, j])
        J = np.zeros((len(Z), len(i), self.total, self.dimension))
        rows = np.arange(len(i))
        J[:, rows, i] += difference
        J[:, rows, j] -= difference
        return J[:, :, : self.points].reshape(len(Z), len(i), -1)

    def project(self, coordinates: np.ndarray, max_steps: int = 50, tolerance: float = 1e-12) -> np.ndarray:
        """The nearest coordinates (n, P d) with the stated lengths, to ``tolerance`` relative to the squared lengths.

        The law is linearised and solved for the point nearest to the start, z = z_0 - J^T (J J^T)^+ (g + J (z_0 - z)),
        until that settles; Newton's steps from there meet the lengths to round-off.
        Raises NumericalError where lengths cannot be met, e.g. against the triangle inequality.
        """
        start = np.asarray(coordinates, dtype=float)
        allowed = tolerance * float(np.max(self._edge_arrays[2] ** 2, initial=1e-300))
        z = start
        for step in range(max_steps):
            g, J = self.residual(z), self.jacobian(z)
            if step > 0 and not np.any(np.abs(g) > allowed):
                return z
            origin = start if step < max_steps // 2 else z
            right = g + np.einsum("nec,nc->ne", J, origin - z)
            weights = np.linalg.pinv(J @ np.swapaxes(J, 1, 2), rcond=1e-10, hermitian=True) @ right[:, :, None]
            z = origin - np.einsum("nec,ne->nc", J, weights[:, :, 0])
        worst = float(np.max(np.abs(self.residual(z))))
        raise NumericalError(
            f"the lengths could not be met (squared lengths off by {worst:.1e} after {max_steps} steps); check that they "
            "agree with each other and with the anchors"
        )
