"""The closed forms behind ``derivatives``: each kind of kernel between two fixed sets of points.

Radial kernels are functions phi(s) of
s = sum_i (r_i / l_i)^2, r = x - x'. Since s is quadratic and has no mixed terms, with c = a + b

    d^c phi(s) = sum_m phi^(|c| - |m|)(s) prod_i c_i! / (m_i! (c_i - 2 m_i)!) (2 r_i / l_i^2)^(c_i - 2 m_i) l_i^(-2 m_i)

over all m with 2 m_i <= c_i, and d^a d'^b k = (-1)^|b| d^c phi.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels as library
from sklearn.gaussian_process.kernels import Kernel

from sumgp.errors import DataError
from sumgp.priors.growth import Growth
from sumgp.priors.kernels import half_integer_bessel

Order = tuple[int, ...]
MATERN_SMOOTHNESS = {0.5: 0, 1.5: 1, 2.5: 2, 3.5: 3, 4.5: 4, math.inf: math.inf}  # derivatives that functions have
SMOOTH_KERNELS = (
    "RBF, RationalQuadratic, ExpSineSquared (one input), DotProduct, ConstantKernel, Matern(nu=1.5) for first derivatives, "
    "Matern(nu=2.5) for second ones, and sums and products of these"
)
COINCIDENT = 1e-30  # scaled distance below which two points are one: what is singular there is multiplied by zero


class Node(ABC):
    """A kernel between two fixed sets of points."""

    @abstractmethod
    def value(self, a: Order, b: Order) -> np.ndarray:
        """d^a d'^b k."""

    @abstractmethod
    def gradient(self, a: Order, b: Order) -> np.ndarray:
        """(p, ...) derivatives of it by theta."""


def kernel_node(kernel: Kernel, x1: np.ndarray, x2: np.ndarray) -> Node:
    """The kernel between points x1 and x2 (..., D), which are broadcast."""
    if isinstance(kernel, library.Sum):
        return SumNode(kernel_node(kernel.k1, x1, x2), kernel_node(kernel.k2, x1, x2))
    if isinstance(kernel, library.Product):
        return ProductNode(kernel_node(kernel.k1, x1, x2), kernel_node(kernel.k2, x1, x2))
    if isinstance(kernel, library.Exponentiation) and float(kernel.exponent).is_integer() and kernel.exponent >= 1:
        return _power(kernel_node(kernel.kernel, x1, x2), int(kernel.exponent))
    if isinstance(kernel, library.ExpSineSquared):
        return PeriodicNode(kernel, x1, x2)
    if isinstance(kernel, library.DotProduct):
        return DotNode(kernel, x1, x2)
    if isinstance(kernel, Growth):
        return GrowthNode(kernel, x1, x2)
    if isinstance(kernel, library.ConstantKernel):
        return ConstantNode(kernel, x1, x2)
    if isinstance(kernel, (library.RBF, library.RationalQuadratic)) and getattr(kernel, "nu", math.inf) in MATERN_SMOOTHNESS:
        return RadialNode(kernel, x1, x2)
    raise DataError("kernel", "one whose derivatives are known", str(kernel), f"use one of {SMOOTH_KERNELS}")


