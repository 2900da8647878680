"""Formulas as a user meets them: what a text is understood as, what is refused and how, what is explained."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from laws.formula_corpus import CONSTANTS, INPUTS, OUTPUTS, RIGHT, WRONG, Right, Wrong

from sumgp.errors import ConstraintError
from sumgp.laws import FormulaConstraint, FunctionLaw, Law, SumLaw, Unknown, explain_law, parse_constraint
from sumgp.laws.function_law import numerical_jacobian


def bound(text: str) -> Law:
    return parse_constraint(text, OUTPUTS, INPUTS, CONSTANTS)


def namespace(law: Law, f: np.ndarray, x: np.ndarray) -> SimpleNamespace:
    """Every name of the corpus as an array; ``x`` holds the inputs and then the temperature if the law needs it."""
    values = {name.replace("CO2 (ppm)", "co2"): f[:, i] for i, name in enumerate((*law.outputs, *law.unknowns))}
    values |= {"t": x[:, 0], "s": x[:, 1], "c": 1.0 + x[:, 0] ** 2, "T": x[:, -1]}
    return SimpleNamespace(**values)


def inside(law: Law, rng: np.random.Generator, n: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Points at which every formula of the corpus is defined."""
    return rng.uniform(0.1, 0.9, (n, law.n_columns)), rng.uniform(0.2, 1.5, (n, 2 + len(law.extra_columns)))


def kind_of(law: Law) -> str:
    return ("linear" if law.is_linear else "sum") if isinstance(law, SumLaw) else "function"


