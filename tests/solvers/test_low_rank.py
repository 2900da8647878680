"""The evidence by few features equals the dense one, gradient included, and leaves to that what it cannot do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from equivalence.small_problems import assert_gradient, small_prior, some_data, some_theta, unknown_noise
from sklearn.gaussian_process.kernels import RBF, DotProduct, ExpSineSquared, Matern, RationalQuadratic

from sumgp.priors import LowRankTask, MultitaskPrior, NoiseModel, OneOutputTask, TaskLaw
from sumgp.priors.kernels import hyper_priors
from sumgp.solvers.dense import Automatic, Dense, DenseEvidence, KroneckerEvidence
from sumgp.solvers.kronecker import IndependentEvidence, are_independent
from sumgp.solvers.low_rank import LowRankEvidence, spread_order

N = 130
ROWS = np.random.default_rng(3).uniform(0.5, 3.0, N)
KNOWN = 0.01 + 0.1 * np.random.default_rng(0).uniform(size=(N, 3))
EACH = tuple((t,) for t in range(3))
F = np.array([[1.0, -2.0, 0.5]])
OWN = {"tasks": tuple(OneOutputTask(3, t) for t in range(3)), "mean_shape": "identity"}


class Unasked:
    """An evidence that must not be needed."""

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        raise AssertionError("features do not serve")

    def value(self, theta: np.ndarray) -> float:
        raise AssertionError("features do not serve")


def priors() -> dict[str, MultitaskPrior]:
    x, _ = some_data(N=N)
    smooth = {"kernels": (RBF(0.4),)}
    return {
        "rbf": small_prior(**smooth),
        "rational": small_prior(kernels=(RationalQuadratic(0.6, alpha=2.0, alpha_bounds="fixed"),)),
        "quasi-periodic": small_prior(kernels=(ExpSineSquared(1.5, 0.4) * RBF(2.0),)),
        "smooth matern": small_prior(kernels=(Matern(2.0, nu=4.5),)),
        "identity mean": small_prior(mean_shape="identity", **smooth),
        "two terms": small_prior(kernels=(RBF(0.5), RBF(0.2))),
        "low rank": small_prior(tasks=(LowRankTask(3, 1),), **smooth),
        "own terms": small_prior(kernels=(RBF(0.3), RBF(0.5), RationalQuadratic(0.6, 2.0, alpha_bounds="fixed")), **OWN),
        "shared noise": small_prior(noise=NoiseModel(((0, 2), (1,)), np.array([1.0, 2.0, 0.5])), **smooth),
        "weighted rows": small_prior(noise=NoiseModel(EACH, np.ones(3), row_factor=ROWS), **smooth),
        "known noise": small_prior(noise=NoiseModel(EACH, np.ones(3), known=KNOWN), **smooth),
        "law": small_prior(law=TaskLaw(F, np.zeros(1), np.sin(3.0 * x)), **smooth),
        "soft law": small_prior(law=TaskLaw(F, np.array([0.2]), np.ones_like(x)), **smooth),
    }


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("noise", [1.0, 0.01])
@pytest.mark.parametrize("name", priors())
def test_value_and_gradient_equal_the_dense_ones(name: str, noise: float, missing: float) -> None:
    prior = priors()[name]
    x, y = some_data(N=N, missing=missing)
    theta = some_theta(prior)
    theta[prior.noise_slice] += np.log(noise / 0.1)
    dense, dense_gradient = DenseEvidence(prior, x, y)(theta)
    few = LowRankEvidence(prior, x, y, Unasked(), most=3 * N)
    value, gradient = few(theta)
    assert value == pytest.approx(dense, rel=1e-8)
    assert few.value(theta) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(gradient, dense_gradient, atol=1e-6 * np.max(np.abs(dense_gradient)))


@pytest.mark.parametrize("name", ["quasi-periodic", "own terms", "weighted rows", "law"])
def test_gradient_equals_differences(name: str) -> None:
    prior = priors()[name]
    x, y = some_data(N=N, missing=0.3)
    assert_gradient(LowRankEvidence(prior, x, y, Unasked(), most=3 * N), some_theta(prior))


def test_several_inputs_have_a_lengthscale_each() -> None:
    x = np.random.default_rng(5).uniform(size=(N, 2))
    y = np.stack([np.sin(4.0 * x[:, 0]), x[:, 1] ** 2], axis=1) + 0.05 * np.random.default_rng(6).standard_normal((N, 2))
    kernel = RBF([1.0, 2.0])
    prior = replace(small_prior(T=2), kernels=(kernel,), kernel_priors=(tuple(hyper_priors(kernel, np.full(2, 0.5))),))
    theta = prior.start() + 0.1
    dense, dense_gradient = DenseEvidence(prior, x, y)(theta)
    value, gradient = LowRankEvidence(prior, x, y, Unasked(), most=2 * N)(theta)
    assert value == pytest.approx(dense, rel=1e-8)
    np.testing.assert_allclose(gradient, dense_gradient, atol=1e-6 * np.max(np.abs(dense_gradient)))


@pytest.mark.parametrize(
    ("kernel", "noise"),
    [(RBF(0.003), 0.1), (Matern(0.4, nu=0.5), 0.1), (RBF(0.2), 1e-5)],
    ids=["short lengthscale", "rough kernel", "little noise"],
)
def test_the_other_evidence_is_asked_where_features_do_not_serve(kernel: RBF, noise: float) -> None:
    prior = small_prior(kernels=(kernel,))
    x, y = some_data(N=N, missing=0.3)
    dense = DenseEvidence(prior, x, y)
    theta = prior.start()
    theta[prior.noise_slice] = np.log(noise)
    few = LowRankEvidence(prior, x, y, dense, most=N)
    value, gradient = few(theta)
    assert value == dense(theta)[0]
    assert few.value(theta) == dense.value(theta)
    np.testing.assert_array_equal(gradient, dense(theta)[1])
    with pytest.raises(AssertionError, match="do not serve"):
        LowRankEvidence(prior, x, y, Unasked(), most=N).value(theta)


def test_repeated_rows_share_their_features() -> None:
    prior = small_prior(kernels=(RBF(0.4),))
    x, y = some_data(N=N, missing=0.2)
    x = np.repeat(x[::2], 2, axis=0)
    theta = some_theta(prior)
    few = LowRankEvidence(prior, x, y, Unasked(), most=N)
    assert few.value(theta) == pytest.approx(DenseEvidence(prior, x, y).value(theta), rel=1e-8)


@pytest.mark.parametrize("noise", [unknown_noise(3), NoiseModel(((0, 2), (1,)), np.array([1.0, 2.0, 0.5]))])
def test_outputs_without_anything_in_common_add_up(noise: NoiseModel) -> None:
    prior = replace(priors()["own terms"], noise=noise)
    assert are_independent(prior)
    assert not are_independent(priors()["rbf"])
    x, y = some_data(N=40, missing=0.3)
    y[:, 1] = np.nan
    theta = some_theta(prior)
    dense, dense_gradient = DenseEvidence(prior, x, y)(theta)
    value, gradient = IndependentEvidence(prior, x, y, DenseEvidence)(theta)
    assert value == pytest.approx(dense, rel=1e-12)
    assert IndependentEvidence(prior, x, y, DenseEvidence).value(theta) == pytest.approx(dense, rel=1e-12)
    np.testing.assert_allclose(gradient, dense_gradient, atol=1e-10 * np.max(np.abs(dense_gradient)))


def test_choice_of_evidence() -> None:
    x, y = some_data(N=N)
    smooth, own = priors()["rbf"], priors()["own terms"]
    chosen = Automatic().evidence(smooth, x, y)
    assert isinstance(chosen, LowRankEvidence)
    assert isinstance(chosen.otherwise, KroneckerEvidence)
    assert isinstance(Automatic().evidence(own, x, y), IndependentEvidence)
    assert isinstance(Dense().evidence(smooth, x, y), DenseEvidence)
    few_rows = Automatic().evidence(smooth, x[:100], y[:100])
    assert isinstance(few_rows, KroneckerEvidence)
    few_values = np.where(np.arange(N)[:, None] % 4 == 0, np.nan, y)
    assert isinstance(Automatic().evidence(smooth, x, few_values), DenseEvidence)
    assert isinstance(Automatic().evidence(small_prior(kernels=(DotProduct(),)), x, y), KroneckerEvidence)


def test_rows_in_spread_order_lie_all_over_the_inputs() -> None:
    x, _ = some_data(N=N)
    order = spread_order(x)
    assert sorted(order) == list(range(N))
    gaps = np.diff(np.sort(x[order[:17], 0]))
    assert gaps.max() < 0.15
    assert gaps.min() > 0.02
