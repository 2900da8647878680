"""The law's evidence of hyperparameters: the same number whatever was asked for before, and each computed once."""

from __future__ import annotations

from itertools import permutations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from sumgp import ConstrainedGP, Linearized
from sumgp.strategies import linearized
from sumgp.strategies.linearized import ASTRAY, HOPELESS, LawScores, Scored

PRIOR: Any = SimpleNamespace(name="prior")
MAXIMA = (0.0, 1.0)
SEEN_FROM_MEAN = {0.0: -3.0, 1.0: -2.0, 2.0: -3.0 - 2.0 * ASTRAY, 3.0: 1.0 + ASTRAY, 4.0: -5.0}
FOUND_FROM_BEST = -4.0


class Engine:
    """Stands for a LawEngine: the posterior is theta, the law cannot be imposed at theta = 9."""

    branches = ()

    def __init__(self) -> None:
        self.asked: list[tuple[float, bool]] = []

    def state(self, prior: Any, theta: np.ndarray) -> float:
        return float(theta[0])

    def evidences(self, states: list[Any], starts: list[np.ndarray | None]) -> list[Scored | None]:
        (start,) = starts
        self.asked += [(state, start is None) for state in states]
        values = [SEEN_FROM_MEAN.get(state) if start is None else FOUND_FROM_BEST for state in states]
        return [None if v is None else Scored(v, np.full(1, s), s) for v, s in zip(values, states, strict=True)]


def scores() -> tuple[LawScores, Engine]:
    engine: Any = Engine()
    fitted: Any = SimpleNamespace(
        priors=(PRIOR, PRIOR), maxima=tuple(SimpleNamespace(theta=np.array([value])) for value in MAXIMA)
    )
    states: Any = MAXIMA
    return LawScores(engine, fitted, states), engine


@pytest.mark.parametrize("order", list(permutations((0.0, 2.0, 3.0, 4.0))))
def test_scores_do_not_depend_on_the_order_of_calls(order: tuple[float, ...]) -> None:
    score, _ = scores()
    pairs = [(PRIOR, np.array([theta])) for theta in order]
    found = [score([pair])[0] for pair in pairs]
    assert dict(zip(order, found, strict=True)) == {0.0: -3.0, 2.0: FOUND_FROM_BEST, 3.0: 1.0 + ASTRAY, 4.0: -5.0}
    assert scores()[0](pairs) == found


def test_each_is_computed_once_and_what_it_was_found_with_is_given_once() -> None:
    score, engine = scores()
    thetas = [np.array([theta]) for theta in (1.0, 2.0, 4.0)]
    for _ in range(2):
        score([(PRIOR, theta) for theta in thetas])
    assert sorted(engine.asked) == [(0.0, True), (1.0, True), (2.0, False), (2.0, True), (4.0, True)]
    kept = score.found(PRIOR, thetas[1], keep=True)
    assert kept is not None
    assert kept.value == FOUND_FROM_BEST
    assert score.found(PRIOR, thetas[1]) is kept
    assert score.found(PRIOR, thetas[1]) is None
    assert score([(PRIOR, thetas[1])]) == [FOUND_FROM_BEST]


def test_hopeless_where_the_law_cannot_be_imposed() -> None:
    score, _ = scores()
    assert score([(PRIOR, np.array([9.0])), (PRIOR, np.array([4.0]))]) == [HOPELESS, -5.0]
    assert score.found(PRIOR, np.array([9.0])) is None


def test_another_prior_has_scores_of_its_own() -> None:
    score, engine = scores()
    other: Any = SimpleNamespace(name="other")
    score([(PRIOR, np.array([4.0])), (other, np.array([4.0]))])
    assert engine.asked.count((4.0, True)) == 2


class StoppedError(Exception):
    """Raised where hyperparameters would be averaged over: its argument says whether a law weighs them."""


@pytest.mark.parametrize(("taper", "many", "weighed"), [(1.0, 10, False), (1.0, 100, True), (4.0, 10, True)])
def test_many_data_are_not_weighed_by_a_law_that_reaches_neighbours_alone(
    monkeypatch: pytest.MonkeyPatch, taper: float, many: int, weighed: bool
) -> None:
    def mix(problem: Any, fitted: Any, build: Any, score: LawScores | None, *rest: Any, **more: Any) -> None:
        raise StoppedError(score is not None)

    monkeypatch.setattr(linearized, "WELL_TOLD", many)
    monkeypatch.setattr(linearized, "mix", mix)
    t = np.linspace(0.0, 3.0, 12)
    gp = ConstrainedGP("a**2 + b**2 = 1", outputs=["a", "b"], kernel=RBF(1.0), restarts=0, strategy=Linearized(taper=taper))
    with pytest.raises(StoppedError) as found:
        gp.fit(t, np.column_stack([np.cos(t), np.sin(t)]) + 0.1 * np.random.default_rng(0).standard_normal((12, 2)))
    assert found.value.args == (weighed,)
