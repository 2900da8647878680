"""Derivatives in formulas: columns of their own, every way to write them, rules inside d(...), errors, operators."""

from __future__ import annotations

import numpy as np
import pytest

from sumgp import ConstrainedGP, ConstraintError, LinearConstraint, parse_constraint
from sumgp.laws import AllOf, Derivative, FormulaConstraint, SumLaw, as_operator, constant_rows, explain_law

FITZHUGH = ["d(V, t) = c*(V - V**3/3 + R)", "d(R, t) = -(V - a + b*R)/c"]
UNKNOWN = {"a": "unknown", "b": "unknown", "c": "unknown"}


def test_columns_are_outputs_derivatives_constants() -> None:
    law = parse_constraint(FITZHUGH, ["V", "R"], ["t"], UNKNOWN)
    assert law.column_names == ("V", "R", "d(V, t)", "d(R, t)", "a", "b", "c")
    assert law.derivatives == (Derivative(0, (1,)), Derivative(1, (1,)))
    assert law.unknown_columns == slice(4, 7)
    f = np.random.default_rng(0).uniform(0.5, 1.5, (6, 7))
    V, R, dV, dR, a, b, c = f.T
    meant = np.stack([dV - c * (V - V**3 / 3 + R), dR + (V - a + b * R) / c], axis=1)
    np.testing.assert_allclose(law.residual(f, np.zeros((6, 1))), meant, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "text", ["d(z, t) = v", "diff(z, t) = v", "Derivative(z, t) = v", "dz/dt = v", "v - dz/dt = 0", "2*dz/dt = 2*v"]
)
def test_ways_to_write_a_derivative(text: str) -> None:
    law = parse_constraint(text, ["z", "v"], ["t"])
    operator = as_operator(law)
    factor = operator.coefficients[0, 0, 1]
    np.testing.assert_allclose(operator.coefficients[0] / factor, [[0, 1], [-1, 0]])


@pytest.mark.parametrize("text", ["d(z, t, 2) = v", "d(d(z, t), t) = v", "diff(z, t, t) = v", "d2z/dt2 = v"])
def test_ways_to_write_a_second_derivative(text: str) -> None:
    law = parse_constraint(text, ["z", "v"], ["t"])
    assert law.derivatives[-1] == Derivative(0, (2,))
    assert law.derivatives[-1].name == "d(z, t, 2)"


def test_a_quotient_of_known_names_stays_a_quotient() -> None:
    law = parse_constraint("dz/dt = v", ["z", "v", "dz"], ["t"], {"dt": 2.0})
    assert law.derivatives == ()
    np.testing.assert_allclose(law.residual(np.array([[0.0, 1.0, 6.0]]), np.zeros((1, 1))), [[2.0]])


def test_rules_inside_of_a_derivative_follow_the_functions() -> None:
    """Left and right side along known functions of t: u = sin t, w = exp(t/2)."""
    law = parse_constraint("d(u*w/(1 + t**2) + a*u**3, t) = 0", ["u", "w"], ["t"], {"a": "unknown"})
    t = np.linspace(0.1, 2.0, 9)
    columns = {"u": np.sin(t), "w": np.exp(t / 2), "d(u, t)": np.cos(t), "d(w, t)": np.exp(t / 2) / 2, "a": np.full(9, 0.7)}

    def whole(t: np.ndarray) -> np.ndarray:
        return np.sin(t) * np.exp(t / 2) / (1 + t**2) + 0.7 * np.sin(t) ** 3

    f = np.stack([columns[name] for name in law.column_names], axis=1)
    numerical = (whole(t + 1e-5) - whole(t - 1e-5)) / 2e-5
    np.testing.assert_allclose(law.residual(f, t[:, None])[:, 0], numerical, rtol=1e-7, atol=1e-8)


