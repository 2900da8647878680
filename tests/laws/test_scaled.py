"""Laws in unit-free columns: values, derivatives, rows of comparable size, soft errors, parts of the inputs."""

from __future__ import annotations

import numpy as np
import pytest
from equivalence.small_problems import differences

from sumgp import LinearConstraint, SumConstraint, Term, Unknown
from sumgp.laws import AllOf, Law
from sumgp.laws.geometry import UnitFreeLaw, make_unit_free
from sumgp.transforms import Log, Square

X = np.array([[0.0], [0.4], [1.0]])
SHIFT, SCALE = np.array([2.0, -1.0, 0.5]), np.array([3.0, 0.5, 2.0])


def law() -> Law:
    energy = SumConstraint([Term("a", 0.5, Square()), Term("b", 2.0, Square())], Unknown("E"), noise=0.3)
    sum_part = LinearConstraint([1.0, 4.0], lambda X: X[:, 0], where=lambda X: X[:, 0] < 0.5)
    return AllOf([energy, sum_part]).bind(("a", "b"), ("x",))


def unit_free(u: np.ndarray) -> UnitFreeLaw:
    return make_unit_free(law(), SHIFT, SCALE, u, X)


def test_residual_is_the_users_law_divided_by_the_rows_sizes() -> None:
    u = np.random.default_rng(0).standard_normal((3, 3))
    free = unit_free(u)
    assert free.n_columns == 4
    error = np.array([[0.1], [0.2], [0.3]])
    values = free.residual(np.hstack([u, error]), X)
    f = SHIFT + SCALE * u
    energy = (0.5 * f[:, 0] ** 2 + 2.0 * f[:, 1] ** 2 - f[:, 2]) / free.row_scale[0] + error[:, 0]
    line = np.where(X[:, 0] < 0.5, (f[:, 0] + 4.0 * f[:, 1] - X[:, 0]) / free.row_scale[1], 0.0)
    np.testing.assert_allclose(values, np.column_stack([energy, line]), rtol=1e-12)
    np.testing.assert_allclose(free.soft_variances, (0.3 / free.row_scale[0]) ** 2)


def test_jacobian_equals_differences() -> None:
    u = np.random.default_rng(1).standard_normal((3, 4))
    free = unit_free(u[:, :3])
    J = free.jacobian(u, X)
    for i in range(3):
        numerical = differences(lambda v, i=i: free.residual(v[None], X[i : i + 1])[0], u[i]).T
        np.testing.assert_allclose(J[i], numerical, atol=1e-8)


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_rows_have_slopes_of_order_one_whatever_the_unit(unit: float) -> None:
    bound = SumConstraint([Term(0, unit, Square())], unit * 4.0).bind(("a",), ("x",))
    u = np.random.default_rng(2).standard_normal((50, 1))
    free = make_unit_free(bound, np.array([2.0]), np.array([0.3]), u, np.zeros((50, 1)))
    assert np.sqrt(np.mean(free.jacobian(u, np.zeros((50, 1))) ** 2)) == pytest.approx(1.0)


def test_values_beyond_the_domain_stay_finite() -> None:
    bound = SumConstraint([Term(0, 1.0, Log())], 0.0).bind(("a",), ("x",))
    u = np.array([[-5.0], [0.0], [3.0]])
    free = make_unit_free(bound, np.array([1.0]), np.array([0.5]), u, X)
    assert np.all(np.isfinite(free.residual(u, X)))
    assert np.all(np.isfinite(free.jacobian(u, X)))


def test_a_law_without_slope_at_typical_values_keeps_a_positive_row_size() -> None:
    bound = SumConstraint([Term(0, 1.0, Square())], 0.0).bind(("a",), ("x",))
    free = make_unit_free(bound, np.array([0.0]), np.array([1.0]), np.zeros((3, 1)), X)
    assert free.row_scale[0] > 0
