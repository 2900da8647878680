"""The null-space construction of Jidling et al.: a task covariance built from vectors that the law does not see."""

from __future__ import annotations

import numpy as np

from sumgp.errors import ConstraintError


def nullspace_basis(F: np.ndarray) -> np.ndarray:
    """(T, T - rank) orthonormal vectors G with F G = 0."""
    _, values, right = np.linalg.svd(F)
    rank = int(np.sum(values > 1e-12 * values[0]))
    return right[rank:].T


def nullspace_task(F: np.ndarray, S: np.ndarray, middle: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Task mean (T,) and covariance G M G^T (T, T) of the paper's appendix E, extended to F f = S.

    With M the identity this equals conditioning the identity on the law.
    """
    mean, *_ = np.linalg.lstsq(F, np.asarray(S, dtype=float), rcond=None)
    if not np.allclose(F @ mean, S, rtol=1e-9, atol=1e-12 * max(1.0, float(np.max(np.abs(S), initial=0.0)))):
        raise ConstraintError("S: no outputs meet F f = S; correct the totals of rows that depend on each other")
    G = nullspace_basis(F)
    return mean, G @ G.T if middle is None else G @ middle @ G.T
