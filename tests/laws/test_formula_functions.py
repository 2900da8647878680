"""The pieces under a formula: NumPy programs and their derivatives, continuations, intervals, text."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from laws.formula_corpus import CONSTANTS, INPUTS, OUTPUTS, RIGHT, Right

from sumgp.errors import ConstraintError
from sumgp.laws import parse_constraint
from sumgp.laws.formula.algebra import FUNCTIONS, residual_expression, shown
from sumgp.laws.formula.edges import EDGE, SCALARS, PowerFunction, continued_function, continued_power
from sumgp.laws.formula.functions import compile_rows, typical_size
from sumgp.laws.formula.intervals import REALS, EmptyDomainError, Interval, image
from sumgp.laws.formula.syntax import parse_equation
from sumgp.laws.formula.terms import multiplied_out, without_even_roots
from sumgp.laws.formula.tree import read_constants, read_names

NAMES = read_names(OUTPUTS, INPUTS, read_constants(CONSTANTS))
SYMPY = {"abs": sympy.Abs, "power": sympy.Pow, **{n: getattr(sympy, n) for n in SCALARS if n != "abs"}, "sqrt": sympy.sqrt}


def expression_of(text: str) -> sympy.Expr:
    return residual_expression(parse_equation(text), NAMES)[0]


def in_sympys_functions(expression: sympy.Expr) -> sympy.Expr:
    """The same expression in functions whose derivatives SymPy knows, over real symbols."""
    real = {symbol: sympy.Symbol(f"real_{symbol.name}", real=True) for symbol in expression.free_symbols}
    for name, function in SYMPY.items():
        expression = expression.replace(FUNCTIONS[name], function)
    return expression.subs(real)


@pytest.mark.parametrize("right", RIGHT, ids=lambda right: right.text)
def test_program_and_gradient_equal_sympys_own(right: Right, rng: np.random.Generator) -> None:
    expression = expression_of(right.text)
    symbols = sorted(expression.free_symbols, key=lambda symbol: symbol.name)
    values = dict(zip(symbols, rng.uniform(0.15, 0.85, (len(symbols), 1)), strict=True))
    program = compile_rows([expression], symbols)
    results = program.run(values)
    reference = in_sympys_functions(expression)
    point = {sympy.Symbol(f"real_{symbol.name}", real=True): sympy.Float(value[0], 30) for symbol, value in values.items()}
    np.testing.assert_allclose(results[program.rows[0]], float(reference.subs(point).evalf(20)), rtol=1e-12, atol=1e-14)
    gradient = program.gradient(0, results)
    for symbol in symbols:
        expected = float(reference.diff(sympy.Symbol(f"real_{symbol.name}", real=True)).subs(point).evalf(20))
        np.testing.assert_allclose(gradient[symbol], expected, rtol=1e-12, atol=1e-14)


def test_equal_parts_are_evaluated_once() -> None:
    rows = [expression_of("sin(z*v) + exp(sin(z*v)) = 0"), expression_of("exp(sin(z*v)) = 2")]
    program = compile_rows(rows, [sympy.Symbol("z"), sympy.Symbol("v")])
    kinds = [step.kind for step in program.steps]
    assert kinds.count("scalar") == 2
    assert kinds.count("product") == 1
    assert kinds.count("symbol") == 2


def test_number_beyond_the_doubles_is_refused() -> None:
    with pytest.raises(ConstraintError, match="too large for a floating-point number"):
        compile_rows([sympy.Integer(10) ** 400 * sympy.Symbol("z")], [])


def test_product_gradient_at_zero() -> None:
    symbols = [sympy.Symbol(name) for name in ("z", "v", "w")]
    program = compile_rows([sympy.Mul(*symbols)], symbols)
    gradient = program.gradient(0, program.run(dict(zip(symbols, np.array([[0.0], [2.0], [3.0]]), strict=True))))
    assert [float(gradient[symbol][0]) for symbol in symbols] == [6.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("text", "z"),
    [
        ("log(z) + v*w = 0", -0.3),
        ("sqrt(z) = v", -0.3),
        ("z**1.5 = v", -0.3),
        ("z**(-1/3) = v", -0.3),
        ("z**v = w", -0.3),
        ("asin(z) = v", 1.2),
        ("acos(z) = v", -1.2),
    ],
)
def test_outside_of_the_domain_exact_is_nan_and_relaxed_is_finite(text: str, z: float) -> None:
    law = parse_constraint(text, ["z", "v", "w"])
    f, x = np.array([[z, 0.5, 0.5], [100 * z, 0.5, 0.5]]), np.zeros((2, 0))
    assert np.isnan(law.residual(f, x)).all()
    relaxed = law.relaxed(np.ones(3))
    assert np.isfinite(relaxed.residual(f, x)).all()
    assert np.isfinite(relaxed.jacobian(f, x)).all()


def test_log_of_an_undefined_input_stays_visible_when_relaxed() -> None:
    relaxed = parse_constraint("z*v = log(t)", ["z", "v"], ["t"]).relaxed(np.ones(2))
    assert np.isnan(relaxed.residual(np.ones((1, 2)), np.array([[-1.0]]))).all()


def test_length_zero_has_a_finite_jacobian_and_small_lengths_stay_exact() -> None:
    law = parse_constraint("norm(a, b) = 1e-9", ["a_x", "a_y", "b_x", "b_y"])
    relaxed = law.relaxed(np.full(4, 1e3))
    same = np.array([[5.0, 7.0, 5.0, 7.0]])
    np.testing.assert_array_equal(relaxed.jacobian(same, np.zeros((1, 0))), np.zeros((1, 1, 4)))
    f = np.array([[3e-9, 4e-9, 0.0, 0.0]])
    np.testing.assert_allclose(relaxed.residual(f, np.zeros((1, 0))), [[4e-9]], rtol=1e-12)
    np.testing.assert_allclose(relaxed.jacobian(f, np.zeros((1, 0))), [[[0.6, 0.8, -0.6, -0.8]]], rtol=1e-12)


def test_absolute_value_has_slope_zero_at_zero() -> None:
    law = parse_constraint("abs(z*v) + w = 1", ["z", "v", "w"])
    np.testing.assert_array_equal(law.jacobian(np.array([[0.0, 1.0, 1.0]]), np.zeros((1, 0)))[0, 0], [0.0, 0.0, 1.0])


def test_magnitude_is_the_largest_term(rng: np.random.Generator) -> None:
    law = parse_constraint(["z*v + 3*w = 2", "(z - 1)*v = 0"], ["z", "v", "w"])
    f = rng.normal(size=(50, 3))
    z, v, w = f.T
    largest = np.max([np.abs(z * v), np.abs(3 * w), np.full(50, 2.0)], axis=0)
    # A product alone vanishes where the law holds, so its size is taken from the terms it is made of.
    np.testing.assert_allclose(
        law.magnitude(f, np.zeros((50, 0))), np.stack([largest, np.maximum(np.abs(z * v), np.abs(v))], 1)
    )


CONTINUED = [
    *(
        (f"log at size {size}", lambda size=size: continued_function("log", size, REALS), [EDGE * size])
        for size in (1.0, 50.0)
    ),
    ("asin", lambda: continued_function("asin", 3.0, REALS), [-1 + EDGE, 1 - EDGE]),
    ("acos", lambda: continued_function("acos", 3.0, REALS), [-1 + EDGE, 1 - EDGE]),
    ("exp", lambda: continued_function("exp", 1.0, REALS), [-300.0, 300.0]),
    ("sinh", lambda: continued_function("sinh", 1.0, REALS), [-300.0, 300.0]),
    ("sqrt", lambda: continued_power(0.5, 2.0, REALS), [2 * EDGE]),
    ("power 1.5", lambda: continued_power(1.5, 2.0, REALS), [2 * EDGE]),
    ("power -1/3", lambda: continued_power(-1 / 3, 2.0, REALS), [2 * EDGE]),
    *((f"power {-n}", lambda n=n: continued_power(-n, 2.0, REALS), [-2 * EDGE, 2 * EDGE]) for n in (1, 2, 3, 4)),
    ("1/u for u >= 0", lambda: continued_power(-1.0, 2.0, Interval(0.0, math.inf)), [2 * EDGE]),
]


@pytest.mark.parametrize(("make", "edges"), [c[1:] for c in CONTINUED], ids=[c[0] for c in CONTINUED])
def test_continuation_joins_with_equal_value_and_slope(make, edges: list[float]) -> None:
    scalar = make()
    for edge in edges:
        apart = 1e-9 * abs(edge)
        below, above = np.array([edge - apart]), np.array([edge + apart])
        np.testing.assert_allclose(scalar.value(below), scalar.value(above), rtol=1e-6)
        np.testing.assert_allclose(scalar.derivative(below), scalar.derivative(above), rtol=1e-6)
        for side in (-1, 1):
            u = np.array([edge * (1 + side * 0.1)]) if abs(edge) < 0.9 else np.array([edge + side * 3e-4])
            step = 1e-5 * (abs(edge) if abs(edge) < 0.9 else EDGE)
            slope = (scalar.value(u + step) - scalar.value(u - step)) / (2 * step)
            np.testing.assert_allclose(scalar.derivative(u), slope, rtol=1e-6)
    far = np.array([-1e4, -1.0, 0.0, 1.0, 1e4])
    with np.errstate(all="ignore"):
        assert np.isfinite(scalar.value(far)).all()
        assert np.isfinite(scalar.derivative(far)).all()


def test_nothing_is_continued_where_the_argument_stays_inside() -> None:
    assert continued_function("log", 1.0, Interval(1.0, math.inf)) is SCALARS["log"]
    u = np.array([1e-8, 0.5])
    for exponent, argument in (
        (-1.0, Interval(1e-9, 2.0)),
        (0.5, Interval(1e-9, 2.0)),
        (3.0, REALS),
        (0.5, Interval(0.0, 1.0)),
    ):
        np.testing.assert_array_equal(continued_power(exponent, 1.0, argument).value(u), PowerFunction(exponent).value(u))
        np.testing.assert_array_equal(
            continued_power(exponent, 1.0, argument).derivative(u), PowerFunction(exponent).derivative(u)
        )
    np.testing.assert_array_equal(continued_power(-1.0, 1.0, Interval(-2.0, -1e-9)).value(-u), -1 / u)


def test_typical_size_follows_the_columns() -> None:
    sizes = {sympy.Symbol("z"): 10.0, sympy.Symbol("v"): 0.1}
    for text, size in (
        ("3*z*v**2 = 0", 0.3),
        ("z - v = 0", 0.1),
        ("sqrt(z*v) = 0", 1.0),
        ("abs(z)*sin(v) = 0", 10.0),
        ("z/v = 0", 100.0),
    ):
        assert typical_size(expression_of(text), sizes) == pytest.approx(size)


@pytest.mark.parametrize("right", RIGHT, ids=lambda right: right.text)
def test_image_holds_every_sampled_value(right: Right, rng: np.random.Generator) -> None:
    expression = expression_of(right.text)
    values = image(expression)
    program = compile_rows([expression], [])
    for size in (0.3, 3.0, 30.0):
        draws = {symbol: rng.normal(0, size, 2000) for symbol in program.symbols}
        sampled = program.run(draws)[program.rows[0]]
        sampled = sampled[np.isfinite(sampled)]
        slack = 1e-12 * (1 + np.abs(sampled))
        assert np.all((sampled >= values.low - slack) & (sampled <= values.high + slack))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("z**2 + 3 = 0", Interval(3, math.inf, False, True)),
        ("-2*z**4 = 1", Interval(-math.inf, -1, True, False)),
        ("exp(z)*exp(v) = 0", Interval(0, math.inf, True, True)),
        ("abs(sin(z)) = 0", Interval(0, 1)),
        ("1/(1 + z**2) = 0", Interval(0, 1, True, False)),
        ("1/(-1 - exp(z)) = 0", Interval(-1, 0, True, True)),
        ("1/z**2 = 0", Interval(0, math.inf, True, True)),
        ("tanh(z) + atan(v) = 0", Interval(-1 - math.pi / 2, 1 + math.pi / 2, True, True)),
        ("sqrt(1 - z**2) = 0", Interval(0, 1)),
        ("acos(z) = 0", Interval(0, math.pi)),
        ("cosh(z)/2 = 0", Interval(0.5, math.inf, False, True)),
        ("(1 + z**2)**(-1/2) = 0", Interval(0, 1, True, False)),
        ("log(1 + abs(z)) = 0", Interval(0, math.inf, False, True)),
        ("sin(z)*cos(v)*2 = 0", Interval(-2, 2)),
        ("-z**2*cosh(v) = 0", Interval(-math.inf, 0, True, False)),
        ("z*v = 0", REALS),
    ],
)
def test_images_are_exact_where_every_output_occurs_once(text: str, expected: Interval) -> None:
    assert image(expression_of(text)) == expected


def test_empty_domain_names_the_part() -> None:
    with pytest.raises(EmptyDomainError) as caught:
        image(expression_of("v + log(-exp(z)) = 0"))
    assert shown(caught.value.expression) == "log(-exp(z))"


@pytest.mark.parametrize("right", RIGHT, ids=lambda right: right.text)
def test_shown_text_reads_back_as_the_same_expression(right: Right, rng: np.random.Generator) -> None:
    expression = expression_of(right.text)
    again = expression_of(f"{shown(expression)} = 0")
    program = compile_rows([expression, again], [])
    results = program.run({symbol: rng.uniform(0.1, 0.9, 20) for symbol in program.symbols})
    # Numbers are shown with six digits.
    np.testing.assert_allclose(results[program.rows[0]], results[program.rows[1]], rtol=1e-3, atol=1e-3)


def polynomials() -> st.SearchStrategy[str]:
    leaves = st.sampled_from(["z", "v", "w", "2", "0.5", "(-3)"])
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda parts: f"({''.join(parts)})"),
            st.tuples(inner, st.sampled_from("123")).map(lambda parts: f"({parts[0]})**{parts[1]}"),
        ),
        max_leaves=8,
    )


@given(polynomials())
@settings(max_examples=60)
def test_multiplying_out_changes_no_value(text: str) -> None:
    expression = expression_of(f"{text} = 0")
    expanded = multiplied_out(expression)
    point = {name: sympy.Rational(n, 7) for name, n in (("z", 3), ("v", -5), ("w", 11))}
    assert expression.subs(point) == expanded.subs(point)
    assert all(not factor.is_Add for term in sympy.Add.make_args(expanded) for factor in sympy.Mul.make_args(term))


def test_even_roots_are_removed_only_where_that_is_exact() -> None:
    for text, expected in (
        ("norm(a, b)**2 = 0", "(a_x - b_x)**2 + (a_y - b_y)**2 = 0"),
        ("abs(z)**4 = 0", "z**4 = 0"),
        ("3*sqrt(z**2)*sqrt(z**2) = 0", "3*z**2 = 0"),
        ("(z**2)**(1/3)*((z**2)**(1/3))**2 = 0", "z**2 = 0"),
        ("sqrt(z)**2 = 0", "sqrt(z)**2 = 0"),
        ("abs(z)**3 = 0", "abs(z)**3 = 0"),
    ):
        assert without_even_roots(expression_of(text)) == expression_of(expected)
