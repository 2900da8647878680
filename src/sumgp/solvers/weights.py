"""Regression in weight space: f(x) = offset(x) + G(x) w + e(x), w ~ N(0, I).

A pivoted Cholesky factor of each kernel matrix picks the points that carry the others: for smooth kernels a few dozen
weights hold everything, and each further step (laws, predictions, samples) costs milliseconds. e(x) is what the chosen
points leave open at x; it vanishes at the points the map was built on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag
from sklearn.gaussian_process.kernels import Kernel

from sumgp.numerics import add_square, cholesky, mirrored, pivoted_cholesky, solve_cholesky, solve_lower, symmetric_root
from sumgp.priors import KernelDerivatives, MultitaskPrior, derivative_gram, nullspace_basis
from sumgp.solvers.functionals import LatentFeatures, Opened, SlopeOfOffset, latent_features


@dataclass(frozen=True)
class TermFeatures:
    """One separable term K (x) B B^T on its pivots; ``constant`` is the variance added to K."""

    kernel: Kernel | None  # None: the constant alone
    pivots: np.ndarray
    factor: np.ndarray  # lower Cholesky factor of K at the pivots
    B: np.ndarray  # (C, q)
    constant: float
    order: tuple[int, ...] | None = None  # of the derivative that is meant, None = the function

    def phi(self, x: np.ndarray) -> np.ndarray:
        """(n, r) features with phi phi^T = K + constant up to the left-over."""
        parts = []
        if self.kernel is not None:
            parts.append(solve_lower(self.factor, self._across(x)).T)
        if self.constant > 0:
            parts.append(np.full((len(x), 1), np.sqrt(self.constant) if self.order is None else 0.0))
        return np.hstack(parts)

    def _across(self, x: np.ndarray) -> np.ndarray:
        """Covariance between the pivots and x."""
        assert self.kernel is not None
        if self.order is None:
            return self.kernel(self.pivots, x)
        return derivative_gram(self.kernel, self.pivots, (0,) * len(self.order), x, self.order)

    def left_over(self, x: np.ndarray, phi: np.ndarray) -> np.ndarray:
        """(n,) variance of K at x that the pivots do not carry."""
        if self.kernel is None:
            return np.zeros(len(x))
        if self.order is not None:
            prior = KernelDerivatives.paired(self.kernel, x, x).value(self.order, self.order)
            return np.maximum(prior - np.sum(phi**2, axis=1), 0.0)
        return np.maximum(self.kernel.diag(x) + self.constant - np.sum(phi**2, axis=1), 0.0)

    def joint_left_over(self, x: np.ndarray, phi: np.ndarray) -> np.ndarray:
        """(n, n) covariance between points that the pivots do not carry."""
        if self.kernel is None:
            return np.zeros((len(x), len(x)))
        if self.order is not None:
            return derivative_gram(self.kernel, x, self.order, x, self.order) - phi @ phi.T
        return self.kernel(x) + self.constant - phi @ phi.T


@dataclass(frozen=True)
class MeanOffset:
    """D^T S(x): what a linear law adds to the mean; a law's inputs in the user's units give (n, T)."""

    totals: Callable[[np.ndarray], np.ndarray]  # law inputs -> (n, R) unit-free right sides
    D: np.ndarray  # (R, T)
    F: np.ndarray  # (H, T) rows that hold exactly
    exact: np.ndarray  # (H,) their positions among all rows

    def __call__(self, x_law: np.ndarray) -> np.ndarray:
        return self.totals(x_law) @ self.D

    def onto_law(self, mean: np.ndarray, x_law: np.ndarray) -> np.ndarray:
        """Take back what round-off has moved a mean (n, T) off the law: weights are huge where noise is tiny."""
        missed = self.totals(x_law)[:, self.exact] - mean @ self.F.T
        return mean + missed @ np.linalg.pinv(self.F).T


@dataclass(frozen=True)
class FeatureMap:
    """G(x) for all columns: outputs, then unknown constants, then errors of soft laws."""

    terms: tuple[TermFeatures, ...]
    offset: MeanOffset | SlopeOfOffset | None
    n_columns: int

    def design(self, x: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """G (n, C, weights) and the features of each term."""
        phis = [term.phi(x) for term in self.terms]
        shape = (len(x), self.n_columns, -1)
        parts = [np.einsum("nr,cq->ncqr", phi, t.B).reshape(shape) for phi, t in zip(phis, self.terms, strict=True)]
        return np.concatenate(parts, axis=2), phis

    def left_over(self, x: np.ndarray, phis: list[np.ndarray]) -> np.ndarray:
        """(n, C, C) covariance of e(x)."""
        total = np.zeros((len(x), self.n_columns, self.n_columns))
        for term, phi in zip(self.terms, phis, strict=True):
            total += term.left_over(x, phi)[:, None, None] * (term.B @ term.B.T)
        return total

    def opened(self, x: np.ndarray, phis: list[np.ndarray]) -> tuple[Opened, ...]:
        """Covariance of e between points."""
        return tuple(
            Opened(term.joint_left_over(x, phi), np.broadcast_to(term.B, (len(x), *term.B.shape)))
            for term, phi in zip(self.terms, phis, strict=True)
            if term.kernel is not None
        )

    def open_draws(self, x: np.ndarray, phis: list[np.ndarray], count: int, generator: np.random.Generator) -> np.ndarray:
        """(count, n, C) draws of e."""
        total = np.zeros((count, len(x), self.n_columns))
        for term, phi in zip(self.terms, phis, strict=True):
            if term.kernel is None:
                continue
            values, vectors = np.linalg.eigh(term.joint_left_over(x, phi))
            spread = vectors * np.sqrt(np.maximum(values, 0.0))
            total += spread @ generator.standard_normal((count, len(x), term.B.shape[1])) @ term.B.T
        return total

    def differentiated(self, order: tuple[int, ...], x_scale: np.ndarray) -> FeatureMap:
        """The derivatives of all columns by inputs as the kernels see them, which are the user's divided by ``x_scale``."""
        offset = None if self.offset is None else SlopeOfOffset(self.offset, order, x_scale)
        return replace(self, terms=tuple(replace(term, order=order) for term in self.terms), offset=offset)

    def widened(self, factor: float) -> FeatureMap:
        """The same features with standard deviations ``factor`` times as large."""
        return replace(self, terms=tuple(replace(term, B=factor * term.B) for term in self.terms))


