"""Expressions back to readable text, numbers with six digits."""

from __future__ import annotations

import sympy

from sumgp.laws.formula.algebra import as_float

_SUM, _PRODUCT, _POWER, _ATOM = range(4)


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
