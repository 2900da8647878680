"""Evidence of outputs that are derivatives of latent functions, and its closed-form gradient.

The covariance of outputs t and u is sum_k s_k^2 sum_ab G_tka G_ukb d^a d'^b k_k, plus polynomials and noise. Entries are
ordered output by output.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from sumgp.errors import NumericalError
from sumgp.numerics import cholesky, cholesky_inverse
from sumgp.priors import KernelDerivatives, MultitaskPrior
from sumgp.solvers.dense import Entries, log_density


class LatentEvidence:
    """log p(y | theta) for x (N, D), y (N, T) with NaN = missing and a prior over latent functions."""

    def __init__(self, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray) -> None:
        assert prior.latent is not None
        self.prior, self.x = prior, x
        self.entries = Entries(~np.isnan(y))
        self.targets = self.entries.vector(y - prior.latent.offset)
        polynomials = prior.latent.polynomials(x).transpose(1, 0, 2).reshape(y.size, -1)[self.entries.observed]
        self._mean = prior.mean_variance * polynomials @ polynomials.T
        self._maps = [prior.latent.orders(task.speaks_of or 0) for task in prior.tasks]

    def value(self, theta: np.ndarray) -> float:
        """log p(y | theta) alone."""
        tables = self._tables(theta)
        return self._factored(theta, [self._values(table, r) for r, table in enumerate(tables)])[0]

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """log p(y | theta) and its gradient with respect to theta."""
        prior = self.prior
        tables = self._tables(theta)
        values = [self._values(table, r) for r, table in enumerate(tables)]
        value, factor, a = self._factored(theta, values)
        G = 0.5 * (np.outer(a, a) - cholesky_inverse(factor))
        blocks = self.entries.blocks(G)
        gradient = np.empty(prior.n_parameters)
        for r, ((orders, W), table, Sigma, (ks, ts)) in enumerate(
            zip(self._maps, tables, prior.Sigmas(theta), prior.slices, strict=True)
        ):
            k = prior.tasks[r].speaks_of
            G_S = np.zeros_like(Sigma)
            G_S[k, k] = float(np.sum(self.entries.matrix(values[r]) * G))
            gradient[ts] = prior.tasks[r].pull_back(theta[ts], G_S)
            by_order = np.einsum("ta,tiuj,ub->abij", W, blocks, W, optimize=True)
            gradient[ks] = Sigma[k, k] * sum(
                np.einsum("pij,ij->p", table.gradient(a, b), by_order[i, j])
                for i, a in enumerate(orders)
                for j, b in enumerate(orders)
            )
        by_noise = self.entries.noise_gradient(np.diagonal(G), prior.noise.row_factor is not None)
        gradient[prior.noise_slice] = prior.noise.pull_back(theta[prior.noise_slice], by_noise)
        return value, gradient

    def values_off_the_law(self, theta: np.ndarray, sds: Sequence[float], noises: Sequence[float]) -> np.ndarray:
        """(sds, noises) log p(y | theta) where each output also has a part of its own, of these sds, that obeys no law.

        It varies as the latent functions do; the noise's sd is multiplied by ``noises``. -inf where it cannot be computed.
        """
        tables, scales = self._tables(theta), self.prior.Sigmas(theta)
        kernels = self.prior.unpack(theta).kernels
        by_law = self._mean + sum(
            S[task.speaks_of, task.speaks_of] * self.entries.matrix(self._values(table, r))
            for r, (table, task, S) in enumerate(zip(tables, self.prior.tasks, scales, strict=True))
        )
        alone = np.mean([kernel(self.x) for kernel in kernels], axis=0)
        own = self.entries.matrix(np.kron(np.eye(self.entries.n_outputs), alone))
        result = np.full((len(sds), len(noises)), -np.inf)
        for i, sd in enumerate(sds):
            for j, factor in enumerate(noises):
                covariance = by_law + sd**2 * own
                covariance[np.diag_indices_from(covariance)] += factor**2 * self._noise(theta)
                with suppress(NumericalError):
                    result[i, j] = log_density(cholesky(covariance, "data covariance"), self.targets)[0]
        return result

    def _tables(self, theta: np.ndarray) -> list[KernelDerivatives]:
        return [KernelDerivatives(kernel, self.x, self.x) for kernel in self.prior.unpack(theta).kernels]

    def _values(self, table: KernelDerivatives, r: int) -> np.ndarray:
        """(TN, TN) covariance of the outputs through term r, for a latent function of variance one."""
        orders, W = self._maps[r]
        stacked = np.array([[table.value(a, b) for b in orders] for a in orders])
        size = self.entries.n_outputs * self.entries.n_points
        return np.einsum("ta,abij,ub->tiuj", W, stacked, W, optimize=True).reshape(size, size)

    def _factored(self, theta: np.ndarray, values: list[np.ndarray]) -> tuple[float, np.ndarray, np.ndarray]:
        """log p(y | theta), the factor of the covariance C, and C^-1 (y - offset)."""
        covariance, prior = self._mean.copy(), self.prior
        for part, task, Sigma in zip(values, prior.tasks, prior.Sigmas(theta), strict=True):
            covariance += Sigma[task.speaks_of, task.speaks_of] * self.entries.matrix(part)
        covariance[np.diag_indices_from(covariance)] += self._noise(theta)
        factor = cholesky(covariance, "data covariance")
        value, a = log_density(factor, self.targets)
        return value, factor, a

    def _noise(self, theta: np.ndarray) -> np.ndarray:
        """Variances of the measured entries."""
        return self.entries.noise(self.prior.noise.variances(theta[self.prior.noise_slice]))
