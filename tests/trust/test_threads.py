"""Small matrices are computed with one BLAS thread: beside other programs several wait for each other."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import sumgp

ROWS = np.linspace(0.0, 10.0, 250)
CURVES = np.column_stack([np.sin(ROWS), np.cos(ROWS)]) + 0.05 * np.random.default_rng(0).standard_normal((250, 2))
PLACES = np.random.default_rng(1).uniform(0.0, 10.0, (1600, 2))
MAP = np.sin(PLACES[:, :1]) + 0.3 * np.random.default_rng(2).standard_normal((1600, 1))


def most_threads() -> int:
    return max(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")


@pytest.mark.parametrize(("X", "Y", "solver"), [(ROWS, CURVES, None), (PLACES, MAP, "vecchia"), (ROWS, CURVES, "markov")])
def test_a_fit_takes_one_thread(X: np.ndarray, Y: np.ndarray, solver: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def look(self: object, problem: object) -> None:
        seen.append(most_threads())
        raise InterruptedError

    monkeypatch.setattr(sumgp.Unconstrained, "fit", look)
    with threadpool_limits(2, user_api="blas"):
        if most_threads() < 2:
            pytest.skip("BLAS was built for one thread")
        with pytest.raises(InterruptedError):
            sumgp.ConstrainedGP(None, solver=solver).fit(X, Y)
    assert seen == [1]
