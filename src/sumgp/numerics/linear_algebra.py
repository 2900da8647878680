"""Linear algebra: factors and their derivatives, small matrices of many points, the memory and threads they take.

Everything here works on symmetric matrices in float64 and raises NumericalError, never LinAlgError. Many small matrices
come as (n, D, D), so that NumPy's stacked matrix product applies; inside, the long axis is put last and the elimination
runs over the short ones, each step one array operation over all n matrices.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from scipy.linalg import blas, lapack
from scipy.spatial import cKDTree
from threadpoolctl import ThreadpoolController

from sumgp.errors import DataError, NumericalError

ZERO_ON_DIAGONAL = "a triangular factor has a zero on its diagonal; allow more noise or choose a rougher kernel"
NEIGHBOURS = 3  # rows apart along one input, nearest ones in several: with one, slow errors of few rows are not seen
JITTERS = (0.0, 1e-12, 1e-10, 1e-8, 1e-6)  # relative, tried in turn: none if possible


def cholesky(matrix: np.ndarray, what: str = "covariance") -> np.ndarray:
    """Lower factor L of a symmetric positive definite matrix, with the smallest relative jitter that works.

    Fails with NumericalError where the matrix holds NaN or stays indefinite with a jitter of 1e-6.
    """
    if not len(matrix):
        return np.zeros((0, 0))
    size = float(np.trace(matrix)) / len(matrix)
    if not np.isfinite(size):
        raise NumericalError(f"the {what} matrix holds NaN or infinity; check the scale of the data and the kernel's bounds")
    for jitter in JITTERS:
        shifted = matrix if jitter == 0.0 else matrix + jitter * size * np.eye(len(matrix))
        factor, info = lapack.dpotrf(shifted, lower=1, clean=1)
        if info == 0:
            return factor
    raise NumericalError(
        f"the {what} matrix of size {len(matrix)} is not positive definite, even with a relative jitter of {JITTERS[-1]:g}; "
        "remove duplicated inputs, allow more noise, or choose a rougher kernel"
    )


def cholesky_inverse(factor: np.ndarray) -> np.ndarray:
    """Full symmetric inverse of L L^T from its lower factor."""
    if not len(factor):
        return np.zeros((0, 0))
    inverse, info = lapack.dpotri(factor, lower=1)
    if info != 0:
        raise NumericalError("the inverse of a covariance matrix failed; allow more noise or choose a rougher kernel")
    # dpotri fills the lower triangle and leaves the factor's zeros above it: the other half is its mirror image.
    full = inverse + inverse.T
    diagonal = np.einsum("ii->i", full)  # a view
    diagonal *= 0.5
    return full


def triangular_inverse(factor: np.ndarray) -> np.ndarray:
    """L^-1 of a lower factor, in a third of the time of solving for the columns of I."""
    if not len(factor):
        return np.zeros((0, 0))
    inverse, info = lapack.dtrtri(factor, lower=1)
    if info != 0:
        raise NumericalError(ZERO_ON_DIAGONAL)
    return inverse


def solve_lower(factor: np.ndarray, right: np.ndarray, transposed: bool = False) -> np.ndarray:
    """Solve L x = b, or L^T x = b; an empty b (nothing left to solve for) gives an empty x."""
    if not right.size:
        return np.zeros(right.shape)
    solution, info = lapack.dtrtrs(factor, right, lower=1, trans=1 if transposed else 0)
    if info != 0:
        raise NumericalError(ZERO_ON_DIAGONAL)
    return solution


def solve_cholesky(factor: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve (L L^T) x = b; an empty b (nothing left to solve for) gives an empty x."""
    if not right.size:
        return np.zeros(right.shape)
    solution, info = lapack.dpotrs(factor, right, lower=1)
    if info != 0:
        raise NumericalError("a triangular solve failed; the right side has the wrong shape or holds NaN")
    return solution


def add_square(lower: np.ndarray, root: np.ndarray, weight: float) -> None:
    """Add weight root root^T to the lower triangle of ``lower`` (n, n), in place; columns must be contiguous there."""
    if root.size:
        # BLAS reads columns: the transpose of an array stored row by row is one, without a copy.
        blas.dsyrk(weight, np.ascontiguousarray(root).T, beta=1.0, c=lower, trans=1, lower=1, overwrite_c=1)


def mirrored(lower: np.ndarray) -> np.ndarray:
    """The symmetric matrix whose lower triangle is given; what is above it does not count."""
    below = np.tril(lower)
    full = below + below.T
    diagonal = np.einsum("ii->i", full)  # a view
    diagonal *= 0.5
    return full