@pytest.mark.parametrize("right", RIGHT, ids=lambda right: right.text)
def test_right_formula_is_understood(right: Right, rng: np.random.Generator) -> None:
    law = bound(right.text)
    assert kind_of(law) == right.kind
    f, x = inside(law, rng)
    np.testing.assert_allclose(law.residual(f, x)[:, 0], right.reference(namespace(law, f, x)), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("right", RIGHT, ids=lambda right: right.text)
def test_jacobian_equals_differences_of_the_hand_written_residual(right: Right, rng: np.random.Generator) -> None:
    law = bound(right.text)
    f, x = inside(law, rng)
    expected = numerical_jacobian(lambda f, x: right.reference(namespace(law, f, x))[:, None], f, x, 1)
    np.testing.assert_allclose(law.jacobian(f, x), expected, rtol=2e-8, atol=2e-8 * np.abs(expected).max())
    assert (np.abs(expected[:, 0]).max(axis=0) > 0).tolist() == law.involved().tolist()


@pytest.mark.parametrize("right", RIGHT, ids=lambda right: right.text)
def test_relaxed_law_is_the_same_inside_and_finite_everywhere(right: Right, rng: np.random.Generator) -> None:
    law = bound(right.text)
    as_written = law.relaxed(np.ones(law.n_columns))
    f, x = inside(law, rng)
    np.testing.assert_allclose(as_written.residual(f, x), law.residual(f, x), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(as_written.jacobian(f, x), law.jacobian(f, x), rtol=1e-12, atol=1e-14)
    cleared = law.relaxed(np.ones(law.n_columns), np.ones(1, dtype=bool))
    times = cleared.residual(f, x) / law.residual(f, x)  # the denominators, else one
    assert np.all(np.isfinite(times) & (times != 0))
    assert "/" in right.text or np.allclose(times, 1.0, rtol=1e-12)
    f, x = rng.normal(0, 2.0, (200, law.n_columns)), rng.uniform(0.2, 1.5, (200, x.shape[1]))
    f[:3] = [[0.0], [1.0], [-1.0]]
    for relaxed in (as_written, cleared):
        assert np.isfinite(relaxed.residual(f, x)).all()
        assert np.isfinite(relaxed.jacobian(f, x)).all()


@pytest.mark.parametrize("right", [r for r in RIGHT if r.kind == "function"], ids=lambda right: right.text)
def test_relaxed_jacobian_belongs_to_the_relaxed_residual_outside_the_domain(right: Right, rng: np.random.Generator) -> None:
    law = bound(right.text).relaxed(np.ones(len(OUTPUTS) + ("U" in right.text)))
    f, x = rng.normal(0, 2.0, (50, law.n_columns)), rng.uniform(0.2, 1.5, (50, 2 + len(law.extra_columns)))
    jacobian = law.jacobian(f, x)[:, 0]
    for column in range(law.n_columns):
        # Fourth order and far shorter than 1e-3, the width of a continuation, within which the slope turns round.
        step = np.zeros(law.n_columns)
        step[column] = 1e-5
        near, far = (law.residual(f + k * step, x) - law.residual(f - k * step, x) for k in (1, 2))
        slope = (8 * near - far)[:, 0] / 12e-5
        size = 1.0 + np.abs(law.residual(f, x)[:, 0]) + np.abs(jacobian).max(axis=1)
        assert np.max(np.abs(slope - jacobian[:, column]) / size) < 1e-6


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.text[:40])
def test_wrong_formula_is_refused_with_reason_and_place(wrong: Wrong) -> None:
    with pytest.raises(ConstraintError) as caught:
        bound(wrong.text)
    message = str(caught.value)
    assert wrong.phrase in message
    if wrong.marked is not None:
        _, line, carets = message.split("\n")
        start, end = carets.index("^"), len(carets)
        assert line[start:end] == "".join(c if c.isprintable() else "?" for c in wrong.marked)


def test_corpus_is_large_enough() -> None:
    assert len(RIGHT) >= 60
    assert len(WRONG) >= 60
    assert len({case.text for case in (*RIGHT, *WRONG)}) == len(RIGHT) + len(WRONG)


def test_several_laws_in_one_text_or_a_list_are_the_same(rng: np.random.Generator) -> None:
    laws = [
        parse_constraint(text, ["a", "b", "c"])
        for text in ("a + b = 1; b*2 = c", "a + b = 1\n\n b*2 = c;", ["a + b = 1", "b*2 = c"], ["a + b = 1; b*2 = c"])
    ]
    for law in laws:
        assert isinstance(law, SumLaw)
        np.testing.assert_array_equal(law.as_matrix(), [[1, 1, 0], [0, 2, -1]])
        np.testing.assert_array_equal(law.total, [1, 0])
        assert law.labels == ("a + b = 1", "b*2 = c")


def test_laws_of_different_kinds_become_one_function_in_their_order(rng: np.random.Generator) -> None:
    law = parse_constraint(["a + b = 1", "a*b = U", "a**2 = t"], ["a", "b"], ["t"], {"U": "unknown"})
    assert isinstance(law, FunctionLaw)
    f, x = rng.uniform(0, 1, (5, 3)), rng.uniform(0, 1, (5, 1))
    a, b, unknown = f.T
    np.testing.assert_allclose(law.residual(f, x), np.stack([a + b - 1, a * b - unknown, a**2 - x[:, 0]], axis=1))
    np.testing.assert_allclose(law.jacobian(f, x), numerical_jacobian(law.residual, f, x, 3), atol=1e-10)


def test_redundant_laws_are_kept_and_nearly_equal_totals_are_no_contradiction() -> None:
    assert parse_constraint("a + b = 1; 2*a + 2*b = 2", ["a", "b"]).n_rows == 2
    assert parse_constraint("a + b = 0.1 + 0.2; a + b = 0.3", ["a", "b"]).n_rows == 2
    assert parse_constraint("z**2 + 0.1 + 0.2 = 0.3", ["z"]).n_rows == 1


def test_constants_of_each_sort(rng: np.random.Generator) -> None:
    constants = {"n": np.float64(2.0), "U": Unknown(), "c": lambda x: x[:, 0] * 10, "C": "column", "D": "column", "L": "t"}
    law = parse_constraint("n*z + U = c + C + 2*D + L", ["z"], ["t"], constants)
    assert law.unknowns == ("U",)
    assert law.extra_columns == ("column",)
    f, x = rng.normal(size=(4, 2)), rng.normal(size=(4, 2))
    expected = 2 * f[:, 0] + f[:, 1] - (10 * x[:, 0] + 3 * x[:, 1] + x[:, 0])
    np.testing.assert_allclose(law.residual(f, x)[:, 0], expected, rtol=1e-13)


def test_unused_constants_are_no_columns() -> None:
    law = parse_constraint("z = 1", ["z"], ["t"], {"U": "unknown", "C": "column"})
    assert law.unknowns == ()
    assert law.extra_columns == ()


def test_names_of_the_user_hide_built_in_numbers() -> None:
    law = parse_constraint("e + pi = 1", ["e"], [], {"pi": 3.0})
    np.testing.assert_allclose(law.residual(np.array([[0.5]]), np.zeros((1, 0))), [[2.5]])


@pytest.mark.parametrize(
    ("constants", "phrase"),
    [
        ({"E": None}, "constants['E']"),
        ({"E": np.nan}, "finite number"),
        ({"E": True}, "constants['E']"),
        ({"E": 10**400}, "constants['E']"),
        ({"E": [1.0, 2.0]}, "function of X"),
        ({"E": ""}, "constants['E']"),
        ({1: 2.0}, "names as keys"),
        ({"z": 1.0}, "named twice"),
        ({"E": "z"}, "is an output"),
    ],
)
def test_wrong_constants_are_refused(constants: dict, phrase: str) -> None:
    with pytest.raises(ConstraintError, match=phrase.replace("[", r"\[").replace("]", r"\]")):
        parse_constraint("z = E", ["z"], ["t"], constants)


@pytest.mark.parametrize("formula", ["", " ; \n", [], [1], ["z = 1", None]])
def test_formula_must_be_text_with_an_equation(formula: object) -> None:
    with pytest.raises(ConstraintError, match="formula"):
        FormulaConstraint(formula)  # type: ignore[arg-type]


def test_too_many_laws_or_names_given_as_one_string_are_refused() -> None:
    with pytest.raises(ConstraintError, match="at most 200 laws"):
        FormulaConstraint(";".join(["z = 1"] * 201))
    with pytest.raises(ConstraintError, match="at most 400000 characters"):
        FormulaConstraint("z" * 400_001)
    with pytest.raises(ConstraintError, match="lists of names"):
        parse_constraint("z = 1", "z")


def test_hundreds_of_outputs_are_still_a_linear_law(rng: np.random.Generator) -> None:
    law = parse_constraint("(1 + t)*sum(p) = exp(-t)", [f"p{i}" for i in range(400)], ["t"])
    assert kind_of(law) == "linear"
    f, x = rng.normal(size=(3, 400)), rng.uniform(size=(3, 1))
    np.testing.assert_allclose(law.residual(f, x), (1 + x) * f.sum(axis=1, keepdims=True) - np.exp(-x), rtol=1e-11)


def test_sums_that_become_too_long_are_refused() -> None:
    outputs = [f"p{i}" for i in range(100)]
    assert parse_constraint("(1 + t)*sum(t*p**2) = sum(p)", outputs, ["t"]).n_rows == 1
    with pytest.raises(ConstraintError, match="more than 5000 parts once sum"):
        parse_constraint(f"sum({'*'.join(['p'] * 60)}) = 1", outputs)


def test_missing_column_at_evaluation_says_which() -> None:
    law = parse_constraint("z = T", ["z"], ["t"], {"T": "temperature"})
    with pytest.raises(ConstraintError, match="columns t, temperature"):
        law.residual(np.ones((3, 1)), np.ones((3, 1)))


def test_function_constant_of_wrong_length_is_refused() -> None:
    law = parse_constraint("z = c", ["z"], ["t"], {"c": lambda x: np.ones(7)})
    with pytest.raises(ConstraintError, match="expected 3 values"):
        law.residual(np.ones((3, 1)), np.ones((3, 1)))


def test_what_a_model_file_needs_is_kept() -> None:
    constraint = FormulaConstraint("z + v = E", {"E": 0.8, "T": "temperature", "U": Unknown("mass")})
    assert constraint.is_storable
    again = FormulaConstraint(list(constraint.texts), constraint.constants)
    assert (again.texts, again.constants) == (constraint.texts, {"E": 0.8, "T": "temperature", "U": "unknown"})
    assert not FormulaConstraint("z = c", {"c": np.sum}).is_storable
    assert repr(constraint).startswith("FormulaConstraint('z + v = E', constants={'E': 0.8")


def test_explanation_of_a_sum() -> None:
    law = parse_constraint("exp(-t)*z**2 + v = U", ["z", "v", "w"], ["t"], {"U": "unknown"})
    assert explain_law(law).split("\n") == [
        "kind: sum of transformed outputs, 1 row, input-dependent coefficients",
        "row 1: exp(-t)*z**2 + v = U",
        "  exp(-t) * z**2: square, two branches (negative, positive) that meet at 0",
        "  1 * v: the output itself",
        "  -1 * U: constant to be estimated",
        "  total: 0",
        "estimated constants: U",
        "outputs outside the law: w",
        "strategy: Linearized, because z**2 is not linear; Transformed is possible too",
    ]
    assert str(law) == law.explain()


def test_explanation_of_linear_and_general_laws() -> None:
    linear = explain_law(parse_constraint("a + b = T", ["a", "b"], [], {"T": "total mass"}))
    assert "strategy: Conditioned" in linear
    assert "data columns needed, also for predictions: total mass" in linear
    general = explain_law(parse_constraint("a*b + `c d`/(1 + t) = -1", ["a", "b", "c d"], ["t"]))
    assert "not a sum of single outputs: a*b couples a, b" in general
    assert "  term: `c d`/(t + 1)" in general
    assert "strategy: Linearized" in general
    assert "sqrt(z) is not one of the transforms" in parse_constraint("sqrt(z) = 1", ["z"]).explain()


def test_str_explains_without_outputs_and_stays_silent_about_families() -> None:
    text = str(FormulaConstraint("k*z + v = E; z = c + T", {"k": 2, "E": "unknown", "c": np.sum, "T": "temp"}))
    for line in (
        "law: k*z + v = E",
        "constant k: 2",
        "constant E: unknown, to be estimated",
        "constant c: a function of the inputs",
        "constant T: the data column 'temp'",
        "kind: linear, 2 rows, constant coefficients",
        "  2 * z: the output itself",
    ):
        assert line in text.split("\n")
    assert "known once the outputs are named" in str(FormulaConstraint("sum(p) = 1"))
