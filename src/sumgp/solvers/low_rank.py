"""Evidence of the data where smooth kernels have few features: C = G G^T + D with few columns of G.

Each kernel matrix is K = R R^T with few columns, by a pivoted Cholesky factor of some of its columns. Term r of the prior,
Sigma_r = B_r B_r^T, has the weights (q, i) with G[(t, n), (q, i)] = B_r[t, q] R_r[n, i]; a constant is one more column of R.
With D the noise, P = I + G^T D^-1 G is all that is factored, and it never needs G itself: with Phi the columns of all R
and p_t the inverse noise of output t (zero where it is missing), M_t = Phi^T diag(p_t) Phi holds what the data say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from sumgp.numerics import LOG_2PI, SchurConditioning, cholesky, cholesky_inverse, pivoted_cholesky, solve_cholesky
from sumgp.numerics import solve_lower, symmetric_root
from sumgp.priors import KernelOnPoints, MultitaskPrior

if TYPE_CHECKING:
    from sumgp.solvers.dense import Evidence

FEWEST_VALUES = 300  # measured, above which features are faster than one dense factor
LEFT_OUT = 1e-6  # of the log evidence: what features may leave out of it
SHARE_AIMED_AT = 0.1  # of that, which pivots leave out at most if all rows were like the worst
SMALLEST, LARGEST = 1e-13, 1e-11  # of the variance, between which lies what a feature has at least; less is rounding
FIRST_CARRIERS = 48  # rows that features are looked for among; twice as many while these do not carry the others


class _Term(NamedTuple):
    """Features R (N, r) of K, the rows ``pivots`` (m,) that they are made of with R[pivots] = L, and B (T, q).

    ``left`` (N,): variance of K that is not in R. A last column of R beyond the pivots' is a constant.
    """

    R: np.ndarray
    pivots: np.ndarray
    L: np.ndarray
    B: np.ndarray
    Sigma: np.ndarray
    left: np.ndarray


class _Solved(NamedTuple):
    """The data at one theta: log p(y), the terms, weights of the data, and the factor of P."""

    value: float
    terms: list[_Term]
    conditioning: SchurConditioning | None
    p: np.ndarray  # (T, N) inverse noise variances, zero where nothing was measured
    a: np.ndarray  # (T, N) C^-1 (y - mean), zero there too
    factor: np.ndarray
    M: np.ndarray  # (T, f, f)
    Phi: np.ndarray  # (N, f) features of all terms


def fits_low_rank(prior: MultitaskPrior, x: np.ndarray) -> bool:
    """Whether the evidence can be had by features, as far as one can tell without hyperparameters."""
    closed_forms = all(KernelOnPoints(kernel, x[:1]).has_closed_form for kernel in prior.kernels)
    return closed_forms and prior.latent is None and not prior.noise.closed


class LowRankEvidence:
    """log p(y | theta) for y (N, T) with NaN = missing, given the law where the prior has one.

    ``otherwise``: the evidence that is asked where more than ``most`` weights would be needed, or the noise is so small
    beside what features leave out that digits would be lost.
    """

    def __init__(self, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray, otherwise: Evidence, most: int) -> None:
        self.prior, self.otherwise, self.most = prior, otherwise, most
        self.kernels = [KernelOnPoints(kernel, x) for kernel in prior.kernels]
        self.measured = ~np.isnan(y).T
        self.y = np.where(self.measured, y.T, 0.0)
        self.spread = spread_order(x)

    def value(self, theta: np.ndarray) -> float:
        """log p(y | theta) alone."""
        found = self._solved(theta)
        return self.otherwise.value(theta) if found is None else found.value

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """log p(y | theta) and its gradient with respect to theta."""
        found = self._solved(theta)
        if found is None:
            return self.otherwise(theta)
        prior, a, p, M, Phi = self.prior, found.a, found.p, found.M, found.Phi
        Q = _between_outputs(found)  # (T, f, T, f)
        T, f = Q.shape[:2]
        # C^-1 (e_u (x) Phi) has the rows p_t * (Phi V[t, :, u, :]) at output t.
        V = -np.einsum("tiuj,ujk->tiuk", Q, M, optimize=True)
        V[np.arange(T)[:, None], np.arange(f), np.arange(T)[:, None], np.arange(f)] += 1.0
        gradient = np.empty(prior.n_parameters)
        start = 0
        for r, (term, (ks, ts)) in enumerate(zip(found.terms[: len(prior.kernels)], prior.slices, strict=True)):
            own = slice(start, start + term.R.shape[1])
            start = own.stop
            of_data = a @ term.R
            G_S = 0.5 * (of_data @ of_data.T - np.einsum("tik,tiuk->tu", M[:, :, own], V[..., own], optimize=True))
            if found.conditioning is not None:
                G_S = found.conditioning.pull_back(G_S, prior.law.totals.T @ a.T)  # type: ignore[union-attr]
            gradient[ts] = prior.tasks[r].pull_back(theta[ts], G_S)
            by_R = a.T @ (term.Sigma @ of_data)
            for t, mixed in enumerate(np.einsum("tu,tiuk->tik", term.Sigma, V[..., own])):
                by_R -= p[t][:, None] * (Phi @ mixed)
            gradient[ks] = self._by_kernel(r, theta[ks], term, by_R[:, : len(term.pivots)])
        lever = np.stack([np.einsum("ni,ij,nj->n", Phi, Q[t, :, t], Phi, optimize=True) for t in range(T)])
        by_noise = 0.5 * (a * a - p + p * p * lever)
        gradient[prior.noise_slice] = prior.noise.pull_back(theta[prior.noise_slice], by_noise.T)
        return found.value, gradient

    def _by_kernel(self, r: int, theta: np.ndarray, term: _Term, by_R: np.ndarray) -> np.ndarray:
        """Gradient by the kernel's parameters, through R R^T = U K_pp^-1 U^T with U the columns of K at the pivots."""
        dU = self.kernels[r].part(theta, slice(None), term.pivots)[1]
        by_U = solve_lower(term.L, by_R.T, transposed=True).T  # by_R L^-1
        W = solve_lower(term.L, term.R[:, : len(term.pivots)].T, transposed=True).T
        by_U[term.pivots] -= 0.5 * (W.T @ by_U)
        return np.tensordot(dU, by_U, axes=([1, 2], [0, 1]))

    def _solved(self, theta: np.ndarray) -> _Solved | None:
        """The value and what gradients need; None where features do not serve."""
        prior = self.prior
        Sigmas = prior.Sigmas(theta)
        conditioning = prior.conditioned(Sigmas[0])
        used = Sigmas if conditioning is None else (conditioning.covariance,)
        variances = prior.noise.variances(theta[prior.noise_slice])
        d = np.broadcast_to(variances, self.measured.T.shape).T
        p = np.where(self.measured, 1.0 / d, 0.0)
        terms = self._terms(theta, used, p)
        if terms is None:
            return None
        residual = self.y
        if conditioning is not None:
            mean = (prior.law.totals @ conditioning.D).T  # type: ignore[union-attr]
            residual = np.where(self.measured, residual - mean, 0.0)
        Phi = np.hstack([term.R for term in terms])
        M = np.stack([(Phi * weight[:, None]).T @ Phi for weight in p])
        factor = cholesky(_precision(terms, M), "weights")
        a, explained = _weights_of_data(terms, factor, p, residual)
        value = -0.5 * explained - float(np.sum(np.log(np.diagonal(factor))))
        value -= 0.5 * (float(np.sum(np.log(d[self.measured]))) + int(self.measured.sum()) * LOG_2PI)
        return _Solved(value, terms, conditioning, p, a, factor, M, Phi)

    def _terms(self, theta: np.ndarray, Sigmas: tuple[np.ndarray, ...], p: np.ndarray) -> list[_Term] | None:
        """All terms of the prior, constants last; None where they have too many features or leave out too much."""
        prior, (T, N) = self.prior, p.shape
        constant = np.full((N, 1), np.sqrt(prior.mean_variance))
        terms: list[_Term] = []
        count, left_out = 0, 0.0
        for r, (Sigma, (ks, _)) in enumerate(zip(Sigmas, prior.slices, strict=True)):
            B = symmetric_root(Sigma)
            tolerance = SHARE_AIMED_AT * LEFT_OUT / max(float(np.diagonal(Sigma) @ p.sum(axis=1)), 1e-300)
            found = self._features(r, theta[ks], (self.most - count) // B.shape[1], min(max(tolerance, SMALLEST), LARGEST))
            if found is None:
                return None
            R, pivots, L, left = found
            left_out += float(np.diagonal(Sigma) @ (p @ left))
            if r == 0 and prior.mean_shape == "task":
                R = np.hstack([R, constant])
            count += R.shape[1] * B.shape[1]
            terms.append(_Term(R, pivots, L, B, Sigma, left))
        if prior.mean_shape == "identity":
            none = np.zeros((0, 0))
            terms.append(_Term(constant, np.zeros(0, dtype=int), none, np.eye(T), np.eye(T), np.zeros(N)))
        return terms if left_out < LEFT_OUT else None

    def _features(
        self, r: int, theta: np.ndarray, most: int, tolerance: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
        """R, pivots, R[pivots] and what is left of the diagonal, for the kernel of term r; None for more than ``most``."""
        kernel, N = self.kernels[r], len(self.spread)
        count = FIRST_CARRIERS
        while True:
            rows = self.spread[:count]
            chosen, factor = pivoted_cholesky(kernel.part(theta, rows[:, None], rows)[0], tolerance)
            if len(chosen) > most:
                return None
            if 2 * len(chosen) <= count or count >= N:
                pivots, L = rows[chosen], factor[chosen]
                R = solve_lower(L, kernel.part(theta, slice(None), pivots)[0].T).T
                left = np.maximum(1.0 - np.einsum("nr,nr->n", R, R), 0.0)
                if count >= N or float(left.max()) < 10.0 * tolerance:
                    return R, pivots, L, left
            count *= 2


def _precision(terms: list[_Term], M: np.ndarray) -> np.ndarray:
    """P (w, w): the prior precision of the weights plus what the data say of them."""
    blocks = []
    start = np.cumsum([0, *(term.R.shape[1] for term in terms)])
    for i, first in enumerate(terms):
        row = []
        for j, second in enumerate(terms):
            part = M[:, start[i] : start[i + 1], start[j] : start[j + 1]]
            T, m, n = part.shape
            pairs = (first.B[:, :, None] * second.B[:, None, :]).reshape(T, -1)
            block = (pairs.T @ part.reshape(T, m * n)).reshape(first.B.shape[1], second.B.shape[1], m, n)
            row.append(block.transpose(0, 2, 1, 3).reshape(first.B.shape[1] * m, second.B.shape[1] * n))
        blocks.append(row)
    P = np.block(blocks)
    P[np.diag_indices_from(P)] += 1.0
    return P


def _weights_of_data(
    terms: list[_Term], factor: np.ndarray, p: np.ndarray, residual: np.ndarray
) -> tuple[np.ndarray, float]:
    """a = C^-1 r (T, N) and r^T C^-1 r as the least of |r - G w|^2 / D + |w|^2, which errors of w change only squared."""
    ends = np.cumsum([term.B.shape[1] * term.R.shape[1] for term in terms])[:-1]

    def transposed(values: np.ndarray) -> np.ndarray:
        return np.concatenate([(term.B.T @ values @ term.R).ravel() for term in terms])

    w = solve_cholesky(factor, transposed(p * residual))
    for _ in range(2):
        parts = zip(terms, np.split(w, ends), strict=True)
        fitted = sum(term.B @ part.reshape(term.B.shape[1], -1) @ term.R.T for term, part in parts)
        a = p * (residual - fitted)
        missed = transposed(a) - w
        explained = float(np.sum(a * (residual - fitted)) + w @ w)
        w = w + solve_cholesky(factor, missed)
    return a, explained


def _between_outputs(found: _Solved) -> np.ndarray:
    """Q (T, f, T, f): the inverse of P seen from outputs and features."""
    inverse = cholesky_inverse(found.factor)
    ends = np.cumsum([term.B.shape[1] * term.R.shape[1] for term in found.terms])[:-1]
    rows = []
    for term, part in zip(found.terms, np.split(inverse, ends), strict=True):
        q = term.B.shape[1]
        rows.append((term.B @ part.reshape(q, -1)).reshape(len(term.B), -1, len(inverse)))
    half = np.concatenate(rows, axis=1)  # (T, f, w)
    T, f = half.shape[:2]
    columns = []
    for term, part in zip(found.terms, np.split(half, ends, axis=2), strict=True):
        split = part.reshape(T * f, term.B.shape[1], -1)
        columns.append(np.tensordot(split, term.B, axes=(1, 1)).reshape(T, f, -1, T).transpose(0, 1, 3, 2))
    return np.concatenate(columns, axis=3)


def spread_order(x: np.ndarray) -> np.ndarray:
    """Positions of the rows x (N, D) in an order in which each is as far as can be from those before it."""
    order = np.zeros(len(x), dtype=int)
    order[0] = int(np.argmin(x[:, 0]))
    distance = cdist(x, x[order[:1]])[:, 0]
    for i in range(1, len(x)):
        distance[order[i - 1]] = -1.0
        order[i] = int(np.argmax(distance))
        distance = np.minimum(distance, np.linalg.norm(x - x[order[i]], axis=1))
    return order
