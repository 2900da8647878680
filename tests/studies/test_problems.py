"""Problems: true curves obey their laws, seeds repeat, grids and shares are the paper's."""

from __future__ import annotations

import numpy as np
import pytest

from sumgp.laws.function_law import numerical_jacobian
from sumgp_studies.experiments import Cell, all_problems
from sumgp_studies.experiments.oscillators import DampedOscillator
from sumgp_studies.experiments.published import published_scores
from sumgp_studies.experiments.triangle import Triangle

PROBLEMS = all_problems()
SIMULATED = [name for name in PROBLEMS if name != "double_pendulum"]


@pytest.mark.parametrize("name", SIMULATED)
def test_truth_obeys_the_law(name):
    problem = PROBLEMS[name]
    data = problem.dataset(problem.cells[0], 0)
    assert data.violations(data.F_test)["violation"] < 1e-13
    stretched = 1.01 * data.F_test
    assert data.violations(stretched)["violation"] > 1e-3


def test_triangle_violations_measure_both_squares_and_lengths():
    data = PROBLEMS["triangle"].dataset(Cell(1e-3), 0)
    stretched = data.F_test.copy()
    stretched[:, 0] += 0.01
    scores = data.violations(stretched)
    edges = stretched.reshape(-1, 3, 2)
    expected = [np.linalg.norm(edges[:, i] - edges[:, j], axis=1) for i, j in ((0, 1), (0, 2), (1, 2))]
    truth = np.array([4.0, np.hypot(4.4, 2.0), np.hypot(0.4, 2.0)])
    assert scores["violation_length"] == pytest.approx(np.mean(np.abs(np.stack(expected, 1) - truth)), rel=1e-12)
    assert scores["violation"] == pytest.approx(np.mean(np.abs(np.stack(expected, 1) ** 2 - truth**2)), rel=1e-12)


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_jacobians_equal_differences(name):
    problem = PROBLEMS[name]
    data = problem.dataset(problem.cells[0], 0)
    constraints = [data.constraint] + ([data.further_constraint] if data.further_constraint else [])
    for constraint in constraints:
        law = constraint.bind(data.outputs, data.inputs)
        f = data.F_test + 0.05
        differences = numerical_jacobian(law.residual, f, data.X_test, law.n_rows)
        np.testing.assert_allclose(law.jacobian(f, data.X_test), differences, atol=1e-8)


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_seeds_repeat_and_differ(name):
    problem = PROBLEMS[name]
    first, again, other = (problem.dataset(problem.cells[-1], seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.Y_train, again.Y_train)
    assert not np.array_equal(first.Y_train, other.Y_train, equal_nan=True)


def test_experiments_have_different_random_numbers():
    numbers = [problem.number for problem in PROBLEMS.values()]
    assert len(set(numbers)) == len(numbers)
    oscillator, engines = PROBLEMS["harmonic_oscillator"], PROBLEMS["approximations"]
    assert not np.array_equal(oscillator.dataset(Cell(0.05, 0.0), 0).Y_train, engines.dataset(Cell(0.05, 0.0), 0).Y_train)


@pytest.mark.parametrize("name", ["harmonic_oscillator", "free_fall", "damped_oscillator", "log_sine"])
def test_noise_and_missing_shares(name):
    problem = PROBLEMS[name]
    for cell in (problem.cells[1], problem.cells[-1]):
        truth = problem.dataset(Cell(problem.cells[0].noise, 0.0), 0)
        sets = [problem.dataset(cell, seed) for seed in range(200)]
        exact = np.stack([np.interp(truth.X_train[:, 0], *curve) for curve in _fine_curves(problem, truth)], axis=1)
        errors = np.stack([data.Y_train for data in sets]) - exact
        assert np.nanstd(errors) == pytest.approx(cell.noise, rel=0.05)
        assert np.mean(np.isnan(errors)) == pytest.approx(cell.missing, abs=0.02)


def _fine_curves(problem, data):
    """The true curves on a fine grid, found from the noise-free test grid by a spline (a second way to the truth)."""
    from scipy.interpolate import CubicSpline

    fine = np.linspace(data.X_test[0, 0], data.X_test[-1, 0], 20001)
    values = CubicSpline(data.X_test[:, 0], data.F_test)(fine)
    return [(fine, values[:, column]) for column in range(values.shape[1])]


@pytest.mark.parametrize("name", SIMULATED)
def test_cells_are_those_of_the_published_table(name):
    published = list(dict.fromkeys(score.cell for score in published_scores(name)))
    assert list(PROBLEMS[name].cells) == published


def test_grids_of_the_text():
    data = PROBLEMS["harmonic_oscillator"].dataset(Cell(0.05, 0.0), 0)
    assert (data.X_train[0, 0], data.X_train[-1, 0], len(data.X_train)) == (0.0, 10.0, 20)
    assert (data.X_test[0, 0], data.X_test[-1, 0], len(data.X_test)) == (-0.1, 10.0, 100)
    fall = PROBLEMS["free_fall"].dataset(Cell(0.05, 0.0), 0)
    assert (fall.X_train[-1, 0], fall.X_test[0, 0]) == (6.0, -0.1)
    assert fall.F_test[:, 1].max() == pytest.approx((20 + 0.981) / 20)


def test_velocities_are_derivatives_of_positions():
    for name in ("harmonic_oscillator", "damped_oscillator", "free_fall"):
        problem, t = PROBLEMS[name], np.linspace(0.5, 5.5, 7)
        slope = (problem.truth(t + 1e-5)[:, 0] - problem.truth(t - 1e-5)[:, 0]) / 2e-5
        np.testing.assert_allclose(problem.truth(t)[:, 1], slope, atol=1e-8)


def test_damped_motion_solves_its_equation():
    problem, t = DampedOscillator(), np.linspace(0.0, 10.0, 11)
    acceleration = (problem.truth(t + 1e-5)[:, 1] - problem.truth(t - 1e-5)[:, 1]) / 2e-5
    z, v = problem.truth(t).T
    np.testing.assert_allclose(acceleration, -problem.stiffness * z - problem.damping * v, atol=1e-8)


def test_triangle_rotation_is_a_parameter():
    alpha = np.array([0.0, 1.0])
    half, full = Triangle().truth(alpha), Triangle(rotation=1.0).truth(alpha)
    np.testing.assert_allclose(half[0], full[0])
    edge_half, edge_full = (corners[1, 2:4] - corners[1, 0:2] for corners in (half, full))
    assert np.arctan2(edge_half[1], edge_half[0]) == pytest.approx(0.5)
    assert np.arctan2(edge_full[1], edge_full[0]) == pytest.approx(1.0)
