"""Weight space for derivatives: columns that are linear combinations of derivatives of latent functions.

Column c is sum_qa weights[c, q, a] d^orders[a] g_q with independent g_q of one kernel. The pivots of the Cholesky factor are
single derivatives at single points. Features of a derivative are the derivatives of the features, so that whatever
differential law the columns obey holds for every mean and every draw, at any point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import Kernel, Matern

from sumgp.laws import LatentMap
from sumgp.numerics import pivoted_cholesky, solve_lower, spectral_root
from sumgp.priors import KernelDerivatives, MultitaskPrior, lengthscale_mask

Order = tuple[int, ...]
CARRIED = 1e-12  # of the prior variance of a derivative: so little is left open at points that pivots carry
OFFSET_STEP = 1e-3  # between right sides, in inputs as the kernels see them: errors of 1e-12 and of round-off / 1e-3


def added(first: Order, second: Order) -> Order:
    """Both derivatives one after the other."""
    return tuple(a + b for a, b in zip(first, second, strict=True))


class Opened(NamedTuple):
    """A part K_ij B_i B_j^T of the covariance between points i and j that pivots leave open."""

    K: np.ndarray  # (n, n)
    B: np.ndarray  # (n, C, q)


@dataclass(frozen=True)
class FunctionalTerm:
    """Latent functions of one kernel and the columns made of their derivatives."""

    kernel: Kernel
    orders: tuple[Order, ...]  # (A,) of the derivatives that columns are made of
    weights: np.ndarray  # (C, q, A)
    pivot_orders: tuple[Order, ...]  # (A,)
    pivots: tuple[np.ndarray, ...]  # (A,) points (r_a, D) at which derivative a is a pivot
    factor: np.ndarray  # (r, r) lower Cholesky factor of the pivots, derivative by derivative after ``sorting``
    sorting: np.ndarray  # (r,) order in which the pivots were chosen
    sizes: np.ndarray  # (A,) standard deviations by which derivatives are divided

    def phi(self, x: np.ndarray) -> np.ndarray:
        """(n, A, r) features of each derivative."""
        covariance = [
            np.stack([KernelDerivatives(self.kernel, p, x).value(a, b) for b in self.orders], axis=2) / size
            for a, p, size in zip(self.pivot_orders, self.pivots, self.sizes, strict=True)
            if len(p)
        ]
        stacked = np.concatenate(covariance)[self.sorting]  # (r, n, A)
        r, n, A = stacked.shape
        return solve_lower(self.factor, stacked.reshape(r, n * A)).reshape(r, n, A).transpose(1, 2, 0)

    def differentiated(self, order: Order) -> FunctionalTerm:
        """The derivatives of all columns, by the same weights."""
        return replace(self, orders=tuple(added(own, order) for own in self.orders))

    def design(self, phi: np.ndarray) -> np.ndarray:
        """(n, C, weights)."""
        return _columns(self.weights, phi)

    def left_over(self, x: np.ndarray, phi: np.ndarray) -> np.ndarray:
        """(n, C, C) covariance at each point that the pivots do not carry."""
        table = KernelDerivatives.paired(self.kernel, x, x)
        prior = np.array([[table.value(a, b) for b in self.orders] for a in self.orders]).transpose(2, 0, 1)
        sizes = np.sqrt(np.maximum(np.einsum("naa->a", prior) / len(x), np.finfo(float).tiny))
        root = spectral_root((prior - phi @ phi.mT) / np.outer(sizes, sizes)) * sizes[:, None]
        columns = _columns(self.weights, root)
        return columns @ columns.mT

    def opened(self, x: np.ndarray, phi: np.ndarray) -> np.ndarray:
        """(n, C, e) root of the covariance between points that the pivots do not carry."""
        n, A, r = phi.shape
        table = KernelDerivatives(self.kernel, x, x)
        prior = np.array([[table.value(a, b) for b in self.orders] for a in self.orders])  # (A, A, n, n)
        sizes = np.sqrt(np.maximum(np.einsum("aaii->a", prior) / n, np.finfo(float).tiny))
        flat = phi.reshape(n * A, r)
        left = prior.transpose(2, 0, 3, 1).reshape(n * A, n * A) - flat @ flat.T
        left /= np.outer(np.tile(sizes, n), np.tile(sizes, n))
        largest = float(np.max(np.diagonal(left)))
        if largest <= CARRIED:
            return np.zeros((n, self.weights.shape[0], 0))
        _, root = pivoted_cholesky(left, CARRIED / largest)
        return _columns(self.weights, root.reshape(n, A, -1) * sizes[:, None])


def _columns(weights: np.ndarray, functionals: np.ndarray) -> np.ndarray:
    """(n, C, q r) columns from what their derivatives (n, A, r) are made of."""
    n, _, r = functionals.shape
    C, q, _ = weights.shape
    return np.einsum("cqa,nar->ncqr", weights, functionals).reshape(n, C, q * r)


def functional_term(kernel: Kernel, orders: Sequence[Order], weights: np.ndarray, points: np.ndarray) -> FunctionalTerm:
    """The term whose features are exact at ``points`` (n, D)."""
    table = KernelDerivatives(kernel, points, points)
    blocks = [[table.value(a, b) for b in orders] for a in orders]
    sizes = np.array([np.sqrt(float(np.mean(np.diagonal(blocks[a][a])))) for a in range(len(orders))])
    sizes = np.where(sizes > 0, sizes, 1.0)
    full = np.block(
        [[block / (s * t) for block, t in zip(row, sizes, strict=True)] for row, s in zip(blocks, sizes, strict=True)]
    )
    pivots, factor = pivoted_cholesky(full, CARRIED)
    which, where = pivots // len(points), pivots % len(points)
    grouped = np.argsort(which, kind="stable")
    return FunctionalTerm(
        kernel,
        tuple(orders),
        weights,
        tuple(orders),
        tuple(points[where[which == a]] for a in range(len(orders))),
        factor[pivots],
        np.argsort(grouped),
        sizes,
    )


@dataclass(frozen=True)
class ConstantOffset:
    """What is added to every mean: the part of the scaling's shift that the law does not allow."""

    value: np.ndarray  # (C,)

    def __call__(self, x_law: np.ndarray) -> np.ndarray:
        return np.broadcast_to(self.value, (len(x_law), len(self.value)))


