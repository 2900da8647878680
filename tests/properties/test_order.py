"""The order of measurements and of outputs does not matter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties.drawn import LAWS, examples, problems, well_determined
from properties.outcomes import SAME, SAME_AFTER_A_NEW_FIT, Fit, anew, assert_same, held
from properties.problems import Problem


def compare(problem: Problem, rows: list[int], outputs: list[int], fit: Fit, share: float) -> None:
    posed = problem.with_rows(np.array(rows)).with_outputs(np.array(outputs))
    assert_same(problem, posed, fit, share, outputs)


@pytest.mark.parametrize("kind", LAWS)
@examples(4)
@given(data=st.data())
def test_order_of_rows_and_outputs(kind: str, data: st.DataObject) -> None:
    problem = data.draw(problems((kind,), most_rows=15))
    rows = data.draw(st.permutations(range(len(problem.Y))))
    outputs = data.draw(st.permutations(range(problem.Y.shape[1])))
    compare(problem, rows, outputs, held, SAME)


@examples(8)
@given(problem=well_determined(), data=st.data())
def test_order_after_a_new_fit(problem: Problem, data: st.DataObject) -> None:
    rows = data.draw(st.permutations(range(len(problem.Y))))
    outputs = data.draw(st.permutations(range(problem.Y.shape[1])))
    compare(problem, rows, outputs, anew, SAME_AFTER_A_NEW_FIT)
