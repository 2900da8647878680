"""Long series that are rough: a random walk is no smooth curve, and intervals that take it for one are too narrow."""

from __future__ import annotations

import numpy as np
import pytest

import sumgp

TIMES = np.linspace(0.0, 110.0, 1100)
NEW = np.linspace(0.0, 110.0, 301)


def walk(t: np.ndarray) -> np.ndarray:
    """(n,) values of a random walk with steps of .1 twice in the time between two rows."""
    steps = 0.1 * np.random.default_rng(3).standard_normal(2201)
    return np.interp(t, np.linspace(0.0, 110.0, 2201), np.cumsum(steps))


def noisy(values: np.ndarray, sd: float) -> np.ndarray:
    return values + sd * np.random.default_rng(1000).standard_normal(values.shape)


def on_a_circle(t: np.ndarray) -> np.ndarray:
    return np.column_stack([np.cos(walk(t)), np.sin(walk(t))])


def in_a_sum(t: np.ndarray) -> np.ndarray:
    return np.column_stack([walk(t), np.cos(0.1 * t), walk(t) + np.cos(0.1 * t)])


@pytest.mark.parametrize(
    ("law", "outputs", "truth"), [("a + b = c", ["a", "b", "c"], in_a_sum), ("a**2 + b**2 = 1", ["a", "b"], on_a_circle)]
)
def test_a_walk_is_covered(law, outputs, truth) -> None:
    """Curves with two derivatives held 73 % (sum) and 71 % (circle), "converged"."""
    gp = sumgp.ConstrainedGP(law, outputs=outputs, inputs=["t"], solver=sumgp.Markov())
    posterior = gp.fit(TIMES, noisy(truth(TIMES), 0.05)).posterior(NEW)
    assert gp.fit_report_["smoothness"] == [0.5]
    lower, upper = posterior.interval()
    assert np.mean((lower <= truth(NEW)) & (truth(NEW) <= upper)) > 0.88
    with pytest.raises(sumgp.SumGPError, match="Matern"):
        _ = posterior.derivative("a", "t").std


def test_a_walk_of_some_hundred_rows_is_covered() -> None:
    """Dense algebra has smooth kernels only for so many rows: 78 % held, "converged"."""
    t, new = TIMES[:650], NEW[:177]  # up to the last of these rows
    gp = sumgp.ConstrainedGP(outputs=["a"], inputs=["t"]).fit(t, noisy(walk(t), 0.05)[:, None])
    lower, upper = gp.posterior(new).interval()
    assert np.mean((lower[:, 0] <= walk(new)) & (walk(new) <= upper[:, 0])) > 0.88


def test_smooth_curves_of_some_hundred_rows_stay_with_dense_algebra() -> None:
    t = TIMES[:650]
    gp = sumgp.ConstrainedGP(outputs=["a"], inputs=["t"], uncertainty="plug-in", restarts=0)
    assert gp.fit(t, noisy(np.sin(t), 0.1)[:, None]).fit_report_.get("smoothness") is None


def test_smooth_curves_stay_smooth() -> None:
    truth = np.column_stack([np.sin(TIMES), np.cos(TIMES)])
    gp = sumgp.ConstrainedGP(outputs=["a", "b"], inputs=["t"], solver=sumgp.Markov(), uncertainty="plug-in")
    assert gp.fit(TIMES, noisy(truth, 0.1)).fit_report_["smoothness"] == [2.5]
