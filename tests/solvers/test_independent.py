"""Many values of independent outputs: each output by itself is the same as all of them in one weight space."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from equivalence.small_problems import small_prior, some_theta
from sklearn.gaussian_process.kernels import RBF, Matern

from sumgp.files.nodes import Reader, Writer
from sumgp.priors import MultitaskPrior, OneOutputTask
from sumgp.solvers import IndependentOutputs, are_apart, build_features, condition_on_data, independent_outputs
from sumgp.strategies.weight_component import Component

T, X, ASKED = 3, np.linspace(0.0, 1.0, 80)[:, None], np.array([[-0.2], [0.111], [0.5], [1.3]])


def own_kernels() -> MultitaskPrior:
    tasks = tuple(OneOutputTask(T, t) for t in range(T))
    return small_prior(T, kernels=(RBF(0.3), Matern(0.2, nu=1.5), RBF(0.6)), tasks=tasks, mean_shape="identity")


def values() -> np.ndarray:
    generator = np.random.default_rng(0)
    y = np.column_stack([np.sin(5.0 * X[:, 0]), np.cos(3.0 * X[:, 0]), X[:, 0] ** 2]) + 0.1 * generator.normal(size=(80, T))
    y[generator.uniform(size=y.shape) < 0.2] = np.nan
    y[:, 2] = np.where(np.arange(80) < 70, np.nan, y[:, 2])
    return y


@pytest.fixture(scope="module")
def both() -> tuple[Component, Component]:
    prior, y = own_kernels(), values()
    theta = some_theta(prior)
    points = np.vstack([X, ASKED[1:3]])
    together = condition_on_data(prior, theta, build_features(prior, theta, points), X, X, y)
    each = independent_outputs(prior, theta, points, X, X, y)
    assert isinstance(each, IndependentOutputs)
    return Component(each, theta, np.zeros(T), T), Component(together, theta, np.zeros(T), T)


def test_moments_and_joint_covariances_are_the_same(both: tuple[Component, Component]) -> None:
    (mean, local), (expected, expected_local) = (c.marginals(ASKED, ASKED) for c in both)
    np.testing.assert_allclose(mean, expected, atol=3e-6)  # features leave 1e-12 of variances open, and 1e-6 of sds
    np.testing.assert_allclose(local, expected_local, atol=3e-6)
    joint, expected_joint = (c.joint_covariance(ASKED, ASKED) for c in both)
    np.testing.assert_allclose(joint, expected_joint, atol=3e-6)


def test_covariances_between_points_are_those_of_the_root(both: tuple[Component, Component]) -> None:
    posterior = both[0].posterior
    _, root = posterior.carried(ASKED, ASKED)
    flat = root.reshape(len(ASKED) * T, -1)
    np.testing.assert_allclose(posterior.between(root), flat @ flat.T, atol=1e-12)


def test_slopes_are_the_same(both: tuple[Component, Component]) -> None:
    slopes = [c.differentiated((1,), np.ones(1)).marginals(X[5:9], X[5:9])[0] for c in both]
    np.testing.assert_allclose(slopes[0], slopes[1], atol=1e-4)


def test_a_stored_component_says_the_same(both: tuple[Component, Component]) -> None:
    writer = Writer(None)
    node = writer.write(both[0])
    again = Reader(writer.arrays).read(node)
    for before, after in zip(both[0].marginals(ASKED, ASKED), again.marginals(ASKED, ASKED), strict=True):
        np.testing.assert_array_equal(after, before)


def test_only_outputs_without_common_columns_are_taken_apart() -> None:
    assert are_apart(own_kernels())
    assert not are_apart(replace(own_kernels(), unknown=np.ones(1)))
    assert not are_apart(replace(own_kernels(), soft=np.ones(1)))
    assert not are_apart(small_prior(T, mean_shape="identity"))
