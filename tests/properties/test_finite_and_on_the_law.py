"""Whatever the sizes, units, offsets and gaps: finite numbers that obey the law, or a refusal with a remedy."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from properties.drawn import KINDS, examples, powers_of_two, problems
from properties.outcomes import fitted, never_measured, violation
from properties.problems import Problem

from sumgp import ConstrainedGP


def check(problem: Problem, gp: ConstrainedGP | str) -> None:
    if isinstance(gp, str):
        return
    posterior = gp.posterior(problem.X_new)
    draws = posterior.sample(2)
    lower, upper = posterior.interval()
    for values in (posterior.mean, posterior.std, draws, lower, upper):
        assert np.all(np.isfinite(values))
    assert np.all(posterior.std >= 0)
    assert np.all(lower <= upper)
    if gp.fit_report_.status == "converged":
        # An output known through the law only may be drawn where no value of it meets the law (a sine above one).
        on_the_law = (posterior.mean, *draws) if never_measured(problem) == 0 else (posterior.mean,)
        assert max(violation(gp, values, problem.X_new) for values in on_the_law) < 1e-8


@examples(25)
@given(problem=problems(most_rows=60), data=st.data())
def test_plug_in(problem: Problem, data: st.DataObject) -> None:
    units = data.draw(powers_of_two(problem.Y.shape[1]))
    offset = data.draw(st.sampled_from([0.0, 2.0**10, 2.0**30]))
    posed = problem.in_units(units).with_inputs(np.ones(problem.X.shape[1]), offset)
    check(posed, fitted(posed))


@examples(4)
@given(problem=problems(most_rows=12))
def test_integrated(problem: Problem) -> None:
    check(problem, fitted(problem, uncertainty="integrated"))


@given(problem=problems(most_rows=5, missing=(0.0,)))
@examples(10)
def test_a_plain_problem_is_never_refused(problem: Problem) -> None:
    """The tests above would also pass if everything were refused."""
    assert not isinstance(fitted(problem), str)


def test_all_kinds_of_law_are_drawn() -> None:
    assert set(KINDS) == {"none", "linear", "sum", "squares", "lengths"}
