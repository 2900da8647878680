"""Evidence of the data where smooth kernels have few features: C = G G^T + D with few columns of G.

Each kernel matrix is K = R R^T with few columns, by a pivoted Cholesky factor of some of its columns. Term r of the prior,
Sigma_r = B_r B_r^T, has the weights (q, i) with G[(t, n), (q, i)] = B_r[t, q] R_r[n, i]; a constant is one more column of R.
With D the noise, P = I + G^T D^-1 G is all that is factored, and it never needs G itself: with Phi the columns of all R
and p_t the inverse noise of output t (zero where it is missing), M_t = Phi^T diag(p_t) Phi holds what the data say.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from sumgp.numerics import (
    LOG_2PI,
    SchurConditioning,
    cholesky,
    cholesky_inverse,
    pivoted_cholesky,
    solve_cholesky,
    solve_lower,
    symmetric_root,
)
from sumgp.priors import KernelOnPoints, MultitaskPrior

if TYPE_CHECKING:
    from sumgp.solvers.dense import Evidence

LEFT_OUT = 1e-6  # of the log evidence: what features may leave out of it
SHARE_AIMED_AT = 0.1  # of that, which pivots leave out at most if all rows were like the worst
SMALLEST, LARGEST = 1e-13, 1e-11  # of the variance, between which lies what a feature has at least; less is rounding
OTHER_ROWS = 10.0  # times that, which rows that pivots were not looked for among may lack
FIRST_CARRIERS = 48  # rows that pivots are looked for among; twice as many while these do not carry the others


class _Features(NamedTuple):
    """R (N, r) with R R^T = K but for ``left`` (N,) on the diagonal; R[pivots] = L.

    ``slopes`` (p, N, r): derivatives of K[:, pivots], none (p = 0) where they are not asked for.
    """

    R: np.ndarray
    pivots: np.ndarray
    L: np.ndarray
    left: np.ndarray
    slopes: np.ndarray

    def pull_back(self, by_R: np.ndarray) -> np.ndarray:
        """Gradient by the kernel's parameters from that by R, through R R^T = U K_pp^-1 U^T with U = K[:, pivots]."""
        by_U = solve_lower(self.L, by_R.T, transposed=True).T  # by_R L^-1
        W = solve_lower(self.L, self.R.T, transposed=True).T
        by_U[self.pivots] -= 0.5 * (W.T @ by_U)
        return np.tensordot(self.slopes, by_U, axes=([1, 2], [0, 1]))


class _Term(NamedTuple):
    """A term of the prior: columns R (N, r), a constant's included, task covariance Sigma = B B^T with B (T, q)."""

    R: np.ndarray
    B: np.ndarray
    Sigma: np.ndarray
    features: _Features | None  # None: the constant alone

    @property
    def size(self) -> int:
        """Number of weights."""
        return self.R.shape[1] * self.B.shape[1]