def pivoted_cholesky(matrix: np.ndarray, tolerance: float = 1e-12) -> tuple[np.ndarray, np.ndarray]:
    """Pivots (r,) and factor R (n, r) with matrix = R R^T up to ``tolerance`` times the largest diagonal entry.

    R[pivots] is lower triangular, so the pivots are points that carry all others.
    """
    largest = float(np.max(np.diagonal(matrix)))
    if not np.isfinite(largest) or largest <= 0.0:
        raise NumericalError("a prior covariance has no positive variance; check the kernel's hyperparameters")
    # scipy raises no error for rank < n: info > 0 just says the matrix is semidefinite, which is the expected case.
    factor, pivots, rank, _ = lapack.dpstrf(matrix, lower=1, tol=tolerance * largest)
    order = pivots - 1
    lower = np.tril(factor[:, :rank])
    unpivoted = np.empty_like(lower)
    unpivoted[order] = lower
    return order[:rank], unpivoted


@dataclass(frozen=True)
class SchurConditioning:
    """N(0, Sigma) conditioned on F f + e = S, e ~ N(0, noise^2): the paper's Eq. (11) with its derivative.

    D = (F Sigma F^T + noise^2)^-1 F Sigma, A = I - D^T F; then f | S ~ N(D^T S, A Sigma A^T + D^T noise^2 D).
    (The printed A^T Sigma A is a slip; the two agree only for symmetric A.)
    """

    F: np.ndarray  # (R, T)
    A: np.ndarray  # (T, T)
    D: np.ndarray  # (R, T)
    gram_inverse: np.ndarray  # (R, R) inverse of F Sigma F^T + noise^2
    covariance: np.ndarray  # (T, T)

    def pull_back(self, covariance_gradient: np.ndarray, total_gradient: np.ndarray) -> np.ndarray:
        """Gradient with respect to Sigma.

        ``covariance_gradient`` (T, T) is dE/dSigma'; ``total_gradient`` (R, T) is sum_i S(x_i) (dE/dmean'_i)^T, with
        mean'_i = D^T S(x_i). From dSigma' = A dSigma A^T and dD^T = A dSigma F^T (F Sigma F^T + noise^2)^-1.
        """
        through_mean = self.A.T @ total_gradient.T @ self.gram_inverse @ self.F
        return self.A.T @ covariance_gradient @ self.A + 0.5 * (through_mean + through_mean.T)


def schur_condition(Sigma: np.ndarray, F: np.ndarray, noise: np.ndarray) -> SchurConditioning:
    """Condition a (T, T) covariance on the rows F f = S that hold up to the standard deviations ``noise`` (R,)."""
    FS = F @ Sigma
    gram = FS @ F.T + np.diag(noise**2)
    gram_inverse = 1.0 / gram if gram.size == 1 and gram[0, 0] > 0 else _scaled_inverse(gram)
    D = gram_inverse @ FS
    A = np.eye(len(Sigma)) - D.T @ F
    covariance = A @ Sigma @ A.T + D.T @ (noise[:, None] ** 2 * D)
    return SchurConditioning(F, A, D, gram_inverse, 0.5 * (covariance + covariance.T))


def _scaled_inverse(gram: np.ndarray) -> np.ndarray:
    """Inverse of a covariance of rows of very different size (units), which would spoil the factor's accuracy."""
    size = np.sqrt(np.diagonal(gram))
    return cholesky_inverse(cholesky(gram / np.outer(size, size), "law")) / np.outer(size, size)


def symmetric_root(matrix: np.ndarray, tolerance: float = 1e-14) -> np.ndarray:
    """(T, r) factor W with W W^T = matrix for a positive semidefinite matrix, r its numerical rank."""
    values, vectors = np.linalg.eigh(matrix)
    keep = values > tolerance * max(float(values[-1]), np.finfo(float).tiny)
    return vectors[:, keep] * np.sqrt(values[keep])


def spectral_root(matrices: np.ndarray) -> np.ndarray:
    """(..., n, n) roots W with W W^T = M for positive semidefinite M; eigenvalues that round-off made negative are zero."""
    values, vectors = np.linalg.eigh(matrices)
    return vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]


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
    return 0.5 * (matrices + matrices.mT)


NUMBER = 8  # bytes
GIGABYTE = 1e9  # bytes


def dense_bytes(n_points: int, n_outputs: int, n_measured: int) -> float:
    """Peak of one dense evidence with gradient, as measured: a matrix over all entries, 3 over points, and over the
    measured entries 3, or 2.75 where gaps make some of them short-lived copies.
    """
    n_all = n_points * n_outputs
    copies = 3.0 if n_measured == n_all else 2.75
    return NUMBER * (copies * n_measured**2 + n_all**2 + 3.0 * n_points**2)


def kronecker_bytes(n_points: int, n_outputs: int, n_measured: int) -> float:
    """Peak of one Kronecker evidence with gradient, as measured: 7 matrices over points, or 5 and 4.4 numbers for each
    pair of a missing entry with any entry.
    """
    n_all = n_points * n_outputs
    return NUMBER * max(7.0 * n_points**2, 5.0 * n_points**2 + 4.4 * (n_all - n_measured) * n_all)


