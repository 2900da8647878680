"""Linear laws that repeat, contradict or break off."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sumgp import ConstraintError, LinearConstraint, Unknown
from sumgp.data.table import Data, Scaling
from sumgp.laws import SumLaw
from sumgp.laws.points import check_law, independent_rows

X = np.array([[0.0], [1.0]])
DATA = Data(X, np.ones((2, 3)), ("x",), ("a", "b", "c"))


def scaling(scale: Any = 1.0, shift: Any = 0.0) -> Scaling:
    return Scaling(np.zeros(1), np.ones(1), np.broadcast_to(shift, 3) * 1.0, np.broadcast_to(scale, 3) * 1.0)


def law(F: Any, S: Any, **more: Any) -> SumLaw:
    bound = LinearConstraint(F, S, **more).bind(("a", "b", "c"), ("x",))
    assert isinstance(bound, SumLaw)
    return bound


def test_combinations_of_earlier_rows_are_left_out() -> None:
    F = [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 2.0, 1.0], [1.0, 0.0, 0.0]]
    assert independent_rows(law(F, [1.0, 2.0, 3.0, 4.0]), DATA, scaling()) == [0, 1, 3]


def test_a_combination_with_another_total_names_the_rows_it_contradicts() -> None:
    F = [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [2.0, 2.0, 0.0]]
    with pytest.raises(ConstraintError, match=r"'2\*a \+ 2\*b = 5' contradicts '1\*a \+ 1\*b = 1': together") as caught:
        independent_rows(law(F, [1.0, 2.0, 5.0]), DATA, scaling())
    assert "1*c" not in str(caught.value)


def test_a_contradiction_at_one_input_only_is_found() -> None:
    rows = law([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0]], lambda x: np.column_stack([x[:, 0], np.zeros(len(x))]))
    with pytest.raises(ConstraintError, match="contradicts"):
        check_law(rows, DATA, scaling())


def test_soft_rows_never_contradict() -> None:
    soft = law([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0]], [1.0, 2.0], noise=[0.0, 0.1])
    assert independent_rows(soft, DATA, scaling()) == [0, 1]


def test_round_off_of_large_totals_is_no_contradiction() -> None:
    third = 1.0 / 3.0
    F = np.array([[1.0, 1.0, 1.0], [third, third, third]])
    independent_rows(law(F, [3e9, 1e9 * (1.0 + 1e-15)]), DATA, scaling(1.0, 1e9))


def test_varying_coefficients_are_checked_row_by_row() -> None:
    def F(x: np.ndarray) -> np.ndarray:
        return np.stack(
            [np.tile([1.0, 1.0, 1.0], (len(x), 1)), np.column_stack([x[:, 0], x[:, 0], np.ones(len(x))])], axis=1
        )

    check_law(law(F, [1.0, 1.0]), DATA, scaling())
    with pytest.raises(ConstraintError, match=r"no outputs meet .* at x = \[1.0\] \(row 1\)"):
        check_law(law(F, [1.0, 2.0]), DATA, scaling())
    check_law(law(F, [1.0, 2.0], where=lambda x: x[:, 0] < 0.5), DATA, scaling())
    check_law(law(F, [1.0, 2.0], noise=0.1), DATA, scaling())


def test_unknown_totals_can_always_be_met() -> None:
    check_law(law([[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]], Unknown()), DATA, scaling())


def test_values_that_are_no_numbers_are_named_unless_the_law_does_not_hold_there() -> None:
    def total(x: np.ndarray) -> np.ndarray:
        return np.where(x[:, 0] > 0.5, np.nan, 1.0)

    with pytest.raises(ConstraintError, match=r"not finite at x = \[1.0\] \(row 1\); .*where="):
        check_law(law([1.0, 1.0, 1.0], total), DATA, scaling())
    check_law(law([1.0, 1.0, 1.0], total, where=lambda x: x[:, 0] < 0.5), DATA, scaling())
