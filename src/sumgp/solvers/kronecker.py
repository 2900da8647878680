"""Evidence and gradient through two small eigendecompositions: O(N^3 + T^3), and O(N^2 T) more for each missing entry.

With Sigma (x) K + diag(d) (x) I and whitened outputs d^-1/2 Sigma d^-1/2 = U L U^T, K = V M V^T, the covariance of
complete data is diagonal in U (x) V. Only traces of its inverse are needed, so no eigenvector is ever differentiated.
Free constants of the outputs (mean shape "identity") are T further columns: by Woodbury C^-1 = C0^-1 - Z Z^T, and the
gradient (a a^T + Z Z^T - C0^-1) / 2 just has more vectors in it. Missing entries u are vectors of the same kind: with
P = C^-1 and P_uu = L L^T, the inverse for the measured entries alone is P - Z Z^T with Z = P_:u L^-T, whatever value
the missing ones are given, and the determinant gains det P_uu.
"""

from __future__ import annotations

import numpy as np

from sumgp.numerics import LOG_2PI, cholesky, solve_lower
from sumgp.priors import KernelOnPoints, MultitaskPrior

MOST_MISSING = 0.2  # share of the entries up to which the Kronecker form is measured to be faster than one dense factor


def has_kronecker_form(prior: MultitaskPrior) -> bool:
    """True if the covariance of complete data has the Kronecker form: one term, one noise variance per output."""
    rows_alike = prior.noise.known is None and prior.noise.row_factor is None and prior.latent is None
    return len(prior.kernels) == 1 and rows_alike and not prior.noise.closed


def fits_kronecker(prior: MultitaskPrior, y: np.ndarray) -> bool:
    """True if the Kronecker form is exact and few enough entries are missing for it to be the faster one."""
    return has_kronecker_form(prior) and float(np.isnan(y).mean()) <= MOST_MISSING


class KroneckerEvidence:
    """log p(y | theta) for y (N, T) with NaN = missing, given the law where the prior has one."""

    def __init__(self, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray) -> None:
        self.prior = prior
        self.kernel = KernelOnPoints(prior.kernels[0], x)
        self.y = y
        self.missing = np.nonzero(np.isnan(y))

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """log p(y | theta) and its gradient with respect to theta."""
        prior = self.prior
        ks, ts = prior.slices[0]
        K, dK = self.kernel.matrix_and_gradient(theta[ks])
        if prior.mean_shape == "task":
            K = K + prior.mean_variance
        Sigma = prior.Sigmas(theta)[0]
        conditioning = prior.conditioned(Sigma)
        residual = self.y
        if conditioning is not None:
            Sigma = conditioning.covariance
            residual = residual - prior.law.totals @ conditioning.D  # type: ignore[union-attr]
        residual = np.where(np.isnan(residual), 0.0, residual)
        d = prior.noise.variances(theta[prior.noise_slice])
        root = np.sqrt(d)
        lam, U = np.linalg.eigh(Sigma / np.outer(root, root))
        mu, V = np.linalg.eigh(K)
        lam, mu = np.maximum(lam, 0.0), np.maximum(mu, 0.0)
        inverse = 1.0 / (1.0 + mu[:, None] * lam)  # (N, T)
        Ud = U / root[:, None]
        rotated = V.T @ residual @ Ud
        vectors = [V @ (rotated * inverse) @ Ud.T]  # C0^-1 residual, (N, T)
        value = -0.5 * float(np.sum(rotated**2 * inverse)) + 0.5 * float(np.sum(np.log(inverse)))
        value += -0.5 * len(K) * float(np.sum(np.log(d))) - 0.5 * residual.size * LOG_2PI
        if prior.mean_shape == "identity":
            value += self._free_constants(vectors, V, inverse, Ud)
        if len(self.missing[0]):
            value += self._gaps(vectors, V, inverse, Ud)
        stacked = np.stack(vectors)  # (1 + T if constants are free + missing entries, N, T)
        G_K = 0.5 * (np.tensordot(stacked @ Sigma, stacked, axes=([0, 2], [0, 2])) - (V * (inverse @ lam)) @ V.T)
        G_S = 0.5 * (
            np.tensordot(stacked, np.tensordot(K, stacked, axes=(1, 1)), axes=([0, 1], [1, 0]))
            - (Ud * (mu @ inverse)) @ Ud.T
        )
        if conditioning is not None:
            G_S = conditioning.pull_back(G_S, prior.law.totals.T @ vectors[0])  # type: ignore[union-attr]
        G_d = 0.5 * (np.sum(stacked**2, axis=(0, 1)) - (Ud**2) @ inverse.sum(axis=0))
        gradient = np.empty(prior.n_parameters)
        gradient[ks] = np.tensordot(dK, G_K, axes=([1, 2], [0, 1]))
        gradient[ts] = prior.tasks[0].pull_back(theta[ts], G_S)
        gradient[prior.noise_slice] = prior.noise.pull_back(theta[prior.noise_slice], G_d)
        return value, gradient

    def value(self, theta: np.ndarray) -> float:
        """The value alone; the gradient costs little beside it."""
        return self(theta)[0]

    def _free_constants(self, vectors: list[np.ndarray], V: np.ndarray, inverse: np.ndarray, Ud: np.ndarray) -> float:
        """Add a free constant per output: C0^-1 r becomes C^-1 r, the columns of Z are appended; the change in value."""
        T = self.y.shape[1]
        ones = V.sum(axis=0)  # V^T 1
        # C0^-1 (1 (x) e_t) for each output t, as (N, T) matrices.
        columns = (((V * ones) @ inverse)[None] * Ud[:, None, :]) @ Ud.T
        middle = np.eye(T) / self.prior.mean_variance + columns.sum(axis=1)
        factor = cholesky(0.5 * (middle + middle.T), "constants")
        Z = solve_lower(factor, columns.reshape(T, -1)).reshape(columns.shape)
        projection = solve_lower(factor, vectors[0].sum(axis=0))  # L^-1 H^T C0^-1 r
        vectors[0] = vectors[0] - np.tensordot(projection, Z, axes=1)
        vectors.extend(Z)
        log_determinant = 2.0 * float(np.sum(np.log(np.diagonal(factor)))) + T * float(np.log(self.prior.mean_variance))
        return 0.5 * float(projection @ projection) - 0.5 * log_determinant

    def _gaps(self, vectors: list[np.ndarray], V: np.ndarray, inverse: np.ndarray, Ud: np.ndarray) -> float:
        """Take the missing entries out: C^-1 r becomes that of the measured ones, Z is appended; the change in value."""
        rows, outputs = self.missing
        N, T = self.y.shape
        m = len(rows)
        # C0^-1 e_u for each missing entry u, as (N, T) matrices.
        weights = V[rows].T[:, :, None] * inverse[:, None, :] * Ud[outputs]
        columns = (V @ weights.reshape(N, m * T)).reshape(N, m, T).transpose(1, 0, 2) @ Ud.T
        if len(vectors) > 1:
            free = np.stack(vectors[1:])
            columns = columns - np.tensordot(free[:, rows, outputs], free, axes=(0, 0))
        middle = columns[:, rows, outputs]
        factor = cholesky(0.5 * (middle + middle.T), "missing entries")
        Z = solve_lower(factor, columns.reshape(m, -1)).reshape(columns.shape)
        projection = solve_lower(factor, vectors[0][rows, outputs])
        vectors[0] = vectors[0] - np.tensordot(projection, Z, axes=1)
        vectors.extend(Z)
        return 0.5 * float(projection @ projection) - float(np.sum(np.log(np.diagonal(factor)))) + 0.5 * m * LOG_2PI
