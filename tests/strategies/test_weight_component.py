"""One fitted posterior: the taper, joint against marginal covariances, samples given a law."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from equivalence.held import fit_held
from test_estimator import BUDGET, X, Y, plug_in

from sumgp import Conditioned, Linearized, Projected, Unconstrained
from sumgp.solvers import Taper

ASKED = np.array([-0.5, 0.3, 2.6, 6.0])


def test_taper_is_an_exponential_of_the_distance_in_lengthscales() -> None:
    taper = Taper(2.0, np.array([0.5, 4.0]), 2)
    x, z = np.array([[0.0, 0.0]]), np.array([[0.0, 0.0], [1.5, 16.0]])
    np.testing.assert_allclose(taper.between(x, z), [[1.0, np.exp(-5.0 / 2.0)]])
    np.testing.assert_array_equal(Taper(0.0, np.array([0.5, 4.0]), 2).between(z, z), np.eye(2))


def test_taper_leaves_marginals_and_other_columns_alone() -> None:
    rng = np.random.default_rng(0)
    root = rng.standard_normal((3 * 4, 20))
    blocks = (root @ root.T).reshape(3, 4, 3, 4)
    x = np.array([[0.0], [1.0], [5.0]])
    tapered = Taper(1.0, np.ones(1), 2).apply(blocks, x, x)
    for i in range(3):
        np.testing.assert_array_equal(tapered[i, :2, i, :2], blocks[i, :2, i, :2])
    np.testing.assert_array_equal(tapered[:, 2:, :, 2:], blocks[:, 2:, :, 2:])
    np.testing.assert_allclose(tapered[0, :2, 2, :2], blocks[0, :2, 2, :2] * np.exp(-5.0))
    assert np.linalg.eigvalsh(tapered.reshape(12, 12))[0] > -1e-10


@pytest.mark.parametrize(
    "strategy", [Conditioned(joint=True), Linearized(taper=None), Linearized(taper=2.0), Projected()], ids=repr
)
def test_joint_covariance_has_the_marginal_ones_on_its_diagonal(strategy: Any) -> None:
    gp = fit_held(plug_in(BUDGET, strategy=strategy), X, Y)
    component = gp.fitted_.components[0]
    u, x = gp.scaling_.inputs(ASKED[:, None]), ASKED[:, None]
    _, local = component.marginals(u, x)
    C = local.shape[1]
    joint = component.joint_covariance(u, x).reshape(4, C, 4, C)
    for i in range(4):
        np.testing.assert_allclose(joint[i, :, i, :], local[i], atol=1e-9)


@pytest.mark.parametrize("strategy", [Conditioned(joint=True), Linearized(taper=None), Projected()], ids=repr)
def test_samples_have_the_moments_of_the_posterior(strategy: Any) -> None:
    posterior = fit_held(plug_in(BUDGET, strategy=strategy), X, Y).posterior(ASKED)
    draws = posterior.sample(4000).reshape(4000, -1)
    sd = posterior.std.ravel()
    np.testing.assert_allclose((draws.mean(axis=0) - posterior.mean.ravel()) / sd, 0.0, atol=0.08)
    np.testing.assert_allclose(np.cov(draws.T) / np.outer(sd, sd), posterior.covariance() / np.outer(sd, sd), atol=0.12)


def test_linear_laws_by_iterated_linearisation_come_close_to_exact_conditioning() -> None:
    """The prior's mean has another shape in each, so a few hundredths of the sd remain; law and bands agree."""
    exact = plug_in(BUDGET, strategy=Conditioned(joint=True)).fit(X, Y).posterior(X)
    iterated = plug_in(BUDGET, strategy=Linearized(taper=None)).fit(X, Y).posterior(X)
    assert np.max(np.abs(exact.mean - iterated.mean) / exact.std) < 0.5
    np.testing.assert_allclose(iterated.std, exact.std, rtol=0.25)


@pytest.mark.parametrize(
    "strategy",
    [Conditioned(), Conditioned(joint=True), Linearized(taper=None), Linearized(taper=2.0), Projected(), Unconstrained()],
    ids=repr,
)
def test_widening_leaves_means_and_multiplies_all_deviations(strategy: Any) -> None:
    gp = fit_held(plug_in(BUDGET, strategy=strategy), X, Y)
    component = gp.fitted_.components[0]
    wide = component.widened(1.5)
    u, x = gp.scaling_.inputs(ASKED[:, None]), ASKED[:, None]
    (mean, local), (same, wider) = component.marginals(u, x), wide.marginals(u, x)
    np.testing.assert_allclose(same, mean, atol=1e-10)
    np.testing.assert_allclose(wider, 1.5**2 * local, rtol=1e-6, atol=1e-12)
    joint = component.joint_covariance(u, x)
    np.testing.assert_allclose(wide.joint_covariance(u, x), 1.5**2 * joint, rtol=1e-6, atol=1e-9 * np.max(joint))
    spread = [c.sample(u, x, 4000, np.random.default_rng(5)).std(axis=0) for c in (component, wide)]
    np.testing.assert_allclose(spread[1], 1.5 * spread[0], rtol=0.08, atol=1e-6)