def build_features(
    prior: MultitaskPrior, theta: np.ndarray, points: np.ndarray, totals: Callable[[np.ndarray], np.ndarray] | None = None
) -> FeatureMap | LatentFeatures:
    """Feature map of the prior at theta that is exact at ``points`` (unit-free inputs).

    ``totals`` maps law inputs to the unit-free right sides of the prior's task law.
    """
    if prior.latent is not None:
        return latent_features(prior, theta, points)
    hyper = prior.unpack(theta)
    Sigma = hyper.Sigmas[0]
    conditioning = prior.conditioned(Sigma)
    offset = None
    if conditioning is not None:
        assert totals is not None and prior.law is not None
        exact = np.flatnonzero(prior.law.noise == 0)
        Sigma = conditioning.covariance
        offset = MeanOffset(totals, conditioning.D, prior.law.F[exact], exact)
    first = symmetric_root(Sigma)
    if offset is not None:
        first = _within_law(first, offset.F)
    roots = [_lean(root) for root in (first, *(symmetric_root(S) for S in hyper.Sigmas[1:]))]
    T, U, Q = prior.n_outputs, len(prior.unknown), len(prior.soft)
    terms = []
    for r, (kernel, root) in enumerate(zip(hyper.kernels, roots, strict=True)):
        soft = np.sqrt(prior.soft * prior.soft_share) if r == 0 else np.zeros(0)
        B = _place(root, soft, T, U, Q)
        shift = prior.mean_variance if r == 0 and prior.mean_shape == "task" else 0.0
        pivots, factor = pivoted_cholesky(kernel(points))
        terms.append(TermFeatures(kernel, points[pivots], factor[pivots], B, shift))
    empty = np.zeros((0, points.shape[1]))
    if prior.mean_shape == "identity":
        B = _place(np.eye(T), np.zeros(0), T, U, Q)
        terms.append(TermFeatures(None, empty, np.zeros((0, 0)), B, prior.mean_variance))
    if U:
        B = np.zeros((T + U + Q, U))
        B[T : T + U] = np.diag(np.sqrt(prior.unknown))
        terms.append(TermFeatures(None, empty, np.zeros((0, 0)), B, 1.0))
    return FeatureMap(tuple(terms), offset, T + U + Q)


