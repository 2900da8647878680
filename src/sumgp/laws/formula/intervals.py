"""Images of expressions over all real outputs, by interval arithmetic: which values can a law's two sides take?

An interval is never too small, so "0 is outside" proves that a law has no solution; it may be too large where an
output occurs twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import sympy

from sumgp.laws.formula.algebra import NUMERIC, as_float


class EmptyDomainError(ValueError):
    """A function is undefined for every value its argument can take; carries the expression."""

    def __init__(self, expression: sympy.Expr) -> None:
        super().__init__(str(type(expression).__name__))
        self.expression = expression


@dataclass(frozen=True)
class Interval:
    """Values from ``low`` to ``high``; an open end is approached but not taken. Infinite ends are open."""

    low: float
    high: float
    low_open: bool = False
    high_open: bool = False

    def plus(self, other: Interval) -> Interval:
        """Values of a + b for independent a and b."""
        low, high = self.low + other.low, self.high + other.high
        # Infinite ends that came from overflow can meet as inf - inf; then nothing is known.
        return Interval(
            -math.inf if math.isnan(low) else low,
            math.inf if math.isnan(high) else high,
            self.low_open or other.low_open,
            self.high_open or other.high_open,
        )

    def times(self, other: Interval) -> Interval:
        """Values of a b for independent a and b."""
        ends = [
            (_end_product(a, b), (a_open or b_open) and not (_is_taken_zero(a, a_open) or _is_taken_zero(b, b_open)))
            for a, a_open in self._ends()
            for b, b_open in other._ends()
        ]
        low, high = min(e for e, _ in ends), max(e for e, _ in ends)
        return Interval(low, high, all(o for e, o in ends if e == low), all(o for e, o in ends if e == high))

    def within(self, domain: Interval) -> Interval | None:
        """The part inside a domain; None where nothing is left."""
        low = max((self.low, self.low_open), (domain.low, domain.low_open))
        high = min((self.high, not self.high_open), (domain.high, not domain.high_open))
        result = Interval(low[0], high[0], low[1], not high[1])
        empty = result.low > result.high or (result.low == result.high and (result.low_open or result.high_open))
        return None if empty else result

    def mapped(self, function: Callable[[float], float], decreasing: bool = False) -> Interval:
        """Image under a monotone function."""
        low, high = _at(function, self.low), _at(function, self.high)
        low_open, high_open = self.low_open or math.isinf(low), self.high_open or math.isinf(high)
        return Interval(high, low, high_open, low_open) if decreasing else Interval(low, high, low_open, high_open)

    def _ends(self) -> tuple[tuple[float, bool], tuple[float, bool]]:
        return (self.low, self.low_open), (self.high, self.high_open)


REALS = Interval(-math.inf, math.inf, True, True)
_POSITIVE = Interval(0.0, math.inf, True, True)  # where log is defined
_NOT_NEGATIVE = Interval(0.0, math.inf, False, True)  # where sqrt is
_UNIT = Interval(-1.0, 1.0)  # values of sine and cosine
_MINUS = Interval(-1.0, -1.0)  # the number -1, as a factor
_DOMAINS = {"log": _POSITIVE, "sqrt": _NOT_NEGATIVE, "asin": _UNIT, "acos": _UNIT}
_INCREASING = ("exp", "log", "sqrt", "asin", "atan", "sinh", "tanh")


def image(expression: sympy.Expr, known: dict[sympy.Expr, Interval] | None = None) -> Interval:
    """An interval that holds every value of the expression over real symbols.

    ``known`` collects the images of all parts. Raises EmptyDomainError where a part is never defined.
    """
    known = {} if known is None else known
    if expression not in known:
        arguments = [image(argument, known) for argument in expression.args]
        known[expression] = _image_of(expression, arguments)
    return known[expression]


def _image_of(expression: sympy.Expr, arguments: Sequence[Interval]) -> Interval:
    if expression.is_Rational:
        value = as_float(expression)
        return Interval(value, value)
    if expression.is_Symbol:
        return REALS
    if expression.is_Add or expression.is_Mul:
        result = arguments[0]
        for other in arguments[1:]:
            result = result.plus(other) if expression.is_Add else result.times(other)
        return result
    if expression.is_Pow:
        return _whole_power(arguments[0], int(expression.exp))
    return _function_image(expression, arguments)


def _whole_power(base: Interval, exponent: int) -> Interval:
    if exponent < 0:
        return _reciprocal(_whole_power(base, -exponent))
    magnitude = base if exponent % 2 else _absolute(base)
    return magnitude.mapped(lambda value: value**exponent)


def _reciprocal(base: Interval) -> Interval:
    if base.low < 0 < base.high or base.low == base.high == 0:
        return REALS
    if base.high <= 0:
        return _reciprocal(base.times(_MINUS)).times(_MINUS)
    return base.mapped(lambda value: 1.0 / value, decreasing=True)


def _absolute(base: Interval) -> Interval:
    if base.low >= 0:
        return base
    if base.high <= 0:
        return base.times(_MINUS)
    # Of two ends equally far away a closed one counts, because its value is taken.
    high, closed = max((-base.low, not base.low_open), (base.high, not base.high_open))
    return Interval(0.0, high, False, not closed)


def _function_image(expression: sympy.Expr, arguments: Sequence[Interval]) -> Interval:
    name = type(expression).__name__
    if name == "power":
        return _power_image(expression, arguments[0])
    inside = arguments[0].within(_DOMAINS.get(name, REALS))
    if inside is None:
        raise EmptyDomainError(expression)
    if name in _INCREASING:
        return inside.mapped(NUMERIC[name])
    if name == "acos":
        return inside.mapped(math.acos, decreasing=True)
    if name == "abs":
        return _absolute(inside)
    if name == "cosh":
        return _absolute(inside).mapped(math.cosh)
    return _UNIT if name in ("sin", "cos") else REALS


def _power_image(expression: sympy.Expr, base: Interval) -> Interval:
    exponent = expression.args[1]
    # A varying power is exp(exponent log(base)), which zero has none of.
    inside = base.within(_NOT_NEGATIVE if exponent.is_Rational else _POSITIVE)
    if inside is None:
        raise EmptyDomainError(expression)
    if not exponent.is_Rational:
        return _NOT_NEGATIVE
    power = as_float(exponent)
    return inside.mapped(lambda value: value**power, decreasing=power < 0)


def _is_taken_zero(value: float, is_open: bool) -> bool:
    return value == 0 and not is_open


def _end_product(a: float, b: float) -> float:
    return 0.0 if a == 0 or b == 0 else a * b


def _at(function: Callable[[float], float], value: float) -> float:
    """A monotone function at an end; log, powers and quotients grow without bound at zero."""
    try:
        return function(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except ZeroDivisionError:
        return math.inf
    except ValueError:
        return -math.inf
