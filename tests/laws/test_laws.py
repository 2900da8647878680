"""Linear, sum and function constraints, alone and together: residuals, Jacobians, magnitudes, relaxations, errors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from sumgp.errors import ConstraintError
from sumgp.laws import (
    AllOf,
    Constraint,
    FormulaConstraint,
    FunctionConstraint,
    FunctionLaw,
    Law,
    LinearConstraint,
    SumConstraint,
    SumLaw,
    Term,
    Unknown,
    combine,
)
from sumgp.laws.function_law import numerical_jacobian
from sumgp.transforms import Exp, Log, Sin, Square

OUTPUTS = ("a", "b", "c")


def product(f: np.ndarray, x: np.ndarray) -> np.ndarray:
    return f[:, 0] * f[:, 1] - x[:, 0]


def product_slopes(f: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.stack([f[:, 1], f[:, 0], np.zeros(len(f))], axis=1)


def two_rows(f: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.stack([f[:, 0] * f[:, 1] - 1, np.sin(f[:, 2])], axis=1)


def varying_F(x: np.ndarray) -> np.ndarray:
    return np.stack([x[:, 0], np.ones(len(x)), -(x[:, 0] ** 2)], axis=1)


CONSTRAINTS: dict[str, tuple[Constraint, Callable[[np.ndarray, np.ndarray], list[np.ndarray]]]] = {
    "linear": (LinearConstraint([1, 2, -1], 3.0), lambda f, x: [f[:, 0] + 2 * f[:, 1] - f[:, 2] - 3]),
    "linear, two rows": (
        LinearConstraint([[1, 1, 1], [0, 1, -1]], [2.0, 0.5]),
        lambda f, x: [f[:, 0] + f[:, 1] + f[:, 2] - 2, f[:, 1] - f[:, 2] - 0.5],
    ),
    "linear, varying": (
        LinearConstraint(varying_F, lambda x: np.cos(x[:, 0])),
        lambda f, x: [x[:, 0] * f[:, 0] + f[:, 1] - x[:, 0] ** 2 * f[:, 2] - np.cos(x[:, 0])],
    ),
    "linear, unknown": (LinearConstraint([1, 1, 0], Unknown("mass")), lambda f, x: [f[:, 0] + f[:, 1] - f[:, 3]]),
    "linear, two unknowns": (
        LinearConstraint([[1, 1, 0], [0, 1, 1]], Unknown()),
        lambda f, x: [f[:, 0] + f[:, 1] - f[:, 3], f[:, 1] + f[:, 2] - f[:, 4]],
    ),
    "linear, varying with unknown": (
        LinearConstraint(varying_F, Unknown("E")),
        lambda f, x: [x[:, 0] * f[:, 0] + f[:, 1] - x[:, 0] ** 2 * f[:, 2] - f[:, 3]],
    ),
    "sum": (
        SumConstraint([Term("a", 0.5, Square()), Term(1, 2.0, Log()), Term("c")], 1.5),
        lambda f, x: [0.5 * f[:, 0] ** 2 + 2 * np.log(f[:, 1]) + f[:, 2] - 1.5],
    ),
    "sum, varying": (
        SumConstraint([Term("a", lambda x: x[:, 0], Sin()), Term("c", 3.0, Exp())], lambda x: x[:, 0] ** 2),
        lambda f, x: [x[:, 0] * np.sin(f[:, 0]) + 3 * np.exp(f[:, 2]) - x[:, 0] ** 2],
    ),
    "sum, one output twice": (
        SumConstraint([Term("a", 1.0, Square()), Term("a", -3.0)], Unknown("E")),
        lambda f, x: [f[:, 0] ** 2 - 3 * f[:, 0] - f[:, 3]],
    ),
    "function": (FunctionConstraint(product, product_slopes), lambda f, x: [product(f, x)]),
    "function, differences": (FunctionConstraint(product), lambda f, x: [product(f, x)]),
    "function, two rows": (FunctionConstraint(two_rows), lambda f, x: [*two_rows(f, x).T]),
    "formula": (FormulaConstraint("a*b = t"), lambda f, x: [f[:, 0] * f[:, 1] - x[:, 0]]),
}


@pytest.fixture(params=CONSTRAINTS, ids=str)
def case(request: pytest.FixtureRequest) -> tuple[Law, Callable[[np.ndarray, np.ndarray], list[np.ndarray]]]:
    constraint, expected = CONSTRAINTS[request.param]
    return constraint.bind(OUTPUTS, ["t"]), expected


def points(law: Law, rng: np.random.Generator, n: int = 30) -> tuple[np.ndarray, np.ndarray]:
    return rng.uniform(0.2, 2.0, (n, law.n_columns)), rng.uniform(-1, 2, (n, 1))


def test_residual(case: tuple, rng: np.random.Generator) -> None:
    law, expected = case
    f, x = points(law, rng)
    np.testing.assert_allclose(law.residual(f, x), np.stack(expected(f, x), axis=1), rtol=1e-13, atol=1e-13)


def test_jacobian_equals_differences(case: tuple, rng: np.random.Generator) -> None:
    law, expected = case
    f, x = points(law, rng)
    differences = numerical_jacobian(lambda f, x: np.stack(expected(f, x), axis=1), f, x, law.n_rows)
    np.testing.assert_allclose(law.jacobian(f, x), differences, atol=1e-9)


def test_involved_columns_are_those_the_residual_depends_on(case: tuple, rng: np.random.Generator) -> None:
    law, _ = case
    f, x = points(law, rng)
    moves = np.abs(law.jacobian(f, x)).max(axis=(0, 1)) > 1e-12
    if not isinstance(law, FunctionLaw) or law.mentions is not None:
        np.testing.assert_array_equal(law.involved(), moves)
    assert np.all(law.involved() | ~moves)
    assert law.outputs_outside() == tuple(name for name, used in zip(OUTPUTS, law.involved(), strict=False) if not used)


def test_numerical_jacobian_against_closed_form(rng: np.random.Generator) -> None:
    f, x = rng.normal(size=(20, 3)) * [1e6, 1e-3, 1.0], rng.normal(size=(20, 1))
    numerical = FunctionConstraint(product).bind(OUTPUTS, ["t"]).jacobian(f, x)
    np.testing.assert_allclose(numerical[:, 0, 0], f[:, 1], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(numerical[:, 0, 1], f[:, 0], rtol=1e-9)


def test_magnitude_of_a_sum_is_its_largest_term(rng: np.random.Generator) -> None:
    law = SumConstraint([Term("a", -4.0), Term("b", 1.0, Square())], 3.0).bind(OUTPUTS, ["t"])
    f, x = rng.normal(size=(40, 3)), np.zeros((40, 1))
    expected = np.max([np.abs(4 * f[:, 0]), f[:, 1] ** 2, np.full(40, 3.0)], axis=0)
    np.testing.assert_allclose(law.magnitude(f, x)[:, 0], expected)


def test_magnitude_of_a_function_is_its_largest_sensitivity(rng: np.random.Generator) -> None:
    law = FunctionConstraint(product, product_slopes).bind(OUTPUTS, ["t"])
    f, x = rng.normal(size=(10, 3)), np.zeros((10, 1))
    np.testing.assert_allclose(law.magnitude(f, x)[:, 0], np.abs(f[:, 0] * f[:, 1]))


def test_relaxed_sum_is_finite_beyond_the_edge_and_joins_smoothly() -> None:
    law = SumConstraint([Term("a", 2.0, Log()), Term("b")], 0.0).bind(OUTPUTS, ["t"])
    relaxed = law.relaxed(np.array([10.0, 1.0, 1.0]))
    edge = 1e-2
    f = np.array([[-5.0, 1, 1], [0.0, 1, 1], [edge * (1 - 1e-9), 1, 1], [edge * (1 + 1e-9), 1, 1], [3.0, 1, 1]])
    x = np.zeros((5, 1))
    with np.errstate(invalid="ignore"):
        assert np.isnan(law.residual(f, x)[0, 0])
    assert np.isfinite(relaxed.residual(f, x)).all()
    np.testing.assert_allclose(relaxed.residual(f, x)[2], relaxed.residual(f, x)[3], rtol=1e-7)
    np.testing.assert_allclose(relaxed.jacobian(f, x)[2], relaxed.jacobian(f, x)[3], rtol=1e-7)
    np.testing.assert_allclose(relaxed.jacobian(f, x)[0, 0], [2 / edge, 1, 0])
    np.testing.assert_array_equal(relaxed.residual(f, x)[3:], law.residual(f, x)[3:])


def test_function_without_relaxation_is_its_own() -> None:
    law = FunctionConstraint(product).bind(OUTPUTS, ["t"])
    assert law.relaxed(np.ones(3)) is law


def test_where_limits_a_row_to_some_inputs() -> None:
    law = LinearConstraint([1, 1, 1], 0.0, where=lambda x: x[:, 0] > 0).bind(OUTPUTS, ["t"])
    np.testing.assert_array_equal(law.active(np.array([[-1.0], [1.0]])), [[False], [True]])
    assert not law.has_constant_coefficients
    everywhere = LinearConstraint([1, 1, 1]).bind(OUTPUTS, ["t"])
    assert everywhere.active(np.zeros((2, 1))).all()
    assert everywhere.has_constant_coefficients
    both = combine([law, everywhere])
    np.testing.assert_array_equal(both.active(np.array([[-1.0], [1.0]])), [[False, True], [True, True]])
    with pytest.raises(ConstraintError, match="where: expected 2 truth values"):
        LinearConstraint([1, 1, 1], where=lambda x: np.ones(5, bool)).bind(OUTPUTS, ["t"]).active(np.zeros((2, 1)))


def test_noise_is_kept_per_row() -> None:
    law = LinearConstraint([[1, 0, 0], [0, 1, 0]], [0, 0], noise=[0.1, 0.0]).bind(OUTPUTS, ["t"])
    np.testing.assert_array_equal(law.noise, [0.1, 0.0])
    assert "standard deviation of 0.1" in law.explain()
    np.testing.assert_array_equal(combine([law, LinearConstraint([1, 1, 1]).bind(OUTPUTS, ["t"])]).noise, [0.1, 0, 0])


def test_matrix_of_a_linear_law_includes_unknowns() -> None:
    law = LinearConstraint([[1, 2, 0]], Unknown("E")).bind(OUTPUTS, ["t"])
    assert isinstance(law, SumLaw)
    np.testing.assert_array_equal(law.as_matrix(), [[1, 2, 0, -1]])
    assert law.unknowns == ("E",)


def by_parts(
    laws: list[Law], f: np.ndarray, x: np.ndarray, unknowns: tuple[str, ...], extras: tuple[str, ...]
) -> np.ndarray:
    """Residuals of each law on its own columns, chosen by name."""
    parts = []
    for law in laws:
        columns = [0, 1, 2, *(3 + unknowns.index(name) for name in law.unknowns)]
        inputs = [0, *(1 + extras.index(name) for name in law.extra_columns)]
        parts.append(law.residual(f[:, columns], x[:, inputs]))
    return np.concatenate(parts, axis=1)


FORMULAS = {"E": "unknown", "M": "unknown", "T": "temp", "H": "heat"}
TOGETHER = {
    "sums": ["a + b = 1", "a**2 + c = t"],
    "sums that share a column": ["a + b = 1", "a - b = t", "b**2 + c**2 = 2"],
    "sums with unknowns in another order": ["a + b = E", "b + c = M", "a - c = M + E"],
    "sums with data columns": ["a + T*b = 1", "c = H", "a + H*c = T"],
    "functions with unknowns and data columns": ["a*b = E", "b*c = M*T", "a*c = H + E"],
    "sums and functions": ["a + b = E", "a*b = T", "log(c) + H*a = M"],
    "sums and functions, columns in another order": ["c = H + M", "a*c = E*T", "log(a) + T*c = 0"],
}


@pytest.mark.parametrize("texts", TOGETHER.values(), ids=TOGETHER)
def test_laws_together_are_the_laws_one_by_one(texts: list[str], rng: np.random.Generator) -> None:
    laws = [FormulaConstraint(text, FORMULAS).bind(OUTPUTS, ["t"]) for text in texts]
    both = AllOf([FormulaConstraint(text, FORMULAS) for text in texts]).bind(OUTPUTS, ["t"])
    assert isinstance(both, SumLaw) == all(isinstance(law, SumLaw) for law in laws)
    f, x = rng.uniform(0.2, 2, (20, both.n_columns)), rng.uniform(0.2, 2, (20, 1 + len(both.extra_columns)))
    np.testing.assert_allclose(both.residual(f, x), by_parts(laws, f, x, both.unknowns, both.extra_columns), rtol=1e-13)
    np.testing.assert_allclose(both.jacobian(f, x), numerical_jacobian(both.residual, f, x, len(texts)), atol=1e-9)
    assert both.labels == tuple(texts)
    assert [f"row {i + 1}: {text}" in both.explain() for i, text in enumerate(texts)] == [True] * len(texts)
    at_once = FormulaConstraint(texts, FORMULAS).bind(OUTPUTS, ["t"])
    columns = [0, 1, 2, *(3 + both.unknowns.index(name) for name in at_once.unknowns)]
    inputs = [0, *(1 + both.extra_columns.index(name) for name in at_once.extra_columns)]
    np.testing.assert_allclose(both.residual(f, x), at_once.residual(f[:, columns], x[:, inputs]), rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(both.involved()[columns], at_once.involved())


@pytest.mark.parametrize("texts", TOGETHER.values(), ids=TOGETHER)
def test_relaxing_laws_together_is_relaxing_each(texts: list[str], rng: np.random.Generator) -> None:
    laws = [FormulaConstraint(text, FORMULAS).bind(OUTPUTS, ["t"]) for text in texts]
    both = combine(laws)
    scale = dict(zip((*OUTPUTS, *both.unknowns), rng.uniform(1, 5, both.n_columns), strict=True))
    relaxed = [law.relaxed(np.array([scale[name] for name in (*OUTPUTS, *law.unknowns)])) for law in laws]
    f, x = rng.normal(size=(20, both.n_columns)), rng.uniform(0.2, 2, (20, 1 + len(both.extra_columns)))
    together = both.relaxed(np.array(list(scale.values())))
    assert np.isfinite(together.residual(f, x)).all()
    np.testing.assert_allclose(
        together.residual(f, x), by_parts(relaxed, f, x, both.unknowns, both.extra_columns), rtol=1e-12
    )
    assert np.isfinite(together.magnitude(f, x)).all()


def test_magnitude_of_laws_together(rng: np.random.Generator) -> None:
    parts = [LinearConstraint([1, 2, 3], 4.0), FormulaConstraint("a*b = 5")]
    both = AllOf(parts).bind(OUTPUTS, ["t"])
    f, x = rng.normal(size=(10, 3)), np.zeros((10, 1))
    expected = [part.bind(OUTPUTS, ["t"]).magnitude(f, x)[:, 0] for part in parts]
    np.testing.assert_allclose(both.magnitude(f, x), np.stack(expected, axis=1))


def test_where_and_data_columns_together() -> None:
    limited = LinearConstraint([1, 1, 0], where=lambda x: x[:, 0] > 0).bind(OUTPUTS, ["t"])
    with_column = FormulaConstraint("c = T", {"T": "temp"}).bind(OUTPUTS, ["t"])
    both = combine([limited, with_column])
    np.testing.assert_array_equal(both.active(np.array([[-1.0, 5.0], [1.0, 5.0]])), [[False, True], [True, True]])


def test_one_law_stays_itself() -> None:
    law = LinearConstraint([1, 1, 1]).bind(OUTPUTS, ["t"])
    assert combine([law]) is law


@pytest.mark.parametrize(
    ("make", "phrase"),
    [
        (lambda: LinearConstraint([1, 2]), "F: expected 3 columns"),
        (lambda: LinearConstraint("abc"), "F: expected numbers"),
        (lambda: LinearConstraint([1, np.nan, 0]), "F: expected finite"),
        (lambda: LinearConstraint([[1, 1, 1], [0, 0, 0]]), "row 2 has only zeros"),
        (lambda: LinearConstraint([1, 1, 1], [1, 2]), "S: expected 1 finite"),
        (lambda: LinearConstraint([1, 1, 1], np.inf), "S: expected 1 finite"),
        (lambda: LinearConstraint([1, 1, 1], "much"), "S: expected numbers"),
        (lambda: LinearConstraint([1, 1, 1], noise=-1.0), "noise: expected standard deviations"),
        (lambda: LinearConstraint([1, 1, 1], noise=[1.0, 2.0]), "noise: expected one number or 1"),
        (lambda: LinearConstraint([1, 1, 1], noise="loud"), "noise: expected one number"),
        (lambda: LinearConstraint(lambda x: np.ones((len(x), 2))), "F: expected an array of shape"),
        (lambda: SumConstraint([]), "at least one Term"),
        (lambda: SumConstraint([Term("d")]), "expected one of the outputs"),
        (lambda: SumConstraint([Term(3)]), "an output number from 0 to 2"),
        (lambda: SumConstraint([Term(0.5)]), "an output number from 0 to 2"),  # type: ignore[arg-type]
        (lambda: SumConstraint([Term("a", np.nan)]), "coefficient: expected a finite number"),
        (lambda: SumConstraint([Term("a", "one")]), "coefficient: expected a finite number"),  # type: ignore[arg-type]
        (lambda: SumConstraint([Term("a", 0.0)]), "every coefficient is zero"),
        (lambda: SumConstraint([Term("a")], np.inf), "total: expected a finite number"),
        (lambda: FunctionConstraint(lambda f, x: f[:, 7]), "residual: a call with f of shape"),
        (lambda: FunctionConstraint(lambda f, x: 1.0), "residual: expected shape"),
    ],
)
def test_bad_constraints_are_refused(make: Callable[[], Constraint], phrase: str) -> None:
    with pytest.raises(ConstraintError, match=phrase.replace("(", r"\(")):
        make().bind(OUTPUTS, ["t"])


@pytest.mark.parametrize(
    ("constraint", "phrase"),
    [
        (SumConstraint([Term("a")], lambda x: np.ones(7)), "total: expected 4 x 1 values"),
        (FunctionConstraint(lambda f, x: np.ones((len(f), 2)), rows=1), "residual: expected an array of shape"),
        (FunctionConstraint(product, lambda f, x: np.ones((len(f), 2))), "jacobian: expected an array of shape"),
    ],
)
def test_functions_of_wrong_shape_are_refused_when_used(constraint: Constraint, phrase: str) -> None:
    law = constraint.bind(OUTPUTS, ["t"])
    with pytest.raises(ConstraintError, match=phrase):
        (law.jacobian if "jacobian" in phrase else law.residual)(np.ones((4, 3)), np.ones((4, 1)))


def test_coefficient_function_of_wrong_shape_is_refused() -> None:
    law = LinearConstraint(varying_F).bind(OUTPUTS, ["t"])
    broken = SumLaw(**{**law.__dict__, "coefficients": lambda x: np.ones((len(x), 1, 2))})
    with pytest.raises(ConstraintError, match="coefficients: expected an array of shape"):
        broken.F(np.ones((4, 1)))


def test_explanations() -> None:
    text = SumConstraint([Term("a", 0.5, Square()), Term("b")], Unknown("E")).bind(OUTPUTS, ["t"]).explain().split("\n")
    assert text[0] == "kind: sum of transformed outputs, 1 row, constant coefficients"
    assert "  0.5 * a**2: square, two branches (negative, positive) that meet at 0" in text
    assert "  -1 * E: constant to be estimated" in text
    assert text[-2:] == ["estimated constants: E", "outputs outside the law: c"]
    varying = LinearConstraint(varying_F, lambda x: x).bind(OUTPUTS, ["t"]).explain()
    assert "input-dependent coefficients" in varying
    assert "a(x) * a" in varying
    assert "S(x), varies with the inputs" in varying
    general = FunctionConstraint(two_rows).bind(OUTPUTS, ["t"]).explain()
    assert general.split("\n")[:3] == [
        "kind: general function of the outputs, 2 rows",
        "row 1: two_rows(f, x)[0] = 0",
        "row 2: two_rows(f, x)[1] = 0",
    ]
    mixed = AllOf([LinearConstraint([1, 2, 0], 3.0), FunctionConstraint(product)]).bind(OUTPUTS, ["t"]).explain()
    assert "  2 * b: the output itself" in mixed


def test_coefficients_that_have_a_pole_at_zero_are_bound_without_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    law = LinearConstraint(lambda X: 1.0 / X * np.ones(3), 1.0).bind(OUTPUTS, ["t"])
    assert not [warning for warning in recwarn if issubclass(warning.category, RuntimeWarning)]
    np.testing.assert_allclose(law.residual(np.ones((2, 3)), np.array([[1.0], [3.0]])), [[2.0], [0.0]])
