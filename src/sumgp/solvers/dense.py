"""Solvers: the evidence of the data by one dense Cholesky factor, in Kronecker form, or by whichever serves better.

The dense one in closed form with its gradient: entries are ordered output by output (Sigma (x) K), so that the covariance
consists of N x N blocks Sigma_tu K. Besides: joint covariances of predicted points, in few columns until they are added up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from sumgp.errors import DataError
from sumgp.numerics import LOG_2PI, add_square, check_memory, cholesky, cholesky_inverse, mirrored, solve_cholesky
from sumgp.priors import KernelOnPoints, MultitaskPrior, SchurConditioning, nullspace_basis
from sumgp.solvers.functionals import Opened
from sumgp.solvers.kronecker import (
    Evidence,
    IndependentEvidence,
    KroneckerEvidence,
    are_independent,
    fits_kronecker,
    has_kronecker_form,
    independent_entries,
)
from sumgp.solvers.low_rank import LowRankEvidence, fits_low_rank

AT_ONCE = 200_000  # entries of covariances made together: with more, memory takes longer than calls do


class Entries:
    """The measured entries (N, T) of the outputs, output by output, among all of them."""

    def __init__(self, measured: np.ndarray) -> None:
        self.n_points, self.n_outputs = measured.shape
        self.observed = np.flatnonzero(measured.T.ravel())
        self.complete = len(self.observed) == measured.size
        self._grid = np.ix_(self.observed, self.observed)

    def vector(self, values: np.ndarray) -> np.ndarray:
        """Those of values (N, T)."""
        return values.T.ravel()[self.observed]

    def matrix(self, full: np.ndarray) -> np.ndarray:
        """Those of a covariance (TN, TN) of all entries."""
        return full if self.complete else full[..., self.observed[:, None], self.observed]

    def blocks(self, G: np.ndarray) -> np.ndarray:
        """(T, N, T, N) matrix of all entries that is zero where one was not measured."""
        T, N = self.n_outputs, self.n_points
        if not self.complete:
            full = np.zeros((T * N, T * N))
            full[self._grid] = G
            G = full
        return G.reshape(T, N, T, N)

    def table(self, values: np.ndarray) -> np.ndarray:
        """(N, T) of values of the measured entries; zero elsewhere."""
        full = np.zeros(self.n_outputs * self.n_points)
        full[self.observed] = values
        return full.reshape(self.n_outputs, self.n_points).T

    def noise(self, variances: np.ndarray) -> np.ndarray:
        """Variances of the measured entries, from those of the outputs (T,) or of all entries (N, T)."""
        return variances.repeat(self.n_points)[self.observed] if variances.ndim == 1 else self.vector(variances)

    def noise_gradient(self, diagonal: np.ndarray, by_row: bool) -> np.ndarray:
        """By the variances of the outputs (T,), or of all entries (N, T) if these differ from row to row."""
        return self.table(diagonal) if by_row else np.bincount(self.observed // self.n_points, diagonal, self.n_outputs)


def log_density(factor: np.ndarray, residual: np.ndarray) -> tuple[float, np.ndarray]:
    """log N(residual; 0, C) and C^-1 residual, from the factor of C."""
    a = solve_cholesky(factor, residual)
    return -0.5 * float(residual @ a) - float(np.sum(np.log(np.diagonal(factor)))) - 0.5 * len(a) * LOG_2PI, a


class DenseEvidence:
    """log p(y | theta) for y (N, T) with NaN = missing, given the law where the prior has one."""

    def __init__(self, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray) -> None:
        self.prior = prior
        self.kernels = [KernelOnPoints(kernel, x) for kernel in prior.kernels]
        self.entries, self._projector = Entries(~np.isnan(y)), None
        if prior.noise.closed:
            self.entries = Entries(independent_entries(y, prior.law.F))  # type: ignore[union-attr]
            basis = nullspace_basis(prior.law.F)  # type: ignore[union-attr]
            self._projector = basis @ basis.T
        self.targets = self.entries.vector(y)

    def value(self, theta: np.ndarray) -> float:
        """log p(y | theta) alone."""
        return self.values(theta[None])[0]

    def values(self, thetas: np.ndarray) -> list[float]:
        """The same of several thetas (m, p)."""
        most = max(1, AT_ONCE // max(1, len(self.targets)) ** 2)
        if len(thetas) > most:
            return [value for i in range(0, len(thetas), most) for value in self.values(thetas[i : i + most])]
        tasks = [self._tasks(theta) for theta in thetas]
        Ks = [k.matrices(thetas[:, s]) for k, (s, _) in zip(self.kernels, self.prior.slices, strict=True)]
        covariances = self._covariance(Ks, tuple(np.stack(each) for each in zip(*(t for t, _ in tasks), strict=True)))
        each = zip(thetas, covariances, tasks, strict=True)
        return [self._factored(theta, covariance, conditioning)[0] for theta, covariance, (_, conditioning) in each]

    def _tasks(self, theta: np.ndarray) -> tuple[tuple[np.ndarray, ...], SchurConditioning | None]:
        Sigmas = self.prior.Sigmas(theta)
        conditioning = self.prior.conditioned(Sigmas[0])
        return Sigmas if conditioning is None else (conditioning.covariance,), conditioning

    def _factored(
        self, theta: np.ndarray, covariance: np.ndarray, conditioning: SchurConditioning | None
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """log p(y), the factor of the data's covariance C, and C^-1 (y - mean), from C without its noise."""
        prior, residual = self.prior, self.targets
        self._add_noise(covariance, prior.noise.variances(theta[prior.noise_slice]))
        factor = cholesky(covariance, "data covariance")
        if conditioning is not None:
            mean = prior.law.totals @ conditioning.D  # type: ignore[union-attr]
            residual = residual - self.entries.vector(mean)
        value, a = log_density(factor, residual)
        return value, factor, a

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """log p(y | theta) and its gradient with respect to theta."""
        prior = self.prior
        evaluated = [k.matrix_and_gradient(theta[s]) for k, (s, _) in zip(self.kernels, prior.slices, strict=True)]
        used, conditioning = self._tasks(theta)
        # No name for the covariance: it is not needed beside its factor.
        value, factor, a = self._factored(theta, self._covariance([K for K, _ in evaluated], used), conditioning)
        G = np.outer(a, a)
        G -= cholesky_inverse(factor)
        G *= 0.5
        blocks = self.entries.blocks(G)
        gradient = np.empty(prior.n_parameters)
        for r, ((K, dK), Sigma, (ks, ts)) in enumerate(zip(evaluated, used, prior.slices, strict=True)):
            G_K = against_tasks(Sigma, blocks)
            gradient[ks] = np.einsum("pij,ij->p", dK, G_K)
            shift = prior.mean_variance if prior.mean_shape == "task" and r == 0 else 0.0
            G_S = against_points(blocks, K + shift)
            if conditioning is not None:
                totals = prior.law.totals.T @ self.entries.table(a)  # type: ignore[union-attr]
                G_S = conditioning.pull_back(G_S, totals)
            gradient[ts] = prior.tasks[r].pull_back(theta[ts], G_S)
        gradient[prior.noise_slice] = prior.noise.pull_back(theta[prior.noise_slice], self._noise_gradient(G, blocks))
        return value, gradient

    def _covariance(self, Ks: list[np.ndarray], Sigmas: tuple[np.ndarray, ...]) -> np.ndarray:
        T, N = self.entries.n_outputs, self.entries.n_points
        first = Ks[0] + self.prior.mean_variance if self.prior.mean_shape == "task" else Ks[0]
        total = Sigmas[0][..., :, None, :, None] * first[..., None, :, None, :]
        for K, Sigma in zip(Ks[1:], Sigmas[1:], strict=True):
            total += Sigma[..., :, None, :, None] * K[..., None, :, None, :]
        if self.prior.mean_shape == "identity":
            constants = self.prior.mean_variance * self.prior.constant_root @ self.prior.constant_root.T
            total += constants[:, None, :, None]
        return self.entries.matrix(total.reshape(*total.shape[:-4], T * N, T * N))

    def _add_noise(self, covariance: np.ndarray, variances: np.ndarray) -> None:
        if self._projector is None:
            np.einsum("ii->i", covariance)[...] += self.entries.noise(variances)  # a view of the diagonal
        else:
            block = self._projector @ (variances[:, None] * self._projector)
            covariance += self.entries.matrix(np.kron(block, np.eye(self.entries.n_points)))

    def _noise_gradient(self, G: np.ndarray, blocks: np.ndarray) -> np.ndarray:
        if self._projector is not None:
            per_pair = np.einsum("tiui->tu", blocks)
            return np.diagonal(self._projector @ per_pair @ self._projector).copy()
        return self.entries.noise_gradient(np.diagonal(G), self.prior.noise.row_factor is not None)


