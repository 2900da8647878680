"""Evidence of the data given a linear law at every training input, for any F(x) and any sum of terms (Algorithm 2).

The law's rows are measurements without noise of linear combinations of all columns (outputs, unknown constants, soft
errors). The prior is conditioned on them first, then the density of the data is taken; needed only where the task-level
short cut does not apply.

Where outputs add up to an unknown constant, F f(x) = total everywhere, it has a Kronecker form too. Given its total the law
is one on the task covariance, and the log evidence L(total) is quadratic in the total: three evaluations tell all of it,
gradients included. The prior of the total, N(S, w), is multiplied by the density that the prior of the outputs gives to F f
= total at all rows, N(total 1; 0, K s) with s = F Sigma F^T. With q = 1^T K^-1 1 that leaves N(m, v), 1 / v = 1 / w + q / s,
m = v S / w, over which exp(L) is averaged in closed form.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sumgp.numerics import check_memory, cholesky, cholesky_inverse, pivoted_cholesky, solve_cholesky, solve_lower
from sumgp.priors import KernelOnPoints, MultitaskPrior, TaskLaw
from sumgp.solvers.dense import Entries, against_points, against_tasks, log_density
from sumgp.solvers.kronecker import KroneckerEvidence, fits_kronecker

REPEATED = 1e-11  # a row whose variance given the others is smaller than this share of its own repeats them


class _Separable(NamedTuple):
    """One term Sigma (x) K of the prior covariance over all columns."""

    K: np.ndarray  # (N, N)
    Sigma: np.ndarray  # (C, C)


class _Conditioned(NamedTuple):
    """The data given the law: their mean B S, log density, a = C^-1 (y - B S), and what its gradient is made of."""

    value: float
    factor: np.ndarray  # of the covariance C of the data given the law
    a: np.ndarray
    rows: np.ndarray  # positions of the law's rows that do not repeat others
    B: np.ndarray  # (measured, rows) C_yl C_ll^-1
    multipliers: np.ndarray  # (rows,) C_ll^-1 S


class JointEvidence:
    """log p(y | theta, law) with ``rows`` (N, R, C) f = ``totals`` (N, R) in unit-free columns; zero rows do not hold.

    A row of the law sees one point only, and a measurement one entry: covariances with them are picked from the terms,
    so that one factor of the measured entries is the only large step.
    """

    def __init__(self, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray, rows: np.ndarray, totals: np.ndarray) -> None:
        check_memory(y.shape[0], y.shape[1], int((~np.isnan(y)).sum()), x.shape[1])
        self.prior = prior
        self.kernels = [KernelOnPoints(kernel, x) for kernel in prior.kernels]
        self.N, self.T = y.shape
        self.C = prior.n_outputs + len(prior.unknown) + len(prior.soft)
        self.entries = Entries(~np.isnan(y))
        self.y = self.entries.vector(y)
        live = np.argwhere(np.any(rows != 0, axis=2))
        self.points = live[:, 0]  # (L,) where each row of the law holds
        self.F, self.S = rows[live[:, 0], live[:, 1]], totals[live[:, 0], live[:, 1]]  # (L, C), (L,)

    def value(self, theta: np.ndarray) -> float:
        """log p(y | theta, law) alone."""
        Ks = [k.matrix(theta[s]) for k, (s, _) in zip(self.kernels, self.prior.slices, strict=True)]
        return self._given_law(theta, self._terms(theta, Ks)).value

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """log p(y | theta, law) and its gradient with respect to theta.

        With B = C_yl C_ll^-1, the data given the law have mean B S and covariance C = C_yy - B C_ly + noise. With
        G = (a a^T - C^-1) / 2 and s = C_ll^-1 S the gradient with respect to C_yy is G, to C_yl -G B + a s^T / 2 (and the
        same for C_ly), and to C_ll B^T G B - (B^T a s^T + s a^T B) / 2.
        """
        prior, T, N = self.prior, self.T, self.N
        evaluated = [k.matrix_and_gradient(theta[s]) for k, (s, _) in zip(self.kernels, prior.slices, strict=True)]
        terms = self._terms(theta, [K for K, _ in evaluated])
        given = self._given_law(theta, terms)
        G = np.outer(given.a, given.a)
        G -= cholesky_inverse(given.factor)
        G *= 0.5
        GB = G @ given.B
        by_cross = np.zeros((T * N, len(given.rows)))
        by_cross[self.entries.observed] = 0.5 * np.outer(given.a, given.multipliers) - GB
        through_mean = 0.5 * np.outer(given.B.T @ given.a, given.multipliers)
        by_law = given.B.T @ GB - through_mean - through_mean.T
        parts = _ByBlock(self.entries.blocks(G), by_cross.reshape(T, N, -1), by_law, given.rows)
        gradient = np.zeros(prior.n_parameters)
        for r, ((_, dK), (ks, ts)) in enumerate(zip(evaluated, prior.slices, strict=True)):
            gradient[ks] = np.tensordot(dK, self._by_points(terms[r].Sigma, parts), axes=([1, 2], [0, 1]))
            gradient[ts] = prior.tasks[r].pull_back(theta[ts], self._by_tasks(terms[r].K, parts))
        per_entry = self.entries.table(np.diagonal(G))
        gradient[prior.noise_slice] = prior.noise.pull_back(theta[prior.noise_slice], per_entry)
        return given.value, gradient

    def _given_law(self, theta: np.ndarray, terms: list[_Separable]) -> _Conditioned:
        """Condition on the law's rows, less those that repeat others, and take the density of the data."""
        size, C_ll = self._between_rows(terms)
        rows = pivoted_cholesky(C_ll, REPEATED)[0] if len(size) else np.zeros(0, dtype=int)
        size = size[rows]
        law_factor = cholesky(C_ll[np.ix_(rows, rows)], "law")
        W = solve_lower(law_factor, self._between_rows_and_data(terms, rows) / size[:, None])
        whitened = solve_lower(law_factor, self.S[rows] / size)
        covariance = self._between_data(terms)
        covariance -= W.T @ W
        noise = self.prior.noise.variances(theta[self.prior.noise_slice])
        covariance[np.diag_indices_from(covariance)] += self.entries.noise(noise)
        factor = cholesky(covariance, "data covariance given the law")
        value, a = log_density(factor, self.y - W.T @ whitened)
        B = solve_lower(law_factor, W, transposed=True).T / size
        multipliers = solve_lower(law_factor, whitened, transposed=True) / size
        return _Conditioned(value, factor, a, rows, B, multipliers)

    def _between_rows(self, terms: list[_Separable]) -> tuple[np.ndarray, np.ndarray]:
        """(L,) standard deviations of the law's rows, and their correlations (L, L)."""
        total = np.zeros((len(self.S), len(self.S)))
        for K, Sigma in terms:
            total += (self.F @ Sigma @ self.F.T) * K[np.ix_(self.points, self.points)]
        size = np.sqrt(np.maximum(np.diagonal(total), 1e-300))
        return size, total / np.outer(size, size)

    def _between_rows_and_data(self, terms: list[_Separable], rows: np.ndarray) -> np.ndarray:
        """(rows, measured) covariances."""
        total = np.zeros((len(rows), self.T, self.N))
        for K, Sigma in terms:
            total += (self.F[rows] @ Sigma[:, : self.T])[:, :, None] * K[self.points[rows]][:, None, :]
        return total.reshape(len(rows), self.T * self.N)[:, self.entries.observed]

    def _between_data(self, terms: list[_Separable]) -> np.ndarray:
        """(measured, measured) covariances without noise."""
        T, N = self.T, self.N
        total = terms[0].Sigma[:T, None, :T, None] * terms[0].K[None, :, None, :]
        for K, Sigma in terms[1:]:
            if Sigma[:T, :T].any():
                total += Sigma[:T, None, :T, None] * K[None, :, None, :]
        return self.entries.matrix(total.reshape(T * N, T * N))

    def _by_points(self, Sigma: np.ndarray, parts: _ByBlock) -> np.ndarray:
        """Gradient (N, N) with respect to K of a term with the task covariance Sigma (C, C)."""
        F, points = self.F[parts.rows], self.points[parts.rows]
        total = against_tasks(Sigma[: self.T, : self.T], parts.data)
        cross = np.einsum("tjl,tl->jl", parts.cross, Sigma[: self.T] @ F.T)
        at_rows = np.zeros((self.N, len(points)))
        at_rows[points, np.arange(len(points))] = 1.0
        return total + (2.0 * cross + at_rows @ (parts.law * (F @ Sigma @ F.T))) @ at_rows.T

    def _by_tasks(self, K: np.ndarray, parts: _ByBlock) -> np.ndarray:
        """Gradient (T, T) with respect to the outputs' part of Sigma of a term with the covariance K over points."""
        F, points = self.F[parts.rows, : self.T], self.points[parts.rows]
        cross = np.einsum("tjl,jl->tl", parts.cross, K[:, points]) @ F
        return against_points(parts.data, K) + cross + cross.T + F.T @ (parts.law * K[np.ix_(points, points)]) @ F

    def _terms(self, theta: np.ndarray, Ks: list[np.ndarray]) -> list[_Separable]:
        """The kernels' terms over all columns (soft errors vary with the first), then those of constants."""
        prior, C, T = self.prior, self.C, self.T
        terms = []
        for r, (K, Sigma) in enumerate(zip(Ks, prior.Sigmas(theta), strict=True)):
            full = np.zeros((C, C))
            full[:T, :T] = Sigma
            if r == 0 and len(prior.soft):
                soft = range(C - len(prior.soft), C)
                full[soft, soft] = prior.soft * prior.soft_share
            terms.append(_Separable(K + prior.mean_variance if r == 0 and prior.mean_shape == "task" else K, full))
        constants = np.zeros((C, C))
        if prior.mean_shape == "identity":
            constants[:T, :T] = prior.mean_variance * prior.constant_root @ prior.constant_root.T
        constants[range(T, T + len(prior.unknown)), range(T, T + len(prior.unknown))] = prior.unknown
        if constants.any():
            terms.append(_Separable(np.ones((self.N, self.N)), constants))
        return terms


