"""Functions of one variable with their slopes, exact or continued beyond the edge of their domain.

The continuation is once continuously differentiable and finite everywhere, so that an iteration may pass through
values (a negative argument of log) at which the law itself means nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sumgp.laws.formula.intervals import Interval
from sumgp.transforms import Absolute, Cos, Exp, Log, Sin, Tan

EDGE = 1e-3  # where a continuation begins, as a fraction of the argument's typical size
_EXPONENT_EDGE = 300.0  # exp(300) is about 1e130: products of such values are still finite
_LARGEST_SLOPE = 1e300  # of a power at the edge of its pole: beyond it there is no double
_ROOT_FLOOR = 1e-200  # keeps the slope of a root at zero finite; times the zero slope of its argument it is 0


class Scalar(Protocol):
    """u -> value(u) with its derivative. Made of objects with a name, so that laws can be pickled."""

    def value(self, f: np.ndarray, /) -> np.ndarray:
        """The function."""

    def derivative(self, f: np.ndarray, /) -> np.ndarray:
        """Its derivative."""


@dataclass(frozen=True)
class Elementary:
    """A function of NumPy and its derivative."""

    value: Callable[[np.ndarray], np.ndarray]
    derivative: Callable[[np.ndarray], np.ndarray]


def _asin_slope(u: np.ndarray) -> np.ndarray:
    return 1.0 / np.sqrt((1.0 - u) * (1.0 + u))


def _acos_slope(u: np.ndarray) -> np.ndarray:
    return -_asin_slope(u)


def _atan_slope(u: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + u**2)


def _tanh_slope(u: np.ndarray) -> np.ndarray:
    return 1.0 - np.tanh(u) ** 2


SCALARS: dict[str, Scalar] = {
    **{transform.word: transform for transform in (Exp(), Log(), Sin(), Cos(), Tan(), Absolute())},
    "asin": Elementary(np.arcsin, _asin_slope),
    "acos": Elementary(np.arccos, _acos_slope),
    "atan": Elementary(np.arctan, _atan_slope),
    "sinh": Elementary(np.sinh, np.cosh),
    "cosh": Elementary(np.cosh, np.sinh),
    "tanh": Elementary(np.tanh, _tanh_slope),
}


@dataclass(frozen=True)
class PowerFunction:
    """u ** exponent; NaN for negative u unless the exponent is whole."""

    exponent: float

    def value(self, u: np.ndarray) -> np.ndarray:
        """The power; squares and square roots by their own, faster and exact, functions."""
        if self.exponent == 2:
            return np.square(u)
        return np.sqrt(u) if self.exponent == 0.5 else np.power(u, self.exponent)

    def derivative(self, u: np.ndarray) -> np.ndarray:
        """exponent * u ** (exponent - 1)."""
        if self.exponent == 2:
            return 2.0 * u
        return 0.5 / np.sqrt(u) if self.exponent == 0.5 else self.exponent * np.power(u, self.exponent - 1.0)


def continued_function(name: str, size: float, argument: Interval) -> Scalar:
    """The named function, continued where its argument can reach the edge of its domain.

    ``size`` is the typical size of the argument and ``argument`` the interval of its values.
    """
    scalar = SCALARS[name]
    if name == "log":
        return scalar if argument.low > 0 else Tangent(scalar, lower=EDGE * size)
    if name in ("asin", "acos"):
        return Tangent(scalar, lower=EDGE - 1.0, upper=1.0 - EDGE)
    if name in ("exp", "sinh", "cosh"):
        return Tangent(scalar, lower=-_EXPONENT_EDGE, upper=_EXPONENT_EDGE)
    return scalar


def continued_power(exponent: float, size: float, argument: Interval) -> Scalar:
    """u ** exponent, continued near u = 0 for negative and broken exponents."""
    scalar = PowerFunction(exponent)
    whole = exponent == int(exponent)
    if (whole and (exponent > 0 or argument.high < 0)) or argument.low > 0:
        return scalar
    if exponent > 0 and argument.low >= 0:
        return Root(scalar)
    if whole and argument.low < 0:
        order = int(-exponent)
        return ThroughPole(scalar, order, max(EDGE * size, _LARGEST_SLOPE ** (-1.0 / (order + 1))))
    return Tangent(scalar, lower=EDGE * size)


@dataclass(frozen=True)
class Tangent:
    """A function between two edges, its tangents beyond."""

    inner: Scalar
    lower: float = -np.inf
    upper: float = np.inf

    def value(self, u: np.ndarray) -> np.ndarray:
        """The function or its tangent."""
        inside = np.clip(u, self.lower, self.upper)
        return self.inner.value(inside) + self.inner.derivative(inside) * (u - inside)

    def derivative(self, u: np.ndarray) -> np.ndarray:
        """The slope at the nearest point between the edges."""
        return self.inner.derivative(np.clip(u, self.lower, self.upper))


@dataclass(frozen=True)
class Root:
    """A positive power of an argument that is never negative, such as a length: exact, with a finite slope at zero."""

    inner: Scalar

    def value(self, u: np.ndarray) -> np.ndarray:
        """The power; an argument below zero is round-off."""
        return self.inner.value(np.maximum(u, 0.0))

    def derivative(self, u: np.ndarray) -> np.ndarray:
        """Its slope."""
        return self.inner.derivative(np.maximum(u, _ROOT_FLOOR))


@dataclass(frozen=True)
class ThroughPole:
    """u ** -order, replaced for |u| < edge by edge^-order v^k (a + b v^2) with v = u / edge, which matches value and slope.

    k = 1 for an odd order (from -1/edge through 0 to 1/edge), k = 0 for an even one (a finite peak).
    """

    inner: Scalar
    order: int
    edge: float

    def value(self, u: np.ndarray) -> np.ndarray:
        """The power or the polynomial."""
        near = np.abs(u) < self.edge
        k, a, b = self._polynomial
        v = np.where(near, u / self.edge, 1.0)
        return np.where(near, self.edge**-self.order * v**k * (a + b * v**2), self.inner.value(np.where(near, self.edge, u)))

    def derivative(self, u: np.ndarray) -> np.ndarray:
        """Its slope."""
        near = np.abs(u) < self.edge
        k, a, b = self._polynomial
        v = np.where(near, u / self.edge, 1.0)
        polynomial = self.edge ** (-self.order - 1) * (k * a + (k + 2) * b * v ** (k + 1))
        return np.where(near, polynomial, self.inner.derivative(np.where(near, self.edge, u)))

    @property
    def _polynomial(self) -> tuple[int, float, float]:
        k = self.order % 2
        b = -0.5 * (self.order + k)
        return k, 1.0 - b, b
