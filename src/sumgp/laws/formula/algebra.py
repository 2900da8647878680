"""Syntax tree to SymPy: exact rational coefficients, polynomials, and functions that SymPy leaves as they are.

Every number is an exact fraction (a double where it is the value of a function), so terms cancel exactly. The
functions are undefined ones to SymPy: its own would be rewritten with complex numbers in mind, and at unbounded cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import sympy

from sumgp.laws.formula.hints import Place, unknown_function
from sumgp.laws.formula.tree import Call, Equation, Name, Names, Node, Number, Power, Product, Sum, mentioned

MAX_EXPONENT = 64  # of whole powers: beyond it doubles overflow for ordinary values
MAX_INDEXED_NODES = 5000  # parts of a law after sum(...) is written out
_MAX_BITS = 1100  # of an exact numerator or denominator; beyond, a double is exact enough

NUMERIC: dict[str, Callable[[float], float]] = {
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": math.log,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "tanh": math.tanh,
    "abs": abs,
}
FUNCTIONS = {name: sympy.Function(name) for name in (*NUMERIC, "power")}


def residual_expression(equation: Equation, names: Names) -> tuple[sympy.Expr, frozenset[sympy.Symbol]]:
    """Left side minus right side over the symbols of ``names``, and every symbol written, cancelled or not.

    Raises ConstraintError that points at what cannot be understood.
    """
    read: list[sympy.Expr] = []
    reader = _Reader(names, read)
    residual = reader.value(equation.left) - reader.value(equation.right)
    return residual, frozenset(part for part in read if part.is_Symbol)


def as_float(number: sympy.Rational) -> float:
    """The nearest double; infinite where it is too large for one."""
    try:
        return int(number.p) / int(number.q)
    except OverflowError:
        return math.inf if number.p > 0 else -math.inf


def exact(value: float, place: Place) -> sympy.Rational:
    """A double as an exact fraction."""
    if not abs(value) < 1e300:
        raise place.error("the value of this is too large; change the units")
    fraction = Fraction(value)
    return sympy.Rational(fraction.numerator, fraction.denominator)


@dataclass(frozen=True)
class _Reader:
    """The walk; ``read`` collects the numbers and symbols met, ``indexed`` is what families stand for inside sum(...)."""

    names: Names
    read: list[sympy.Expr]
    indexed: Mapping[str, str] | None = None

    def value(self, node: Node) -> sympy.Expr:
        if len(self.read) > MAX_INDEXED_NODES:
            raise node.place.error(f"more than {MAX_INDEXED_NODES} parts once sum(...) is written out; simplify the law")
        match node:
            case Number():
                return self.leaf(sympy.Rational(node.value.numerator, node.value.denominator))
            case Name():
                return self.leaf(self.named(node))
            case Sum():
                return _limited(sympy.Add(*(sign * self.value(term) for sign, term in node.terms)), node.place)
            case Product():
                return _limited(sympy.Mul(*(self.factor(sign, factor) for sign, factor in node.factors)), node.place)
            case Power():
                return raised(self.value(node.base), self.value(node.exponent), node.place)
            case Call():
                return self.called(node)

    def leaf(self, value: sympy.Expr) -> sympy.Expr:
        self.read.append(value)
        return value

    def named(self, node: Name) -> sympy.Expr:
        name = node.name if self.indexed is None else self.indexed.get(node.name, node.name)
        meaning = self.names.meaning(name)
        if meaning is not None:
            return meaning
        if family := self.names.family(node.name):
            listed = ", ".join(list(family.values())[:3])
            raise node.place.error(f"unknown name {node.name!r}; there are {listed}: write one of them, or sum({node.name})")
        if coordinates := self.names.coordinates([node.name]):
            listed = ", ".join(coordinates[0])
            what = f"norm({node.name}) for its length, norm({node.name}, other) for a distance"
            raise node.place.error(f"{node.name!r} is a point with the coordinates {listed}; write {what}, or a coordinate")
        raise node.place.error(self.names.unknown_name(node.name))

    def factor(self, sign: int, node: Node) -> sympy.Expr:
        value = self.value(node)
        if sign == 1:
            return value
        if value == 0:
            raise node.place.error("division by zero")
        return _whole_power(value, sympy.Integer(-1))

    def called(self, node: Call) -> sympy.Expr:
        if node.function in ("sum", "mean"):
            return self.summed(node)
        if node.function == "norm":
            return self.length(node)
        if node.function not in NUMERIC:
            place = replace(node.place, end=node.place.start + len(node.function))
            raise place.error(_unknown_function(node, self.names))
        if len(node.arguments) != 1:
            bases = "; write log10(a), log2(a), or log(a)/log(b) for another base b" if node.function == "log" else ""
            raise node.place.error(f"{node.function} takes one argument, got {len(node.arguments)}{bases}")
        argument = self.value(node.arguments[0])
        if not argument.is_Rational:
            return FUNCTIONS[node.function](argument)
        try:
            return exact(NUMERIC[node.function](as_float(argument)), node.place)
        except (ValueError, OverflowError):
            number = f"{as_float(argument):g}"
            raise node.place.error(f"{node.function}({number}) is not a real number within range") from None

    def summed(self, node: Call) -> sympy.Expr:
        """sum(p) = p1 + ... + pk, mean(p) = sum(p)/k; any expression of indexed names is taken over their common indices."""
        if len(node.arguments) > 1:
            values = [self.value(argument) for argument in node.arguments]
        else:
            readers = self.indexed_readers(node)
            values = [reader.value(node.arguments[0]) for reader in readers]
        share = sympy.Rational(1, len(values) if node.function == "mean" else 1)
        return _limited(sympy.Add(*(share * value for value in values)), node.place)

    def indexed_readers(self, node: Call) -> list[_Reader]:
        """A reader for each index of the families inside sum(...)."""
        name = node.function
        if self.indexed is not None:
            raise node.place.error("a sum inside a sum is not supported; write the inner one out")
        body = node.arguments[0]
        families = {other: f for other in mentioned(body) if (f := self._family(other))}
        if not families:
            hint = f"{name}(p) takes outputs named p1, p2, ... or p_1, p_2, ...; for other names write {name}(a, b, c)"
            raise node.place.error(f"there is nothing to sum over: {hint}")
        indices = {tuple(family) for family in families.values()}
        if len(indices) > 1:
            listed = "; ".join(", ".join(family.values()) for family in families.values())
            raise node.place.error(f"the names to sum over have different indices: {listed}")
        return [replace(self, indexed={other: f[index] for other, f in families.items()}) for index in indices.pop()]

    def length(self, node: Call) -> sympy.Expr:
        """norm(a, b) = sqrt((a_x - b_x)**2 + (a_y - b_y)**2 [+ ...]); norm(a) is the distance from the origin."""
        points = [argument.name for argument in node.arguments if isinstance(argument, Name)]
        if len(points) != len(node.arguments) or len(points) > 2:
            raise node.place.error("norm takes the names of one or two points: norm(a, b) for outputs a_x, a_y, b_x, b_y")
        coordinates = self.names.coordinates(points)
        if coordinates is None:
            lacking = next((point for point in points if self.names.coordinates([point]) is None), " and ".join(points))
            raise node.place.error(
                f"norm finds no matching coordinates of {lacking}; name them {points[0]}_x, {points[0]}_y[, {points[0]}_z] "
                "(or with x, y, z or 1, 2, 3 and no underscore) among the outputs or constants, alike for both points"
            )
        values = [[self.leaf(self.names.meaning(name)) for name in names] for names in coordinates]
        origin = [sympy.Integer(0)] * len(values[0])
        other = values[1] if len(values) == 2 else origin
        squares = sympy.Add(*((a - b) ** 2 for a, b in zip(values[0], other, strict=True)))
        return raised(squares, sympy.Rational(1, 2), node.place)

    def _family(self, name: str) -> dict[int, str]:
        return {} if self.names.meaning(name) is not None else self.names.family(name)


def raised(base: sympy.Expr, exponent: sympy.Expr, place: Place) -> sympy.Expr:
    """base ** exponent: a polynomial for whole exponents, else one of the functions sqrt, power and exp."""
    if not exponent.is_Rational:
        if not base.is_Rational:
            return FUNCTIONS["power"](base, exponent)
        if base <= 0:
            raise place.error("a number that is not positive, raised to a power that varies, is not real")
        rate = exact(math.log(as_float(base)), place)
        return FUNCTIONS["exp"](rate * exponent) if rate else sympy.Integer(1)
    if abs(exponent) > MAX_EXPONENT:
        raise place.error(f"the exponent is larger than {MAX_EXPONENT}; write large numbers as 1e30")
    if base.is_Rational:
        return _numeric_power(base, exponent, place)
    if not exponent.is_Integer:
        return FUNCTIONS["sqrt"](base) if exponent == sympy.Rational(1, 2) else FUNCTIONS["power"](base, exponent)
    for factor in sympy.Mul.make_args(base):
        inner = factor.exp if factor.is_Pow else 1
        if abs(inner * exponent) > MAX_EXPONENT:
            raise place.error(f"the exponents multiply to more than {MAX_EXPONENT}")
    return _whole_power(base, exponent)


def _whole_power(base: sympy.Expr, exponent: sympy.Integer) -> sympy.Expr:
    """A power as SymPy writes it; of a sum without its lengthy search for infinities, which finds none."""
    evaluate = not base.is_Add or exponent in (0, 1)
    return sympy.Pow(base, exponent, evaluate=evaluate)


def _numeric_power(base: sympy.Rational, exponent: sympy.Rational, place: Place) -> sympy.Rational:
    if base == 0 and exponent < 0:
        raise place.error("division by zero")
    if exponent.is_Integer:
        return _limited(base**exponent, place)
    if base < 0:
        raise place.error("a fractional power of a negative number is not real")
    try:
        return exact(as_float(base) ** as_float(exponent), place)
    except OverflowError:
        raise place.error("the value of this is too large; change the units") from None


def _limited(value: sympy.Expr, place: Place) -> sympy.Expr:
    """Round a fraction with very many digits to a double: keeps every later step cheap."""
    if not value.is_Rational or max(int(value.p).bit_length(), int(value.q).bit_length()) <= _MAX_BITS:
        return value
    rounded = as_float(value)
    if rounded == 0:
        raise place.error("the value of this is too small; change the units")
    return exact(rounded, place)


def _unknown_function(node: Call, names: Names) -> str:
    name = node.function
    if name in names.outputs and any(set(mentioned(argument)) & set(names.inputs) for argument in node.arguments):
        return (
            f"{name!r} is not a function; write {name} alone, which is its value at the same inputs, d(...) for changes "
            f"from row to row, or {name}*(...) for a product"
        )
    if names.meaning(name) is not None:
        return f"{name!r} is not a function; write {name}*(...) for a product, and leave units out"
    return unknown_function(name)


_SUM, _PRODUCT, _POWER, _ATOM = range(4)  # how tightly an expression binds: brackets go around one that binds less


def shown(expression: sympy.Expr) -> str:
    """The expression as one would type it, e.g. ``0.5*exp(-t)*z**2``."""
    return _text(expression)[0]


def shown_terms(expression: sympy.Expr) -> list[str]:
    """The additive terms as text, in alphabetical order, numbers last."""
    texts = [(term.is_Rational, shown(term)) for term in sympy.Add.make_args(expression)]
    return [text for _, text in sorted(texts, key=lambda pair: (pair[0], pair[1].lstrip("-0123456789.*")))]


def _text(expression: sympy.Expr) -> tuple[str, int]:
    """Text and how tightly its outermost operation binds."""
    if expression.is_Rational:
        text = f"{as_float(expression):g}"
        return text, _SUM if text.startswith("-") else _ATOM
    if expression.is_Symbol:
        plain = expression.name.isidentifier()
        return (expression.name if plain else f"`{expression.name}`"), _ATOM
    if expression.is_Add:
        first, *others = shown_terms(expression)
        return first + "".join(f" - {t[1:]}" if t.startswith("-") else f" + {t}" for t in others), _SUM
    if expression.is_Mul:
        return _product(expression)
    if expression.is_Pow:
        base, exponent = expression.args
        text = _power(base, abs(exponent))
        return (text, _POWER) if exponent > 0 else (f"1/{text}", _PRODUCT)
    if type(expression).__name__ == "power":
        return f"{_bracketed(expression.args[0], _ATOM)}**{_bracketed(expression.args[1], _ATOM)}", _POWER
    return f"{type(expression).__name__}({shown(expression.args[0])})", _ATOM


def _product(expression: sympy.Expr) -> tuple[str, int]:
    number, rest = expression.as_coeff_Mul()
    factors = sympy.Mul.make_args(rest)
    above = [f for f in factors if not (f.is_Pow and f.exp < 0)]
    below = [f for f in factors if f.is_Pow and f.exp < 0]
    size = abs(as_float(number))
    lead = [f"{size:g}"] if size != 1 or not above else []
    text = "*".join([*lead, *(_bracketed(f, _POWER) for f in above)])
    text += "".join("/" + _power(f.base, -f.exp) for f in below)
    return ("-" + text, _SUM) if number < 0 else (text, _PRODUCT)


def _power(base: sympy.Expr, exponent: sympy.Integer) -> str:
    return _bracketed(base, _ATOM) + ("" if exponent == 1 else f"**{exponent}")


def _bracketed(expression: sympy.Expr, at_least: int) -> str:
    text, binding = _text(expression)
    return text if binding >= at_least else f"({text})"
