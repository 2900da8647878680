"""Regression in weight space: f(x) = offset(x) + G(x) w + e(x), w ~ N(0, I).

A pivoted Cholesky factor of each kernel matrix picks the points that carry the others: for smooth kernels a few dozen
weights hold everything, and each further step (laws, predictions, samples) costs milliseconds. e(x) is what the chosen
points leave open at x; it vanishes at the points the map was built on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import Kernel

from sumgp.numerics import cholesky, pivoted_cholesky, solve_cholesky, solve_lower, symmetric_root, triangular_inverse
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
        """Covariance between the pivots and x, stored column by column as LAPACK reads it."""
        assert self.kernel is not None
        if self.order is None:
            return self.kernel(x, self.pivots).T
        return derivative_gram(self.kernel, self.pivots, (0,) * len(self.order), x, self.order)

    def left_over(self, x: np.ndarray, phi: np.ndarray) -> np.ndarray:
        """(n,) variance of K at x that the pivots do not carry."""
        if self.kernel is None:
            return np.zeros(len(x))
        if self.order is not None:
            prior = KernelDerivatives.paired(self.kernel, x, x).value(self.order, self.order)
            return np.maximum(prior - np.sum(phi**2, axis=1), 0.0)
        return np.maximum(self.kernel.diag(x) + self.constant - np.einsum("nr,nr->n", phi, phi), 0.0)

    def joint_left_over(self, x: np.ndarray, phi: np.ndarray) -> np.ndarray:
        """(n, n) covariance between points that the pivots do not carry."""
        assert self.kernel is not None
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

    def combined(self, weights: np.ndarray) -> np.ndarray:
        """(r, C k) that the features of all terms are multiplied by to give G(x) ``weights``, for weights (w, k)."""
        sizes, count = [len(t.pivots) + (t.constant > 0) for t in self.terms], weights.shape[1]
        ends = np.cumsum([t.B.shape[1] * r for t, r in zip(self.terms, sizes, strict=True)])[:-1]
        parts = [
            np.einsum("cq,qrk->rck", t.B, part.reshape(t.B.shape[1], r, count)).reshape(r, self.n_columns * count)
            for t, r, part in zip(self.terms, sizes, np.split(weights, ends), strict=True)
        ]
        return np.concatenate(parts)

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
        B = np.eye(T + U + Q)[:, T : T + U] * np.sqrt(prior.unknown)
        terms.append(TermFeatures(None, empty, np.zeros((0, 0)), B, 1.0))
    return FeatureMap(tuple(terms), offset, T + U + Q)


def _within_law(root: np.ndarray, F: np.ndarray) -> np.ndarray:
    """A factor W (T, r) of a covariance on F f = const with F W = 0 to the last digit: where the unconstrained covariance
    is nearly singular, Schur conditioning leaves what round-off it magnifies."""
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
    B = np.zeros((T + U + Q, root.shape[1] + len(soft)))
    B[:T, : root.shape[1]] = root
    B[range(T + U, T + U + len(soft)), range(root.shape[1], B.shape[1])] = soft
    return B


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
        mean, root, phis = self._moments(x, x_law)
        return AtPoints(mean, root, self.features.left_over(x, phis), phis)

    def carried(self, x: np.ndarray, x_law: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and root: all there is at points the features were built on."""
        return self._moments(x, x_law)[:2]

    def _moments(self, x: np.ndarray, x_law: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        shape = (len(x), self.features.n_columns, len(self.mean))
        # One product of two matrices: a stack of small ones takes several times as long.
        if isinstance(self.features, FeatureMap):
            phis = [term.phi(x) for term in self.features.terms]
            phi = np.hstack(phis)
            mean, root = phi @ self._by_features[0], phi @ self._by_features[1]
        else:
            G, phis = self.features.design(x)
            mean, root = G @ self.mean, G.reshape(len(x) * shape[1], shape[2]) @ self.root
        if (offset := self.features.offset) is not None:
            mean = mean + offset(x_law)
            mean = offset.onto_law(mean, x_law) if isinstance(offset, MeanOffset) else mean
        return mean, root.reshape(shape), phis

    @cached_property
    def _by_features(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean (r, C) and root (r, C weights) for each feature of a ``FeatureMap``."""
        assert isinstance(self.features, FeatureMap)
        return self.features.combined(self.mean[:, None]), self.features.combined(self.root)

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
    np.einsum("ii->i", precision)[...] += 1.0  # a view of the diagonal
    factor = cholesky(precision, "weights")
    mean = solve_cholesky(factor, rows.T @ values)
    root = triangular_inverse(factor).T
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


FEW_COLUMNS = 8  # up to which products of single columns are faster than a stack of small matrix products


def squares(root: np.ndarray) -> np.ndarray:
    """(n, C, C) root root^T at each point, of (n, C, w)."""
    n, C, _ = root.shape
    if C > FEW_COLUMNS:
        return root @ root.mT
    result = np.empty((n, C, C))
    for c in range(C):
        for d in range(c + 1):
            result[:, c, d] = result[:, d, c] = np.einsum("nw,nw->n", root[:, c], root[:, d])
    return result


@dataclass(frozen=True)
class Taper:
    """exp(-|x - x'| / length) between points: how far the law at one point may speak about another (0 = not at all).

    Only outputs are tapered; constants shared by all points and soft errors keep their correlations.
    """

    length: float  # in lengthscales along each input
    lengthscale: np.ndarray  # (D,)
    n_outputs: int

    def between(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """(n, m) factors."""
        distance = cdist(x / self.lengthscale, z / self.lengthscale)
        if self.length == 0.0:
            return (distance == 0.0).astype(float)
        return np.exp(-distance / self.length)

    def apply(self, blocks: np.ndarray, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Multiply covariance blocks (n, C, m, C) between points x and z."""
        T = self.n_outputs
        result = blocks.copy()
        result[:, :T, :, :T] *= self.between(x, z)[:, None, :, None]
        result[:, :T, :, T:] = 0.0
        result[:, T:, :, :T] = 0.0
        return result
