"""The state-space evidence of a multitask prior equals the dense one, gradient included; other kernels are refused."""

from __future__ import annotations

import numpy as np
import pytest
from equivalence.small_problems import assert_gradient, small_prior, some_data, some_theta
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, RationalQuadratic

from sumgp.errors import DataError
from sumgp.priors import LowRankTask, MultitaskPrior, NoiseModel, TaskLaw
from sumgp.solvers.dense import DenseEvidence
from sumgp.solvers.joint import JointEvidence
from sumgp.solvers.markov.evidence import LawRows, MarkovObjectiveEvidence, is_markov, markov_terms

F = np.array([[1.0, -2.0, 0.5], [0.0, 1.0, 1.0]])


def data(missing: float) -> tuple[np.ndarray, np.ndarray]:
    """Unordered inputs, one of them three times."""
    x, y = some_data(N=14, missing=missing)
    x[3] = x[4] = x[5]
    order = np.random.default_rng(4).permutation(len(x))
    return x[order], y[order]


def priors() -> dict[str, MultitaskPrior]:
    x, _ = data(0.0)
    known = NoiseModel(((0,), (1,), (2,)), np.ones(3), known=0.01 + 0.1 * np.random.default_rng(0).uniform(size=(14, 3)))
    result = {}
    for shape in ("task", "identity"):
        result |= {
            f"plain, {shape}": small_prior(mean_shape=shape),
            f"nu 3/2, {shape}": small_prior(kernels=(Matern(0.4, nu=1.5),), mean_shape=shape),
            f"two terms, {shape}": small_prior(kernels=(Matern(0.4, nu=2.5), Matern(0.1, nu=0.5)), mean_shape=shape),
        }
    return result | {
        "low rank": small_prior(tasks=(LowRankTask(3, 1),)),
        "shared noise": small_prior(noise=NoiseModel(((0, 2), (1,)), np.array([1.0, 2.0, 0.5]))),
        "known noise": small_prior(noise=known),
        "one law, varying total": small_prior(law=TaskLaw(F[:1], np.zeros(1), np.sin(3 * x))),
        "two laws": small_prior(
            law=TaskLaw(F, np.zeros(2), np.hstack([x, np.ones_like(x)])), kernels=(Matern(0.4, nu=2.5),)
        ),
        "soft law": small_prior(law=TaskLaw(F[:1], np.array([0.2]), np.ones_like(x))),
        "law, identity": small_prior(law=TaskLaw(F[:1], np.zeros(1), np.sin(3 * x)), mean_shape="identity"),
        "columns of the law": small_prior(mean_shape="identity", unknown=np.array([9.0]), soft=np.array([0.3])),
    }


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("name", priors())
def test_value_and_gradient_equal_the_dense_ones(name: str, missing: float) -> None:
    prior = priors()[name]
    x, y = data(missing)
    theta = some_theta(prior)
    fast, fast_gradient = MarkovObjectiveEvidence(prior, x, y)(theta)
    dense, dense_gradient = DenseEvidence(prior, x, y)(theta)
    assert fast == pytest.approx(dense, rel=1e-8)
    np.testing.assert_allclose(fast_gradient, dense_gradient, rtol=0, atol=1e-6 * np.max(np.abs(dense_gradient)))


@pytest.mark.parametrize("name", priors())
def test_gradient_equals_differences(name: str) -> None:
    prior = priors()[name]
    x, y = data(0.3)
    assert_gradient(MarkovObjectiveEvidence(prior, x, y), some_theta(prior))


def joint_priors() -> dict[str, MultitaskPrior]:
    return {
        "F(x)": small_prior(),
        "F(x), part of the inputs": small_prior(),
        "F(x), two terms": small_prior(kernels=(Matern(0.4, nu=2.5), Matern(0.1, nu=0.5))),
        "F(x), identity": small_prior(mean_shape="identity"),
        "unknown": small_prior(unknown=np.array([4.0])),
        "soft": small_prior(soft=np.array([0.09])),
        "unknown and soft, identity": small_prior(mean_shape="identity", unknown=np.array([4.0]), soft=np.array([0.09])),
    }


def law_rows(name: str, prior: MultitaskPrior, x: np.ndarray) -> LawRows:
    """One law whose coefficients vary; unknown constants and soft errors are further terms of it."""
    rows = np.zeros((len(x), 1, 3 + len(prior.unknown) + len(prior.soft)))
    rows[:, 0, :3] = np.column_stack([1.0 + x[:, 0], np.full(len(x), -2.0), np.cos(5.0 * x[:, 0])])
    rows[:, 0, 3:] = -1.0
    if "part" in name:
        rows[x[:, 0] > 0.5] = 0.0
    return LawRows(rows, np.sin(3.0 * x))


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("name", joint_priors())
def test_given_a_law_value_and_gradient_equal_the_dense_ones(name: str, missing: float) -> None:
    """To what the law's variance, 1e-10 here and zero there, lets the data tell."""
    prior = joint_priors()[name]
    x, y = data(missing)
    law, theta = law_rows(name, prior, x), some_theta(prior)
    fast, fast_gradient = MarkovObjectiveEvidence(prior, x, y, law)(theta)
    dense, dense_gradient = JointEvidence(prior, x, y, law.rows, law.totals)(theta)
    assert fast == pytest.approx(dense, abs=1e-5)
    np.testing.assert_allclose(fast_gradient, dense_gradient, rtol=0, atol=1e-5 * np.max(np.abs(dense_gradient)))


def test_memory_used_again_changes_nothing() -> None:
    prior = priors()["two terms, task"]
    x, y = data(0.3)
    evidence, theta = MarkovObjectiveEvidence(prior, x, y), some_theta(prior)
    first = evidence(theta)
    evidence(theta + 0.3)
    again = evidence(theta)
    assert again[0] == first[0]
    np.testing.assert_array_equal(again[1], first[1])


def test_sums_and_constant_factors_become_terms() -> None:
    kernel = ConstantKernel(2.0) * Matern(0.5, nu=1.5) + (Matern(0.1, nu=0.5) + Matern(3.0, nu=2.5)) * ConstantKernel(0.3)
    assert [(k.nu, k.length_scale) for k in markov_terms(kernel)] == [(1.5, 0.5), (0.5, 0.1), (2.5, 3.0)]


@pytest.mark.parametrize(
    "kernel", [RBF(), RationalQuadratic(), Matern(nu=1.7), Matern([1.0, 2.0], nu=1.5), Matern() * Matern(), Matern() + RBF()]
)
def test_other_kernels_are_refused(kernel) -> None:
    assert not is_markov(kernel)
    with pytest.raises(DataError, match=r"kernel.*Matern 1/2, 3/2 ... 9/2"):
        markov_terms(kernel)
