"""Dense linear algebra with its derivatives: factors, Schur conditioning, matrix exponential.

Everything here works on small symmetric matrices in float64 and raises NumericalError, never LinAlgError.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import blas, lapack

from sumgp.errors import NumericalError

JITTERS = (0.0, 1e-12, 1e-10, 1e-8, 1e-6)


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


def solve_lower(factor: np.ndarray, right: np.ndarray, transposed: bool = False) -> np.ndarray:
    """Solve L x = b, or L^T x = b; an empty b (nothing left to solve for) gives an empty x."""
    if not right.size:
        return np.zeros(right.shape)
    solution, info = lapack.dtrtrs(factor, right, lower=1, trans=1 if transposed else 0)
    if info != 0:
        raise NumericalError("a triangular factor has a zero on its diagonal; allow more noise or choose a rougher kernel")
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
    lower = np.tril(factor)[:, :rank]
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


@dataclass(frozen=True)
class SymmetricExponential:
    """expm(S) of a symmetric S, with the adjoint of its derivative (Daleckii-Krein)."""

    value: np.ndarray
    values: np.ndarray  # (T,) eigenvalues of S
    vectors: np.ndarray

    @cached_property
    def divided(self) -> np.ndarray:
        """(T, T) divided differences of exp at the eigenvalues; only gradients need them."""
        values, exponentials = self.values, np.exp(self.values)
        gap = values[:, None] - values[None, :]
        close = np.abs(gap) < 1e-8
        safe = np.where(close, 1.0, gap)
        middle = np.exp(0.5 * (values[:, None] + values[None, :]))
        return np.where(close, middle, (exponentials[:, None] - exponentials) / safe)

    def pull_back(self, gradient: np.ndarray) -> np.ndarray:
        """Gradient with respect to S from the symmetric gradient with respect to expm(S)."""
        U = self.vectors
        return U @ (self.divided * (U.T @ gradient @ U)) @ U.T


def symmetric_exponential(S: np.ndarray) -> SymmetricExponential:
    """Matrix exponential through the eigendecomposition of S."""
    values, U, info = lapack.dsyevd(S)
    if info != 0:
        raise NumericalError("the eigenvalues of a task covariance did not converge; check the scale of the data")
    return SymmetricExponential((U * np.exp(values)) @ U.T, values, U)
