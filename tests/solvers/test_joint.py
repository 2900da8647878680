"""Evidence given a law on the full joint: against conditioning by hand, against the short cut, against differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from equivalence.small_problems import (
    assert_gradient,
    gaussian_given,
    small_prior,
    some_data,
    some_theta,
    textbook_covariance,
)
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import RBF, Matern

from sumgp.priors import MultitaskPrior, TaskLaw
from sumgp.solvers.dense import DenseEvidence
from sumgp.solvers.joint import JointEvidence

N, T = 6, 3


def law_rows(kind: str, x: np.ndarray, C: int) -> tuple[np.ndarray, np.ndarray]:
    """(N, R, C) coefficients and (N, R) totals."""
    rows = np.zeros((N, 1, C))
    rows[:, 0, :T] = [1.0, -2.0, 0.5]
    totals = np.sin(3.0 * x)
    if kind == "varying":
        rows[:, 0, 0] = 1.0 + x[:, 0]
        rows[:, 0, 2] = np.cos(5.0 * x[:, 0])
    if kind == "part of the inputs":
        rows[x[:, 0] > 0.5] = 0.0
    if kind in ("unknown", "soft"):
        rows[:, 0, T] = -1.0
    return rows, totals


def priors(kind: str) -> MultitaskPrior:
    if kind == "two terms":
        return small_prior(kernels=(Matern(0.4, nu=0.5), Matern(0.2, nu=1.5)))
    if kind == "unknown":
        return small_prior(unknown=np.array([4.0]))
    if kind == "soft":
        return small_prior(soft=np.array([0.09]))
    if kind == "identity mean":
        return small_prior(mean_shape="identity", kernels=(RBF(0.3),))
    return small_prior()


KINDS = ["constant", "varying", "part of the inputs", "two terms", "unknown", "soft", "identity mean"]


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("kind", KINDS)
def test_evidence_equals_conditioning_all_columns_by_hand(kind: str, missing: float) -> None:
    prior = priors(kind)
    x, y = some_data(N=N, missing=missing)
    theta = some_theta(prior)
    C = T + len(prior.unknown) + len(prior.soft)
    rows, totals = law_rows(kind, x, C)
    value, _ = JointEvidence(prior, x, y, rows, totals)(theta)
    covariance = textbook_covariance(prior, theta, x, x)
    live = np.any(rows[:, 0] != 0, axis=1)
    H = np.zeros((int(live.sum()), N * C))
    for k, i in enumerate(np.flatnonzero(live)):
        H[k, i * C : (i + 1) * C] = rows[i, 0]
    mean, conditioned = gaussian_given(np.zeros(N * C), covariance, H, totals[live, 0], np.zeros((len(H), len(H))))
    seen = np.zeros((N, C), dtype=bool)
    seen[:, :T] = ~np.isnan(y)
    index = np.flatnonzero(seen.ravel())
    noise = np.tile(prior.noise.variances(theta[prior.noise_slice]), (N, 1))[~np.isnan(y)]
    expected = multivariate_normal.logpdf(y[~np.isnan(y)], mean[index], conditioned[np.ix_(index, index)] + np.diag(noise))
    assert value == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_gradient_equals_differences(kind: str) -> None:
    prior = priors(kind)
    x, y = some_data(N=N, missing=0.2)
    rows, totals = law_rows(kind, x, T + len(prior.unknown) + len(prior.soft))
    assert_gradient(JointEvidence(prior, x, y, rows, totals), some_theta(prior))


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_joint_evidence_equals_the_short_cut_on_the_task_covariance(missing: float) -> None:
    """Constant F, varying S(x): both condition the same prior on the same law."""
    x, y = some_data(N=N, missing=missing)
    prior = small_prior()
    theta = some_theta(prior)
    rows, totals = law_rows("constant", x, T)
    short = replace(prior, law=TaskLaw(rows[0], np.zeros(1), totals))
    value, gradient = JointEvidence(prior, x, y, rows, totals)(theta)
    short_value, short_gradient = DenseEvidence(short, x, y)(theta)
    assert value == pytest.approx(short_value, rel=1e-8)
    np.testing.assert_allclose(gradient, short_gradient, atol=1e-7 * np.max(np.abs(gradient)))


def test_soft_law_equals_the_short_cut_too() -> None:
    x, y = some_data(N=N)
    prior = small_prior(soft=np.array([0.09]))
    theta = some_theta(prior)
    rows, totals = law_rows("soft", x, T + 1)
    short = small_prior(law=TaskLaw(rows[0, :, :T], np.array([0.3]), totals))
    value, _ = JointEvidence(prior, x, y, rows, totals)(theta)
    assert value == pytest.approx(DenseEvidence(short, x, y)(theta)[0], rel=1e-8)
