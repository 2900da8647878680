"""Pointwise projection: on the law, nearest in the metric, rank-revealing, and its tangent projector."""

from __future__ import annotations

import numpy as np
import pytest
from equivalence.small_problems import differences
from scipy.optimize import minimize

from sumgp import FunctionConstraint, LinearConstraint
from sumgp.laws import Constraint
from sumgp.laws.geometry import UnitFreeLaw, project, regular_inverse


def bound(constraint: Constraint, T: int) -> UnitFreeLaw:
    law = constraint.bind(tuple("abcd"[:T]), ("x",))
    return UnitFreeLaw(law, np.zeros(T), np.ones(T), np.ones(law.n_rows))


def circle(f: np.ndarray, x: np.ndarray) -> np.ndarray:
    return f[:, 0] ** 2 + f[:, 1] ** 2 - 1.0


def metric(seed: int, n: int, T: int) -> np.ndarray:
    B = np.random.default_rng(seed).standard_normal((n, T, T))
    return B @ B.transpose(0, 2, 1) + 0.2 * np.eye(T)


def test_a_linear_law_is_met_by_conditioning_in_one_step() -> None:
    F, S = np.array([[1.0, 2.0, -1.0]]), 0.7
    start, M, x = np.random.default_rng(0).standard_normal((4, 3)), metric(1, 4, 3), np.zeros((4, 1))
    result = project(bound(LinearConstraint(F, S), 3), start, M, x)
    for i in range(4):
        gain = M[i] @ F.T / (F @ M[i] @ F.T)
        np.testing.assert_allclose(result.points[i], start[i] + gain[:, 0] * (S - F @ start[i]), atol=1e-13)
        np.testing.assert_allclose(result.projectors[i], np.eye(3) - gain @ F, atol=1e-13)


def test_a_curved_law_is_met_at_the_nearest_point_in_the_metric() -> None:
    start = np.array([[1.3, 0.4], [0.6, -0.9], [-1.1, 0.5]])
    M, x = metric(3, 3, 2), np.zeros((3, 1))
    result = project(bound(FunctionConstraint(circle), 2), start, M, x)
    assert np.max(np.abs(circle(result.points, x))) < 1e-14
    for i in range(3):
        W = np.linalg.inv(M[i])

        def distance(angle: np.ndarray, i: int = i, W: np.ndarray = W) -> float:
            d = np.array([np.cos(angle[0]), np.sin(angle[0])]) - start[i]
            return float(d @ W @ d)

        angle = np.arctan2(start[i, 1], start[i, 0])
        best = minimize(distance, [angle], method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-14}).fun
        d = result.points[i] - start[i]
        # Four steps look for the nearest point, the rest for the law: close to, not exactly, the nearest.
        assert d @ W @ d <= 1.02 * best + 1e-12


def test_tangent_projector_is_the_derivative_of_the_projection_on_the_law() -> None:
    law = bound(FunctionConstraint(circle), 2)
    at, M, x = np.array([[0.6, 0.8]]), metric(5, 1, 2), np.zeros((1, 1))
    A = project(law, at, M, x).projectors[0]
    numerical = differences(lambda f: project(law, f[None], M, x).points[0], at[0]).T
    np.testing.assert_allclose(A, numerical, atol=1e-6)


def test_points_already_on_the_law_stay_put() -> None:
    at = np.array([[0.6, 0.8], [1.0, 0.0]])
    result = project(bound(FunctionConstraint(circle), 2), at, metric(5, 2, 2), np.zeros((2, 1)))
    np.testing.assert_allclose(result.points, at, atol=1e-15)


def test_repeated_rows_do_not_matter() -> None:
    start, M, x = np.array([[1.3, 0.4]]), metric(3, 1, 2), np.zeros((1, 1))
    twice = FunctionConstraint(lambda f, x: np.column_stack([circle(f, x), 3.0 * circle(f, x)]))
    once = project(bound(FunctionConstraint(circle), 2), start, M, x)
    result = project(bound(twice, 2), start, M, x)
    np.testing.assert_allclose(result.points, once.points, atol=1e-12)
    np.testing.assert_allclose(result.projectors, once.projectors, atol=1e-10)


def test_an_infeasible_law_leaves_a_finite_point_and_says_what_is_unmet() -> None:
    law = bound(FunctionConstraint(lambda f, x: f[:, 0] ** 2 + 1.0), 2)
    result = project(law, np.array([[0.5, 0.2]]), metric(3, 1, 2), np.zeros((1, 1)))
    assert np.all(np.isfinite(result.points))
    assert result.unmet[0] >= 1.0


def test_rows_whose_inverse_would_be_infinite_drop_out() -> None:
    """The logarithm of an output near zero, in a law with a constant that was not found: LinAlgError after the fit."""
    np.testing.assert_array_equal(regular_inverse(np.full((1, 1, 1), 1e-310)), 0.0)


@pytest.mark.parametrize("R", [1, 3])
def test_regular_inverse_is_the_pseudo_inverse_for_rows_of_any_size(R: int) -> None:
    B = np.random.default_rng(0).standard_normal((5, R, R))
    size = 10.0 ** np.arange(R)
    S = B @ B.transpose(0, 2, 1) * np.outer(size, size)
    np.testing.assert_allclose(regular_inverse(S) @ S, np.tile(np.eye(R), (5, 1, 1)), atol=1e-8)
    S[0] = 0.0
    np.testing.assert_array_equal(regular_inverse(S)[0], 0.0)


def test_regular_inverse_drops_a_dependent_row() -> None:
    J = np.array([[1.0, 2.0], [2.0, 4.0]])
    S = (J @ J.T)[None]
    np.testing.assert_allclose(regular_inverse(S)[0] @ S[0] @ regular_inverse(S)[0], regular_inverse(S)[0], atol=1e-12)
    np.testing.assert_allclose(S[0] @ regular_inverse(S)[0] @ S[0], S[0], atol=1e-12)


def test_round_off_in_a_repeated_row_is_not_taken_for_information() -> None:
    """The second row repeats the first up to an error of 1e-10, as a difference of covariances leaves it."""
    S = np.array([[[1.0, 1.0], [1.0, 1.0 + 1e-10]]])
    assert np.max(np.abs(regular_inverse(S))) > 1e6
    np.testing.assert_allclose(regular_inverse(S, np.full((1, 2), 1e-9)), 0.25, atol=1e-6)


def test_a_failed_step_towards_the_nearest_point_does_not_end_the_search() -> None:
    """One coordinate known well but beyond the circle, the other hardly at all: the nearest-point steps overshoot."""
    law = bound(FunctionConstraint(circle), 2)
    result = project(law, np.array([[1.02, 0.35]]), np.diag([1e-4, 5.0])[None], np.zeros((1, 1)))
    assert result.unmet[0] < 1e-14


def test_a_kink_that_no_step_of_all_columns_passes() -> None:
    """|a| + b = -1 from above: a is free and b hardly, but only b can meet the law."""
    law = bound(FunctionConstraint(lambda f, x: np.abs(f[:, :1]) + f[:, 1:] + 1.0), 2)
    start = np.array([[0.1, 5.0], [-0.01, 0.3], [0.0, -0.5]])
    metric = np.broadcast_to(np.diag([1.0, 1e-8]), (3, 2, 2))
    found = project(law, start, metric, np.zeros((3, 1)))
    np.testing.assert_allclose(np.abs(found.points[:, 0]) + found.points[:, 1], -1.0, atol=1e-9)