def _within_law(root: np.ndarray, F: np.ndarray) -> np.ndarray:
    """A factor W (T, r) of a covariance on F f = const with F W = 0 to the last digit.

    Where the unconstrained covariance is nearly singular, Schur conditioning leaves what round-off it magnifies.
    """
    back = np.linalg.pinv(F)
    for _ in range(2):
        root = root - back @ (F @ root)
    return root


def _lean(root: np.ndarray) -> np.ndarray:
    """The root without columns of zeros: a term for one output has a single column."""
    live = np.any(root != 0, axis=0)
    return root[:, live] if live.any() else root


def _place(root: np.ndarray, soft: np.ndarray, T: int, U: int, Q: int) -> np.ndarray:
    """(T + U + Q, q) factor with the outputs' root on top and the soft errors' own variances at the bottom."""
    return block_diag(root, np.zeros((U, 0)), np.diag(soft) if len(soft) else np.zeros((Q, 0)))


class AtPoints(NamedTuple):
    """Mean (n, C), root (n, C, weights), left-over covariance (n, C, C) and features of each term."""

    mean: np.ndarray
    root: np.ndarray
    left: np.ndarray
    phis: list[np.ndarray]


@dataclass(frozen=True)
class WeightPosterior:
    """w | y ~ N(mean, root root^T), and with it f anywhere."""

    features: FeatureMap | LatentFeatures
    mean: np.ndarray  # (weights,)
    root: np.ndarray  # (weights, weights)

    def at(self, x: np.ndarray, x_law: np.ndarray) -> AtPoints:
        """The posterior at x, the left-over included."""
        G, phis = self.features.design(x)
        return AtPoints(*self._moments(G, x_law), self.features.left_over(x, phis), phis)

    def carried(self, x: np.ndarray, x_law: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and root: all there is at points the features were built on."""
        return self._moments(self.features.design(x)[0], x_law)

    def _moments(self, G: np.ndarray, x_law: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean = G @ self.mean
        if self.features.offset is not None:
            mean = self.features.offset.onto_law(mean + self.features.offset(x_law), x_law)
        # One product of two matrices: a stack of small ones takes several times as long.
        return mean, (G.reshape(G.shape[0] * G.shape[1], G.shape[2]) @ self.root).reshape(G.shape)

    def differentiated(self, order: tuple[int, ...], x_scale: np.ndarray) -> WeightPosterior:
        """The derivatives of all columns."""
        return replace(self, features=self.features.differentiated(order, x_scale))

    def widened(self, factor: float) -> WeightPosterior:
        """The same means with all standard deviations ``factor`` times as large."""
        return WeightPosterior(self.features.widened(factor), self.mean / factor, self.root)


def condition_on_data(
    prior: MultitaskPrior,
    theta: np.ndarray,
    features: FeatureMap | LatentFeatures,
    x: np.ndarray,
    x_law: np.ndarray,
    y: np.ndarray,
) -> WeightPosterior:
    """Weights given the measured entries of y (N, T): precision I + G^T R^-1 G."""
    G, _ = features.design(x)
    T = y.shape[1]
    target = y if features.offset is None else y - features.offset(x_law)[:, :T]
    rows, values = _whitened(prior, theta, G[:, :T], target)
    precision = rows.T @ rows
    precision[np.diag_indices_from(precision)] += 1.0
    factor = cholesky(precision, "weights")
    mean = solve_cholesky(factor, rows.T @ values)
    root = solve_lower(factor, np.eye(len(factor)), transposed=True)
    return WeightPosterior(features, mean, root)


def _whitened(prior: MultitaskPrior, theta: np.ndarray, G: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Design rows and targets of the measured entries, divided by the noise's standard deviation."""
    variances = prior.noise.variances(theta[prior.noise_slice])
    measured = ~np.isnan(target)
    if not prior.noise.closed:
        sd = np.sqrt(np.broadcast_to(variances, target.shape)[measured])
        return G[measured] / sd[:, None], target[measured] / sd
    # Noise within the null space of the law: each row has its own block, on entries that are not redundant.
    basis = nullspace_basis(prior.law.F)  # type: ignore[union-attr]
    rows, values = [], []
    for g, t, m in zip(G, target, measured, strict=True):
        if not m.any():
            continue
        block = (basis @ (basis.T * variances) @ basis @ basis.T)[np.ix_(m, m)]
        root = symmetric_root(block, 1e-10)
        inverse = (root / np.sum(root**2, axis=0)).T
        rows.append(inverse @ g[m])
        values.append(inverse @ t[m])
    return np.concatenate(rows), np.concatenate(values)


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
