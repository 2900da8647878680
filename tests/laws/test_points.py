"""Points at which a law is imposed, sizes of outputs that were never measured, starting values of constants."""

from __future__ import annotations

import numpy as np
import pytest

from sumgp import ConstraintError, LinearConstraint, SumConstraint, Term, Unknown
from sumgp.data.table import Data, Scaling, choose_scaling
from sumgp.laws import Law
from sumgp.laws.points import MOST_POINTS, complete_scaling, law_points, typical_rows, unit_free_law
from sumgp.laws.sizes import solve_for_columns
from sumgp.transforms import Square

X = np.linspace(0.0, 4.0, 9)[:, None]
TRUE = np.column_stack([2.0 + np.sin(X[:, 0]), 5.0 - np.sin(X[:, 0])])


def data(y: np.ndarray = TRUE, x: np.ndarray = X) -> Data:
    return Data(x, y, tuple(f"x{i}" for i in range(x.shape[1])), ("a", "b"))


def scaling(d: Data) -> Scaling:
    return choose_scaling(d, [(0,), (1,)], unit_inputs=True)


def bound(constraint: object = None) -> Law:
    return (constraint or LinearConstraint([1.0, 1.0], 7.0)).bind(("a", "b"), ("x0",))  # type: ignore[attr-defined]


def test_gaps_are_filled_by_interpolation() -> None:
    y = TRUE.copy()
    y[4, 0] = np.nan
    filled = scaling(data(y)).restore(typical_rows(data(y), scaling(data(y))))
    assert filled[4, 0] == pytest.approx(0.5 * (TRUE[3, 0] + TRUE[5, 0]))
    np.testing.assert_allclose(filled[:, 1], TRUE[:, 1])


def test_measurements_at_one_place_fill_gaps_by_their_mean() -> None:
    x = np.array([[0.0], [1.0], [1.0], [1.0], [2.0]])
    y = np.array([[0.0, 1.0], [2.0, 1.0], [6.0, 1.0], [np.nan, 1.0], [0.0, 1.0]])
    for rows in ([0, 1, 2, 3, 4], [4, 2, 3, 1, 0]):
        d = data(y[rows], x[rows])
        filled = scaling(d).restore(typical_rows(d, scaling(d)))
        assert filled[rows.index(3), 0] == pytest.approx(4.0)


def test_law_points_do_not_see_an_offset() -> None:
    """As the kernels see them: the same numbers to the last bit, where the offset itself takes no digits."""
    d, far = data(), data(TRUE, X + 2.0**20)
    here, there = (law_points(bound(), e, scaling(e), 0.02)[0] for e in (d, far))
    np.testing.assert_array_equal(here, there)


def test_columns_are_solved_for_row_by_row() -> None:
    y = np.column_stack([TRUE[:, 0], np.full(9, np.nan)])
    half = scaling(data(y))
    solved = solve_for_columns(bound(), typical_rows(data(y), half), X, half, np.array([1]))
    np.testing.assert_allclose(solved[:, 0], 7.0 - TRUE[:, 0], atol=1e-12)
    energy = SumConstraint([Term(0, 1.0, Square()), Term(1, 1.0, Square())], Unknown("E")).bind(("a", "b"), ("x0",))
    constants = solve_for_columns(energy, typical_rows(data(), scaling(data())), X, scaling(data()), np.array([2]))
    np.testing.assert_allclose(constants[:, 0], np.sum(TRUE**2, axis=1), rtol=1e-10)


def test_an_output_never_measured_gets_the_laws_size() -> None:
    y = np.column_stack([TRUE[:, 0], np.full(9, np.nan)])
    completed = complete_scaling(bound(), data(y), scaling(data(y)))
    assert completed.y_shift[1] == pytest.approx(np.mean(7.0 - TRUE[:, 0]))
    assert completed.y_scale[1] == pytest.approx(np.std(7.0 - TRUE[:, 0]))
    with pytest.raises(ConstraintError, match="'b' was never measured"):
        complete_scaling(None, data(y), scaling(data(y)))


def test_unknown_constants_start_at_what_single_rows_suggest() -> None:
    noisy = TRUE + 0.1 * np.random.default_rng(0).standard_normal(TRUE.shape)
    law = LinearConstraint([1.0, 1.0], Unknown()).bind(("a", "b"), ("x0",))
    free = unit_free_law(law, data(noisy), scaling(data(noisy)))
    assert free.shift[2] == pytest.approx(np.median(noisy.sum(axis=1)))
    assert free.scale[2] == pytest.approx(np.std(noisy.sum(axis=1)))


def test_law_points_hold_the_training_inputs_and_fill_the_gaps() -> None:
    _, points = law_points(bound(), data(), scaling(data()), 0.02)
    assert {*X[:, 0]} <= {*points[:, 0]}
    assert np.max(np.diff(np.sort(points[:, 0]))) <= 0.02 * 4.0 + 1e-12
    assert len(np.unique(points, axis=0)) == len(points)


@pytest.mark.parametrize("count", [9, 1000])
@pytest.mark.parametrize("D", [1, 2])
def test_law_points_are_bounded_in_number(count: int, D: int) -> None:
    x = np.random.default_rng(0).uniform(size=(count, D))
    d = data(np.zeros((count, 2)), x)
    _, points = law_points(bound(), d, scaling(d), 1e-4)
    assert 20 < len(points) <= MOST_POINTS + 20
    assert np.all((points >= x.min(axis=0)) & (points <= x.max(axis=0)))


def test_rows_far_closer_than_the_grid_are_thinned() -> None:
    x = np.linspace(0.0, 1.0, 200)[:, None]
    d = data(np.zeros((200, 2)), x)
    _, points = law_points(bound(), d, scaling(d), 1.0 / 30.0)
    assert len(points) <= 3 * 31
    assert points[:, 0].min() == 0.0
    assert points[:, 0].max() == 1.0
    assert np.max(np.diff(np.sort(points[:, 0]))) <= 1.0 / 30.0 + 1e-12


def test_a_curve_that_changes_from_row_to_row_gets_no_fine_grid() -> None:
    """Its law between rows says nothing of the rows, and two hundred points of it took most of a fit's time."""
    x = np.linspace(0.0, 1.0, 67)[:, None]
    d = data(np.zeros((67, 2)), x)
    assert len(law_points(bound(), d, scaling(d), 0.0016)[0]) > 200
    points = law_points(bound(), d, scaling(d), 0.0014)[1]
    assert {*x[:, 0]} <= {*points[:, 0]}
    assert len(points) <= 67 + 21


def test_identical_inputs_give_one_point() -> None:
    d = data(TRUE, np.full((9, 1), 2.0))
    np.testing.assert_array_equal(law_points(bound(), d, scaling(d), 0.1)[1], [[2.0]])
