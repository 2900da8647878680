"""A law that the data contradict smoothly, and rows that are copies, are named in the status and in a warning."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import sumgp
from sumgp.data.roughness import FEWEST_SMOOTH, SMOOTH, is_smooth

T = np.linspace(0.0, 6.0, 20)
CIRCLE = np.column_stack([np.sin(T), np.cos(T)]) + 0.05 * np.random.default_rng(1).standard_normal((20, 2))


def fitted(law: str | None, X: np.ndarray, Y: np.ndarray) -> sumgp.ConstrainedGP:
    return sumgp.ConstrainedGP(law, outputs=["a", "b"], uncertainty="plug-in", restarts=0).fit(X, Y)


def test_a_false_linear_law_is_not_taken_for_noise() -> None:
    """The fit explained sine and cosine as noise around a + b = 1: error .7 for .015, and called converged."""
    with pytest.warns(sumgp.SumGPWarning, match="pulls 'a' away from its data: .* vary smoothly"):
        gp = fitted("a + b = 1", T, CIRCLE)
    assert "vary smoothly" in gp.fit_report_.status


@pytest.mark.parametrize("law", ["a**2 + b**2 = 1", None])
def test_true_laws_raise_no_alarm(law: str | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", sumgp.SumGPWarning)
        assert fitted(law, T, CIRCLE).fit_report_.status == "converged"


@pytest.mark.parametrize("inputs", [1, 2])
def test_noise_is_not_smooth_and_a_curve_is(inputs: int) -> None:
    rng = np.random.default_rng(0)
    count = FEWEST_SMOOTH * inputs
    alarms = 0
    for _ in range(1000):
        x = rng.uniform(size=(count, inputs))
        alarms += is_smooth(rng.standard_normal(count), x)
    assert alarms == 0
    x = rng.uniform(size=(60, inputs))
    assert is_smooth(np.sin(2.0 * x.sum(axis=1)), x)
    assert is_smooth(np.ones(60), x)
    assert not is_smooth(np.ones(FEWEST_SMOOTH * inputs - 1), x[: FEWEST_SMOOTH * inputs - 1])
    assert 0.0 < SMOOTH < 1.0


def test_rows_measured_twice_at_one_place_are_no_neighbours_of_themselves() -> None:
    x = np.repeat(np.random.default_rng(0).uniform(size=(20, 2)), 2, axis=0)
    assert not is_smooth(np.tile([1.0, -1.0], 20), x)


def test_copied_rows_are_named() -> None:
    """Their noise looked like none: 95 % intervals held 25 % of the truth."""
    with pytest.warns(sumgp.SumGPWarning, match="20 of 40 rows are copies of others"):
        gp = fitted(None, np.tile(T, 2), np.tile(CIRCLE, (2, 1)))
    assert gp.fit_report_.status.startswith("converged, but 20 of 40 rows are copies")


def test_repeated_measurements_rounded_values_and_known_noise_are_no_copies() -> None:
    X = np.tile(T, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sumgp.SumGPWarning)
        again = CIRCLE + 0.05 * np.random.default_rng(2).standard_normal(CIRCLE.shape)
        assert fitted(None, X, np.vstack([CIRCLE, again])).fit_report_.status == "converged"
        assert "copies" not in fitted(None, X, np.tile(CIRCLE.round(1), (2, 1))).fit_report_.status
        known = sumgp.ConstrainedGP(outputs=["a", "b"], uncertainty="plug-in", restarts=0, noise=0.05)
        assert known.fit(X, np.tile(CIRCLE, (2, 1))).fit_report_.status == "converged"
