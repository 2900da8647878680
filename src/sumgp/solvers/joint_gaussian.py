"""Joint covariances of many points, in few columns until they are added up."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sumgp.numerics import add_square, mirrored
from sumgp.solvers.functionals import Opened


@dataclass(frozen=True)
class JointGaussian:
    """Points with ``mean`` (n, C) and covariance plus plus^T - minus minus^T + the parts in ``left``, few columns each."""

    mean: np.ndarray
    plus: np.ndarray  # (n, C, a)
    minus: np.ndarray  # (n, C, b)
    left: tuple[Opened, ...]

    def moved(self, mean: np.ndarray, A: np.ndarray) -> JointGaussian:
        """The same points at other means, their deviations multiplied by A (n, C, C)."""
        left = tuple(Opened(part.K, A @ part.B) for part in self.left)
        return JointGaussian(mean, A @ self.plus, A @ self.minus, left)

    def outputs(self, count: int) -> JointGaussian:
        """The first ``count`` columns alone."""
        left = tuple(Opened(part.K, part.B[:, :count]) for part in self.left)
        return replace(self, mean=self.mean[:, :count], plus=self.plus[:, :count], minus=self.minus[:, :count], left=left)

    def covariance(self) -> np.ndarray:
        """(nC, nC), ordered point by point."""
        total = JointSum(*self.mean.shape)
        total.add(self, 1.0)
        return total.matrix()


class JointSum:
    """A weighted sum of joint covariances (nC, nC): the lower triangle alone until all are added."""

    def __init__(self, n_points: int, n_columns: int) -> None:
        size = n_points * n_columns
        self._lower = np.zeros((size, size), order="F")
        self._pairs: dict[tuple[int, int], np.ndarray] = {}
        self._n, self._C = n_points, n_columns

    def add(self, part: JointGaussian, weight: float) -> None:
        """Add ``weight`` times the covariance of a part."""
        size = self._n * self._C
        add_square(self._lower, part.plus.reshape(size, -1), weight)
        add_square(self._lower, part.minus.reshape(size, -1), -weight)
        for K, B in part.left:
            for c in range(self._C):
                for d in range(c + 1):
                    self._add_pair(c, d, K, weight * B[:, c], B[:, d])

    def _add_pair(self, c: int, d: int, K: np.ndarray, B_c: np.ndarray, B_d: np.ndarray) -> None:
        """Add K_ij B_ic B_jd^T to what columns c and d have in common."""
        if not (B_c.any() and B_d.any()):
            return
        product = B_c @ B_d.T
        product *= K
        known = self._pairs.get((c, d))
        self._pairs[c, d] = product if known is None else np.add(known, product, out=known)

    def add_squares(self, root: np.ndarray) -> None:
        """Add root root^T with ``root`` (nC, a)."""
        add_square(self._lower, root, 1.0)

    def matrix(self) -> np.ndarray:
        """The sum, symmetric."""
        full, C = mirrored(self._lower), self._C
        for (c, d), block in self._pairs.items():
            full[c::C, d::C] += block
            if c != d:
                full[d::C, c::C] += block.T
        return full
