"""Rows that meet the law as measured: found alike by every solver, noise within the law, misprints named."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import Matern

from sumgp import ConstrainedGP, Dense, Kronecker, LinearConstraint, Markov
from sumgp.data import Data, choose_scaling
from sumgp.errors import SumGPWarning
from sumgp.laws import measured_imbalance
from sumgp.laws.points import rounding_units
from sumgp.priors import TaskLaw
from sumgp.solvers import ClosedEvidence, KroneckerEvidence, closed_rows

LAW = "a + b + c = 5"
PLAIN: dict[str, Any] = {"outputs": ["a", "b", "c"], "kernel": Matern(nu=2.5), "uncertainty": "plug-in", "restarts": 1}
SD = 0.2


def series(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Three smooth outputs that sum to 5, with noise that sums to zero."""
    t = np.linspace(0.0, 6.0, n)
    noise = SD * np.random.default_rng(1000).standard_normal((n, 3))
    Y = np.stack([np.sin(t), np.cos(0.8 * t), np.zeros(n)], axis=1)
    Y[:, 2] = 5.0 - Y.sum(axis=1)
    return t, Y + noise - noise.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("solver", [Markov(), Dense(), Kronecker()])
def test_noise_is_found_and_measurements_obey_the_law(solver: object) -> None:
    t, Y = series()
    gp = ConstrainedGP(LAW, solver=solver, **{**PLAIN, "restarts": 2}).fit(t, Y)
    assert gp.fit_report_.details["closed_data"] is True
    new = gp.posterior(t[:7] + 0.03).observed()
    draws = new.sample(200)
    assert np.max(np.abs(draws.sum(axis=2) - 5.0)) < 1e-9
    # Noise within the law has two thirds of the variance.
    truth = gp.posterior(t[:7] + 0.03)
    noise = np.sqrt(new.std**2 - truth.std**2)
    assert noise == pytest.approx(SD * np.sqrt(2.0 / 3.0), rel=0.25)
    assert draws.std(axis=0) == pytest.approx(new.std, rel=0.25)
    blocks = new.covariance().reshape(7, 3, 7, 3)[range(7), :, range(7), :]
    assert np.max(np.abs(blocks.sum(axis=2))) < 1e-9


def test_dense_and_kronecker_algebra_take_the_same_noise() -> None:
    """Outputs measured with unequal precision: there noise that is projected onto the law and noise given the law differ."""
    t, Y = series(30)
    extra = 0.4 * np.random.default_rng(1001).standard_normal(30)
    Y[:, 0], Y[:, 2] = Y[:, 0] + extra, Y[:, 2] - extra
    new = t[:5] + 0.03
    dense, kronecker = (ConstrainedGP(LAW, solver=s, **PLAIN).fit(t, Y).posterior(new) for s in (Dense(), Kronecker()))
    np.testing.assert_allclose(kronecker.mean, dense.mean, atol=1e-4)
    np.testing.assert_allclose(kronecker.std, dense.std, rtol=1e-3)
    np.testing.assert_allclose(kronecker.observed().std, dense.observed().std, rtol=1e-3)


def test_series_keeps_its_noise() -> None:
    """The law leaves noise in two directions of three; believed to be in all three, it would be sqrt(2/3) of its size."""
    t, Y = series(200)
    gp = ConstrainedGP(LAW, outputs=["a", "b", "c"], solver=Markov(), kernel=Matern(nu=2.5)).fit(t, Y)
    found = np.sqrt(gp.fitted_.components[0].noise) * gp.scaling_.y_scale
    assert np.sqrt(np.mean(found**2)) == pytest.approx(SD, rel=0.1)


