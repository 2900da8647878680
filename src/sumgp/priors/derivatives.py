"""Derivatives of kernels in closed form: covariances between derivatives of a function at two sets of points.

``order``: a multi-index (D,), how often to differentiate by each input; (0, 2) is d^2/dx2^2.

    derivative_gram(kernel, x1, order1, x2, order2)     d^a/dx d^b/dx' k(x, x'), (n, m)
    KernelDerivatives(kernel, x1, x2)                   the same for many orders of one kernel:
        .value(order1, order2)                          (n, m)
        .gradient(order1, order2)                       (p, n, m), by the free entries of ``kernel.theta``
    KernelDerivatives.paired(kernel, x1, x2)            row by row, (n,) in place of (n, m)
    smoothness(kernel)                                  how often functions can be differentiated
    check_smooth(kernel, order)                         DataError where that is too rarely

The kernel is a scikit-learn kernel at its hyperparameters (``with_theta``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from sklearn.gaussian_process import kernels as library
from sklearn.gaussian_process.kernels import Kernel

from sumgp.errors import DataError
from sumgp.priors.derivative_nodes import MATERN_SMOOTHNESS, SMOOTH_KERNELS, Order, kernel_node
from sumgp.priors.growth import Growth


def smoothness(kernel: Kernel) -> float:
    """How many derivatives the functions of a kernel have: 0, 1, 2 or infinitely many."""
    if isinstance(kernel, (library.Sum, library.Product)):
        return min(smoothness(kernel.k1), smoothness(kernel.k2))
    if isinstance(kernel, library.Exponentiation) and float(kernel.exponent).is_integer() and kernel.exponent >= 1:
        return smoothness(kernel.kernel)
    if type(kernel) is library.Matern:
        return MATERN_SMOOTHNESS.get(float(kernel.nu), 0)
    known = type(kernel) in (
        library.RBF,
        library.RationalQuadratic,
        library.ExpSineSquared,
        library.DotProduct,
        library.ConstantKernel,
        Growth,
    )
    return math.inf if known else 0


def check_smooth(kernel: Kernel, order: int) -> None:
    """DataError if functions of the kernel cannot be differentiated ``order`` times."""
    if order > smoothness(kernel):
        what = {1: "first derivatives", 2: "second derivatives"}.get(order, f"derivatives of order {order}")
        raise DataError("kernel", f"a kernel whose functions have {what}", str(kernel), f"use one of {SMOOTH_KERNELS}")


def derivative_gram(
    kernel: Kernel, x1: np.ndarray, order1: Sequence[int], x2: np.ndarray, order2: Sequence[int]
) -> np.ndarray:
    """Covariances (n, m) of d^order1 f at x1 (n, D) and d^order2 f at x2 (m, D)."""
    return KernelDerivatives(kernel, x1, x2).value(order1, order2)


class KernelDerivatives:
    """Derivatives of one kernel between x1 (n, D) and x2 (m, D); what several orders share is computed once."""

    def __init__(self, kernel: Kernel, x1: np.ndarray, x2: np.ndarray, paired: bool = False) -> None:
        self.kernel = kernel
        first, second = np.asarray(x1, dtype=float), np.asarray(x2, dtype=float)
        self._node = (
            kernel_node(kernel, first, second) if paired else kernel_node(kernel, first[:, None, :], second[None, :, :])
        )

    @classmethod
    def paired(cls, kernel: Kernel, x1: np.ndarray, x2: np.ndarray) -> KernelDerivatives:
        """Row i of x1 with row i of x2 only."""
        return cls(kernel, x1, x2, paired=True)

    def value(self, order1: Sequence[int], order2: Sequence[int]) -> np.ndarray:
        """Covariances of the derivatives."""
        return self._node.value(*self._checked(order1, order2))

    def gradient(self, order1: Sequence[int], order2: Sequence[int]) -> np.ndarray:
        """Their derivatives by the kernel's theta."""
        return self._node.gradient(*self._checked(order1, order2))

    def _checked(self, order1: Sequence[int], order2: Sequence[int]) -> tuple[Order, Order]:
        check_smooth(self.kernel, max(sum(order1), sum(order2)))
        return tuple(order1), tuple(order2)
