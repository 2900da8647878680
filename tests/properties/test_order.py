"""The order of measurements and of outputs does not matter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties.drawn import LAWS, examples, problems, well_determined
from properties.outcomes import SAME, SAME_AFTER_A_NEW_FIT, SAME_FOR_TWINS, Fit, anew, assert_same, held
from properties.problems import Problem

from sumgp import ConstrainedGP


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
    # Outputs that were never measured may be alike in everything but their names: then their draws may change places.
    never = np.isnan(problem.Y).all(axis=0).sum()
    compare(problem, rows, outputs, held, SAME if never < 2 else SAME_FOR_TWINS)


@examples(8)
@given(problem=well_determined(), data=st.data())
def test_order_after_a_new_fit(problem: Problem, data: st.DataObject) -> None:
    rows = data.draw(st.permutations(range(len(problem.Y))))
    outputs = data.draw(st.permutations(range(problem.Y.shape[1])))
    compare(problem, rows, outputs, anew, SAME_AFTER_A_NEW_FIT)


@pytest.mark.parametrize("law", [None, "a + b = 1", "a**2 + b**2 = 1"])
@pytest.mark.parametrize("uncertainty", ["plug-in", "integrated"])
def test_rows_in_any_order_give_the_same_numbers_to_the_last_bit(law: str | None, uncertainty: str) -> None:
    """After a new fit, with noise that is known row by row and inputs that repeat."""
    generator = np.random.default_rng(0)
    x = np.repeat(np.linspace(0.0, 3.0, 7), 2)
    angle = 0.5 * x
    truth = np.column_stack([np.sin(angle), np.cos(angle)]) if law != "a + b = 1" else np.column_stack([angle, 1.0 - angle])
    noise = generator.uniform(0.01, 0.1, truth.shape)
    Y = truth + noise * generator.standard_normal(truth.shape)
    Y[3, 0] = Y[8, 1] = np.nan
    asked = np.linspace(-0.2, 3.2, 9)

    def predicted(rows: np.ndarray) -> np.ndarray:
        gp = ConstrainedGP(law, outputs=["a", "b"], noise=noise[rows], uncertainty=uncertainty, restarts=0)
        posterior = gp.fit(x[rows], Y[rows]).posterior(asked)
        return np.stack([posterior.mean, posterior.std])

    first = predicted(np.arange(len(x)))
    for seed in range(2):
        np.testing.assert_array_equal(predicted(np.random.default_rng(seed).permutation(len(x))), first)
