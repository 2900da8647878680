"""A law at given points, as arrays, and the projection of points onto it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

PointFunction = Callable[[np.ndarray, np.ndarray], np.ndarray]

RANK = 1e-10  # eigenvalues of the rows' correlations below it: rows that repeat others


@dataclass(frozen=True)
class PointLaw:
    """``residual(f, x)`` (n, R) = 0 with ``jacobian(f, x)`` (n, R, T), at inputs ``x`` (n, ...), imposed where ``active``.

    ``active`` (n, R) is None where every row holds everywhere.
    """

    residual: PointFunction
    jacobian: PointFunction
    x: np.ndarray
    active: np.ndarray | None = None

    def values(self, f: np.ndarray) -> np.ndarray:
        """(n, R) residuals, zero where a row is not imposed."""
        values = self.residual(f, self.x)
        return values if self.active is None else np.where(self.active, values, 0.0)

    def slopes(self, f: np.ndarray) -> np.ndarray:
        """(n, R, T) derivatives, zero where a row is not imposed."""
        slopes = self.jacobian(f, self.x)
        return slopes if self.active is None else np.where(self.active[:, :, None], slopes, 0.0)

    def at(self, index: np.ndarray) -> PointLaw:
        """The law at some of the points."""
        active = None if self.active is None else self.active[index]
        return PointLaw(self.residual, self.jacobian, self.x[index], active)


def project(f: np.ndarray, covariance: np.ndarray, law: PointLaw, steps: int = 12) -> np.ndarray:
    """(n, T) points on the law, each the nearest to f (n, T) in the metric of its covariance (n, T, T).

    f_{k+1} = f + P J^T (J P J^T)^+ (J (f_k - f) - g(f_k)) for the first half of the steps, then Newton's method down to
    round-off. A point stops where a step brings it no closer to the law.
    """
    found = f.copy()
    live = np.arange(len(f))
    for step in range(steps):
        here, P = law.at(live), covariance[live]
        g, J = here.values(found[live]), here.slopes(found[live])
        origin, target = found[live], -g
        if step < steps // 2:
            origin, target = f[live], target + np.einsum("irt,it->ir", J, found[live] - f[live])
        cross = np.einsum("itu,iru->itr", P, J)
        inverse = _pseudo_inverse(np.einsum("irt,its->irs", J, cross))
        trial = origin + np.einsum("itr,irs,is->it", cross, inverse, target)
        value = here.values(trial)
        closer = np.sum(value**2, axis=1) < np.sum(g**2, axis=1)
        found[live[closer]] = trial[closer]
        live = live[closer]
        if not len(live):
            break
    return found


def _pseudo_inverse(S: np.ndarray) -> np.ndarray:
    """(n, R, R) pseudo-inverses of semidefinite S; rows that repeat others or vanish drop out, whatever their units."""
    sd = np.sqrt(np.maximum(np.einsum("irr->ir", S), 0.0))
    inverse = np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > 0)
    scale = inverse[:, :, None] * inverse[:, None, :]
    if S.shape[1] == 1:
        return scale
    return np.linalg.pinv(S * scale, rcond=RANK, hermitian=True) * scale
