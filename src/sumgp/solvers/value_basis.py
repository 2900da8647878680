"""A Gaussian process and its derivatives by weights: the span of a kernel over given points, and a constant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from sumgp.priors import KernelDerivatives

# Eigenvalues of the kernel matrix below this share of the largest are left out: what round-off leaves of them is noise. At
# 1e-8 sharp turns of a law lacked directions, and intervals of constants were up to half as long as they should be.
NEGLIGIBLE = 1e-13
MEAN_VARIANCE = 10.0  # prior variance of the constant, in units of the function's own

Order = tuple[int, ...]


@dataclass(frozen=True)
class ValueBasis:
    """f(x) = phi(x) w with w ~ N(0, I): phi(x) = a [v k(x, z) M, c], where M M^T is the inverse of v k(z, z).

    ``variance`` v of the function, ``points`` z (m, D), ``transform`` M (m, r). The last weight is the constant's.
    ``release`` a: how much larger sds are within the span of the points than the kernel has them; beyond it nothing changes.
    """

    kernel: Kernel
    variance: float
    points: np.ndarray
    transform: np.ndarray
    release: float = 1.0

    @classmethod
    def over(cls, kernel: Kernel, variance: float, points: np.ndarray) -> ValueBasis:
        """The basis of the directions that are not negligible at the points."""
        none = (0,) * points.shape[1]
        values, vectors = np.linalg.eigh(variance * KernelDerivatives(kernel, points, points).value(none, none))
        kept = values > NEGLIGIBLE * values[-1]
        return cls(kernel, variance, points, vectors[:, kept] / np.sqrt(values[kept]))

    @property
    def size(self) -> int:
        """Number of weights."""
        return self.transform.shape[1] + 1

    def at(self, x: np.ndarray, orders: Sequence[Order]) -> list[np.ndarray]:
        """(n, size) features at x (n, D) of each derivative, (0, ...) for the function itself."""
        kernels, none = KernelDerivatives(self.kernel, x, self.points), (0,) * x.shape[1]
        result = []
        for order in orders:
            constant = self.release * np.sqrt(MEAN_VARIANCE * self.variance) if not any(order) else 0.0
            spanned = self.release * self.variance * kernels.value(order, none) @ self.transform
            result.append(np.column_stack([spanned, np.full(len(x), constant)]))
        return result

    def widened(self, factor: float) -> ValueBasis:
        """The same functions with standard deviations ``factor`` times as large."""
        return replace(self, variance=factor**2 * self.variance, transform=self.transform / factor)

    def released(self, factor: float) -> ValueBasis:
        """The same with standard deviations within the span ``factor`` times as large."""
        return replace(self, release=factor * self.release)

    def prior_variances(self, x: np.ndarray, orders: Sequence[Order]) -> np.ndarray:
        """(n, len(orders)) variances of the function and its derivatives, the constant aside."""
        kernels = KernelDerivatives.paired(self.kernel, x, x)
        return self.variance * np.stack([kernels.value(order, order) for order in orders], axis=1)

    def left_over(self, x: np.ndarray, orders: Sequence[Order], features: Sequence[np.ndarray]) -> np.ndarray:
        """(n, q, q) covariance of the q derivatives at each point that the weights do not span."""
        kernels = KernelDerivatives.paired(self.kernel, x, x)
        result = np.empty((len(x), len(orders), len(orders)))
        for i, first in enumerate(orders):
            for j, second in enumerate(orders):
                spanned = np.einsum("nr,nr->n", features[i][:, :-1], features[j][:, :-1]) / self.release**2
                result[:, i, j] = self.variance * kernels.value(first, second) - spanned
        values, vectors = np.linalg.eigh(0.5 * (result + result.mT))
        return (vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.mT

    def joint_left_over(self, x: np.ndarray, orders: Sequence[Order], features: Sequence[np.ndarray]) -> np.ndarray:
        """(nq, nq) the same between all points, point by point."""
        kernels, n, q = KernelDerivatives(self.kernel, x, x), len(x), len(orders)
        result = np.empty((n, q, n, q))
        for i, first in enumerate(orders):
            for j, second in enumerate(orders):
                spanned = features[i][:, :-1] @ features[j][:, :-1].T / self.release**2
                result[:, i, :, j] = self.variance * kernels.value(first, second) - spanned
        return result.reshape(n * q, n * q)