def test_several_inputs() -> None:
    law = parse_constraint("d(u, x) + d(v, y) = 0; d(u, x, y) = v", ["u", "v"], ["x", "y"])
    assert [d.orders for d in law.derivatives] == [(1, 0), (0, 1), (1, 1)]
    operator = as_operator(law)
    rows = {tuple(e): operator.coefficients[:, :, m] for m, e in enumerate(operator.exponents.tolist())}
    np.testing.assert_allclose(rows[1, 0], [[1, 0], [0, 0]])
    np.testing.assert_allclose(rows[0, 1], [[0, 1], [0, 0]])
    np.testing.assert_allclose(rows[1, 1], [[0, 0], [1, 0]])
    np.testing.assert_allclose(rows[0, 0], [[0, 0], [0, -1]])


def test_which_rows_can_be_eliminated() -> None:
    texts = ["d(z, t) = v", "z**2 + v**2 = 1", "d(v, t) = k*z", "d(v, t) = -2*z", "d(v, t, 2) = v + 1", "d(z, t, 2) = t*v"]
    law = parse_constraint(texts, ["z", "v"], ["t"], {"k": "unknown"})
    assert constant_rows(law).tolist() == [True, False, False, True, True, False]
    chosen = law.rows([0, 3])
    assert isinstance(chosen, SumLaw)
    assert chosen.labels == (texts[0], texts[3])
    f, x = np.random.default_rng(1).standard_normal((5, law.n_columns)), np.ones((5, 1))
    np.testing.assert_allclose(chosen.residual(f, x), law.residual(f, x)[:, [0, 3]])
    np.testing.assert_allclose(law.rows([1, 2]).jacobian(f, x), law.jacobian(f, x)[:, [1, 2]])
    with pytest.raises(ValueError, match="choose rows first"):
        as_operator(law)


def test_a_list_of_formulas_and_objects_shares_its_columns() -> None:
    parts = [FormulaConstraint("d(v, t) = -k*z", {"k": "unknown"}), LinearConstraint([[1.0, 1.0]], 2.0, noise=0.5)]
    law = AllOf([*parts, FormulaConstraint("d(z, t) = v*v")]).bind(["z", "v"], ["t"])
    assert law.column_names == ("z", "v", "d(v, t)", "d(z, t)", "k")
    f = np.random.default_rng(2).standard_normal((4, 5))
    z, v, dv, dz, k = f.T
    np.testing.assert_allclose(law.residual(f, np.zeros((4, 1))), np.stack([dv + k * z, z + v - 2, dz - v * v], axis=1))
    np.testing.assert_allclose(law.rows([1]).residual(f, np.zeros((4, 1))), (z + v - 2)[:, None])
    assert law.noise.tolist() == [0.0, 0.5, 0.0]


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("d(z, v) = 1", "'v' is an output, and derivatives are taken by inputs; write one of t"),
        ("d(z, q) = 1", "no known name"),
        ("d(z, t, 3) = v", "orders up to 2"),
        ("d(d(z, t, 2), t) = v", "orders up to 2"),
        ("d(zz, t) = v", "did you mean 'z'"),
        ("d(sin(z), t) = v", "chain rule"),
        ("d(z, 2) = v", "expected an input"),
        ("d(g, t) = v", "is given by data"),
    ],
)
def test_errors_point_at_the_place(text: str, phrase: str) -> None:
    with pytest.raises(ConstraintError) as caught:
        parse_constraint(text, ["z", "v"], ["t"], {"g": "column"})
    assert phrase in str(caught.value)
    assert "^" in str(caught.value)


def test_explained_as_written() -> None:
    told = explain_law(parse_constraint("d(z, t) = v", ["z", "v"], ["t"]))
    assert "1 * d(z, t): derivative" in told
    assert "d(V, t) = c*(V - V**3/3 + R)" in str(FormulaConstraint(FITZHUGH, UNKNOWN))
    assert "estimated constants: a, b, c" in str(FormulaConstraint(FITZHUGH, UNKNOWN))


def test_a_bound_on_a_constant_says_how_to_keep_it_positive() -> None:
    model = ConstrainedGP(["d(n, t) = r*n", "r >= 0"], outputs=["n"], inputs=["t"], constants={"r": "unknown"})
    with pytest.raises(ConstraintError, match=r"constant r positive write exp\(log_r\)"):
        model.fit(np.arange(4.0), np.ones(4))
