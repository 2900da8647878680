"""Task covariances: values, gradients, and the matrices they can reach."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from equivalence.small_problems import differences

from sumgp.priors import FullTask, LowRankTask, OneOutputTask, TaskCovariance
from sumgp.priors.tasks import FLOOR

TASKS: list[TaskCovariance] = [
    FullTask(1),
    FullTask(3),
    FullTask(4, 0.7),
    LowRankTask(3, 0),
    LowRankTask(3, 1),
    LowRankTask(3, 3),
]
ONE: list[TaskCovariance] = [OneOutputTask(1, 0), OneOutputTask(3, 2)]


@pytest.mark.parametrize("task", TASKS + ONE, ids=repr)
def test_gradient_equals_differences(task: TaskCovariance) -> None:
    rng = np.random.default_rng(0)
    parameters = task.start() + 0.4 * rng.standard_normal(task.n_parameters)
    T = len(task.covariance(parameters))
    G = rng.standard_normal((T, T))
    G = G + G.T
    numerical = differences(lambda p: float(np.sum(G * task.covariance(p))), parameters)
    np.testing.assert_allclose(task.pull_back(parameters, G), numerical, atol=1e-6 * np.max(np.abs(numerical)))


@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_covariance_is_symmetric_and_above_the_floor(task: TaskCovariance) -> None:
    rng = np.random.default_rng(1)
    for _ in range(5):
        Sigma = task.covariance(task.start() + rng.standard_normal(task.n_parameters))
        np.testing.assert_allclose(Sigma, Sigma.T, atol=1e-14)
        assert np.linalg.eigvalsh(Sigma)[0] > 0.99 * FLOOR
    assert task.prior_mean().shape == task.prior_sd().shape == (task.n_parameters,)


def test_full_task_follows_its_formula() -> None:
    d, s = np.array([0.3, -0.2]), 0.8
    D = np.diag(np.exp(d))
    expected = D @ scipy.linalg.expm(np.array([[0.0, s], [s, 0.0]])) @ D + FLOOR * np.eye(2)
    np.testing.assert_allclose(FullTask(2).covariance(np.array([*d, s])), expected, rtol=1e-12)


def test_full_task_reaches_any_covariance_of_two_outputs() -> None:
    """Sigma = [[a, b], [b, c]]: the correlation is tanh(s), the amplitudes follow."""
    Sigma = np.array([[2.0, -1.1], [-1.1, 0.9]]) - FLOOR * np.eye(2)
    s = np.arctanh(Sigma[0, 1] / np.sqrt(Sigma[0, 0] * Sigma[1, 1]))
    d = 0.5 * np.log(np.diagonal(Sigma) / np.cosh(s))
    np.testing.assert_allclose(FullTask(2).covariance(np.array([*d, s])) - FLOOR * np.eye(2), Sigma, rtol=1e-12)


def test_low_rank_task_is_the_papers_form() -> None:
    B, w = np.array([[1.0, 0.5], [-0.3, 2.0], [0.0, 1.0]]), np.array([-1.0, 0.0, 1.0])
    Sigma = LowRankTask(3, 2).covariance(np.concatenate([B.ravel(), w]))
    np.testing.assert_allclose(Sigma, B @ B.T + np.diag(np.exp(w)) + FLOOR * np.eye(3), rtol=1e-12)
    start = LowRankTask(3, 2)
    columns = start.start()[:6].reshape(3, 2)
    assert np.linalg.matrix_rank(columns) == 2


def test_one_output_has_a_term_and_the_others_nothing() -> None:
    expected = np.zeros((3, 3))
    expected[1, 1] = np.exp(0.8) + FLOOR
    np.testing.assert_allclose(OneOutputTask(3, 1).covariance(np.array([0.4])), expected, rtol=1e-14)