def against_tasks(Sigma: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """sum_tu Sigma_tu G_tiuj (N, N)."""
    return np.einsum("tu,tiuj->ij", Sigma, blocks)


def against_points(blocks: np.ndarray, K: np.ndarray) -> np.ndarray:
    """sum_ij G_tiuj K_ij (T, T)."""
    return np.einsum("tiuj,ij->tu", blocks, K)


KRONECKER_OUTPUTS = 3  # with two outputs one dense factor is as fast as the eigendecompositions
KRONECKER_ENTRIES = 100  # of the data: with fewer there is no time to be saved
FEW_VALUES, FEW_ROWS = 300, 100  # measured, up to which one factor of all takes no longer than looking for features
FEW_OF_ONE = 200  # the same for one of several outputs that have nothing in common
MOST_WEIGHTS = 0.2  # for each measured value, up to which features are faster than one dense factor
MOST_WEIGHTS_OF_ROWS = 0.6  # for each row, up to which features are faster than the eigendecompositions of complete data


class Solver(ABC):
    """How the evidence of the data is computed.

    ``on_series``: in state-space form; ``on_blocks``: in blocks with neighbours; ``separable``: for one term only.
    """

    on_series: ClassVar[bool] = False
    on_blocks: ClassVar[bool] = False
    separable: ClassVar[bool] = False

    @abstractmethod
    def check(self, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray) -> None:
        """Raise DataError if it cannot serve, or would need more memory than there is."""

    @abstractmethod
    def evidence(self, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray) -> Evidence:
        """Of outputs y (N, T), NaN = missing, at inputs x (N, D); checked first."""


@dataclass(frozen=True)
class Dense(Solver):
    """One Cholesky factor of all measured entries: any data, O((N T)^3)."""

    def check(self, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray) -> None:
        check_memory(y.shape[0], y.shape[1], int((~np.isnan(y)).sum()), x.shape[1], False)

    def evidence(self, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray) -> Evidence:
        from sumgp.solvers.latent_evidence import LatentEvidence

        self.check(prior, x, y)
        return DenseEvidence(prior, x, y) if prior.latent is None else LatentEvidence(prior, x, y)


@dataclass(frozen=True)
class Kronecker(Solver):
    """Two eigendecompositions: one kernel term, few missing entries, O(N^3 + T^3)."""

    separable: ClassVar[bool] = True

    def check(self, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray) -> None:
        if not has_kronecker_form(prior):
            raise DataError(
                "solver: Kronecker() needs one kernel term and an unknown noise per output, which is not the case here; "
                "use Dense() or leave solver=None"
            )
        check_memory(y.shape[0], y.shape[1], int((~np.isnan(y)).sum()), x.shape[1], True)

    def evidence(self, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray) -> KroneckerEvidence:
        self.check(prior, x, y)
        return KroneckerEvidence(prior, x, y)


@dataclass(frozen=True)
class Automatic(Solver):
    """Few features where many values are smooth, Kronecker wherever it is exact and measured to be faster, else dense."""

    def _chosen(self, prior: MultitaskPrior, y: np.ndarray) -> Dense | Kronecker:
        large = y.shape[1] >= KRONECKER_OUTPUTS and y.size >= KRONECKER_ENTRIES
        return Kronecker() if large and fits_kronecker(prior, y) else Dense()

    def check(self, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray) -> None:
        self._chosen(prior, y).check(prior, x, y)

    def evidence(self, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray) -> Evidence:
        if int((~np.isnan(y)).sum()) <= FEW_VALUES or len(y) <= FEW_ROWS:
            return self._chosen(prior, y).evidence(prior, x, y)
        return IndependentEvidence(prior, x, y, self._of_many) if are_independent(prior) else self._of_many(prior, x, y)

    def _of_many(self, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray) -> Evidence:
        """By features where these serve."""
        exact, measured = self._chosen(prior, y).evidence(prior, x, y), int((~np.isnan(y)).sum())
        if measured <= FEW_OF_ONE or not fits_low_rank(prior, x):
            return exact
        complete = isinstance(exact, KroneckerEvidence) and measured == y.size
        most = MOST_WEIGHTS_OF_ROWS * len(y) if complete else MOST_WEIGHTS * measured
        return LowRankEvidence(prior, x, y, exact, int(most))


FEW_COLUMNS = 8  # up to which products of single columns are faster than a stack of small matrix products


def squares(root: np.ndarray) -> np.ndarray:
    """(n, C, C) root root^T at each point, of (n, C, w)."""
    n, C, _ = root.shape
    if C > FEW_COLUMNS:
        return root @ root.transpose(0, 2, 1)
    result = np.empty((n, C, C))
    for c, d in zip(*np.tril_indices(C), strict=True):
        result[:, c, d] = result[:, d, c] = np.einsum("nw,nw->n", root[:, c], root[:, d])
    return result


@dataclass(frozen=True)
class JointGaussian:
    """Points with ``mean`` (n, C) and covariance plus plus^T - minus minus^T + the parts in ``left``, few columns each."""

    mean: np.ndarray
    plus: np.ndarray  # (n, C, a)
    minus: np.ndarray  # (n, C, b)
    left: tuple[Opened, ...]

    def moved(self, mean: np.ndarray, A: np.ndarray) -> JointGaussian:
        """The same points at other means, their deviations multiplied by A (n, C, C)."""
        left = tuple(Opened(part.K, A @ part.B) for part in self.left)
        return JointGaussian(mean, A @ self.plus, A @ self.minus, left)

    def outputs(self, count: int) -> JointGaussian:
        """The first ``count`` columns alone."""
        left = tuple(Opened(part.K, part.B[:, :count]) for part in self.left)
        return replace(self, mean=self.mean[:, :count], plus=self.plus[:, :count], minus=self.minus[:, :count], left=left)

    def covariance(self) -> np.ndarray:
        """(nC, nC), ordered point by point."""
        total = JointSum(*self.mean.shape)
        total.add(self, 1.0)
        return total.matrix()


class JointSum:
    """A weighted sum of joint covariances (nC, nC): the lower triangle alone until all are added."""

    def __init__(self, n_points: int, n_columns: int) -> None:
        size = n_points * n_columns
        self._lower = np.zeros((size, size), order="F")
        self._pairs: dict[tuple[int, int], np.ndarray] = {}
        self._n, self._C = n_points, n_columns

    def add(self, part: JointGaussian, weight: float) -> None:
        """Add ``weight`` times the covariance of a part."""
        size = self._n * self._C
        add_square(self._lower, part.plus.reshape(size, -1), weight)
        add_square(self._lower, part.minus.reshape(size, -1), -weight)
        for K, B in part.left:
            for c in range(self._C):
                for d in range(c + 1):
                    self._add_pair(c, d, K, weight * B[:, c], B[:, d])

    def _add_pair(self, c: int, d: int, K: np.ndarray, B_c: np.ndarray, B_d: np.ndarray) -> None:
        """Add K_ij B_ic B_jd^T to what columns c and d have in common."""
        if not (B_c.any() and B_d.any()):
            return
        product = B_c @ B_d.T
        product *= K
        known = self._pairs.get((c, d))
        self._pairs[c, d] = product if known is None else np.add(known, product, out=known)

    def add_squares(self, root: np.ndarray) -> None:
        """Add root root^T with ``root`` (nC, a)."""
        add_square(self._lower, root, 1.0)

    def matrix(self) -> np.ndarray:
        """The sum, symmetric."""
        full, C = mirrored(self._lower), self._C
        for (c, d), block in self._pairs.items():
            full[c::C, d::C] += block
            if c != d:
                full[d::C, c::C] += block.T
        return full
