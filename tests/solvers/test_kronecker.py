"""The Kronecker evidence equals the dense one, gradient included, and refuses what it cannot do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from equivalence.small_problems import assert_gradient, small_prior, some_data, some_theta
from sklearn.gaussian_process.kernels import RBF, Matern

from sumgp.errors import DataError
from sumgp.priors import LowRankTask, MultitaskPrior, NoiseModel, TaskLaw
from sumgp.solvers.dense import Automatic, Dense, DenseEvidence, Kronecker, KroneckerEvidence, has_kronecker_form


def priors() -> dict[str, MultitaskPrior]:
    x, _ = some_data()
    F = np.array([[1.0, -2.0, 0.5], [0.0, 1.0, 1.0]])
    return {
        "plain": small_prior(),
        "rbf": small_prior(kernels=(RBF(0.6),)),
        "shared noise": small_prior(noise=NoiseModel(((0, 1, 2),), np.array([1.0, 2.0, 0.5]))),
        "identity mean": small_prior(mean_shape="identity"),
        "low rank": small_prior(tasks=(LowRankTask(3, 1),)),
        "one law, varying total": small_prior(law=TaskLaw(F[:1], np.zeros(1), np.sin(3 * x))),
        "two laws": small_prior(law=TaskLaw(F, np.zeros(2), np.hstack([x, np.ones_like(x)]))),
        "closed data, one law": small_prior(
            noise=replace(small_prior().noise, closed=True), law=TaskLaw(F[:1], np.zeros(1), np.sin(3 * x))
        ),
        "closed data, two laws": small_prior(
            noise=replace(small_prior().noise, closed=True), law=TaskLaw(F, np.zeros(2), np.hstack([x, np.ones_like(x)]))
        ),
        "soft law": small_prior(law=TaskLaw(F[:1], np.array([0.2]), np.ones_like(x))),
    }


@pytest.mark.parametrize("missing", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("name", priors())
def test_value_and_gradient_equal_the_dense_ones(name: str, missing: float) -> None:
    prior = priors()[name]
    x, y = some_data(missing=missing)
    assert np.isnan(y).any() == (missing > 0)
    theta = some_theta(prior)
    assert has_kronecker_form(prior)
    fast, fast_gradient = KroneckerEvidence(prior, x, y)(theta)
    dense, dense_gradient = DenseEvidence(prior, x, y)(theta)
    assert fast == pytest.approx(dense, rel=1e-9)
    np.testing.assert_allclose(fast_gradient, dense_gradient, atol=1e-8 * np.max(np.abs(dense_gradient)))


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("name", priors())
def test_gradient_equals_differences(name: str, missing: float) -> None:
    prior = priors()[name]
    x, y = some_data(missing=missing)
    assert_gradient(KroneckerEvidence(prior, x, y), some_theta(prior))


def test_gradient_holds_at_equal_eigenvalues() -> None:
    """Equal amplitudes, no correlation: Sigma is a multiple of the identity; eigenvectors are arbitrary there."""
    prior = small_prior(noise=NoiseModel(((0, 1, 2),), np.ones(3)))
    x, y = some_data()
    assert_gradient(KroneckerEvidence(prior, x, y), prior.start())


def test_choice_of_solver() -> None:
    prior = small_prior()
    x, y = some_data(N=40)
    assert isinstance(Automatic().evidence(prior, x, y), KroneckerEvidence)
    assert isinstance(Dense().evidence(prior, x, y), DenseEvidence)
    assert isinstance(Automatic().evidence(prior, x[:3], y[:3]), DenseEvidence)
    assert isinstance(Kronecker().evidence(prior, x[:3], y[:3]), KroneckerEvidence)
    few = np.where(np.arange(40)[:, None] == 3, np.nan, y)
    assert isinstance(Automatic().evidence(prior, x, few), KroneckerEvidence)
    many = np.where(np.arange(40)[:, None] % 4 == 3, np.nan, y)
    assert isinstance(Automatic().evidence(prior, x, many), DenseEvidence)
    assert isinstance(Kronecker().evidence(prior, x, many), KroneckerEvidence)


def test_rows_that_are_missing_altogether_change_nothing() -> None:
    prior = small_prior(mean_shape="identity")
    x, y = some_data(N=12)
    y[[2, 5]] = np.nan
    kept = np.delete(np.arange(12), [2, 5])
    theta = some_theta(prior)
    value, gradient = KroneckerEvidence(prior, x, y)(theta)
    expected, expected_gradient = KroneckerEvidence(prior, x[kept], y[kept])(theta)
    assert value == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(gradient, expected_gradient, atol=1e-8 * np.max(np.abs(expected_gradient)))


def test_kronecker_is_refused_where_it_is_not_exact() -> None:
    x, y = some_data()
    known = NoiseModel(((0,), (1,), (2,)), np.ones(3), known=np.ones((9, 3)))
    cases = [
        (small_prior(kernels=(RBF(0.5), Matern(0.2))), y),
        (small_prior(noise=known), y),
    ]
    for prior, outputs in cases:
        with pytest.raises(DataError, match=r"Kronecker\(\) needs one kernel term.*use Dense\(\)"):
            Kronecker().evidence(prior, x, outputs)
