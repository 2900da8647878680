"""Where an input starts to count does not matter: years and seconds since 1970 give what small numbers give."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from properties.drawn import LAWS, examples, problems, well_determined
from properties.outcomes import (
    SAME,
    SAME_AFTER_A_NEW_FIT,
    Fit,
    anew,
    assert_same,
    held,
    tells_its_units,
)
from properties.problems import Problem

# Sums of these and of the inputs are exact, so that only the algorithms are compared.
OFFSETS = [2.0**11, -(2.0**20), 2.0**30]


def compare(problem: Problem, offset: float, fit: Fit, share: float) -> None:
    shifted = problem.with_inputs(np.ones(problem.X.shape[1]), offset)
    assert np.array_equal(shifted.X - offset, problem.X)
    assert_same(problem, shifted, fit, share)


@pytest.mark.parametrize("kind", LAWS)
@examples(4)
@given(data=st.data())
def test_shifted_inputs(kind: str, data: st.DataObject) -> None:
    problem = data.draw(problems((kind,), most_rows=15))
    assume(tells_its_units(problem))
    compare(problem, data.draw(st.sampled_from(OFFSETS)), held, SAME)


@examples(6)
@given(problem=well_determined(), offset=st.sampled_from(OFFSETS))
def test_shifted_inputs_after_a_new_fit(problem: Problem, offset: float) -> None:
    assume(tells_its_units(problem))
    compare(problem, offset, anew, SAME_AFTER_A_NEW_FIT)
