"""Evidence and gradient for complete data through two small eigendecompositions: O(N^3 + T^3).

With Sigma (x) K + diag(d) (x) I and whitened outputs d^-1/2 Sigma d^-1/2 = U L U^T, K = V M V^T, the covariance is
diagonal in U (x) V. Only traces of its inverse are needed, so no eigenvector is ever differentiated.
"""

from __future__ import annotations

import numpy as np

from sumgp.priors.kernels import KernelOnPoints
from sumgp.priors.multitask import MultitaskPrior
from sumgp.solvers.dense import LOG_2PI


def fits_kronecker(prior: MultitaskPrior, y: np.ndarray) -> bool:
    """True if the Kronecker form is exact: complete data, one term, one noise variance per output."""
    return (
        not np.isnan(y).any()
        and len(prior.kernels) == 1
        and prior.mean_shape == "task"
        and prior.noise.known is None
        and not prior.noise.closed
    )


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
        A = V @ (rotated * inverse) @ Ud.T  # C^-1 residual, (N, T)
        value = -0.5 * float(np.sum(rotated**2 * inverse)) + 0.5 * float(np.sum(np.log(inverse)))
        value += -0.5 * len(K) * float(np.sum(np.log(d))) - 0.5 * residual.size * LOG_2PI
        G_K = 0.5 * (A @ Sigma @ A.T - (V * (inverse @ lam)) @ V.T)
        G_S = 0.5 * (A.T @ K @ A - (Ud * (mu @ inverse)) @ Ud.T)
        if conditioning is not None:
            G_S = conditioning.pull_back(G_S, prior.law.totals.T @ A)  # type: ignore[union-attr]
        G_d = 0.5 * (np.sum(A**2, axis=0) - (Ud**2) @ inverse.sum(axis=0))
        gradient = np.empty(prior.n_parameters)
        gradient[ks] = np.tensordot(dK, G_K, axes=([1, 2], [0, 1]))
        gradient[ts] = prior.tasks[0].pull_back(theta[ts], G_S)
        gradient[prior.noise_slice] = prior.noise.pull_back(theta[prior.noise_slice], G_d)
        return value, gradient
