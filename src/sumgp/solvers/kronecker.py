"""Evidence and gradient for complete data through two small eigendecompositions: O(N^3 + T^3).

With Sigma (x) K + diag(d) (x) I and whitened outputs d^-1/2 Sigma d^-1/2 = U L U^T, K = V M V^T, the covariance is
diagonal in U (x) V. Only traces of its inverse are needed, so no eigenvector is ever differentiated. Free constants of
the outputs (mean shape "identity") are T further columns: by Woodbury C^-1 = C0^-1 - Z Z^T, and the gradient
(a a^T + Z Z^T - C0^-1) / 2 just has more vectors in it.
"""

from __future__ import annotations

import numpy as np

from sumgp.linalg import cholesky, solve_lower
from sumgp.priors.kernels import KernelOnPoints
from sumgp.priors.multitask import MultitaskPrior
from sumgp.solvers.dense import LOG_2PI


def fits_kronecker(prior: MultitaskPrior, y: np.ndarray) -> bool:
    """True if the Kronecker form is exact: complete data, one term, one noise variance per output."""
    return not np.isnan(y).any() and len(prior.kernels) == 1 and prior.noise.known is None and not prior.noise.closed


class KroneckerEvidence:
    """log p(y | theta) for complete y (N, T), given the law where the prior has one."""

    def __init__(self, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray) -> None:
        self.prior = prior
        self.kernel = KernelOnPoints(prior.kernels[0], x)
        self.y = y

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
        stacked = np.stack(vectors)  # (1 or 1 + T, N, T)
        G_K = 0.5 * (np.tensordot(stacked @ Sigma, stacked, axes=([0, 2], [0, 2])) - (V * (inverse @ lam)) @ V.T)
        G_S = 0.5 * (np.tensordot(stacked, K @ stacked, axes=([0, 1], [0, 1])) - (Ud * (mu @ inverse)) @ Ud.T)
        if conditioning is not None:
            G_S = conditioning.pull_back(G_S, prior.law.totals.T @ vectors[0])  # type: ignore[union-attr]
        G_d = 0.5 * (np.sum(stacked**2, axis=(0, 1)) - (Ud**2) @ inverse.sum(axis=0))
        gradient = np.empty(prior.n_parameters)
        gradient[ks] = np.tensordot(dK, G_K, axes=([1, 2], [0, 1]))
        gradient[ts] = prior.tasks[0].pull_back(theta[ts], G_S)
        gradient[prior.noise_slice] = prior.noise.pull_back(theta[prior.noise_slice], G_d)
        return value, gradient

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
