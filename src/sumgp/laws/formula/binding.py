"""Rows of a formula to the most specific law: linear or a sum where every row is one, else a general function.

For the iterations that look for it, a law is written without poles. An iteration that starts beyond one (odds p/(1 - p) at a
measured p above one) cannot come back across it: on the other side the law is met far away, if at all. So fractions are
cleared, p/(1 - p) = exp(u) becoming p = exp(u) (1 - p), and a logarithm of a quotient becomes a difference of logarithms,
each of which is continued beyond zero on its own. Where the law is defined both are met by the same values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import sympy

from sumgp.laws.formula.algebra import FUNCTIONS, as_float, residual_expression, shown, shown_terms
from sumgp.laws.formula.checks import Row, check_row, check_together, never_defined
from sumgp.laws.formula.functions import InputFunction, RowFunctions, Variables, compile_rows, read_variables
from sumgp.laws.formula.hints import Place
from sumgp.laws.formula.intervals import EmptyDomainError, image
from sumgp.laws.formula.terms import Reading, SumTerm, multiplied_out, obstacle, read_sum, without_even_roots
from sumgp.laws.formula.tree import Equation, Names
from sumgp.laws.function_law import FunctionLaw
from sumgp.laws.law import Law, SumLaw, term_note


def build_law(equations: Sequence[Equation], names: Names) -> Law:
    """The law of all equations together, after checking that they make sense alone and with each other."""
    outputs = [sympy.Symbol(name) for name in names.varying]
    unknown = [*outputs, *(sympy.Symbol(name) for name in names.unknowns)]
    rows = [_read_row(equation, names, outputs, unknown) for equation in equations]
    check_together(rows, unknown)
    used = frozenset().union(*(row.residual.free_symbols | row.expanded.free_symbols for row in rows))
    variables = read_variables(names, used)
    if all(row.reading is not None for row in rows):
        return _sum_law(rows, variables, names)
    return _FunctionRows(tuple(rows), variables, names).law()


def _read_row(equation: Equation, names: Names, outputs: Sequence[sympy.Symbol], unknown: Sequence[sympy.Symbol]) -> Row:
    place = Place(equation.text, 0, len(equation.text))
    residual, written = residual_expression(equation, names)
    _check_coefficients(residual, place)
    try:
        residual = without_even_roots(residual)
    except EmptyDomainError as error:
        raise never_defined(place, error) from None
    expanded = multiplied_out(residual)
    _check_coefficients(expanded, place)
    row = Row(equation.text, residual, expanded, read_sum(expanded, unknown))
    check_row(row, written, outputs, names.unknowns)
    return row


def _check_coefficients(expression: sympy.Expr, place: Place) -> None:
    """Refuse exact numbers that no double can hold."""
    for number in expression.atoms(sympy.Rational):
        if number != 0 and not 1e-300 < abs(as_float(number)) < 1e300:
            raise place.error("the numbers in this law multiply to one that is too large or too small; change the units")


def _sum_law(rows: Sequence[Row], variables: Variables, names: Names) -> SumLaw:
    readings = [row.reading for row in rows if row.reading is not None]
    keys = dict.fromkeys((term.symbol, term.transform) for reading in readings for term in reading.terms)
    columns = sorted(((variables.unknown.index(s), t) for s, t in keys), key=lambda pair: (pair[0], pair[1].label("")))
    coefficients = [[sympy.Integer(0)] * len(columns) for _ in rows]
    for row, reading in enumerate(readings):
        for term in reading.terms:
            column = columns.index((variables.unknown.index(term.symbol), term.transform))
            coefficients[row][column] = term.coefficient
    F = _array_or_function([c for row in coefficients for c in row], (len(rows), len(columns)), variables)
    S = _array_or_function([reading.total for reading in readings], (len(rows),), variables)
    constant = isinstance(F, np.ndarray) and isinstance(S, np.ndarray)
    return SumLaw(
        outputs=names.outputs,
        derivatives=tuple(names.derivatives.values()),
        unknowns=_unknown_names(variables, names),
        labels=tuple(row.text for row in rows),
        noise=np.zeros(len(rows)),
        extra_columns=variables.extra_columns,
        columns=tuple(columns),
        coefficients=F,
        total=S,
        select=None if constant or len(rows) == 1 else lambda kept: _sum_law([rows[i] for i in kept], variables, names),
        notes=() if constant else tuple(_sum_notes(reading, names) for reading in readings),
    )


def _array_or_function(
    expressions: Sequence[sympy.Expr], shape: tuple[int, ...], variables: Variables
) -> np.ndarray | InputFunction:
    if all(expression.is_Rational for expression in expressions):
        return np.array([as_float(expression) for expression in expressions]).reshape(shape)
    return InputFunction(compile_rows(expressions, ()), variables, shape)


def _unknown_names(variables: Variables, names: Names) -> tuple[str, ...]:
    return tuple(symbol.name for symbol in variables.unknown[len(names.varying) :])


def _sum_notes(reading: Reading, names: Names) -> tuple[str, ...]:
    return (*(_term_note(term, names) for term in reading.terms), f"total: {shown(reading.total)}")


def _term_note(term: SumTerm, names: Names) -> str:
    factor = f"({shown(term.coefficient)})" if term.coefficient.is_Add else shown(term.coefficient)
    return term_note(factor, term.transform, term.symbol.name, names.derivatives, names.unknowns)


@dataclass(frozen=True)
class _FunctionRows:
    """What is needed to make the exact law and, for given sizes of the outputs, the relaxed one."""

    rows: tuple[Row, ...]
    variables: Variables
    names: Names

    def law(self, sizes: Mapping[sympy.Symbol, float] | None = None) -> FunctionLaw:
        unknown = self.variables.unknown
        used = frozenset().union(*(row.expanded.free_symbols for row in self.rows))
        # A product alone is zero where the law holds: its size is that of the terms it is made of.
        measured = [row.residual if row.residual.is_Add else row.expanded for row in self.rows]
        program = compile_rows([row.residual for row in self.rows], unknown, sizes, measured)
        functions = RowFunctions(program, self.variables)
        return FunctionLaw(
            outputs=self.names.outputs,
            derivatives=tuple(self.names.derivatives.values()),
            unknowns=_unknown_names(self.variables, self.names),
            labels=tuple(row.text for row in self.rows),
            noise=np.zeros(len(self.rows)),
            extra_columns=self.variables.extra_columns,
            residual_function=functions.residual,
            jacobian_function=functions.jacobian,
            magnitude_function=functions.magnitude,
            relax=self.relaxed,
            select=self.selected,
            by_point=True,
            mentions=np.array([symbol in used for symbol in unknown]),
            notes=tuple(self._notes(row) for row in self.rows),
        )

    def relaxed(self, scale: np.ndarray, clear: np.ndarray) -> FunctionLaw:
        """The law without poles, continued beyond its domain's edge from 1e-3 of each argument's size; ``scale`` is (C,)."""
        typical = dict(zip(self.variables.unknown, map(np.float64, scale), strict=True))
        rows = tuple(
            replace(row, residual=self._without_poles(row.residual, typical, bool(cleared)))
            for row, cleared in zip(self.rows, clear, strict=True)
        )
        return replace(self, rows=rows).law({symbol: abs(float(size)) for symbol, size in typical.items()})

    def _without_poles(self, residual: sympy.Expr, typical: Mapping[sympy.Symbol, np.float64], clear: bool) -> sympy.Expr:
        """Fractions stay where constants or derivatives are looked for: where a denominator vanishes, any would do."""
        outputs = frozenset(map(sympy.Symbol, self.names.outputs))
        alone = not (residual.free_symbols & typical.keys()) - outputs
        split = split_logarithms(residual, typical)
        return cleared_of_fractions(split, outputs) if clear and alone else split

    def selected(self, rows: Sequence[int]) -> Law:
        """Some of the rows: a sum where these are sums."""
        kept = replace(self, rows=tuple(self.rows[row] for row in rows))
        if all(row.reading is not None for row in kept.rows):
            return _sum_law(kept.rows, self.variables, self.names)
        return kept.law()

    def _notes(self, row: Row) -> tuple[str, ...]:
        if row.reading is not None:
            return _sum_notes(row.reading, self.names)
        terms = tuple(f"term: {term}" for term in shown_terms(row.residual))
        return (*terms, f"not a sum of single outputs: {obstacle(row.expanded, self.variables.unknown)}")


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
