"""Evidence of the data given a linear law at every training input, for any F(x) and any sum of terms (Algorithm 2).

The law's rows are measurements without noise of linear combinations of all columns (outputs, unknown constants, soft
errors). The prior is conditioned on them first, then the density of the data is taken; needed only where the task-level
short cut does not apply.
"""

from __future__ import annotations

import numpy as np

from sumgp.numerics import check_memory, cholesky, cholesky_inverse, pivoted_cholesky, solve_cholesky
from sumgp.priors import KernelOnPoints, MultitaskPrior
from sumgp.solvers.dense import LOG_2PI

REPEATED = 1e-11  # a row whose variance given the others is smaller than this share of its own repeats them


class JointEvidence:
    """log p(y | theta, law) with ``rows`` (N, R, C) f = ``totals`` (N, R) in unit-free columns; zero rows do not hold."""

    def __init__(self, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray, rows: np.ndarray, totals: np.ndarray) -> None:
        check_memory(y.shape[0], y.shape[1], int((~np.isnan(y)).sum()), x.shape[1])
        self.prior = prior
        self.kernels = [KernelOnPoints(kernel, x) for kernel in prior.kernels]
        self.N, self.T = y.shape
        self.C = prior.n_outputs + len(prior.unknown) + len(prior.soft)
        observed = np.flatnonzero((~np.isnan(y)).T.ravel())
        self.observed = observed
        live = np.argwhere(np.any(rows != 0, axis=2))
        law = np.zeros((len(live), self.C * self.N))
        for k, (i, r) in enumerate(live):
            law[k, np.arange(self.C) * self.N + i] = rows[i, r]
        pick = np.zeros((len(observed), self.C * self.N))
        pick[np.arange(len(observed)), observed] = 1.0
        self.H_data, self.H_law = pick, law
        self.y, self.S = y.T.ravel()[observed], totals[live[:, 0], live[:, 1]]

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """log p(y | theta, law) and its gradient with respect to theta.

        With P the prior covariance and B = C_yl C_ll^-1, the data given the law have mean B S and covariance
        H' P H'^T + noise, H' = H_y - B H_l; then dE/dP = H'^T G H' + H'^T a (C_ll^-1 S)^T H_l, made symmetric.
        """
        prior = self.prior
        evaluated = [k.matrix_and_gradient(theta[s]) for k, (s, _) in zip(self.kernels, prior.slices, strict=True)]
        Sigmas = self._widened(prior.Sigmas(theta))
        P = self._prior_covariance([K for K, _ in evaluated], Sigmas)
        H, mean, law_weights = self._given_law(P)
        variances = prior.noise.variances(theta[prior.noise_slice])
        noise = (np.repeat(variances, self.N) if variances.ndim == 1 else variances.T.ravel())[self.observed]
        value, G, a = _log_normal(H @ P @ H.T + np.diag(noise), self.y - mean)
        noise_gradient = np.zeros(self.T * self.N)
        noise_gradient[self.observed] = np.diagonal(G)
        G_P = H.T @ G @ H
        through_mean = 0.5 * np.outer(H.T @ a, law_weights)
        blocks = (G_P + through_mean + through_mean.T).reshape(self.C, self.N, self.C, self.N)
        gradient = self._on_parameters(theta, evaluated, Sigmas, blocks)
        per_output = noise_gradient.reshape(self.T, self.N).sum(axis=1)
        gradient[prior.noise_slice] = prior.noise.pull_back(theta[prior.noise_slice], per_output)
        return value, gradient

    def _given_law(self, P: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """H' (measured, C N), the mean B S of the data, and H_l^T C_ll^-1 S; rows that repeat others are left out."""
        if not len(self.S):
            return self.H_data, np.zeros(len(self.y)), np.zeros(len(P))
        size = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", self.H_law, P, self.H_law, optimize=True), 1e-300))
        H, S = self.H_law / size[:, None], self.S / size
        rows, _ = pivoted_cholesky(H @ P @ H.T, REPEATED)
        H, S = H[rows], S[rows]
        HP = H @ P
        factor = cholesky(HP @ H.T, "law")
        B = solve_cholesky(factor, HP @ self.H_data.T).T
        return self.H_data - B @ H, B @ S, H.T @ solve_cholesky(factor, S)

    def _on_parameters(self, theta: np.ndarray, evaluated: list, Sigmas: list[np.ndarray], blocks: np.ndarray) -> np.ndarray:
        """Gradient of kernels and task covariances from the gradient (C, N, C, N) with respect to the prior covariance."""
        prior, T = self.prior, self.T
        gradient = np.zeros(prior.n_parameters)
        for r, ((K, dK), Sigma, (ks, ts)) in enumerate(zip(evaluated, Sigmas, prior.slices, strict=True)):
            gradient[ks] = np.tensordot(dK, np.tensordot(Sigma, blocks, axes=([0, 1], [0, 2])), axes=([1, 2], [0, 1]))
            shift = prior.mean_variance if r == 0 and prior.mean_shape == "task" else 0.0
            G_S = np.tensordot(blocks[:T, :, :T], K + shift, axes=([1, 3], [0, 1]))
            gradient[ts] = prior.tasks[r].pull_back(theta[ts], G_S)
        return gradient

    def _widened(self, Sigmas: tuple[np.ndarray, ...]) -> list[np.ndarray]:
        """Task covariances over all columns: soft errors vary with the first term."""
        wide = []
        for r, Sigma in enumerate(Sigmas):
            full = np.zeros((self.C, self.C))
            full[: self.T, : self.T] = Sigma
            if r == 0 and len(self.prior.soft):
                start = self.C - len(self.prior.soft)
                full[range(start, self.C), range(start, self.C)] = self.prior.soft * self.prior.soft_share
            wide.append(full)
        return wide

    def _prior_covariance(self, Ks: list[np.ndarray], Sigmas: list[np.ndarray]) -> np.ndarray:
        total = np.zeros((self.C, self.N, self.C, self.N))
        prior = self.prior
        for r, (K, Sigma) in enumerate(zip(Ks, Sigmas, strict=True)):
            shifted = K + prior.mean_variance if r == 0 and prior.mean_shape == "task" else K
            total += Sigma[:, None, :, None] * shifted[None, :, None, :]
        if prior.mean_shape == "identity":
            for t in range(self.T):
                total[t, :, t, :] += prior.mean_variance
        for i, variance in enumerate(prior.unknown):
            total[self.T + i, :, self.T + i, :] += variance
        return total.reshape(self.C * self.N, self.C * self.N)


def _log_normal(C: np.ndarray, target: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """log N(target | 0, C), its gradient (a a^T - C^-1) / 2 with respect to C, and a = C^-1 target."""
    factor = cholesky(C, "data covariance given the law")
    a = solve_cholesky(factor, target)
    value = -0.5 * float(target @ a) - float(np.sum(np.log(np.diagonal(factor)))) - 0.5 * len(a) * LOG_2PI
    return value, 0.5 * (np.outer(a, a) - cholesky_inverse(factor)), a
