"""The same law written without poles, for the iterations that look for it.

An iteration that starts beyond a pole (odds p/(1 - p) at a measured p above one) cannot come back across it: on the other
side the law is met far away, if at all. So fractions are cleared, p/(1 - p) = exp(u) becoming p = exp(u) (1 - p), and a
logarithm of a quotient becomes a difference of logarithms, each of which is continued beyond zero on its own. Where the law
is defined both are met by the same values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import sympy

from sumgp.laws.formula.algebra import FUNCTIONS
from sumgp.laws.formula.functions import compile_rows
from sumgp.laws.formula.intervals import image
from sumgp.laws.formula.terms import multiplied_out

LOG = FUNCTIONS["log"]
Values = Mapping[sympy.Symbol, np.float64]


def cleared_of_fractions(expression: sympy.Expr, outputs: frozenset[sympy.Symbol]) -> sympy.Expr:
    """The expression times every denominator that outputs can make zero."""
    if not _has_pole(expression, outputs):
        return expression
    terms = sympy.Add.make_args(multiplied_out(expression))
    powers: dict[sympy.Expr, int] = {}
    for term in terms:
        for factor in sympy.Mul.make_args(term):
            if _is_pole(factor, outputs):
                powers[factor.base] = max(powers.get(factor.base, 0), -int(factor.exp))
    whole = [sympy.Pow(base, power) for base, power in powers.items()]
    return sympy.Add(*(sympy.Mul(term, *whole) for term in terms))


def _is_pole(factor: sympy.Expr, outputs: frozenset[sympy.Symbol]) -> bool:
    if not (factor.is_Pow and factor.exp < 0 and factor.free_symbols & outputs):
        return False
    values = image(factor.base)
    return values.low < 0 < values.high  # with a pole that has two sides


def _has_pole(expression: sympy.Expr, outputs: frozenset[sympy.Symbol]) -> bool:
    """True if there is one outside of the arguments of functions."""
    if expression.is_Add or expression.is_Mul or (expression.is_Pow and expression.exp > 0):
        return any(_has_pole(argument, outputs) for argument in expression.args)
    return _is_pole(expression, outputs)


def split_logarithms(expression: sympy.Expr, typical: Values) -> sympy.Expr:
    """log(a/b) as log(a) - log(b), or as log(-a) - log(-b) where b is negative at typical values of the law's columns."""
    if not expression.has(LOG):
        return expression
    split = expression.func(*(split_logarithms(argument, typical) for argument in expression.args))
    if type(split) is not LOG or not split.args[0].is_Mul:
        return split
    together: list[sympy.Expr] = []  # stays in one logarithm
    single: list[tuple[sympy.Expr, sympy.Expr]] = []  # a positive base and its power
    for factor in split.args[0].args:
        base, power = factor.args if factor.is_Pow else (factor, sympy.Integer(1))
        sign = _sign(base, typical) if power % 2 == 1 else 0
        if sign:
            single.append((sign * base, power))
            together.append(sympy.Integer(sign))
        else:
            together.append(factor)
    if single and not any(factor.free_symbols & typical.keys() for factor in together):
        base, power = single.pop()  # its sign is what the others leave for it
        rest = sympy.Mul(*together)
        whole = LOG(rest * base**power) if power > 0 else -LOG(base**-power / rest)
    else:
        whole = LOG(sympy.Mul(*together))
    return sympy.Add(whole, *(power * LOG(base) for base, power in single))


def _sign(base: sympy.Expr, typical: Values) -> int:
    """Sign of the base at typical values; 0 where it has none, depends on inputs too, or on no column at all."""
    if not base.free_symbols or not base.free_symbols <= typical.keys():
        return 0
    program = compile_rows([base], ())
    value = float(program.run(typical)[program.rows[0]])
    return 0 if math.isnan(value) else int(value > 0) - int(value < 0)
