"""A law multiplied out, and its reading as a sum of transformed outputs where it is one (the paper's Eq. 5)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sympy

from sumgp.laws.formula.algebra import FUNCTIONS, as_float, shown
from sumgp.laws.formula.intervals import image
from sumgp.transforms import NAMED_POWERS, Absolute, Cos, Exp, Identity, Log, Power, Sin, Tan, Transform

MAX_TERMS = 300  # a law that would have more when multiplied out, and more than twice its parts, is left as it is
MAX_TERMS_INSIDE = 100  # the same for the arguments of its functions, where multiplying out gains little

_TRANSFORMS: dict[str, Transform] = {"abs": Absolute(), "exp": Exp(), "log": Log(), "sin": Sin(), "cos": Cos(), "tan": Tan()}
_ROOTS = (FUNCTIONS["sqrt"], FUNCTIONS["power"], FUNCTIONS["abs"])


@dataclass(frozen=True)
class SumTerm:
    """coefficient * transform(symbol), the coefficient over inputs and constants only."""

    symbol: sympy.Symbol
    transform: Transform
    coefficient: sympy.Expr


@dataclass(frozen=True)
class Reading:
    """sum of ``terms`` = ``total``."""

    terms: tuple[SumTerm, ...]
    total: sympy.Expr


def without_even_roots(expression: sympy.Expr) -> sympy.Expr:
    """Write abs(u)**2 as u**2, and sqrt(u)**2 as u where u is never negative: squared lengths become polynomials."""
    if not expression.has(*_ROOTS):
        return expression
    expression = expression.func(*(without_even_roots(argument) for argument in expression.args))
    if not expression.is_Pow:
        return expression
    base, exponent = expression.args
    if type(base) is FUNCTIONS["abs"] and exponent % 2 == 0:
        return sympy.Pow(base.args[0], exponent)
    if type(base) is FUNCTIONS["sqrt"]:
        exponent = exponent / 2
    elif type(base) is FUNCTIONS["power"] and base.args[1].is_Rational:
        exponent = exponent * base.args[1]
    else:
        return expression
    if exponent.is_Integer and image(base.args[0]).low >= 0:
        return sympy.Pow(base.args[0], exponent)
    return expression


def multiplied_out(expression: sympy.Expr) -> sympy.Expr:
    """Expand products and whole powers of sums, unless that would give too many terms."""
    # Counting with the law's own size lets t*sum(p) over hundreds of outputs be seen as linear.
    most = max(MAX_TERMS, 2 * sum(not part.args for part in sympy.preorder_traversal(expression)))
    terms, inside = _term_counts(expression, most)
    if terms > most or inside > MAX_TERMS_INSIDE:
        return expression
    return sympy.expand(expression, mul=True, multinomial=True, power_base=False, power_exp=False, log=False, basic=False)


def _term_counts(expression: sympy.Expr, most: int) -> tuple[float, float]:
    """Upper bounds of the number of terms after expansion: of the expression, and of all arguments of functions in it."""
    if not expression.args:
        return 1, 0
    counts, inside = zip(*(_term_counts(argument, most) for argument in expression.args), strict=True)
    if max(counts) > most:
        return math.inf, 0
    if expression.is_Add:
        return sum(counts), sum(inside)
    if expression.is_Mul:
        return math.prod(counts), sum(inside)
    if expression.is_Pow:
        power = abs(int(expression.exp))
        return math.comb(int(counts[0]) + power - 1, power), inside[0]
    return 1, sum(counts) + sum(inside)


def read_sum(expanded: sympy.Expr, unknown: Sequence[sympy.Symbol]) -> Reading | None:
    """The law as a sum of transforms of the single symbols in ``unknown``; None where a term is none of those."""
    coefficients: dict[tuple[sympy.Symbol, Transform], sympy.Expr] = {}
    total = sympy.Integer(0)
    for term in sympy.Add.make_args(expanded):
        coefficient, dependent = term.as_independent(*unknown, as_Add=False)
        if not dependent.free_symbols:
            total -= coefficient
            continue
        found = _recognised(dependent, unknown)
        if found is None:
            return None
        symbol, transform, factor, shift = found
        key = (symbol, transform)
        coefficients[key] = coefficients.get(key, sympy.Integer(0)) + coefficient * factor
        total -= coefficient * shift
    order = {symbol: position for position, symbol in enumerate(unknown)}
    kept = [SumTerm(*key, coefficient) for key, coefficient in coefficients.items() if coefficient != 0]
    kept.sort(key=lambda term: (order[term.symbol], term.transform.label("")))
    return Reading(tuple(kept), total)


_Recognised = tuple[sympy.Symbol, Transform, sympy.Expr, sympy.Expr]


def _recognised(dependent: sympy.Expr, unknown: Sequence[sympy.Symbol]) -> _Recognised | None:
    """(symbol, transform, factor, shift) with dependent = factor * transform(symbol) + shift, if it has that form."""
    one, zero = sympy.Integer(1), sympy.Integer(0)
    if dependent.is_Symbol:
        return dependent, Identity(), one, zero
    argument = dependent.args[0]
    if dependent.is_Pow:
        if not argument.is_Symbol or dependent.exp < 2:
            return None
        exponent = int(dependent.exp)
        return argument, NAMED_POWERS.get(exponent) or Power(exponent), one, zero
    name = type(dependent).__name__
    transform = _TRANSFORMS.get(name)
    if transform is None:
        return None
    if argument.is_Symbol:
        return argument, transform, one, zero
    return _moved_out(name, argument, transform, unknown)


def _moved_out(name: str, argument: sympy.Expr, transform: Transform, unknown: Sequence[Any]) -> _Recognised | None:
    """exp(z + c) = exp(c) exp(z), log(c z) = log(c) + log(z) for c > 0, abs(c z) = abs(c) abs(z)."""
    one, zero = sympy.Integer(1), sympy.Integer(0)
    if name == "exp":
        rest, symbol = argument.as_independent(*unknown, as_Add=True)
        if symbol.is_Symbol and not (rest.is_Rational and abs(rest) > 600):
            return symbol, transform, _exact_or(FUNCTIONS["exp"], rest, math.exp), zero
    if name in ("log", "abs"):
        scale, symbol = argument.as_independent(*unknown, as_Add=False)
        if symbol.is_Symbol and scale.is_Rational:
            if name == "abs":
                return symbol, transform, abs(scale), zero
            if scale > 0:
                return symbol, transform, one, _exact_or(FUNCTIONS["log"], scale, math.log)
    return None


def _exact_or(function: Any, argument: sympy.Expr, numeric: Any) -> sympy.Expr:
    """The function's value as an exact double where its argument is a number, else the function of it."""
    return sympy.Rational(*numeric(as_float(argument)).as_integer_ratio()) if argument.is_Rational else function(argument)


def obstacle(expanded: sympy.Expr, unknown: Sequence[sympy.Symbol]) -> str:
    """Why ``read_sum`` gave None: the first term that is no transform of a single output."""
    parts = (term.as_independent(*unknown, as_Add=False)[1] for term in sympy.Add.make_args(expanded))
    term = next(part for part in parts if part.free_symbols and _recognised(part, unknown) is None)
    names = sorted(symbol.name for symbol in term.free_symbols & set(unknown))
    if len(names) > 1:
        return f"{shown(term)} couples {', '.join(names)}"
    return f"{shown(term)} is not one of the transforms z, z**n, abs, exp, log, sin, cos, tan of {names[0]}"