class _ByBlock(NamedTuple):
    """Gradients with respect to the covariances of data (T, N, T, N), of data and law (T, N, rows), and of law."""

    data: np.ndarray
    cross: np.ndarray
    law: np.ndarray
    rows: np.ndarray  # positions of the law's rows


MANY_ENTRIES = 200  # of the data: with fewer one dense factor is as fast
ALIKE = 1e-12  # unit-free: round-off between rows of one law


def given_linear_law(
    prior: MultitaskPrior, x: np.ndarray, y: np.ndarray, rows: np.ndarray, totals: np.ndarray
) -> JointEvidence | UnknownTotalEvidence:
    """log p(y | theta, law) with ``rows`` (N, R, C) f = ``totals`` (N, R), by the faster form where there is one."""
    one_unknown = rows.shape[1:] == (1, y.shape[1] + 1) and len(prior.unknown) == 1 and prior.mean_shape == "task"
    alike = one_unknown and bool(np.ptp(rows, axis=0).max() <= ALIKE and np.ptp(totals) <= ALIKE)
    if alike and y.size >= MANY_ENTRIES and fits_kronecker(prior, y):
        return UnknownTotalEvidence(prior, x, y, rows[0, 0], float(totals[0, 0]))
    return JointEvidence(prior, x, y, rows, totals)


