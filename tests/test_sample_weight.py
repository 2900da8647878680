"""Weights of rows: noise variance divided by the weight, in every solver, known or estimated."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.gaussian_process.kernels import Matern

import sumgp
from sumgp import Conditioned, ConstrainedGP, DataError, Linearized, Projected, Transformed, Unconstrained
from sumgp.errors import SumGPWarning
from sumgp.report.scores import leave_one_out
from sumgp.solvers.dense import Automatic
from sumgp.solvers.joint import JointEvidence
from sumgp.solvers.markov.evidence import MarkovObjectiveEvidence

N = 14
RNG = np.random.default_rng(5)
X = np.linspace(0.0, 5.0, N)
WEIGHTS = np.where(np.arange(N) % 3 == 0, 0.04, 1.0)
TRUTH = np.column_stack([0.5 + 0.3 * np.sin(X), 0.5 - 0.3 * np.sin(X)])
Y = TRUTH + 0.05 / np.sqrt(WEIGHTS)[:, None] * RNG.standard_normal((N, 2))
Y[4, 0] = np.nan
LAWS = {"linear": "a + b = 1", "curved": "a**2 + b = 1"}


def model(law: str | None = "a + b = 1", **settings) -> ConstrainedGP:
    given = {"outputs": ["a", "b"], "uncertainty": "plug-in", "restarts": 0, "kernel": Matern(nu=2.5)}
    return ConstrainedGP(law, **{**given, **settings})


@pytest.mark.parametrize("solver", ["dense", "markov", "joint"])
@pytest.mark.parametrize("noise", ["per-output", "shared"])
def test_gradient_with_weights(solver: str, noise: str) -> None:
    problem, _ = model(None, noise=noise)._problem(X, Y, print, WEIGHTS)
    prior = problem.priors("identity")[0]
    assert prior.noise.variances(np.zeros(prior.noise.n_parameters)).shape == (N, 2)
    evidence = Automatic().evidence(prior, problem.x, problem.y)
    if solver == "markov":
        evidence = MarkovObjectiveEvidence(prior, problem.x, problem.y, None)
    if solver == "joint":
        evidence = JointEvidence(prior, problem.x, problem.y, np.ones((N, 1, 2)), np.zeros((N, 1)))
    theta = 0.1 * np.random.default_rng(0).standard_normal(prior.n_parameters) - 0.3
    slopes = approx_fprime(theta, lambda t: evidence(t)[0], 1e-6)
    np.testing.assert_allclose(evidence(theta)[1], slopes, rtol=2e-4, atol=2e-4)


def test_dense_and_state_space_agree_with_weights() -> None:
    problem, _ = model(None)._problem(X, Y, print, WEIGHTS)
    prior = problem.priors("identity")[0]
    theta = 0.1 * np.random.default_rng(1).standard_normal(prior.n_parameters)
    dense = Automatic().evidence(prior, problem.x, problem.y)(theta)
    chain = MarkovObjectiveEvidence(prior, problem.x, problem.y, None)(theta)
    assert dense[0] == pytest.approx(chain[0], rel=1e-7)
    np.testing.assert_allclose(dense[1], chain[1], rtol=1e-5, atol=1e-5)
    plain = Automatic().evidence(replace(prior, noise=replace(prior.noise, row_factor=None)), problem.x, problem.y)(theta)
    assert abs(plain[0] - dense[0]) > 0.1


@pytest.mark.parametrize("strategy", [Conditioned(), Conditioned(joint=True), Linearized(), Projected(), None], ids=repr)
def test_weights_divide_a_known_variance(strategy) -> None:
    weighted = model(strategy=strategy, noise=0.05).fit(X, Y, sample_weight=WEIGHTS)
    by_hand = model(strategy=strategy, noise=0.05 / np.sqrt(WEIGHTS)[:, None] * np.ones(2)).fit(X, Y)
    np.testing.assert_allclose(weighted.predict(X), by_hand.predict(X), atol=1e-6)
    np.testing.assert_allclose(weighted.posterior(X).std, by_hand.posterior(X).std, atol=1e-6)


@pytest.mark.parametrize("law", LAWS)
def test_a_row_of_weight_zero_is_as_if_it_were_not_there(law: str) -> None:
    weights = np.ones(N)
    weights[[1, 7]] = 0.0
    dropped = model(LAWS[law]).fit(X[weights > 0], Y[weights > 0])
    np.testing.assert_array_equal(model(LAWS[law]).fit(X, Y, sample_weight=weights).predict(X), dropped.predict(X))


def test_weights_of_one_change_nothing() -> None:
    np.testing.assert_array_equal(model().fit(X, Y, sample_weight=np.ones(N)).predict(X), model().fit(X, Y).predict(X))


@pytest.mark.parametrize("law", [None, "a + b = 1", "a**2 + b = 1"])
def test_estimated_noise_is_that_of_weight_one(law: str | None) -> None:
    """150 rows, every third with five times the noise: with weights the noise of the others is found, without it is not."""
    rng = np.random.default_rng(2)
    x = np.linspace(0.0, 6.0, 150)
    weights = np.where(np.arange(150) % 3 == 0, 0.04, 1.0)
    a = 0.5 + 0.3 * np.sin(x)
    f = np.column_stack([a, 1.0 - a**2 if law == LAWS["curved"] else 1.0 - a])
    y = f + 0.02 / np.sqrt(weights)[:, None] * rng.standard_normal((150, 2))
    strategy = Unconstrained() if law is None else Projected()
    weighted = model(law, strategy=strategy).fit(x, y, sample_weight=weights)
    plain = model(law, strategy=strategy).fit(x, y)

    def sd(gp: ConstrainedGP) -> np.ndarray:
        return np.sqrt(gp.fitted_.components[0].noise) * gp.scaling_.y_scale

    np.testing.assert_allclose(sd(weighted), 0.02, rtol=0.25)
    assert np.all(sd(plain) > 0.04)
    assert np.sqrt(np.mean((weighted.predict(x) - f) ** 2)) < 0.8 * np.sqrt(np.mean((plain.predict(x) - f) ** 2))


@pytest.mark.parametrize(
    "weights", [np.ones(3), -np.ones(N), np.zeros(N), np.full(N, np.nan), ["a"] * N], ids=["few", "-", "0", "nan", "text"]
)
def test_wrong_weights_are_refused(weights) -> None:
    with pytest.raises(DataError, match="sample_weight: expected"):
        model().fit(X, Y, sample_weight=weights)


def test_rows_of_little_weight_do_not_speak_against_the_law_or_themselves() -> None:
    generator = np.random.default_rng(1002)
    t, weights = np.linspace(0.0, 6.0, 20), 10.0 ** generator.uniform(-2.0, 2.0, 20)
    truth = np.column_stack([np.sin(t), np.cos(t)])
    y = truth + 0.1 / np.sqrt(weights)[:, None] * generator.standard_normal((20, 2))
    y[3], weights[3] = truth[3] + 4.0, 1e-4
    with warnings.catch_warnings():
        warnings.simplefilter("error", SumGPWarning)
        fitted = model("a**2 + b**2 = 1").fit(t, y, sample_weight=weights)
    assert fitted.fit_report_.status == "converged"  # was: the law pulls 'b' away from its data


def test_transformed_says_that_it_takes_no_weights() -> None:
    with pytest.raises(DataError, match="sample_weight: Transformed"):
        model("a**2 + b = 1", strategy=Transformed()).fit(X, Y, sample_weight=WEIGHTS)


def test_weights_go_through_a_model_file(tmp_path) -> None:
    gp = model().fit(X, Y, sample_weight=WEIGHTS)
    gp.save(tmp_path / "m.sumgp")
    np.testing.assert_array_equal(sumgp.load(tmp_path / "m.sumgp").predict(X), gp.predict(X))


@pytest.mark.parametrize("law", [None, "a + b = 1"])
def test_left_out_rows_of_the_report_have_their_weights(law: str | None) -> None:
    """Weights on a known noise are the same as noise given row by row; rows of weight zero are not there."""
    weights = np.where(np.arange(N) == 9, 0.0, WEIGHTS)
    used, sds = weights > 0, 0.05 / np.sqrt(WEIGHTS)[:, None] * np.ones((N, 2))
    weighted = leave_one_out(model(law, noise=0.05).fit(X, Y, sample_weight=weights))
    given = leave_one_out(model(law, noise=sds[used]).fit(X[used], Y[used]))
    np.testing.assert_allclose(weighted.standardised, given.standardised, rtol=1e-6)
    np.testing.assert_allclose(weighted.rmse, given.rmse, rtol=1e-6)
    rows = leave_one_out(model(law, noise=sds).fit(X, Y, sample_weight=weights))  # noise of the row of weight zero as well
    assert rows.standardised.shape == given.standardised.shape


@pytest.mark.parametrize("solver", ["dense", "vecchia"])
def test_left_out_rows_with_estimated_noise_and_weights(solver: str, tmp_path: Path) -> None:
    """A row left out by hand: the fit of the others at the same hyperparameters; also from a stored model."""
    rng = np.random.default_rng(3)
    x = rng.uniform(size=(64, 2))
    weights = np.where(np.arange(64) % 2, 0.05, 1.0)
    f = np.column_stack([np.sin(5 * x[:, 0]), np.cos(4 * x[:, 1])])
    y = f + 0.1 / np.sqrt(weights)[:, None] * rng.standard_normal((64, 2))
    settings = {"outputs": ["a", "b"], "uncertainty": "plug-in", "kernel": Matern(0.5, nu=2.5)}
    gp = ConstrainedGP(None, solver=solver, **settings).fit(x, y, sample_weight=weights)
    found = leave_one_out(gp)
    component, inputs = gp.fitted_.components[0], gp.scaling_.inputs(x)
    for i in (0, 1, 20, 21):
        mean, covariance = component.marginals(inputs[[i]], x[[i]])
        # Precisions: what the others say is what all say, less what the row itself says.
        R = component.noise_covariance / weights[i]
        others = np.linalg.inv(np.linalg.inv(covariance[0]) - np.linalg.inv(R))
        own = gp.scaling_.outputs(y[[i]])[0]
        expected = others @ (np.linalg.solve(covariance[0], mean[0]) - np.linalg.solve(R, own))
        z = (own - expected) / np.sqrt(np.diagonal(others + R))
        np.testing.assert_allclose(found.standardised[i], z, rtol=1e-3)
    gp.save(tmp_path / "weighted.sumgp")
    stored = leave_one_out(sumgp.load(tmp_path / "weighted.sumgp"))
    np.testing.assert_allclose(stored.standardised, found.standardised, rtol=1e-9)
