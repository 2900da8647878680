"""Dense evidence against the textbook density, and its gradient against differences."""

from __future__ import annotations

import numpy as np
import pytest
from equivalence.small_problems import (
    assert_gradient,
    small_prior,
    some_data,
    some_theta,
    textbook_covariance,
)
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, RationalQuadratic

from sumgp.numerics.linear_algebra import schur_condition
from sumgp.priors import FullTask, LowRankTask, MultitaskPrior, NoiseModel, TaskLaw, nullspace_basis
from sumgp.solvers.dense import DenseEvidence

F = np.array([[1.0, -2.0, 0.5]])


def law_of(x: np.ndarray, noise: float = 0.0) -> TaskLaw:
    return TaskLaw(F, np.array([noise]), np.sin(3.0 * x))


def priors() -> dict[str, MultitaskPrior]:
    x, _ = some_data()
    known = NoiseModel(((0,), (1,), (2,)), np.ones(3), known=0.01 + 0.1 * np.random.default_rng(0).uniform(size=(9, 3)))
    shared = NoiseModel(((0, 2), (1,)), np.array([1.0, 2.0, 0.5]))
    return {
        "plain": small_prior(),
        "rbf": small_prior(kernels=(RBF(0.5),)),
        "two terms": small_prior(kernels=(RBF(0.5), ConstantKernel(0.5) * Matern(0.2, nu=1.5))),
        "identity mean": small_prior(mean_shape="identity"),
        "low rank": small_prior(kernels=(RationalQuadratic(0.5, alpha=2.0),), tasks=(LowRankTask(3, 1),)),
        "known noise": small_prior(noise=known),
        "grouped noise": small_prior(noise=shared),
        "law": small_prior(law=law_of(x)),
        "soft law": small_prior(law=law_of(x, 0.2)),
    }


def textbook_evidence(prior: MultitaskPrior, theta: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    """log N(y | mean, covariance + noise) over the measured entries, with a law by conditioning each point's outputs."""
    covariance = textbook_covariance(prior, theta, x, x)
    mean = np.zeros(y.size)
    if prior.law is not None:
        sd = prior.law.noise / np.sqrt(1.0 + prior.mean_variance)
        Sigma = prior.Sigmas(theta)[0]
        given = schur_condition(Sigma, prior.law.F, sd)
        mean = (prior.law.totals @ given.D).ravel()
        covariance = np.kron(prior.unpack(theta).kernels[0](x) + prior.mean_variance, given.covariance)
    noise = np.broadcast_to(prior.noise.variances(theta[prior.noise_slice]), y.shape).ravel()
    covariance = covariance + np.diag(noise)
    seen = ~np.isnan(y.ravel())
    return float(multivariate_normal.logpdf(y.ravel()[seen], mean[seen], covariance[np.ix_(seen, seen)]))


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("name", priors())
def test_evidence_equals_the_textbook_density(name: str, missing: float) -> None:
    """With missing entries this is the density with their rows and columns deleted."""
    prior = priors()[name]
    x, y = some_data(missing=missing)
    theta = some_theta(prior)
    value, _ = DenseEvidence(prior, x, y)(theta)
    assert value == pytest.approx(textbook_evidence(prior, theta, x, y), rel=1e-9)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("name", priors())
def test_gradient_equals_differences(name: str, missing: float) -> None:
    prior = priors()[name]
    x, y = some_data(missing=missing)
    assert_gradient(DenseEvidence(prior, x, y), some_theta(prior))


def test_a_row_without_any_measurement_changes_nothing() -> None:
    prior = small_prior()
    x, y = some_data()
    theta = some_theta(prior)
    longer = np.vstack([x, [[0.55]]]), np.vstack([y, np.full((1, 3), np.nan)])
    assert DenseEvidence(prior, *longer)(theta)[0] == pytest.approx(DenseEvidence(prior, x, y)(theta)[0], rel=1e-12)


def closed_problem(missing: bool) -> tuple[MultitaskPrior, np.ndarray, np.ndarray]:
    """Rows that obey the law exactly: noise within its null space."""
    x, y = some_data()
    law = law_of(x)
    y = y - (y @ F.T - law.totals) @ F / np.sum(F**2)
    if missing:
        y[2, 0] = y[4, 1:] = np.nan
    noise = NoiseModel(((0,), (1,), (2,)), np.ones(3), closed=True)
    return small_prior(noise=noise, law=law), x, y


@pytest.mark.parametrize("missing", [False, True])
def test_closed_data_equal_regression_in_null_space_coordinates(missing: bool) -> None:
    """Complete rows: y = mean + G z with z free; the density of z is that of y up to the volume of the dropped entries."""
    prior, x, y = closed_problem(missing)
    theta = some_theta(prior)
    evidence = DenseEvidence(prior, x, y)
    assert_gradient(evidence, theta)
    G = nullspace_basis(F)
    given = schur_condition(prior.Sigmas(theta)[0], F, np.zeros(1))
    K = prior.unpack(theta).kernels[0](x) + prior.mean_variance
    projector = G @ G.T
    noise = projector @ np.diag(prior.noise.variances(theta[prior.noise_slice])) @ projector
    covariance = np.kron(K, given.covariance) + np.kron(np.eye(len(x)), noise)
    mean = (prior.law.totals @ given.D).ravel()
    # The law fixes one entry of a complete row from the others: leave the first out.
    seen = ~np.isnan(y)
    seen[seen.all(axis=1), 0] = False
    index = np.flatnonzero(seen.ravel())
    expected = multivariate_normal.logpdf(y.ravel()[index], mean[index], covariance[np.ix_(index, index)])
    assert evidence(theta)[0] == pytest.approx(expected, rel=1e-8)


def test_task_covariance_of_full_and_low_rank_give_one_evidence_where_they_are_equal() -> None:
    x, y = some_data(T=1)
    full, low = small_prior(T=1), small_prior(T=1, tasks=(LowRankTask(1, 1),))
    v, b = 0.3, 0.9
    d = 0.5 * np.log(v + b**2)
    theta = np.array([np.log(0.3), d, np.log(0.1)])
    other = np.array([np.log(0.3), b, np.log(v), np.log(0.1)])
    assert isinstance(full.tasks[0], FullTask)
    assert DenseEvidence(full, x, y)(theta)[0] == pytest.approx(DenseEvidence(low, x, y)(other)[0], rel=1e-10)
