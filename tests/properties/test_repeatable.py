"""The same seed gives the same numbers, to the last digit."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from properties.drawn import examples, problems
from properties.outcomes import fitted
from properties.problems import Problem


def everything(problem: Problem, uncertainty: str, seed: int) -> list[np.ndarray] | str:
    gp = fitted(problem, uncertainty=uncertainty, random_state=seed)
    if isinstance(gp, str):
        return gp
    posterior = gp.posterior(problem.X_new)
    return [posterior.mean, posterior.std, *posterior.interval(), posterior.sample(2, random_state=seed)]


def same(first: list[np.ndarray] | str, second: list[np.ndarray] | str) -> bool:
    if isinstance(first, str) or isinstance(second, str):
        return first == second
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


@examples(6)
@given(problem=problems(most_rows=15), seed=st.integers(0, 2**31))
def test_plug_in_repeats(problem: Problem, seed: int) -> None:
    assert same(everything(problem, "plug-in", seed), everything(problem, "plug-in", seed))


@examples(2)
@given(problem=problems(most_rows=8, missing=(0.0, 0.2)), seed=st.integers(0, 2**31))
def test_integrated_repeats(problem: Problem, seed: int) -> None:
    assert same(everything(problem, "integrated", seed), everything(problem, "integrated", seed))


@examples(4)
@given(problem=problems(("none",), most_rows=8, missing=(0.0,)))
def test_another_seed_draws_other_samples(problem: Problem) -> None:
    assert not same(everything(problem, "plug-in", 1), everything(problem, "plug-in", 2))
