"""What the curvature of a law adds to a Gaussian that lies in its tangent.

A value on the law near f0 is f0 + t + c(t) with t ~ N(0, V) in the tangent and the bend c(t) = -G (t^T g'' t) / 2, where
G takes the law's residual back to the outputs. With t = L e, e ~ N(0, I), and H_r = L^T g_r'' L,

    E c = -G tr(H) / 2,        Cov c = G [tr(H_r H_s)] G^T / 2,        Cov(t, c) = 0.

At a turning point (an oscillator at rest) t has no share of one output, and the bend is all that is uncertain there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sumgp.laws.scaled import UnitFreeLaw


@dataclass(frozen=True)
class Bend:
    """Mean (n, C) and variance (n, C) of c at each point; infinite where the law's slopes are beyond all numbers."""

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
    values, vectors = np.linalg.eigh(covariance)
    # The symmetric root: unlike eigenvectors of equal values it is unique, whatever the order of the outputs.
    root = (vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]) @ vectors.transpose(0, 2, 1)
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
