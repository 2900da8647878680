"""y^T C^-1 y and log|C| of C = A + v I for many v, where A is too large to be taken apart into all of its eigenvectors."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from sumgp.numerics.linear_algebra import pivoted_cholesky

ROUNDING = 1e-15  # of the largest variance: what a pivoted factor leaves of it is rounding
FEW = 0.5  # rank over rows, up to which a factor is faster than a tridiagonal form
TURNED = 10.0  # times the precision of the largest eigenvalue: so far below zero the smallest may come out
BLOCK = 64  # columns for which LAPACK has room to work on together


def shifted_forms(A: np.ndarray, y: np.ndarray, shifts: np.ndarray, smooth: bool) -> tuple[np.ndarray, np.ndarray]:
    """Squares (T, V) and log determinants (V,) of a covariance A (n, n) plus ``shifts`` (V,), for y (n, T).

    ``smooth``: that A may have few eigenvalues above rounding.
    """
    factor = pivoted_cholesky(A, ROUNDING)[1] if smooth else A
    return _of_factor(factor, y, shifts) if factor.shape[1] < FEW * len(A) else _of_tridiagonal(A, y, shifts)


def _of_factor(R: np.ndarray, y: np.ndarray, shifts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A = R R^T with few columns of R: beside these there is nothing but the shift."""
    Q, upper = np.linalg.qr(R)
    spectrum, V = np.linalg.eigh(upper @ upper.T)
    size = np.maximum(spectrum, 0.0)[:, None] + shifts
    U = Q @ V
    along = U.T @ y
    rest = np.sum((y - U @ along) ** 2, axis=0)
    logs = np.sum(np.log(size), axis=0) + (len(y) - len(spectrum)) * np.log(shifts)
    return (along**2).T @ (1.0 / size) + rest[:, None] / shifts, logs


def _of_tridiagonal(A: np.ndarray, y: np.ndarray, shifts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Q^T A Q is tridiagonal, in a third of the time that eigenvectors take, and stays so with every shift."""
    reflectors, diagonal, beside, tau, _ = lapack.dsytrd(A, lower=1, lwork=len(A) * BLOCK)
    # The first entry stays where it is: all reflections are of the others.
    turned = y.copy()
    turned[1:] = lapack.dormqr("L", "T", reflectors[1:, :-1], tau, y[1:], lwork=y.shape[1] * BLOCK)[0]
    squares, pivots = np.empty((y.shape[1], len(shifts))), np.empty((len(shifts), len(A)))
    least = TURNED * np.finfo(float).eps * np.trace(A)
    for v, shift in enumerate(np.maximum(shifts, least)):
        pivots[v], _, solved, _ = lapack.dptsv(diagonal + shift, beside, turned)
        squares[:, v] = np.einsum("nt,nt->t", turned, solved)
    return squares, np.sum(np.log(pivots), axis=1)
