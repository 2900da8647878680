"""Lengthscales of one output alone, an own one for each input."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from sumgp.hyperparameters.own_lengths import _Alone, own_lengthscales
from sumgp.priors import KernelOnPoints, hyper_priors

HALF = np.array([0.5, 0.5, 0.5])


def drawn(lengths: list[float], n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Values of a smooth function with these lengthscales, and noise of .05, at random places of the unit cube."""
    generator = np.random.default_rng(seed)
    x = generator.uniform(-0.5, 0.5, (n, len(lengths)))
    root = np.linalg.cholesky(RBF(lengths)(x) + 1e-9 * np.eye(n))
    return x, root @ generator.standard_normal(n) + 0.05 * generator.standard_normal(n)


def test_gradient_equals_differences() -> None:
    x, y = drawn([0.3, 0.6, 2.0], 15, 1000)
    kernel = Matern(HALF, nu=2.5)
    alone = _Alone(KernelOnPoints(kernel, x), y, hyper_priors(kernel, HALF, 0.2))
    for theta in (np.array([-1.0, -0.3, 0.9, -2.0]), np.array([-3.0, 0.5, 3.0, -0.5])):
        _, gradient = alone.minus_log_density(theta)
        steps = 1e-5 * np.eye(4)
        numerical = [(alone.minus_log_density(theta + s)[0] - alone.minus_log_density(theta - s)[0]) / 2e-5 for s in steps]
        np.testing.assert_allclose(gradient, numerical, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("seed", [1000, 1001])
def test_an_input_without_influence_gets_a_long_lengthscale(seed: int) -> None:
    x, y = drawn([0.3, 0.3, 30.0], 50, seed)
    (found,) = own_lengthscales(x, y[:, None], HALF, 0.2)
    assert found.gain > 3.0
    assert found.logs[2] - max(found.logs[:2]) > np.log(3.0)


def test_lengthscales_that_are_alike_are_not_asked_for() -> None:
    asked = 0
    for seed in range(1000, 1010):
        x, y = drawn([0.4, 0.4, 0.4], 12, seed)
        (found,) = own_lengthscales(x, y[:, None], HALF, 0.3)
        asked += found.gain > 0
    assert asked <= 1


def test_outputs_are_looked_at_one_by_one_with_their_gaps() -> None:
    x, first = drawn([0.3, 3.0, 3.0], 40, 1002)
    _, second = drawn([3.0, 0.3, 3.0], 40, 1002)
    second[::5] = np.nan
    both = own_lengthscales(x, np.stack([first, second], axis=1), HALF, 0.2)
    seen = ~np.isnan(second)
    (alone,) = own_lengthscales(x[seen], second[seen, None], HALF, 0.2)
    np.testing.assert_allclose(both[1].logs, alone.logs, atol=1e-8)
    assert [int(np.argmin(lengths.logs)) for lengths in both] == [0, 1]
