"""Rows of a formula to the most specific law: linear or a sum where every row is one, else a general function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import sympy

from sumgp.laws.formula.algebra import as_float, residual_expression, shown, shown_terms
from sumgp.laws.formula.checks import Row, check_row, check_together, never_defined
from sumgp.laws.formula.constraint import term_note
from sumgp.laws.formula.functions import Continuation, InputFunction, RowFunctions, Variables, compile_rows, read_variables
from sumgp.laws.formula.hints import Place
from sumgp.laws.formula.intervals import EmptyDomainError
from sumgp.laws.formula.poles import cleared_of_fractions, split_logarithms
from sumgp.laws.formula.terms import Reading, SumTerm, multiplied_out, obstacle, read_sum, without_even_roots
from sumgp.laws.formula.tree import Equation, Names
from sumgp.laws.function_law import FunctionLaw
from sumgp.laws.law import Law, SumLaw


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
        notes=tuple(_sum_notes(reading, names) for reading in readings),
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
    return term_note(factor, term.transform, term.symbol.name, names)


@dataclass(frozen=True)
class _FunctionRows:
    """What is needed to make the exact law and, for given sizes of the outputs, the relaxed one."""

    rows: tuple[Row, ...]
    variables: Variables
    names: Names

    def law(self, continuation: Continuation | None = None) -> FunctionLaw:
        unknown = self.variables.unknown
        used = frozenset().union(*(row.expanded.free_symbols for row in self.rows))
        # A product alone is zero where the law holds: its size is that of the terms it is made of.
        measured = [row.residual if row.residual.is_Add else row.expanded for row in self.rows]
        program = compile_rows([row.residual for row in self.rows], unknown, continuation, measured)
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
        return replace(self, rows=rows).law(Continuation({symbol: abs(float(size)) for symbol, size in typical.items()}))

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
