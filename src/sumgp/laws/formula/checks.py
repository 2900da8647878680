"""Laws that cannot be meant: without outputs, always true, never true, or contradicting each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sympy

from sumgp.errors import ConstraintError
from sumgp.laws.formula.algebra import as_float, shown
from sumgp.laws.formula.functions import compile_rows
from sumgp.laws.formula.hints import Place
from sumgp.laws.formula.intervals import EmptyDomainError, Interval, image
from sumgp.laws.formula.terms import Reading, SumTerm
from sumgp.transforms import WholePower

_ROUND_OFF = 1e-9  # relative to the largest constant of a law: totals given with rounded digits are not contradictions
_PROBES = 12  # points of each size at which an identity is tested
_PROBE_SIZES = (0.1, 1.0, 30.0, 1e3, 1e6, 1e9)  # of values: an identity holds at all of them, a coincidence does not
_MAX_DEGREE = 8  # of polynomials whose critical points are found well by eigenvalues


@dataclass(frozen=True)
class Row:
    """One law: its text, left minus right side as written and multiplied out, and its reading as a sum if it is one."""

    text: str
    residual: sympy.Expr
    expanded: sympy.Expr
    reading: Reading | None

    @property
    def place(self) -> Place:
        """The whole text, for errors about the law as such."""
        return Place(self.text, 0, len(self.text))


def check_row(
    row: Row, written: frozenset[sympy.Symbol], outputs: Sequence[sympy.Symbol], unknowns: Sequence[str] = ()
) -> None:
    """Raise ConstraintError unless the law restricts an output and can be met.

    ``written`` are the symbols in the text, including those that cancel; ``unknowns`` the names of estimated constants.
    """
    if not written & set(outputs):
        names = ", ".join(symbol.name for symbol in outputs)
        remedy = "".join(
            f"; to keep the constant {name} positive write exp(log_{name}) in its place in the laws, log_{name} unknown"
            for name in sorted({symbol.name for symbol in written} & set(unknowns))[:1]
        )
        raise row.place.error(f"there is no output in this law; it must restrict at least one of {names}{remedy}")
    if row.expanded == 0:
        raise _identically_true(row)
    if not row.expanded.free_symbols & set(outputs):
        raise _outputs_cancel(row)
    if row.reading is None:
        _check_by_probing(row, outputs)
    _check_solvable(row)


def check_together(rows: Sequence[Row], unknown: Sequence[sympy.Symbol]) -> None:
    """Raise ConstraintError if a combination of the laws cancels every output and leaves 0 = c with c not zero.

    Terms with outputs or unknown constants are the columns of a matrix A, the others those of B: a left null vector n
    of A with n B not zero proves the contradiction.
    """
    if len(rows) < 2:
        return
    dicts = [row.expanded.as_coefficients_dict() for row in rows]
    left, right = (
        _coefficient_matrix(dicts, [m for m in _monomials(dicts) if bool(m.free_symbols & set(unknown)) == wanted])
        for wanted in (True, False)
    )
    sizes = np.max(np.abs(left), axis=1, keepdims=True)
    left, right = left / sizes, right / sizes
    if np.linalg.matrix_rank(left, tol=1e-10) == len(rows):
        return
    for row in range(1, len(rows)):
        combination, *_ = np.linalg.lstsq(left[:row].T, left[row], rcond=1e-11)
        if np.max(np.abs(combination @ left[:row] - left[row])) > 1e-10:
            continue
        remains = np.abs(combination @ right[:row] - right[row])
        scale = np.abs(combination) @ np.abs(right[:row]) + np.abs(right[row])
        if np.any(remains > _ROUND_OFF * scale.max(initial=0.0)):
            others = " and ".join(repr(rows[i].text) for i in range(row) if abs(combination[i]) > 1e-9)
            raise rows[row].place.error(
                f"this law contradicts {others}: the outputs enter alike, the totals differ; correct one, or leave it out"
            )


def _identically_true(row: Row) -> ConstraintError:
    return row.place.error("this law is identically true: it holds whatever the outputs are; remove it or check its terms")


def _outputs_cancel(row: Row) -> ConstraintError:
    remains = shown(row.expanded)
    if row.expanded.is_Rational:
        return row.place.error(f"this law has no solution: the outputs cancel and {remains} = 0 remains; correct a term")
    return row.place.error(
        f"the outputs cancel in this law and only {remains} = 0 remains, which restricts no output; correct a term"
    )


def _check_by_probing(row: Row, outputs: Sequence[sympy.Symbol]) -> None:
    """Find identities that multiplying out does not show, such as sin(z)**2 + cos(z)**2 = 1, at random points.

    Only the terms with outputs are compared, at sizes far apart, so that a large constant does not hide them.
    """
    program = compile_rows([row.residual], outputs)
    draws = np.random.default_rng(0).standard_normal((len(program.symbols), _PROBES * len(_PROBE_SIZES)))
    draws *= np.repeat(_PROBE_SIZES, _PROBES)
    results = program.run(dict(zip(program.symbols, draws, strict=True)))
    flat = np.zeros(draws.shape[1])
    terms = np.max([np.abs(results[i]) + flat for i in program.terms[0] if program.steps[i].active], axis=0)
    slopes = program.gradient(0, results)
    with np.errstate(all="ignore"):
        parts = [np.abs(slopes[s] * values) for s, values in zip(program.symbols, draws, strict=True) if s in slopes]
    varies = np.max([flat, *parts], axis=0)
    defined = np.isfinite(varies + terms)
    # Overflow and narrow domains leave few points to judge by; then nothing is claimed.
    if defined.sum() < _PROBES or np.any(varies[defined] > 1e-10 * terms[defined]):
        return
    residual = np.abs(results[program.rows[0]] + flat)
    if np.all(residual[defined] <= 1e-10 * terms[defined]):
        raise _identically_true(row)
    raise row.place.error(
        "the outputs cancel in this law: it does not depend on any of them and cannot be met by them; correct a term"
    )


def _check_solvable(row: Row) -> None:
    try:
        images = [image(row.residual), image(row.expanded)]
    except EmptyDomainError as error:
        raise never_defined(row.place, error) from None
    if row.reading is not None:
        images.append(_image_of_sum(row.reading))
    slack = _ROUND_OFF * max(abs(as_float(c)) for c in row.expanded.as_coefficients_dict().values())
    for values in images:
        if values.low > slack or (values.low == 0 and values.low_open):
            bound = f"{'above' if values.low_open else 'at least'} {values.low:g}"
        elif values.high < -slack or (values.high == 0 and values.high_open):
            bound = f"{'below' if values.high_open else 'at most'} {values.high:g}"
        else:
            continue
        raise row.place.error(
            f"this law has no solution for real outputs: left minus right side is always {bound}; correct a sign or total"
        )


def never_defined(place: Place, error: EmptyDomainError) -> ConstraintError:
    """The error for a law with a part that has no real value whatever the outputs are."""
    return place.error(
        f"this law has no solution: {shown(error.expression)} is not defined for any real outputs; correct it"
    )


def _image_of_sum(reading: Reading) -> Interval:
    """Image of a sum, polynomials of one output taken as a whole: z**2 - 2*z is never below -1."""
    result = image(-reading.total)
    for symbol in dict.fromkeys(term.symbol for term in reading.terms):
        terms = [term for term in reading.terms if term.symbol == symbol]
        whole = _polynomial_image(terms)
        for part in [whole] if whole is not None else [_term_image(term) for term in terms]:
            result = result.plus(part)
    return result


def _term_image(term: SumTerm) -> Interval:
    low, high = term.transform.image
    return image(term.coefficient).times(Interval(low, high, math.isinf(low), math.isinf(high)))


def _polynomial_image(terms: Sequence[SumTerm]) -> Interval | None:
    """Exact image of a polynomial with constant coefficients, from its critical points; None for other terms."""
    coefficients = np.zeros(_MAX_DEGREE + 1)
    for term in terms:
        degree = term.transform.exponent if isinstance(term.transform, WholePower) else None
        if degree is None or degree > _MAX_DEGREE or not term.coefficient.is_Rational:
            return None
        coefficients[degree] = as_float(term.coefficient)
    polynomial = np.polynomial.Polynomial(np.trim_zeros(coefficients, "b"))
    if polynomial.degree() % 2:
        return Interval(-math.inf, math.inf, True, True)
    turning = polynomial.deriv().roots()
    values = polynomial(np.real(turning))
    if polynomial.coef[-1] > 0:
        return Interval(float(values.min()), math.inf, False, True)
    return Interval(-math.inf, float(values.max()), True, False)


def _monomials(dicts: Sequence[dict[sympy.Expr, sympy.Rational]]) -> list[sympy.Expr]:
    return list(dict.fromkeys(monomial for terms in dicts for monomial in terms))


def _coefficient_matrix(dicts: Sequence[dict], monomials: Sequence[sympy.Expr]) -> np.ndarray:
    matrix = [[as_float(sympy.Rational(terms.get(m, 0))) for m in monomials] for terms in dicts]
    return np.array(matrix, dtype=float).reshape(len(dicts), len(monomials))