def available_bytes() -> float:
    """Memory that can still be had without swapping, within a container's limit; infinite where no system tells."""
    found = [_meminfo(), _container_limit()]
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", ()):
        found.append(float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE"))
    return min(found)


def check_memory(n_points: int, n_outputs: int, n_measured: int, n_inputs: int, kronecker: bool = False) -> None:
    """Raise DataError if a fit by dense algebra would not fit into memory, with the figures and the way out."""
    needed = (kronecker_bytes if kronecker else dense_bytes)(n_points, n_outputs, n_measured)
    free = available_bytes()
    if needed <= free:
        return
    if n_inputs == 1:
        ways = "use solver=Markov() with a Matern kernel (memory grows with the rows only), or "
    elif not kronecker and kronecker_bytes(n_points, n_outputs, n_measured) <= free:
        ways = "use solver=Kronecker() (one kernel term, linear laws with constant coefficients), or "
    else:
        ways = "use solver=Vecchia() (memory grows with the rows only), or "
    most = int(n_points * np.sqrt(free / needed))
    raise DataError(
        f"memory: a {'Kronecker' if kronecker else 'dense'} fit of {n_points} rows with {n_measured} measured values needs "
        f"about {needed / GIGABYTE:.1f} GB, {free / GIGABYTE:.1f} GB are available; {ways}use at most {most} rows"
    )


def _meminfo() -> float:
    path = Path("/proc/meminfo")
    lines = path.read_text(encoding="ascii").splitlines() if path.is_file() else []
    return min((float(line.split()[1]) * 1024.0 for line in lines if line.startswith("MemAvailable:")), default=np.inf)


def _container_limit() -> float:
    path = Path("/sys/fs/cgroup/memory.max")
    text = path.read_text(encoding="ascii").strip() if path.is_file() else "max"
    return float(text) if text.isdigit() else float("inf")


# Measured entries up to which one thread is used: with two, 600 take twice as long by the clock on two idle cores.
SMALL_BLAS = 1500


@cache
def _libraries() -> ThreadpoolController:
    # Looking for them takes as long as some fits' algebra; NumPy and SciPy load theirs when imported.
    return ThreadpoolController()


def limited_threads(threads: int | None) -> AbstractContextManager[Any]:
    """Within this context BLAS uses at most so many threads; None = as many as it likes."""
    return _libraries().limit(limits=threads, user_api="blas")


def threads_for(entries: int) -> AbstractContextManager[Any]:
    """Threads that suit dense algebra of so many measured entries: one, or as many as BLAS likes."""
    return limited_threads(1 if entries <= SMALL_BLAS else None)


Point = TypeVar("Point")


def backtrack(step: Callable[[float], Point | None], shortest: float) -> Point | None:
    """The first of 1, 1/2, 1/4, ... of a step that is taken (not None); None where none longer than ``shortest`` is."""
    length = 1.0
    while length > shortest:
        point = step(length)
        if point is not None:
            return point
        length *= 0.5
    return None


def bisected(above: Callable[[Any], Any], low: Any, high: Any, halvings: int) -> tuple[Any, Any]:
    """Ends of what is left of intervals in which ``above`` turns from False to True: numbers, or arrays of one shape."""
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        if np.all((middle == low) | (middle == high)):
            break
        over = above(middle)
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    return low, high


def neighbour_correlation(values: np.ndarray, x: np.ndarray) -> tuple[float, float]:
    """Correlation of values (n,) of neighbouring inputs x (n, D), and its standard error if they are independent.

    Over pairs of neighbours: mean v_i v_j / mean v_i^2, of variance one over their number. Means are not subtracted, so that
    errors of one sign are alike too."""
    if (count := len(values)) <= NEIGHBOURS:
        return 0.0, 1.0
    if x.shape[1] == 1:
        order = np.argsort(x[:, 0], kind="stable")
        pairs = np.concatenate([np.stack([order[lag:], order[:-lag]], axis=1) for lag in range(1, NEIGHBOURS + 1)])
    else:
        near = cKDTree(x).query(x, k=NEIGHBOURS + 1)[1]
        pairs = np.sort(np.stack([np.repeat(np.arange(count), NEIGHBOURS + 1), near.ravel()], axis=1), axis=1)
        numbers = np.unique(pairs[pairs[:, 0] != pairs[:, 1]] @ np.array([count, 1]))  # each pair once
        pairs = np.stack(np.divmod(numbers, count), axis=1)
    mean_square = max(float(np.mean(values**2)), np.finfo(float).tiny)
    return float(np.mean(values[pairs[:, 0]] * values[pairs[:, 1]])) / mean_square, 1.0 / np.sqrt(len(pairs))
