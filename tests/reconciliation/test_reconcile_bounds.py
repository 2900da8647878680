"""Forecasts moved onto a law within bounds: against an optimiser, by draws, hierarchies, curved laws, bounds alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

import sumgp

COMPOSITION = ["a + b + c = 1", "all >= 0"]
NAMES = ["a", "b", "c"]


def nearest_by_search(start: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """The composition nearest to ``start`` by sequential quadratic programming."""
    found = minimize(
        lambda f: np.sum(((f - start) / sd) ** 2),
        np.full(3, 1 / 3),
        bounds=[(0, None)] * 3,
        constraints={"type": "eq", "fun": lambda f: f.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-14},
    )
    return found.x


def test_mean_and_draws_against_a_general_optimiser():
    V = np.diag([0.04, 0.01, 0.09])
    m = np.array([[0.2, 0.9, -0.5], [0.5, 0.3, 0.1], [1.4, -0.3, -0.2]])
    moved = sumgp.reconcile(m, COMPOSITION, outputs=NAMES, covariance=V)
    free = sumgp.reconcile(m, COMPOSITION[0], outputs=NAMES, covariance=V)
    for row in range(3):
        np.testing.assert_allclose(moved.mean[row], nearest_by_search(free.mean[row], np.sqrt(np.diag(V))), atol=1e-6)
    np.testing.assert_allclose(moved.mean[1], free.mean[1], atol=1e-15)  # inside: the bound says nothing
    assert moved.draws.min() >= 0.0
    np.testing.assert_allclose(moved.draws.sum(axis=2), 1.0, atol=1e-12)
    lower, upper = moved.interval(0.95)
    assert np.all((lower >= 0) & (lower <= upper) & (upper <= 1))
    # Far from the bounds draws give the interval of the Gaussian.
    wide = free.interval(0.95)
    assert abs(lower[1, 1] - wide[0][1, 1]) < 0.05 * free.std[1, 1]


def test_draws_are_moved_one_by_one():
    generator = np.random.default_rng(0)
    draws = generator.normal([0.05, 0.2, 0.75], 0.1, (300, 2, 3))
    moved = sumgp.reconcile(draws, COMPOSITION, outputs=NAMES)
    assert moved.draws.shape == draws.shape
    assert moved.draws.min() >= 0.0
    np.testing.assert_allclose(moved.draws.sum(axis=2), 1.0, atol=1e-12)
    assert np.mean(moved.draws[:, :, 0] == 0.0) > 0.1


def test_hierarchy_with_a_bound_in_one_list():
    summing = pd.DataFrame([[1, 1], [1, 0], [0, 1]], index=["total", "n", "s"], columns=["n", "s"])
    table = pd.DataFrame({"total": [1.0, 9.0], "n": [3.0, 4.0], "s": [-1.0, 5.0]}, index=["May", "June"])
    moved = sumgp.reconcile(table, [summing, "all >= 0"], errors=np.random.default_rng(1).normal(0, 1, (50, 3)))
    np.testing.assert_allclose(moved.mean[:, 0], moved.mean[:, 1:].sum(axis=1), atol=1e-12)
    assert moved.mean[0, 2] == 0.0
    frame = moved.to_frame()
    assert list(frame.index) == ["May", "June"]
    assert (frame.filter(like="lower") >= 0).all(axis=None)


def test_curved_law_keeps_its_allowed_branch():
    moved = sumgp.reconcile([[-0.2, 0.9]], "a**2 + b**2 = 1; a >= 0", outputs=["a", "b"], covariance=0.04 * np.eye(2))
    np.testing.assert_allclose(moved.mean, [[0.0, 1.0]], atol=1e-9)
    assert moved.draws[:, :, 0].min() >= 0.0
    np.testing.assert_allclose(np.sum(moved.draws**2, axis=2), 1.0, atol=1e-9)


def test_each_row_in_its_own_errors():
    V = np.stack([np.diag([1.0, 1.0, 100.0]), np.diag([100.0, 1.0, 1.0])])
    m = np.array([[0.9, 0.9, -0.8], [0.9, 0.9, -0.8]])
    together = sumgp.reconcile(m, COMPOSITION, outputs=NAMES, covariance=V)
    for row in range(2):
        alone = sumgp.reconcile(m[row : row + 1], COMPOSITION, outputs=NAMES, covariance=V[row])
        np.testing.assert_allclose(together.mean[row], alone.mean[0], atol=1e-13)
        np.testing.assert_allclose(together.draws[:, row], alone.draws[:, 0], atol=1e-12)
    assert together.mean[1, 0] < together.mean[0, 0] - 0.2


def test_bounds_alone():
    moved = sumgp.reconcile([[-1.0, 2.0]], "all >= 0", outputs=["a", "b"], covariance=np.eye(2))
    np.testing.assert_array_equal(moved.mean, [[0.0, 2.0]])
    assert moved.residual().shape == (1, 0)
    assert "laws: 0" in repr(moved)
    assert moved.interval(0.95)[0].min() == 0.0
    means_only = sumgp.reconcile([[-1.0, 2.0]], "all >= 0", outputs=["a", "b"])
    np.testing.assert_array_equal(means_only.mean, [[0.0, 2.0]])
    with pytest.raises(sumgp.DataError, match="covariance=, past errors="):
        means_only.interval()


def test_a_certain_forecast_stays_and_what_cannot_be_met_is_named():
    moved = sumgp.reconcile([[0.5, 0.7, -0.2]], COMPOSITION, outputs=NAMES, covariance=np.diag([0.0, 1.0, 1.0]))
    np.testing.assert_allclose(moved.mean, [[0.5, 0.5, 0.0]], atol=1e-12)
    with pytest.raises(sumgp.ConstraintError, match="together"):
        sumgp.reconcile([[0.5, 0.5]], "a + b = 1; a >= 2; b >= 0", outputs=["a", "b"], covariance=np.eye(2))
    with pytest.raises(sumgp.ConstraintError, match="no slope"):
        sumgp.reconcile(pd.DataFrame({"t": [0.0], "a": [0.5], "b": [0.5]}), "d(a, t) = b", outputs=["a", "b"])