class _Solved(NamedTuple):
    """The data at one theta: log p(y), the terms, the factor of P, and what gradients are made of."""

    value: float
    terms: list[_Term]
    conditioning: SchurConditioning | None
    p: np.ndarray  # (T, N) inverse noise variances, zero where nothing was measured
    a: np.ndarray  # (T, N) C^-1 (y - mean), zero there too
    factor: np.ndarray
    M: np.ndarray  # (T, f, f)
    Phi: np.ndarray  # (N, f)


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
        # Rows in an order in which the first of them lie all over the inputs: pivots are looked for among these.
        order = spread_order(x)
        self.prior, self.otherwise, self.most = prior, otherwise, most
        self.kernels = [KernelOnPoints(kernel, x[order]) for kernel in prior.kernels]
        self.measured = ~np.isnan(y[order]).T
        self.y = np.where(self.measured, y[order].T, 0.0)
        self.noise = prior.noise.at(order)
        self.totals = None if prior.law is None else prior.law.totals[order]

    def value(self, theta: np.ndarray) -> float:
        """log p(y | theta) alone."""
        found = self._solved(theta, False)
        return self.otherwise.value(theta) if found is None else found.value

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """log p(y | theta) and its gradient with respect to theta."""
        found = self._solved(theta, True)
        if found is None:
            return self.otherwise(theta)
        prior, a, p, M, Phi = self.prior, found.a, found.p, found.M, found.Phi
        Q = _between_outputs(found.terms, cholesky_inverse(found.factor))  # (T, T, f, f)
        T, f = len(Q), Phi.shape[1]
        # C^-1 (e_u (x) Phi) has the rows p_t * (Phi V[t, u]) at output t.
        V = -(Q @ M)
        V[np.arange(T), np.arange(T)] += np.eye(f)
        p_Phi = (p.T[:, :, None] * Phi[:, None, :]).reshape(len(Phi), T * f)
        gradient = np.empty(prior.n_parameters)
        start = 0
        for r, (ks, ts) in enumerate(prior.slices):
            term = found.terms[r]
            own = slice(start, start + term.R.shape[1])
            start = own.stop
            of_data, seen = a @ term.R, V[..., own]
            G_S = 0.5 * (of_data @ of_data.T - np.sum(M[:, None, :, own] * seen, axis=(2, 3)))
            if found.conditioning is not None:
                G_S = found.conditioning.pull_back(G_S, self.totals.T @ a.T)  # type: ignore[union-attr]
            gradient[ts] = prior.tasks[r].pull_back(theta[ts], G_S)
            through = term.Sigma[:, None, :] @ seen.reshape(T, T, -1)  # sum_u Sigma_tu V[t, u]
            by_R = a.T @ (term.Sigma @ of_data) - p_Phi @ through.reshape(T * f, -1)
            assert term.features is not None
            gradient[ks] = term.features.pull_back(by_R[:, : len(term.features.pivots)])
        lever = np.stack([np.einsum("ni,ni->n", Phi @ Q[t, t], Phi) for t in range(T)])
        by_noise = 0.5 * (a * a - p + p * p * lever)
        gradient[prior.noise_slice] = self.noise.pull_back(theta[prior.noise_slice], by_noise.T)
        return found.value, gradient

    def _solved(self, theta: np.ndarray, with_slopes: bool) -> _Solved | None:
        """The value and what gradients need; None where features do not serve."""
        prior, T = self.prior, len(self.y)
        Sigmas = prior.Sigmas(theta)
        conditioning = prior.conditioned(Sigmas[0])
        variances = self.noise.variances(theta[prior.noise_slice])
        d = np.broadcast_to(variances, (self.y.shape[1], T)).T
        p = np.where(self.measured, 1.0 / d, 0.0)
        terms = self._terms(theta, Sigmas if conditioning is None else (conditioning.covariance,), p, with_slopes)
        if terms is None:
            return None
        residual = self.y
        if conditioning is not None:
            residual = np.where(self.measured, residual - (self.totals @ conditioning.D).T, 0.0)
        Phi = np.hstack([term.R for term in terms])
        M = np.stack([(Phi * weight[:, None]).T @ Phi for weight in p])
        factor = cholesky(_precision(terms, M), "weights")
        a, square = _of_data(terms, factor, p, residual)
        logs = float(np.sum(np.log(np.diagonal(factor)))) + 0.5 * float(np.sum(np.log(d[self.measured])))
        value = -0.5 * square - logs - 0.5 * int(self.measured.sum()) * LOG_2PI
        return _Solved(value, terms, conditioning, p, a, factor, M, Phi)

    def _terms(
        self, theta: np.ndarray, Sigmas: tuple[np.ndarray, ...], p: np.ndarray, with_slopes: bool
    ) -> list[_Term] | None:
        """All terms of the prior, constants last; None where they have too many features or leave out too much."""
        prior, N = self.prior, p.shape[1]
        constant = np.full((N, 1), np.sqrt(prior.mean_variance))
        terms: list[_Term] = []
        room, left_out = self.most, 0.0
        for r, (Sigma, (ks, _)) in enumerate(zip(Sigmas, prior.slices, strict=True)):
            B = symmetric_root(Sigma)
            B = B[:, np.any(B != 0, axis=0)]
            sizes = float(np.diagonal(Sigma) @ p.sum(axis=1))
            tolerance = min(max(SHARE_AIMED_AT * LEFT_OUT / max(sizes, 1e-300), SMALLEST), LARGEST)
            found = features_of(self.kernels[r], theta[ks], room // max(B.shape[1], 1), tolerance, with_slopes)
            if found is None:
                return None
            left_out += float(np.diagonal(Sigma) @ (p @ found.left))
            R = np.hstack([found.R, constant]) if r == 0 and prior.mean_shape == "task" else found.R
            terms.append(_Term(R, B, Sigma, found))
            room -= terms[-1].size
        if prior.mean_shape == "identity":
            root = prior.constant_root
            terms.append(_Term(constant, root, root @ root.T, None))
        return terms if left_out < LEFT_OUT else None


def features_of(
    kernel: KernelOnPoints, theta: np.ndarray, most: int, tolerance: float, with_slopes: bool
) -> _Features | None:
    """Features of a kernel matrix at points in ``spread_order``, None for more than ``most`` of them."""
    N, count = len(kernel.points), FIRST_CARRIERS
    while True:
        few = slice(0, count)
        pivots, factor = pivoted_cholesky(kernel.part(theta, few, few, False)[0], tolerance)
        if len(pivots) > most:
            return None
        if 2 * len(pivots) <= count or count >= N:
            U, dU = kernel.part(theta, slice(None), pivots, with_slopes)
            L = factor[pivots]
            R = solve_lower(L, U.T).T
            left = np.maximum(1.0 - np.einsum("nr,nr->n", R, R), 0.0)
            if count >= N or float(left.max()) < OTHER_ROWS * tolerance:
                return _Features(R, pivots, L, left, dU)
        count *= 2


def _precision(terms: list[_Term], M: np.ndarray) -> np.ndarray:
    """P (w, w): the prior precision of the weights plus what the data say of them, without blocks above the diagonal."""
    features = np.cumsum([0, *(term.R.shape[1] for term in terms)]).tolist()
    weights = np.cumsum([0, *(term.size for term in terms)]).tolist()
    T, P = len(M), np.eye(weights[-1])
    for i, first in enumerate(terms):
        for j, second in enumerate(terms[: i + 1]):
            part = M[:, features[i] : features[i + 1], features[j] : features[j + 1]]
            pairs = first.B[:, :, None] * second.B[:, None, :]  # (T, q, q')
            block = (pairs.reshape(T, -1).T @ part.reshape(T, -1)).reshape(*pairs.shape[1:], *part.shape[1:])
            block = block.swapaxes(1, 2).reshape(first.size, second.size)
            P[weights[i] : weights[i + 1], weights[j] : weights[j + 1]] += block
    return P


def _of_data(terms: list[_Term], factor: np.ndarray, p: np.ndarray, residual: np.ndarray) -> tuple[np.ndarray, float]:
    """a = C^-1 r (T, N), and r^T C^-1 r as the least of |r - G w|^2 / D + |w|^2, which errors of w change only squared."""
    parts = _parts(terms)

    def gathered(values: np.ndarray) -> np.ndarray:
        return np.concatenate([(term.B.T @ values @ term.R).ravel() for term in terms])

    def fitted(w: np.ndarray) -> np.ndarray:
        each = zip(terms, parts, strict=True)
        return sum(term.B @ w[part].reshape(term.B.shape[1], -1) @ term.R.T for term, part in each)

    w = solve_cholesky(factor, gathered(p * residual))
    w = w + solve_cholesky(factor, gathered(p * (residual - fitted(w))) - w)  # takes back the rounding of the first
    left = residual - fitted(w)
    return p * left, float(np.sum(p * left * left) + w @ w)


def _parts(terms: list[_Term]) -> list[slice]:
    """Where the weights of each term are among all."""
    ends = np.cumsum([0, *(term.size for term in terms)]).tolist()
    return [slice(*pair) for pair in pairwise(ends)]


def _between_outputs(terms: list[_Term], inverse: np.ndarray) -> np.ndarray:
    """Q (T, T, f, f): the inverse of P seen from outputs and features."""
    parts = _parts(terms)
    rows = []
    for first, own in zip(terms, parts, strict=True):
        columns = []
        for second, other in zip(terms, parts, strict=True):
            q, m, s, n = first.B.shape[1], first.R.shape[1], second.B.shape[1], second.R.shape[1]
            half = (first.B @ inverse[own, other].reshape(q, m * s * n)).reshape(-1, m, s, n)
            columns.append((second.B @ half).swapaxes(1, 2))
        rows.append(np.concatenate(columns, axis=3))
    return np.concatenate(rows, axis=2)


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