@dataclass(frozen=True)
class LatentFeatures:
    """Features of outputs that are derivatives of latent functions, then unknown constants, then errors of soft laws."""

    terms: tuple[FunctionalTerm, ...]
    latent: LatentMap
    mean_sd: float  # of the polynomials' coefficients
    unknown: np.ndarray  # (U,) standard deviations
    n_columns: int
    offset: ConstantOffset
    order: tuple[int, ...] | None = None  # of the derivative of all outputs that is meant, None = the outputs

    def design(self, x: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """G (n, C, weights) and the features of each term."""
        phis = [term.phi(x) for term in self.terms]
        parts = [term.design(phi) for term, phi in zip(self.terms, phis, strict=True)]
        return np.concatenate([*parts, self._constants(x)], axis=2), phis

    def _constants(self, x: np.ndarray) -> np.ndarray:
        polynomials = self.mean_sd * self.latent.polynomials(x, self.order)
        n, T, P = polynomials.shape
        U = len(self.unknown)
        result = np.zeros((n, self.n_columns, P + U))
        result[:, :T, :P] = polynomials
        result[:, range(T, T + U), range(P, P + U)] = self.unknown
        return result

    def left_over(self, x: np.ndarray, phis: list[np.ndarray]) -> np.ndarray:
        """(n, C, C) covariance that the pivots leave open at each point."""
        return sum(
            (term.left_over(x, phi) for term, phi in zip(self.terms, phis, strict=True)),
            np.zeros((len(x), self.n_columns, self.n_columns)),
        )

    def opened(self, x: np.ndarray, phis: list[np.ndarray]) -> tuple[Opened, ...]:
        """The same between points."""
        parts = [term.opened(x, phi) for term, phi in zip(self.terms, phis, strict=True)]
        ones = np.ones((len(x), len(x)))
        return tuple(Opened(ones, part) for part in parts if part.shape[2])

    def open_draws(self, x: np.ndarray, phis: list[np.ndarray], count: int, generator: np.random.Generator) -> np.ndarray:
        """(count, n, C) draws of what the pivots leave open."""
        total = np.zeros((count, len(x), self.n_columns))
        for _, root in self.opened(x, phis):
            total += np.einsum("nce,ke->knc", root, generator.standard_normal((count, root.shape[2])))
        return total

    def differentiated(self, order: Order, x_scale: np.ndarray) -> LatentFeatures:
        """The derivatives of all outputs; constants have none, and errors of soft laws stay what they are."""
        T = len(self.latent.offset)
        terms = tuple(term.differentiated(order) if np.any(term.weights[:T]) else term for term in self.terms)
        offset = ConstantOffset(np.zeros_like(self.offset.value))
        return replace(self, terms=terms, offset=offset, unknown=np.zeros_like(self.unknown), order=order)


def latent_features(prior: MultitaskPrior, theta: np.ndarray, points: np.ndarray) -> LatentFeatures:
    """Features of a prior over latent functions, exact at ``points``."""
    latent = prior.latent
    assert latent is not None
    hyper = prior.unpack(theta)
    T, U, Q = prior.n_outputs, len(prior.unknown), len(prior.soft)
    C = T + U + Q
    terms = []
    for kernel, task, Sigma in zip(hyper.kernels, prior.tasks, hyper.Sigmas, strict=True):
        assert task.speaks_of is not None
        orders, coefficients = latent.orders(task.speaks_of)
        weights = np.zeros((C, 1, len(orders)))
        weights[:T, 0] = np.sqrt(Sigma[task.speaks_of, task.speaks_of]) * coefficients
        terms.append(functional_term(kernel, orders, weights, points))
    if Q:
        weights = np.zeros((C, Q, 1))
        weights[range(T + U, C), range(Q), 0] = np.sqrt(prior.soft)
        terms.append(functional_term(_rough(hyper.kernels), [(0,) * points.shape[1]], weights, points))
    offset = np.concatenate([latent.offset, np.zeros(U + Q)])
    return LatentFeatures(
        tuple(terms), latent, np.sqrt(prior.mean_variance), np.sqrt(prior.unknown), C, ConstantOffset(offset)
    )


def _rough(kernels: Sequence[Kernel]) -> Kernel:
    """Kernel of errors of soft laws: they vary over the shortest of the lengthscales, and are not smooth.

    Squares of outputs vary faster than the outputs. An error as smooth as these could not follow, and the outputs would have
    to move instead.
    """
    lengths = [np.exp(kernel.theta[lengthscale_mask(kernel)]) for kernel in kernels]
    return Matern(np.min([np.broadcast_to(a, lengths[0].shape) for a in lengths if len(a)], axis=0), nu=0.5)


@dataclass(frozen=True)
class SlopeOfOffset:
    """Derivative of an offset, by differences of fourth order: right sides are any functions of the inputs."""

    of: Callable[[np.ndarray], np.ndarray]
    order: tuple[int, ...]
    x_scale: np.ndarray  # (D,)

    def __call__(self, x_law: np.ndarray) -> np.ndarray:
        function: Callable[[np.ndarray], np.ndarray] = self.of
        for i, count in enumerate(self.order):
            for _ in range(count):
                function = self._slope(function, i)
        return function(x_law)

    def _slope(self, function: Callable[[np.ndarray], np.ndarray], i: int) -> Callable[[np.ndarray], np.ndarray]:
        def slope(x_law: np.ndarray) -> np.ndarray:
            step = np.zeros(x_law.shape[1])
            step[i] = OFFSET_STEP * self.x_scale[i]
            near = function(x_law + step) - function(x_law - step)
            return (8.0 * near - (function(x_law + 2.0 * step) - function(x_law - 2.0 * step))) / (12.0 * OFFSET_STEP)

        return slope
