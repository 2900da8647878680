"""Every kind of law answers all that fits ask of it, alike for all its rows, for some of them, and beyond its domain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sumgp.data import Data
from sumgp.laws import (
    AllOf,
    Constraint,
    FormulaConstraint,
    FunctionConstraint,
    Law,
    LinearConstraint,
    SumConstraint,
    Term,
    Unknown,
    learnt_errors,
    with_errors,
)
from sumgp.transforms import Log, Square

OUTPUTS, INPUTS = ["a", "b", "c"], ["t"]


def product(f: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.column_stack([f[:, 0] * f[:, 1] - x[:, 0], f[:, 2] - f[:, 0] ** 2])


def early(x: np.ndarray) -> np.ndarray:
    return x[:, 0] < 1.0


LINEAR = LinearConstraint([[1, 1, 0], [0, 1, -2]], [1.0, 0.5], noise=[0.0, 0.3])
VARYING = LinearConstraint(lambda x: np.stack([np.ones(len(x)), x[:, 0], x[:, 0] ** 2], axis=1), lambda x: x[:, 0])
SUM = SumConstraint([Term("a", 0.5, Square()), Term("b", 2.0, Log())], Unknown("E"), noise=0.1)
CONSTRAINTS: dict[str, Constraint] = {
    "linear": LINEAR,
    "varying": VARYING,
    "in places": LinearConstraint([1, 1, 1], lambda x: np.sin(x[:, 0]), where=early),
    "sum": SUM,
    "function": FunctionConstraint(product),
    "formula, linear": FormulaConstraint("a + b = 1; b - 2*c = 0.5 +- 0.3"),
    "formula, varying": FormulaConstraint("t*a + b = 1; a - c = k +- 0.2", {"k": "column"}),
    "formula, function": FormulaConstraint("a*b = E; log(c) + a = 1 +- 0.5; d(a, t) = b +- 0.1", {"E": "unknown"}),
    "formula, derivatives": FormulaConstraint("d(a, t, 2) + a = 0; d(b, t) = sin(t)*c +- 0.1"),
    "sums together": AllOf([LINEAR, VARYING, SUM]),
    "all together": AllOf(
        [VARYING, FunctionConstraint(product), FormulaConstraint("d(a, t) = k*b +- 0.4", {"k": "column"})]
    ),
}


def bound(kind: str) -> Law:
    return CONSTRAINTS[kind].bind(OUTPUTS, INPUTS)


def learnt() -> Law:
    """Errors of a sum with a varying total and of a function, estimated from rows."""
    law = AllOf([FormulaConstraint("a + b = t +- unknown"), FormulaConstraint("a*c = 1 +- unknown; b = 2")]).bind(
        OUTPUTS, INPUTS
    )
    generator = np.random.default_rng(0)
    t = np.linspace(0.5, 2.0, 12)
    y = np.column_stack([t + 1.0, np.full(12, 2.0), 1.0 / (t + 1.0)]) + 0.1 * generator.standard_normal((12, 3))
    data = Data(t[:, None], y, tuple(INPUTS), tuple(OUTPUTS))
    return with_errors(law, learnt_errors(law, data))


LAWS = {**{kind: bound(kind) for kind in CONSTRAINTS}, "estimated errors": learnt()}


@pytest.fixture(params=LAWS, ids=str)
def law(request: pytest.FixtureRequest) -> Law:
    return LAWS[request.param]


def points(law: Law) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(1)
    x = generator.uniform(0.1, 2.0, (7, 1 + len(law.extra_columns)))
    return generator.uniform(0.5, 2.0, (7, law.n_columns)), x


def test_shapes_and_names(law: Law) -> None:
    f, x = points(law)
    n, R, C = len(f), law.n_rows, law.n_columns
    assert law.residual(f, x).shape == law.magnitude(f, x).shape == law.active(x).shape == (n, R)
    assert law.jacobian(f, x).shape == (n, R, C)
    assert len(law.labels) == len(law.noise) == R
    assert len(law.column_names) == C == len(law.involved())
    assert all(label in law.explain() for label in law.labels)


def test_jacobian_is_the_derivative_of_the_residual(law: Law) -> None:
    f, x = points(law)
    J, step = law.jacobian(f, x), 1e-6
    for column in range(law.n_columns):
        up, down = f.copy(), f.copy()
        up[:, column] += step
        down[:, column] -= step
        slope = (law.residual(up, x) - law.residual(down, x)) / (2.0 * step)
        np.testing.assert_allclose(J[:, :, column], slope, atol=1e-6)
    np.testing.assert_array_equal(J[:, :, ~law.involved()], 0.0)


def test_some_of_the_rows_are_these_rows(law: Law) -> None:
    f, x = points(law)
    for chosen in ([0], [law.n_rows - 1], list(range(law.n_rows))[::-1]):
        some = law.rows(chosen)
        assert some.column_names == law.column_names
        assert some.labels == tuple(law.labels[row] for row in chosen)
        np.testing.assert_array_equal(some.noise, law.noise[chosen])
        np.testing.assert_array_equal(some.active(x), law.active(x)[:, chosen])
        np.testing.assert_allclose(some.residual(f, x), law.residual(f, x)[:, chosen], atol=1e-12)
        np.testing.assert_allclose(some.jacobian(f, x), law.jacobian(f, x)[:, chosen], atol=1e-12)


def test_the_continuation_is_the_law_inside_its_domain(law: Law) -> None:
    f, x = points(law)
    relaxed = law.relaxed(np.ones(law.n_columns))
    assert relaxed.labels == law.labels
    np.testing.assert_array_equal(relaxed.noise, law.noise)
    np.testing.assert_allclose(relaxed.residual(f, x), law.residual(f, x), atol=1e-12)
    assert np.all(np.isfinite(relaxed.residual(-f, x)))
    for row in range(law.n_rows):
        some = relaxed.rows([row])
        np.testing.assert_allclose(some.residual(-f, x), relaxed.residual(-f, x)[:, [row]], atol=1e-12)


def test_facts_of_rows_can_be_replaced(law: Law) -> None:
    louder = replace(law, noise=law.noise + 1.0)
    np.testing.assert_array_equal(louder.rows([0]).noise, law.noise[:1] + 1.0)
    np.testing.assert_array_equal(louder.relaxed(np.ones(law.n_columns)).noise, law.noise + 1.0)