def test_evidence_of_closed_rows_and_its_gradient() -> None:
    """The density of two of three outputs, whose noise is that of the three given their sum; finite differences."""
    t, Y = series(12)
    gp = ConstrainedGP(LAW, **PLAIN)
    problem, _ = gp._problem(t, Y, lambda stage: None)
    F = problem.scaling.y_scale / np.linalg.norm(problem.scaling.y_scale)
    totals = np.full((12, 1), (5.0 - problem.scaling.y_shift.sum()) / np.linalg.norm(problem.scaling.y_scale))
    prior = problem.priors("task", task_law=TaskLaw(F[None], np.zeros(1), totals))[0]
    theta = 0.1 * np.arange(prior.n_parameters) - 0.5
    rows = closed_rows(problem.y, np.broadcast_to(F, (12, 1, 3)), totals)
    evidence = ClosedEvidence(KroneckerEvidence(prior, problem.x, problem.y), prior, rows)
    value, gradient = evidence(theta)
    steps = [1e-5 * (np.arange(len(theta)) == i) for i in range(len(theta))]
    slopes = [(evidence(theta + h)[0] - evidence(theta - h)[0]) / 2e-5 for h in steps]
    assert gradient == pytest.approx(slopes, rel=1e-5, abs=1e-5)
    # The same density by hand, in the plane of the law.
    V = prior.noise.variances(theta[prior.noise_slice])
    R = np.diag(V) - np.outer(V * F, V * F) / (F @ (V * F))
    hyper = prior.unpack(theta)
    conditioning = prior.conditioned(hyper.Sigmas[0])
    assert conditioning is not None
    K = hyper.kernels[0](problem.x) + prior.mean_variance
    full = np.kron(K, conditioning.covariance) + np.kron(np.eye(12), R)
    N = np.kron(np.eye(12), np.linalg.svd(F[None])[2][1:])
    away = (problem.y - totals @ conditioning.D).ravel()
    density = multivariate_normal.logpdf(N @ away, cov=N @ full @ N.T)
    assert value == pytest.approx(density, rel=1e-8)


def test_rounding_is_seen_and_misprints_are_named() -> None:
    t, Y = series()
    rounded = np.round(Y, 1)
    assert rounding_units(rounded) == pytest.approx([0.1, 0.1, 0.1])
    law = LinearConstraint([1.0, 1.0, 1.0], 5.0).bind(["a", "b", "c"], ["t"])
    data = Data(t[:, None], rounded, ("t",), ("a", "b", "c"))
    scaling = choose_scaling(data, [[0], [1], [2]], True)
    assert measured_imbalance(law, data, scaling).all_closed
    noisy = Y + SD * np.random.default_rng(1001).standard_normal(Y.shape)
    assert not measured_imbalance(law, Data(t[:, None], noisy, ("t",), ("a", "b", "c")), scaling).all_closed
    wrong = Y.copy()
    wrong[17, 1] += 1.0
    with pytest.warns(SumGPWarning, match=r"1 row \(17, counted from 0\)"):
        gp = ConstrainedGP(LAW, **PLAIN).fit(t, wrong)
    assert gp.fit_report_.details["closed_data"] is True


def test_curved_law_has_measurements_on_it() -> None:
    """Angles measured with an error, written down as sine and cosine: noise along the circle only."""
    rng = np.random.default_rng(1000)
    t = np.linspace(0.0, 6.0, 40)
    angle = t + 0.1 * rng.standard_normal(40)
    Y = np.column_stack([np.cos(angle), np.sin(angle)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SumGPWarning)
        gp = ConstrainedGP("z**2 + v**2 = 1", outputs=["z", "v"], uncertainty="plug-in", restarts=1).fit(t, Y)
    assert gp.fit_report_.details["closed_data"] is True
    new = gp.posterior(np.array([0.0, 1.6])).observed()
    assert np.max(np.abs((new.sample(100) ** 2).sum(axis=2) - 1.0)) < 1e-9
    assert new.std[0, 1] > 3.0 * new.std[0, 0]
    # Each output shows half of the noise, on average; all of it is along the circle.
    noise = new.std**2 - gp.posterior(np.array([0.0, 1.6])).std ** 2
    assert np.sqrt(noise.sum(axis=1)) == pytest.approx([0.1, 0.1], rel=0.25)