class UnknownTotalEvidence:
    """log p(y | theta, law) of the law ``row`` (T + 1,) (f, unknown) = ``total``, the unknown of variance prior.unknown."""

    def __init__(self, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray, row: np.ndarray, total: float) -> None:
        self.prior, self.F = prior, row[None, :-1]
        self.centre, self.variance = total, float(row[-1] ** 2 * prior.unknown[0])
        self.kernel = KernelOnPoints(prior.kernels[0], x)
        self.step = abs(float(row[-1]))
        self.known = []
        for node in (-1.0, 0.0, 1.0):
            law = TaskLaw(self.F, np.zeros(1), np.full((len(y), 1), total + node * self.step))
            self.known.append(KroneckerEvidence(replace(prior, law=law, unknown=np.zeros(0)), x, y))

    def value(self, theta: np.ndarray) -> float:
        """log p(y | theta, law) alone; the gradient costs little beside it."""
        return self(theta)[0]

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """log p(y | theta, law) and its gradient with respect to theta."""
        prior, (ks, ts) = self.prior, self.prior.slices[0]
        K, dK = self.kernel.matrix_and_gradient(theta[ks])
        solved = _inverse_of_ones(K + prior.mean_variance)
        q, s = float(solved.sum()), float((self.F @ prior.Sigmas(theta)[0] @ self.F.T)[0, 0])
        v = 1.0 / (1.0 / self.variance + q / s)
        m = v * self.centre / self.variance
        (low, g_low), (middle, g_middle), (high, g_high) = (known(theta) for known in self.known)
        # L(centre + step z) = middle + b z - e z^2 / 2 is averaged over z ~ N(m, v) in units of the step from the centre.
        b, e = 0.5 * (high - low), 2.0 * middle - high - low
        z, spread = (m - self.centre) / self.step, v / self.step**2
        left = 1.0 / (1.0 / spread + e)
        mean = left * (z / spread + b)
        value = middle + 0.5 * (mean**2 / left - z**2 / spread) + 0.5 * np.log(left / spread)
        # The gradient of L is quadratic too: its average over what the data leave of z.
        gradient = g_middle + 0.5 * mean * (g_high - g_low) + 0.5 * (mean**2 + left) * (g_high + g_low - 2.0 * g_middle)
        by_z = (mean - z) / spread
        by_spread = 0.5 * ((mean - z) ** 2 + left - spread) / spread**2
        by_v = by_z * self.centre / (self.variance * self.step) + by_spread / self.step**2
        by_ratio = -(v**2) * by_v  # by q / s
        gradient[ks] -= by_ratio / s * np.einsum("pij,i,j->p", dK, solved, solved)
        gradient[ts] += prior.tasks[0].pull_back(theta[ts], -by_ratio * q / s**2 * self.F.T @ self.F)
        return float(value), gradient


def _inverse_of_ones(K: np.ndarray) -> np.ndarray:
    """(N,) K^-1 1, with zeros at rows that repeat others."""
    pivots = pivoted_cholesky(K / K[0, 0], REPEATED)[0]
    result = np.zeros(len(K))
    result[pivots] = solve_cholesky(cholesky(K[np.ix_(pivots, pivots)], "law"), np.ones(len(pivots)))
    return result