class RadialNode(Node):
    """phi(s) of RBF, Matern and RationalQuadratic."""

    def __init__(self, kernel: Any, x1: np.ndarray, x2: np.ndarray) -> None:
        self.r = np.moveaxis(x1 - x2, -1, 0)  # (D, ...)
        D = len(self.r)
        self.free = {h.name: h.n_elements for h in kernel.hyperparameters if not h.fixed}
        self.inverse = 1.0 / np.broadcast_to(np.asarray(kernel.length_scale, dtype=float), (D,)) ** 2
        self.scaled = self.r**2 * self.inverse.reshape(D, *[1] * (self.r.ndim - 1))
        self.radial = _Radial(kernel, self.scaled.sum(axis=0))
        self._values: dict[Order, np.ndarray] = {}
        self._gradients: dict[Order, np.ndarray] = {}

    def value(self, a: Order, b: Order) -> np.ndarray:
        c = tuple(i + j for i, j in zip(a, b, strict=True))
        if c not in self._values:
            self._values[c] = sum((self.radial(n) * factor for n, _, factor in self._terms(c)), np.zeros(self.r.shape[1:]))
        return self._values[c] if sum(b) % 2 == 0 else -self._values[c]

    def gradient(self, a: Order, b: Order) -> np.ndarray:
        c = tuple(i + j for i, j in zip(a, b, strict=True))
        if c not in self._gradients:
            self._gradients[c] = self._gradient(c)
        return self._gradients[c] if sum(b) % 2 == 0 else -self._gradients[c]

    def _terms(self, c: Order) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """For each m: the order of phi, how often 1 / l_i^2 enters (D,), and the factor beside phi."""
        for m in product(*(range(n // 2 + 1) for n in c)):
            number, factor = 1.0, np.ones(self.r.shape[1:])
            for i, (n, k) in enumerate(zip(c, m, strict=True)):
                number *= math.factorial(n) / (math.factorial(k) * math.factorial(n - 2 * k)) * self.inverse[i] ** (n - k)
                if n > 2 * k:
                    factor = factor * (2.0 * self.r[i]) ** (n - 2 * k)
            yield sum(c) - sum(m), np.subtract(c, m), number * factor

    def _gradient(self, c: Order) -> np.ndarray:
        lengths = self.free.get("length_scale", 0)
        alpha = self.free.get("alpha", 0)
        total = np.zeros((alpha + lengths, *self.r.shape[1:]))
        shape = (-1, *[1] * (self.r.ndim - 1))
        for n, powers, factor in self._terms(c):
            if alpha:
                total[0] += self.radial.by_log_alpha(n) * factor
            if lengths == 1:
                total[alpha] -= 2.0 * factor * (powers.sum() * self.radial(n) + self.scaled.sum(axis=0) * self.radial(n + 1))
            elif lengths:
                total[alpha:] -= 2.0 * factor * (powers.reshape(shape) * self.radial(n) + self.scaled * self.radial(n + 1))
        return total


class _Radial:
    """Derivatives phi^(n)(s) of a radial kernel by s, each computed once."""

    def __init__(self, kernel: Any, s: np.ndarray) -> None:
        self.s = s
        self._known: dict[int, np.ndarray] = {}
        self.alpha = float(kernel.alpha) if isinstance(kernel, library.RationalQuadratic) else math.nan
        self._form: Callable[[int], np.ndarray] = (
            self._rational if isinstance(kernel, library.RationalQuadratic) else self._rbf
        )
        if isinstance(kernel, library.Matern) and kernel.nu < math.inf:
            self.nu, self.r, self._form = float(kernel.nu), np.sqrt(2.0 * kernel.nu * s), self._matern

    def __call__(self, n: int) -> np.ndarray:
        if n not in self._known:
            self._known[n] = self._form(n)
        return self._known[n]

    def _rbf(self, n: int) -> np.ndarray:
        return np.exp(-0.5 * self.s) if n == 0 else (-0.5) ** n * self(0)

    def _rational(self, n: int) -> np.ndarray:
        rising = math.prod((self.alpha + i) / (2.0 * self.alpha) for i in range(n))
        return (-1.0) ** n * rising * (1.0 + self.s / (2.0 * self.alpha)) ** (-self.alpha - n)

    def by_log_alpha(self, n: int) -> np.ndarray:
        """Derivative of phi^(n) by the logarithm of a RationalQuadratic's alpha."""
        a, part = self.alpha, self.s / (2.0 * self.alpha)
        inner = sum(a / (a + i) for i in range(n)) - n - a * np.log1p(part) + (a + n) * part / (1.0 + part)
        return self(n) * inner

    def _matern(self, n: int) -> np.ndarray:
        # Past the smoothness it is singular where points coincide; there it is only ever multiplied by a higher power of s.
        p = self.nu - n
        form = half_integer_bessel(abs(p), self.r) * (_inverse(self.r) ** int(-2.0 * p) if p < 0 else 1.0)
        return (-self.nu) ** n / half_integer_bessel(self.nu, np.zeros(1)) * form


def _inverse(r: np.ndarray) -> np.ndarray:
    """1 / r; 0 where points coincide, since it is multiplied by a higher power of r there."""
    apart = r > COINCIDENT
    return np.where(apart, 1.0 / np.where(apart, r, 1.0), 0.0)


class PeriodicNode(Node):
    """k = exp(u), u = (cos(w r) - 1) / l^2, w = 2 pi / period, on one input.

    By Leibniz' rule on k' = u' k: k^(n + 1) = sum_j C(n, j) u^(j + 1) k^(n - j).
    """

    def __init__(self, kernel: library.ExpSineSquared, x1: np.ndarray, x2: np.ndarray) -> None:
        if x1.shape[-1] != 1:
            got = f"{x1.shape[-1]} inputs"
            raise DataError("kernel", "one input for derivatives of ExpSineSquared", got, "use RBF or Matern")
        self.r = (x1 - x2)[..., 0]
        self.wave, self.height = 2.0 * math.pi / kernel.periodicity, 1.0 / kernel.length_scale**2
        self.free = [h.name for h in kernel.hyperparameters if not h.fixed]
        self._known: list[np.ndarray] = [np.exp(self._u(0))]

    def _u(self, j: int) -> np.ndarray:
        cosine = np.cos(self.wave * self.r + 0.5 * math.pi * j)
        return self.height * (self.wave**j * cosine - (1.0 if j == 0 else 0.0))

    def _k(self, n: int) -> np.ndarray:
        while len(self._known) <= n:
            m = len(self._known) - 1
            self._known.append(sum(math.comb(m, j) * self._u(j + 1) * self._known[m - j] for j in range(m + 1)))
        return self._known[n]

    def value(self, a: Order, b: Order) -> np.ndarray:
        return (-1.0) ** b[0] * self._k(a[0] + b[0])

    def gradient(self, a: Order, b: Order) -> np.ndarray:
        n = a[0] + b[0]
        forms = {
            "length_scale": lambda: -2.0 * sum(math.comb(n, j) * self._u(j) * self._k(n - j) for j in range(n + 1)),
            "periodicity": lambda: -(self.r * self._k(n + 1) + n * self._k(n)),
        }
        parts = [forms[name]() for name in self.free]
        return (-1.0) ** b[0] * np.reshape(parts, (len(parts), *self.r.shape))


class DotNode(Node):
    """sigma_0^2 + x . x'."""

    def __init__(self, kernel: library.DotProduct, x1: np.ndarray, x2: np.ndarray) -> None:
        self.x1, self.x2, self.constant = x1, x2, kernel.sigma_0**2
        self.shape = np.broadcast_shapes(x1.shape, x2.shape)[:-1]
        self.n_free = len(kernel.theta)

    def value(self, a: Order, b: Order) -> np.ndarray:
        if sum(a) > 1 or sum(b) > 1:
            return np.zeros(self.shape)
        if sum(a) == 0 and sum(b) == 0:
            return self.constant + np.sum(self.x1 * self.x2, axis=-1)
        if sum(a) and sum(b):
            return np.full(self.shape, float(a == b))
        fixed = self.x2[..., a.index(1)] if sum(a) else self.x1[..., b.index(1)]
        return np.broadcast_to(fixed, self.shape)

    def gradient(self, a: Order, b: Order) -> np.ndarray:
        return np.full((self.n_free, *self.shape), 0.0 if sum(a) or sum(b) else 2.0 * self.constant)


class GrowthNode(Node):
    """k = exp(a . (x + x')), a = log factor: each derivative by input i multiplies it by a_i."""

    def __init__(self, kernel: Growth, x1: np.ndarray, x2: np.ndarray) -> None:
        self.rates = np.broadcast_to(np.log(kernel.factor), x1.shape[-1:])
        self.sums = np.moveaxis(x1 + x2, -1, 0)  # (D, ...)
        self.k = np.exp(np.tensordot(self.rates, self.sums, axes=1))
        self.n_free = len(kernel.theta)

    def value(self, a: Order, b: Order) -> np.ndarray:
        return self.k * np.prod(self.rates ** np.add(a, b))

    def gradient(self, a: Order, b: Order) -> np.ndarray:
        count = np.add(a, b)
        parts = []
        for i, n in enumerate(count):
            others = np.prod(np.delete(self.rates**count, i))
            by_rate = n * self.rates[i] ** (n - 1) if n else 0.0
            parts.append(self.k * others * (self.rates[i] ** n * self.sums[i] + by_rate))
        whole = np.stack(parts)
        return whole if self.n_free == len(parts) else whole.sum(axis=0, keepdims=True)[: self.n_free]


class ConstantNode(Node):
    """The same everywhere."""

    def __init__(self, kernel: library.ConstantKernel, x1: np.ndarray, x2: np.ndarray) -> None:
        self.shape = np.broadcast_shapes(x1.shape, x2.shape)[:-1]
        self.constant, self.n_free = float(kernel.constant_value), len(kernel.theta)

    def value(self, a: Order, b: Order) -> np.ndarray:
        return np.full(self.shape, 0.0 if sum(a) or sum(b) else self.constant)

    def gradient(self, a: Order, b: Order) -> np.ndarray:
        return np.broadcast_to(self.value(a, b), (self.n_free, *self.shape))


class SumNode(Node):
    """Derivatives add."""

    def __init__(self, first: Node, second: Node) -> None:
        self.first, self.second = first, second

    def value(self, a: Order, b: Order) -> np.ndarray:
        return self.first.value(a, b) + self.second.value(a, b)

    def gradient(self, a: Order, b: Order) -> np.ndarray:
        return np.concatenate([self.first.gradient(a, b), self.second.gradient(a, b)])


class ProductNode(Node):
    """Leibniz' rule in each input and on each side."""

    def __init__(self, first: Node, second: Node) -> None:
        self.first, self.second = first, second

    def _parts(self, a: Order, b: Order) -> Iterator[tuple[float, tuple[Order, Order], tuple[Order, Order]]]:
        whole = a + b
        for part in product(*(range(n + 1) for n in whole)):
            rest = tuple(n - k for n, k in zip(whole, part, strict=True))
            number = math.prod(math.comb(n, k) for n, k in zip(whole, part, strict=True))
            yield float(number), (part[: len(a)], part[len(a) :]), (rest[: len(a)], rest[len(a) :])

    def value(self, a: Order, b: Order) -> np.ndarray:
        return sum(n * self.first.value(*p) * self.second.value(*q) for n, p, q in self._parts(a, b))

    def gradient(self, a: Order, b: Order) -> np.ndarray:
        parts = list(self._parts(a, b))
        by_first = sum(n * self.first.gradient(*p) * self.second.value(*q) for n, p, q in parts)
        by_second = sum(n * self.first.value(*p) * self.second.gradient(*q) for n, p, q in parts)
        return np.concatenate([by_first, by_second])


class PowerNode(Node):
    """A kernel times itself: both factors have the same parameters."""

    def __init__(self, whole: ProductNode, n_factors: int) -> None:
        self.whole, self.n_factors = whole, n_factors

    def value(self, a: Order, b: Order) -> np.ndarray:
        return self.whole.value(a, b)

    def gradient(self, a: Order, b: Order) -> np.ndarray:
        full = self.whole.gradient(a, b)
        return full.reshape(self.n_factors, -1, *full.shape[1:]).sum(axis=0)


def _power(node: Node, exponent: int) -> Node:
    """node^exponent for a whole number of at least 1 (``smoothness`` is 0 for others)."""
    whole = node
    for _ in range(exponent - 1):
        whole = ProductNode(whole, node)
    return PowerNode(whole, exponent) if isinstance(whole, ProductNode) else whole
