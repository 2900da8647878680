"""Factorisations of many small matrices at once.

Matrices come as (n, D, D) so that NumPy's stacked matrix product applies; inside, the long axis is put last and the
elimination runs over the short ones, each step one array operation over all n matrices.
"""

from __future__ import annotations

import numpy as np

from sumgp.errors import NumericalError

REMEDY = (
    "a noise or law variance is too small beside the prior: increase it (a law variance of 1e-9 of the measurements' works)"
)


def root(matrices: np.ndarray) -> np.ndarray:
    """(n, D, D) upper triangular R with R^T R = M for positive semidefinite M (n, D, D).

    A pivot that is round-off of its own diagonal entry counts as zero, so singular matrices and entries of very
    different size are both fine.
    """
    size = matrices.shape[-1]
    work = matrices.transpose(1, 2, 0).copy()
    threshold = 4.0 * size * np.finfo(float).eps * np.abs(work[range(size), range(size)])
    for k in range(size):
        usable = work[k, k] > threshold[k]
        work[k, k:] *= np.where(usable, 1.0 / np.sqrt(np.where(usable, work[k, k], 1.0)), 0.0)
        work[k, :k] = 0.0
        for row in range(k + 1, size):
            work[row, row:] -= work[k, row] * work[k, row:]
    return np.ascontiguousarray(work.transpose(2, 0, 1))


def whiten(matrices: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n, D, m) solutions L^-1 B and (n,) log-determinants of M = L L^T, for definite M (n, D, D) and B (n, D, m).

    NumericalError if an M is not definite.
    """
    size = matrices.shape[-1]
    work = np.empty((size, size + right.shape[-1], len(matrices)))
    work[:, :size] = matrices.transpose(1, 2, 0)
    work[:, size:] = right.transpose(1, 2, 0)
    for k in range(size):
        if not work[k, k].min(initial=1.0) > 0.0:
            raise NumericalError(f"a covariance lost its definiteness to round-off; {REMEDY}")
        work[k, k:] /= np.sqrt(work[k, k])
        for row in range(k + 1, size):
            work[row, row:] -= work[k, row] * work[k, row:]
    logdet = 2.0 * np.log(work[range(size), range(size)]).sum(axis=0)
    return np.ascontiguousarray(work[:, size:].transpose(2, 0, 1)), logdet


def symmetric(matrices: np.ndarray) -> np.ndarray:
    """(n, D, D) matrices with the round-off between M and M^T averaged away."""
    return 0.5 * (matrices + matrices.swapaxes(-1, -2))


def transposed(matrices: np.ndarray) -> np.ndarray:
    """Each matrix of a stack (..., m, n) turned to (..., n, m), without copying."""
    return matrices.swapaxes(-1, -2)
