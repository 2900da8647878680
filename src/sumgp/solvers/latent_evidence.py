"""Evidence of outputs that are derivatives of latent functions, and its closed-form gradient.

The covariance of outputs t and u is sum_k s_k^2 sum_ab G_tka G_ukb d^a d'^b k_k, plus polynomials and noise. Entries are
ordered output by output.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from sumgp.errors import NumericalError
from sumgp.numerics import LOG_2PI, cholesky, cholesky_inverse, solve_cholesky
from sumgp.priors import KernelDerivatives, MultitaskPrior


class LatentEvidence:
    """log p(y | theta) for x (N, D), y (N, T) with NaN = missing and a prior over latent functions."""

    def __init__(self, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray) -> None:
        assert prior.latent is not None
        self.prior, self.x = prior, x
        self.n_points, self.n_outputs = y.shape
        self.observed = np.flatnonzero(~np.isnan(y).T.ravel())
        self.targets = (y - prior.latent.offset).T.ravel()[self.observed]
        self._grid = np.ix_(self.observed, self.observed)
        self._output_of = self.observed // self.n_points
        polynomials = prior.latent.polynomials(x).transpose(1, 0, 2).reshape(self.n_points * self.n_outputs, -1)
        self._mean = prior.mean_variance * polynomials[self.observed] @ polynomials[self.observed].T
        self._maps = [prior.latent.orders(task.speaks_of or 0) for task in prior.tasks]

    def value(self, theta: np.ndarray) -> float:
        """log p(y | theta) alone."""
        tables = self._tables(theta)
        return self._factored(theta, [self._values(table, r) for r, table in enumerate(tables)])[0]

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """log p(y | theta) and its gradient with respect to theta."""
        prior, T, N = self.prior, self.n_outputs, self.n_points
        tables = self._tables(theta)
        values = [self._values(table, r) for r, table in enumerate(tables)]
        value, factor, a = self._factored(theta, values)
        G = 0.5 * (np.outer(a, a) - cholesky_inverse(factor))
        blocks = np.zeros((T * N, T * N))
        blocks[self._grid] = G
        blocks = blocks.reshape(T, N, T, N)
        gradient = np.empty(prior.n_parameters)
        for r, ((orders, W), table, Sigma, (ks, ts)) in enumerate(
            zip(self._maps, tables, prior.Sigmas(theta), prior.slices, strict=True)
        ):
            k = prior.tasks[r].speaks_of
            G_S = np.zeros_like(Sigma)
            G_S[k, k] = float(np.sum(values[r][self._grid] * G))
            gradient[ts] = prior.tasks[r].pull_back(theta[ts], G_S)
            by_order = np.einsum("ta,tiuj,ub->abij", W, blocks, W, optimize=True)
            gradient[ks] = Sigma[k, k] * sum(
                np.einsum("pij,ij->p", table.gradient(a, b), by_order[i, j])
                for i, a in enumerate(orders)
                for j, b in enumerate(orders)
            )
        gradient[prior.noise_slice] = prior.noise.pull_back(theta[prior.noise_slice], self._noise_gradient(np.diagonal(G)))
        return value, gradient

    def values_off_the_law(self, theta: np.ndarray, sds: Sequence[float], noises: Sequence[float]) -> np.ndarray:
        """(sds, noises) log p(y | theta) where each output also has a part of its own, of these sds, that obeys no law.

        It varies as the latent functions do; the noise's sd is multiplied by ``noises``. -inf where it cannot be computed.
        """
        tables, scales = self._tables(theta), self.prior.Sigmas(theta)
        kernels = self.prior.unpack(theta).kernels
        by_law = self._mean + sum(
            S[task.speaks_of, task.speaks_of] * self._values(table, r)[self._grid]
            for r, (table, task, S) in enumerate(zip(tables, self.prior.tasks, scales, strict=True))
        )
        own = np.kron(np.eye(self.n_outputs), np.mean([kernel(self.x) for kernel in kernels], axis=0))[self._grid]
        result = np.full((len(sds), len(noises)), -np.inf)
        for i, sd in enumerate(sds):
            for j, factor in enumerate(noises):
                covariance = by_law + sd**2 * own
                covariance[np.diag_indices_from(covariance)] += factor**2 * self._noise(theta)
                with suppress(NumericalError):
                    result[i, j] = self._log_density(cholesky(covariance, "data covariance"))[0]
        return result

    def _tables(self, theta: np.ndarray) -> list[KernelDerivatives]:
        return [KernelDerivatives(kernel, self.x, self.x) for kernel in self.prior.unpack(theta).kernels]

    def _values(self, table: KernelDerivatives, r: int) -> np.ndarray:
        """(TN, TN) covariance of the outputs through term r, for a latent function of variance one."""
        orders, W = self._maps[r]
        stacked = np.array([[table.value(a, b) for b in orders] for a in orders])
        size = self.n_outputs * self.n_points
        return np.einsum("ta,abij,ub->tiuj", W, stacked, W, optimize=True).reshape(size, size)

    def _factored(self, theta: np.ndarray, values: list[np.ndarray]) -> tuple[float, np.ndarray, np.ndarray]:
        """log p(y | theta), the factor of the covariance C, and C^-1 (y - offset)."""
        covariance, prior = self._mean.copy(), self.prior
        for part, task, Sigma in zip(values, prior.tasks, prior.Sigmas(theta), strict=True):
            covariance += Sigma[task.speaks_of, task.speaks_of] * part[self._grid]
        covariance[np.diag_indices_from(covariance)] += self._noise(theta)
        factor = cholesky(covariance, "data covariance")
        value, a = self._log_density(factor)
        return value, factor, a

    def _log_density(self, factor: np.ndarray) -> tuple[float, np.ndarray]:
        a = solve_cholesky(factor, self.targets)
        log_det = float(np.sum(np.log(np.diagonal(factor))))
        return -0.5 * float(self.targets @ a) - log_det - 0.5 * len(a) * LOG_2PI, a

    def _noise(self, theta: np.ndarray) -> np.ndarray:
        """Variances of the measured entries."""
        variances = self.prior.noise.variances(theta[self.prior.noise_slice])
        full = np.repeat(variances, self.n_points) if variances.ndim == 1 else variances.T.ravel()
        return full[self.observed]

    def _noise_gradient(self, diagonal: np.ndarray) -> np.ndarray:
        if self.prior.noise.row_factor is not None:
            full = np.zeros(self.n_outputs * self.n_points)
            full[self.observed] = diagonal
            return full.reshape(self.n_outputs, self.n_points).T
        return np.bincount(self._output_of, diagonal, self.n_outputs)
