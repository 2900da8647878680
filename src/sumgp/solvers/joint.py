"""Evidence of the data given a linear law at every training input, for any F(x) and any sum of terms (Algorithm 2).

log p(y | law) = log p(y, law) - log p(law): the law's rows are measurements without noise of linear combinations of all
columns (outputs, unknown constants, soft errors). One dense factor of all of them; exact, and needed only where the
task-level short cut does not apply.
"""

from __future__ import annotations

import numpy as np

from sumgp.linalg import cholesky, cholesky_inverse, solve_cholesky
from sumgp.priors.kernels import KernelOnPoints
from sumgp.priors.multitask import MultitaskPrior
from sumgp.solvers.dense import LOG_2PI

LAW_JITTER = 1e-10  # variance of a law row relative to its prior variance


class JointEvidence:
    """log p(y | theta, law) with ``rows`` (N, R, C) f = ``totals`` (N, R) in unit-free columns; zero rows do not hold."""

    def __init__(self, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray, rows: np.ndarray, totals: np.ndarray) -> None:
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
        self.n_data = len(observed)
        self.H = np.vstack([pick, law])
        self.targets = np.concatenate([y.T.ravel()[observed], totals[live[:, 0], live[:, 1]]])

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """log p(y | theta, law) and its gradient with respect to theta."""
        prior = self.prior
        evaluated = [k.matrix_and_gradient(theta[s]) for k, (s, _) in zip(self.kernels, prior.slices, strict=True)]
        Sigmas = self._widened(prior.Sigmas(theta))
        prior_covariance = self._prior_covariance([K for K, _ in evaluated], Sigmas)
        C = self.H @ prior_covariance @ self.H.T
        variances = prior.noise.variances(theta[prior.noise_slice])
        full = np.repeat(variances, self.N) if variances.ndim == 1 else variances.T.ravel()
        diagonal = np.arange(len(C))
        data = diagonal[: self.n_data]
        C[data, data] += full[self.observed]
        laws = diagonal[self.n_data :]
        C[laws, laws] *= 1.0 + LAW_JITTER
        value, G = _log_normal(C, self.targets)
        law_value, law_G = _log_normal(C[self.n_data :, self.n_data :], self.targets[self.n_data :])
        G[self.n_data :, self.n_data :] -= law_G
        noise_gradient = np.zeros(self.T * self.N)
        noise_gradient[self.observed] = np.diagonal(G)[: self.n_data]
        G[laws, laws] *= 1.0 + LAW_JITTER
        blocks = (self.H.T @ G @ self.H).reshape(self.C, self.N, self.C, self.N)
        gradient = np.empty(prior.n_parameters)
        T = self.T
        for r, ((K, dK), Sigma, (ks, ts)) in enumerate(zip(evaluated, Sigmas, prior.slices, strict=True)):
            gradient[ks] = np.tensordot(dK, np.tensordot(Sigma, blocks, axes=([0, 1], [0, 2])), axes=([1, 2], [0, 1]))
            shift = prior.mean_variance if r == 0 and prior.mean_shape == "task" else 0.0
            G_S = np.tensordot(blocks[:T, :, :T], K + shift, axes=([1, 3], [0, 1]))
            gradient[ts] = prior.tasks[r].pull_back(theta[ts], G_S)
        gradient[prior.noise_slice] = prior.noise.pull_back(
            theta[prior.noise_slice], noise_gradient.reshape(T, self.N).sum(axis=1)
        )
        return value - law_value, gradient

    def _widened(self, Sigmas: tuple[np.ndarray, ...]) -> list[np.ndarray]:
        """Task covariances over all columns: soft errors vary with the first term."""
        wide = []
        for r, Sigma in enumerate(Sigmas):
            full = np.zeros((self.C, self.C))
            full[: self.T, : self.T] = Sigma
            if r == 0 and len(self.prior.soft):
                start = self.C - len(self.prior.soft)
                full[range(start, self.C), range(start, self.C)] = self.prior.soft
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


def _log_normal(C: np.ndarray, target: np.ndarray) -> tuple[float, np.ndarray]:
    """log N(target | 0, C) and its gradient (a a^T - C^-1) / 2 with respect to C."""
    if not len(target):
        return 0.0, np.zeros((0, 0))
    factor = cholesky(C, "joint covariance of data and law")
    a = solve_cholesky(factor, target)
    value = -0.5 * float(target @ a) - float(np.sum(np.log(np.diagonal(factor)))) - 0.5 * len(a) * LOG_2PI
    return value, 0.5 * (np.outer(a, a) - cholesky_inverse(factor))
