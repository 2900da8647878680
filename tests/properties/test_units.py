"""The unit of an output and that of an input do not matter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from properties.drawn import LAWS, examples, powers_of_two, problems, well_determined
from properties.outcomes import (
    SAME,
    SAME_AFTER_A_NEW_FIT,
    anew,
    assert_same,
    held,
    tells_its_units,
)
from properties.problems import Problem


@pytest.mark.parametrize("kind", LAWS)
@examples(4)
@given(data=st.data())
def test_unit_of_outputs(kind: str, data: st.DataObject) -> None:
    problem = data.draw(problems((kind,), most_rows=15))
    assume(tells_its_units(problem))
    units = data.draw(powers_of_two(problem.Y.shape[1]))
    assert_same(problem, problem.in_units(units), held, SAME)


@pytest.mark.parametrize("kind", LAWS)
@examples(4)
@given(data=st.data())
def test_unit_of_inputs(kind: str, data: st.DataObject) -> None:
    problem = data.draw(problems((kind,), most_rows=15))
    assume(tells_its_units(problem))
    units = data.draw(powers_of_two(problem.X.shape[1]))
    assert_same(problem, problem.with_inputs(units, 0.0), held, SAME)


@examples(5)
@given(problem=well_determined(), data=st.data())
def test_units_after_a_new_fit(problem: Problem, data: st.DataObject) -> None:
    """Powers of ten, as units are: every number is rounded in another way."""
    assume(tells_its_units(problem))
    exponents = data.draw(st.lists(st.integers(-12, 12), min_size=problem.Y.shape[1], max_size=problem.Y.shape[1]))
    assert_same(problem, problem.in_units(10.0 ** np.array(exponents)), anew, SAME_AFTER_A_NEW_FIT)
    assert_same(
        problem, problem.with_inputs(np.full(problem.X.shape[1], 10.0 ** exponents[0]), 0.0), anew, SAME_AFTER_A_NEW_FIT
    )
