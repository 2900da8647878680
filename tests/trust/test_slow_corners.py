"""Faster ways to the same numbers: they equal the plain ones, and they are taken where they were measured to be faster."""

from __future__ import annotations

import numpy as np
import pytest
from equivalence.small_problems import assert_gradient, small_prior, some_data, some_theta
from sklearn.gaussian_process.kernels import Matern

from sumgp import ConstrainedGP
from sumgp.solvers.dense import KroneckerEvidence
from sumgp.solvers.joint import JointEvidence, UnknownTotalEvidence, given_linear_law
from sumgp.solvers.markov.evidence import Markov, MarkovObjectiveEvidence


def test_a_short_series_of_many_outputs_has_the_same_evidence_by_the_faster_form() -> None:
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0.0, 10.0, 40))
    y = np.sin(np.outer(x, 0.5 + 0.1 * np.arange(6))) + 0.1 * rng.standard_normal((40, 6))
    problem = ConstrainedGP(solver=Markov())._problem(x[:, None], y, lambda stage: None)[0].in_order()
    prior = problem.priors("task")[0]
    theta = prior.start() + 0.1 * rng.standard_normal(prior.n_parameters)
    chosen = Markov().evidence(prior, problem.x, problem.y, None)
    assert isinstance(chosen, KroneckerEvidence)
    value, gradient = chosen(theta)
    expected, slope = MarkovObjectiveEvidence(prior, problem.x, problem.y)(theta)
    assert value == pytest.approx(expected, abs=1e-6)
    np.testing.assert_allclose(gradient, slope, atol=1e-6 * np.max(np.abs(slope)))


def test_long_series_and_gaps_stay_with_the_filter() -> None:
    x, y = np.arange(300.0)[:, None], np.random.default_rng(0).standard_normal((300, 3))
    prior = small_prior(kernels=(Matern(0.4, nu=1.5),))
    assert isinstance(Markov().evidence(prior, x, y, None), MarkovObjectiveEvidence)
    y = y[:100]
    y[:10, 0] = np.nan
    assert isinstance(Markov().evidence(prior, x[:100], y, None), MarkovObjectiveEvidence)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_joint_evidence_alone_is_that_with_its_gradient(missing: float) -> None:
    prior = small_prior(unknown=np.array([4.0]))
    x, y = some_data(N=6, missing=missing)
    rows = np.zeros((6, 1, 4))
    rows[:, 0] = [1.0, -2.0, 0.5, -1.0]
    evidence, theta = JointEvidence(prior, x, y, rows, np.zeros((6, 1))), some_theta(prior)
    assert evidence.value(theta) == pytest.approx(evidence(theta)[0], rel=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_an_unknown_total_has_the_same_evidence_by_the_faster_form(missing: float) -> None:
    """Value and gradient of a law whose total is unknown, with and without gaps, beside conditioning the full joint."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0.0, 10.0, 30))[:, None]
    prior = small_prior(unknown=np.array([4.0]), kernels=(Matern(1.4, nu=2.5),), T=8)
    y = rng.standard_normal((30, 8))
    y[rng.random(y.shape) < missing] = np.nan
    rows = np.broadcast_to(np.append(rng.uniform(0.5, 2.0, 8), -0.7), (30, 1, 9))
    totals = np.full((30, 1), 0.4)
    fast, plain = given_linear_law(prior, x, y, rows, totals), JointEvidence(prior, x, y, rows, totals)
    assert isinstance(fast, UnknownTotalEvidence)
    theta = prior.start() + 0.2 * rng.standard_normal(prior.n_parameters)
    (value, gradient), (expected, slope) = fast(theta), plain(theta)
    assert value == pytest.approx(expected, abs=1e-7)
    np.testing.assert_allclose(gradient, slope, atol=1e-8 * np.max(np.abs(slope)))
    assert_gradient(fast, theta)


def test_other_laws_stay_with_the_full_joint() -> None:
    x, y = np.arange(30.0)[:, None], np.random.default_rng(0).standard_normal((30, 8))
    rows = np.ones((30, 1, 9))
    prior = small_prior(8, unknown=np.array([4.0]), kernels=(Matern(1.4, nu=2.5),))
    assert isinstance(given_linear_law(prior, x, y, rows, np.zeros((30, 1))), UnknownTotalEvidence)
    assert isinstance(given_linear_law(prior, x, y, rows, x), JointEvidence)
    assert isinstance(given_linear_law(prior, x, y, rows * (1.0 + x[:, :, None]), np.zeros((30, 1))), JointEvidence)
    known = small_prior(8, kernels=(Matern(1.4, nu=2.5),))
    assert isinstance(given_linear_law(known, x, y, rows[:, :, :8], np.zeros((30, 1))), JointEvidence)


@pytest.mark.parametrize("law", [None, "a**2 + b**2 = 1"])
def test_covariance_of_a_mixture_adds_up_its_components(law: str | None) -> None:
    rng = np.random.default_rng(0)
    t = np.linspace(0.0, 6.0, 14)
    y = np.column_stack([np.sin(t), np.cos(t)]) + 0.05 * rng.standard_normal((14, 2))
    model = ConstrainedGP(law, outputs=["a", "b"]).fit(t, y)
    posterior = model.posterior(np.linspace(-1.0, 8.0, 9))
    inputs, centre = model.scaling_.inputs(posterior.x), model.scaling_.outputs(posterior.mean)
    expected = np.zeros((18, 18))
    for weight, component in zip(model.fitted_.weights, model.fitted_.components, strict=True):
        mean, blocks = component.marginals(inputs, posterior.x)
        joint = component.joint_covariance(inputs, posterior.x)
        inside = joint.reshape(9, 2, 9, 2)[np.arange(9), :, np.arange(9), :]
        np.testing.assert_allclose(inside, blocks, atol=1e-9 * np.max(blocks))
        offset = (mean - centre).ravel()
        expected += weight * (joint + np.outer(offset, offset))
    scale = np.tile(model.scaling_.y_scale, 9)
    found = posterior.covariance() / np.outer(scale, scale)
    off = ~np.eye(18, dtype=bool)
    # Where the law's curvature makes a point narrower than its Gaussian, its covariances shrink with it.
    std = posterior.std.ravel() / scale
    narrower = np.minimum(1.0, std / np.sqrt(np.diagonal(expected)))
    np.testing.assert_allclose(found[off], (expected * np.outer(narrower, narrower))[off], atol=1e-9 * np.max(expected))
    np.testing.assert_allclose(np.diagonal(found), std**2, rtol=1e-9)
