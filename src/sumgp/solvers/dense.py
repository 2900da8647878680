"""Exact log evidence: dense, in Kronecker form, and which of them serves.

Evidence of the multitask GP and its closed-form gradient by one dense Cholesky factor.
Entries are ordered output by output (Sigma (x) K), so that the covariance consists of N x N blocks Sigma_tu K.

Evidence and gradient through two small eigendecompositions: O(N^3 + T^3), and O(N^2 T) more for each missing entry.
With Sigma (x) K + diag(d) (x) I and whitened outputs d^-1/2 Sigma d^-1/2 = U L U^T, K = V M V^T, the covariance of
complete data is diagonal in U (x) V. Only traces of its inverse are needed, so no eigenvector is ever differentiated.
Free constants of the outputs (mean shape "identity") are T further columns: by Woodbury C^-1 = C0^-1 - Z Z^T, and the
gradient (a a^T + Z Z^T - C0^-1) / 2 just has more vectors in it. Missing entries u are vectors of the same kind: with
P = C^-1 and P_uu = L L^T, the inverse for the measured entries alone is P - Z Z^T with Z = P_:u L^-T, whatever value
the missing ones are given, and the determinant gains det P_uu.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sumgp.errors import DataError
from sumgp.numerics import check_memory, cholesky, cholesky_inverse, solve_cholesky, solve_lower
from sumgp.priors import KernelOnPoints, MultitaskPrior, SchurConditioning, nullspace_basis
from sumgp.solvers.markov import LawRows, MarkovObjectiveEvidence

LOG_2PI = float(np.log(2.0 * np.pi))
LARGE_BLOCKS = 64  # points


_Tasks = tuple[tuple[np.ndarray, ...], SchurConditioning | None]


class DenseEvidence:
    """log p(y | theta) for y (N, T) with NaN = missing, given the law where the prior has one."""

    def __init__(self, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray) -> None:
        self.prior = prior
        self.kernels = [KernelOnPoints(kernel, x) for kernel in prior.kernels]
        self.n_points, self.n_outputs = y.shape
        measured = ~np.isnan(y) if not prior.noise.closed else _independent_entries(y, prior.law.F)  # type: ignore[union-attr]
        self.observed = np.flatnonzero(measured.T.ravel())
        self.complete = len(self.observed) == y.size
        self.targets = y.T.ravel()[self.observed]
        self._grid = None if self.complete else np.ix_(self.observed, self.observed)
        self._diagonal = np.arange(len(self.observed))
        self._output_of = self.observed // self.n_points
        self._projector = None
        if prior.noise.closed:
            basis = nullspace_basis(prior.law.F)  # type: ignore[union-attr]
            self._projector = basis @ basis.T

    def value(self, theta: np.ndarray) -> float:
        """log p(y | theta) alone."""
        Ks = [k.matrix_and_gradient(theta[s])[0] for k, (s, _) in zip(self.kernels, self.prior.slices, strict=True)]
        return self._factored(theta, Ks)[0]

    def _factored(self, theta: np.ndarray, Ks: list[np.ndarray]) -> tuple[float, np.ndarray, np.ndarray, _Tasks]:
        """log p(y | theta), the factor of the covariance C, C^-1 (y - mean), and the task covariances used."""
        prior = self.prior
        Sigmas = prior.Sigmas(theta)
        conditioning = prior.conditioned(Sigmas[0])
        used = Sigmas if conditioning is None else (conditioning.covariance,)
        covariance = self._covariance(Ks, used)
        self._add_noise(covariance, prior.noise.variances(theta[prior.noise_slice]))
        factor = cholesky(covariance, "data covariance")
        residual = self.targets
        if conditioning is not None:
            mean = prior.law.totals @ conditioning.D  # type: ignore[union-attr]
            residual = residual - mean.T.ravel()[self.observed]
        a = solve_cholesky(factor, residual)
        value = -0.5 * float(residual @ a) - float(np.sum(np.log(np.diagonal(factor)))) - 0.5 * len(a) * LOG_2PI
        return value, factor, a, (used, conditioning)

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """log p(y | theta) and its gradient with respect to theta."""
        prior, T, N = self.prior, self.n_outputs, self.n_points
        evaluated = [k.matrix_and_gradient(theta[s]) for k, (s, _) in zip(self.kernels, prior.slices, strict=True)]
        value, factor, a, (used, conditioning) = self._factored(theta, [K for K, _ in evaluated])
        G = np.outer(a, a)
        G -= cholesky_inverse(factor)
        G *= 0.5
        blocks = self._scatter(G).reshape(T, N, T, N)
        gradient = np.empty(prior.n_parameters)
        for r, ((K, dK), Sigma, (ks, ts)) in enumerate(zip(evaluated, used, prior.slices, strict=True)):
            G_K = against_tasks(Sigma, blocks)
            gradient[ks] = np.einsum("pij,ij->p", dK, G_K)
            shift = prior.mean_variance if prior.mean_shape == "task" and r == 0 else 0.0
            G_S = against_points(blocks, K + shift)
            if conditioning is not None:
                totals = prior.law.totals.T @ self._scatter_vector(a).reshape(T, N).T  # type: ignore[union-attr]
                G_S = conditioning.pull_back(G_S, totals)
            gradient[ts] = prior.tasks[r].pull_back(theta[ts], G_S)
        gradient[prior.noise_slice] = prior.noise.pull_back(theta[prior.noise_slice], self._noise_gradient(G, blocks))
        return value, gradient

    def _covariance(self, Ks: list[np.ndarray], Sigmas: tuple[np.ndarray, ...]) -> np.ndarray:
        T, N = self.n_outputs, self.n_points
        first = Ks[0] + self.prior.mean_variance if self.prior.mean_shape == "task" else Ks[0]
        total = Sigmas[0][:, None, :, None] * first[None, :, None, :]
        for K, Sigma in zip(Ks[1:], Sigmas[1:], strict=True):
            total += Sigma[:, None, :, None] * K[None, :, None, :]
        if self.prior.mean_shape == "identity":
            for t in range(T):
                total[t, :, t, :] += self.prior.mean_variance
        flat = total.reshape(T * N, T * N)
        return flat if self.complete else flat[self._grid]

    def _add_noise(self, covariance: np.ndarray, variances: np.ndarray) -> None:
        if self._projector is not None:
            block = self._projector @ (variances[:, None] * self._projector)
            full = np.kron(block, np.eye(self.n_points))
            covariance += full[np.ix_(self.observed, self.observed)]
            return
        full = np.repeat(variances, self.n_points) if variances.ndim == 1 else variances.T.ravel()
        covariance[self._diagonal, self._diagonal] += full[self.observed]

    def _noise_gradient(self, G: np.ndarray, blocks: np.ndarray) -> np.ndarray:
        if self._projector is not None:
            per_pair = np.einsum("tiui->tu", blocks)
            return np.diagonal(self._projector @ per_pair @ self._projector).copy()
        if self.prior.noise.row_factor is not None:
            return self._scatter_vector(np.diagonal(G)).reshape(self.n_outputs, self.n_points).T
        return np.bincount(self._output_of, np.diagonal(G), self.n_outputs)

    def _scatter(self, G: np.ndarray) -> np.ndarray:
        if self.complete:
            return G
        full = np.zeros((self.n_outputs * self.n_points,) * 2)
        full[self._grid] = G
        return full

    def _scatter_vector(self, a: np.ndarray) -> np.ndarray:
        full = np.zeros(self.n_outputs * self.n_points)
        full[self.observed] = a
        return full


def against_tasks(Sigma: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """sum_tu Sigma_tu G_tiuj (N, N); block by block where a copy of all blocks would cost more than the loop."""
    T, N = blocks.shape[:2]
    if N < LARGE_BLOCKS:
        return np.einsum("tu,tiuj->ij", Sigma, blocks)
    total = np.zeros((N, N))
    for t in range(T):
        for u in range(T):
            total += Sigma[t, u] * blocks[t, :, u, :]
    return total


def against_points(blocks: np.ndarray, K: np.ndarray) -> np.ndarray:
    """sum_ij G_tiuj K_ij (T, T)."""
    T, N = blocks.shape[:2]
    if N < LARGE_BLOCKS:
        return np.einsum("tiuj,ij->tu", blocks, K)
    return np.array([[np.einsum("ij,ij->", blocks[t, :, u, :], K) for u in range(T)] for t in range(T)])


def _independent_entries(y: np.ndarray, F: np.ndarray) -> np.ndarray:
    """Measured entries less those that the law fixes from the others of their row (closed data hold nothing more)."""
    measured = ~np.isnan(y)
    for i in range(len(y)):
        for t in np.flatnonzero(measured[i]):
            others = ~measured[i]
            with_t = others.copy()
            with_t[t] = True
            # Some combination of the rows of F is zero on all that is not measured, and not on t.
            if _rank(F[:, with_t]) > _rank(F[:, others]):
                measured[i, t] = False
    return measured


def _rank(matrix: np.ndarray) -> int:
    return int(np.linalg.matrix_rank(matrix)) if matrix.size else 0


MOST_MISSING = 0.2  # share of the entries up to which the Kronecker form is measured to be faster than one dense factor


def has_kronecker_form(prior: MultitaskPrior) -> bool:
    """True if the covariance of complete data has the Kronecker form: one term, one noise variance per output."""
    rows_alike = prior.noise.known is None and prior.noise.row_factor is None
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


KRONECKER_OUTPUTS = 3  # with two outputs one dense factor is as fast as the eigendecompositions
KRONECKER_ENTRIES = 100
# Short series of many outputs: a filter works on matrices of three times the outputs in turn, row by row. With so many
# rows for each output, and so large a share of the entries missing, two eigendecompositions are measured to be at least
# twice as fast (300 rows of 12 outputs: 7 times).
SERIES_ROWS = 40
SERIES_GAPS = 0.01


@dataclass(frozen=True)
class Dense:
    """One Cholesky factor of all measured entries: any data, O((N T)^3)."""


@dataclass(frozen=True)
class Kronecker:
    """Two eigendecompositions: one kernel term, few missing entries, O(N^3 + T^3)."""


@dataclass(frozen=True)
class Markov:
    """State-space form on one input: Matern kernels, O(N)."""


def takes_kronecker(solver: object, prior: MultitaskPrior, y: np.ndarray) -> bool:
    """True if the Kronecker form is asked for, or nothing is and it is measured to be faster; an error if it cannot be."""
    if isinstance(solver, Kronecker):
        if not has_kronecker_form(prior):
            raise DataError(
                "solver: Kronecker() needs one kernel term and an unknown noise per output, which is not the case here; "
                "use Dense() or leave solver=None"
            )
        return True
    large = y.shape[1] >= KRONECKER_OUTPUTS and y.size >= KRONECKER_ENTRIES
    return solver is None and large and fits_kronecker(prior, y)


def check_solver_memory(solver: object, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray) -> None:
    """Raise DataError if the solver that these data get would need more memory than there is."""
    check_memory(y.shape[0], y.shape[1], int((~np.isnan(y)).sum()), x.shape[1], takes_kronecker(solver, prior, y))


def choose_evidence(
    solver: object, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray
) -> DenseEvidence | KroneckerEvidence:
    """Evidence by the solver asked for; by itself Kronecker wherever it is exact and measured to be faster."""
    check_solver_memory(solver, prior, x, y)
    return KroneckerEvidence(prior, x, y) if takes_kronecker(solver, prior, y) else DenseEvidence(prior, x, y)


def choose_series_evidence(
    prior: MultitaskPrior, x: np.ndarray, y: np.ndarray, law: LawRows | None
) -> MarkovObjectiveEvidence | KroneckerEvidence:
    """Evidence of Matern terms on one input: the same number by the Kronecker form where that is faster."""
    short = len(y) <= SERIES_ROWS * y.shape[1] and y.shape[1] >= KRONECKER_OUTPUTS
    if law is None and short and fits_kronecker(prior, y) and float(np.isnan(y).mean()) <= SERIES_GAPS:
        return KroneckerEvidence(prior, x, y)
    return MarkovObjectiveEvidence(prior, x, y, law)
