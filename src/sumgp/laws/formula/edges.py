"""Functions of one variable with their slopes, exact or continued beyond the edge of their domain.

The continuation is once continuously differentiable and finite everywhere, so that an iteration may pass through
values (a negative argument of log) at which the law itself means nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sumgp.laws.formula.intervals import Interval

EDGE = 1e-3  # where a continuation begins, as a fraction of the argument's typical size
_EXPONENT_EDGE = 300.0  # exp(300) is about 1e130: products of such values are still finite
_ROOT_FLOOR = 1e-200  # keeps the slope of a root at zero finite; times the zero slope of its argument it is 0

ArrayFunction = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Scalar:
    """u -> value(u) with slope(u), its derivative."""

    value: ArrayFunction
    slope: ArrayFunction


SCALARS: dict[str, Scalar] = {
    "exp": Scalar(np.exp, np.exp),
    "log": Scalar(np.log, lambda u: 1.0 / np.where(u > 0, u, np.nan)),
    "sin": Scalar(np.sin, np.cos),
    "cos": Scalar(np.cos, lambda u: -np.sin(u)),
    "tan": Scalar(np.tan, lambda u: 1.0 + np.tan(u) ** 2),
    "asin": Scalar(np.arcsin, lambda u: 1.0 / np.sqrt((1.0 - u) * (1.0 + u))),
    "acos": Scalar(np.arccos, lambda u: -1.0 / np.sqrt((1.0 - u) * (1.0 + u))),
    "atan": Scalar(np.arctan, lambda u: 1.0 / (1.0 + u**2)),
    "sinh": Scalar(np.sinh, np.cosh),
    "cosh": Scalar(np.cosh, np.sinh),
    "tanh": Scalar(np.tanh, lambda u: 1.0 - np.tanh(u) ** 2),
    "abs": Scalar(np.abs, np.sign),
}


def power_scalar(exponent: float) -> Scalar:
    """u ** exponent; NaN for negative u unless the exponent is whole."""
    if exponent == 2:
        return Scalar(np.square, lambda u: 2.0 * u)
    if exponent == 0.5:
        return Scalar(np.sqrt, lambda u: 0.5 / np.sqrt(u))
    return Scalar(lambda u: np.power(u, exponent), lambda u: exponent * np.power(u, exponent - 1.0))


def continued_function(name: str, size: float, argument: Interval) -> Scalar:
    """The named function, continued where its argument can reach the edge of its domain.

    ``size`` is the typical size of the argument and ``argument`` the interval of its values.
    """
    scalar = SCALARS[name]
    if name == "log":
        return scalar if argument.low > 0 else _tangent(scalar, lower=EDGE * size)
    if name in ("asin", "acos"):
        return _tangent(scalar, lower=EDGE - 1.0, upper=1.0 - EDGE)
    if name in ("exp", "sinh", "cosh"):
        return _tangent(scalar, lower=-_EXPONENT_EDGE, upper=_EXPONENT_EDGE)
    return scalar


def continued_power(exponent: float, size: float, argument: Interval) -> Scalar:
    """u ** exponent, continued near u = 0 for negative and broken exponents."""
    scalar = power_scalar(exponent)
    whole = exponent == int(exponent)
    if (whole and (exponent > 0 or argument.high < 0)) or argument.low > 0:
        return scalar
    if exponent > 0 and argument.low >= 0:
        return _root(exponent)
    if whole and argument.low < 0:
        return _through_pole(scalar, int(-exponent), EDGE * size)
    return _tangent(scalar, lower=EDGE * size)


def _tangent(scalar: Scalar, lower: float = -np.inf, upper: float = np.inf) -> Scalar:
    """The function between two edges, its tangents beyond."""

    def value(u: np.ndarray) -> np.ndarray:
        inside = np.clip(u, lower, upper)
        return scalar.value(inside) + scalar.slope(inside) * (u - inside)

    return Scalar(value, lambda u: scalar.slope(np.clip(u, lower, upper)))


def _root(exponent: float) -> Scalar:
    """A positive power of an argument that is never negative, such as a length: exact, with a finite slope at zero."""
    scalar = power_scalar(exponent)
    return Scalar(
        lambda u: scalar.value(np.maximum(u, 0.0)),
        lambda u: scalar.slope(np.maximum(u, _ROOT_FLOOR)),
    )


def _through_pole(scalar: Scalar, order: int, edge: float) -> Scalar:
    """u ** -order, replaced for |u| < edge by the polynomial a u^k + b u^(k+2) that matches value and slope.

    k = 1 for an odd order (from -1/edge through 0 to 1/edge), k = 0 for an even one (a finite peak).
    """
    k = order % 2
    b = -0.5 * (order + k) * edge ** (-order - k - 2)
    a = edge ** (-order - k) - b * edge**2

    def value(u: np.ndarray) -> np.ndarray:
        near = np.abs(u) < edge
        return np.where(near, u**k * (a + b * u**2), scalar.value(np.where(near, edge, u)))

    def slope(u: np.ndarray) -> np.ndarray:
        near = np.abs(u) < edge
        inner = k * a + (k + 2) * b * u ** (k + 1)
        return np.where(near, inner, scalar.slope(np.where(near, edge, u)))

    return Scalar(value, slope)
