"""What engines do when they cannot finish: another engine's result, a warning that says so, and the matching gradient."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import pytest
from support.engine_problems import crossing_square, law, mixed

from sumgp.errors import NumericalError, SumGPWarning
from sumgp.paper_method.engines import Engine, ExpectationPropagation, Gaussian, Laplace, MomentMatched, Variational
from sumgp.paper_method.engines.sites import regress
from sumgp.paper_method.likelihoods import GaussianLikelihood, Likelihood, Terms


@dataclass(frozen=True, eq=False)
class NotANumber(GaussianLikelihood):
    """A likelihood whose terms cannot be evaluated; its matched moments can."""

    def without_gaussian(self) -> tuple[np.ndarray, Likelihood]:
        return np.arange(self.size), self

    def terms(self, u: np.ndarray) -> Terms:
        return Terms(*(np.full(u.shape, np.nan) for _ in fields(Terms)))


@pytest.mark.filterwarnings("ignore:Laplace. a linear system")
@pytest.mark.parametrize("engine", [Laplace(), Variational(), ExpectationPropagation()], ids=lambda e: type(e).__name__)
def test_unusable_likelihood_falls_back_to_matched_moments(engine: Engine) -> None:
    m, K = crossing_square().prior()
    likelihood = NotANumber(np.linspace(0.0, 1.0, 6), np.full(6, 0.1))
    with pytest.warns(SumGPWarning, match=f"{type(engine).__name__}: .*; the result is that of MomentMatched"):
        result = engine.infer(m, K, likelihood)
    expected = MomentMatched().infer(m, K, likelihood)
    assert isinstance(result.engine, MomentMatched)
    assert result.status.startswith("fell back to MomentMatched: ")
    np.testing.assert_array_equal(result.mean, expected.mean)
    gradient = engine.gradient(m, K, likelihood, result)
    np.testing.assert_array_equal(gradient.prior_cov, MomentMatched().gradient(m, K, likelihood, expected).prior_cov)


def test_expectation_propagation_that_does_not_settle_gives_laplace() -> None:
    problem = crossing_square()
    m, K = problem.prior()
    with pytest.warns(SumGPWarning, match=r"ExpectationPropagation: the sites still moved by .* after 2 steps"):
        result = ExpectationPropagation(max_steps=2).infer(m, K, problem.likelihood)
    expected = Laplace().infer(m, K, problem.likelihood)
    assert isinstance(result.engine, Laplace)
    assert result.evidence == expected.evidence
    np.testing.assert_array_equal(
        ExpectationPropagation().gradient(m, K, problem.likelihood, result).log_noise,
        Laplace().gradient(m, K, problem.likelihood, expected).log_noise,
    )


@pytest.mark.parametrize("engine", [Laplace(max_steps=1), Variational(max_steps=2)], ids=lambda e: type(e).__name__)
def test_step_limit_is_a_status_and_a_warning(engine: Engine) -> None:
    problem = law()
    with pytest.warns(SumGPWarning, match="raise max_steps"):
        result = engine.infer(*problem.prior(), problem.likelihood)
    assert result.status == "step limit"
    assert np.all(np.isfinite(result.mean))


@pytest.mark.parametrize(
    "engine",
    [Gaussian(), MomentMatched(), Laplace(), Variational(), ExpectationPropagation()],
    ids=lambda e: type(e).__name__,
)
def test_dropped_observation_changes_nothing(engine: Engine) -> None:
    """An observation without an h(y) is as if it had not been measured."""
    problem = mixed()
    m, K = problem.prior()
    whole = engine.infer(m, K, problem.likelihood)
    assert whole.variances[7] == np.inf
    louder = problem.likelihood.noise * np.where(np.arange(12) == 7, 5.0, 1.0)
    other = engine.infer(m, K, problem.likelihood.with_noise(louder))
    np.testing.assert_allclose(other.mean, whole.mean, atol=1e-12)
    assert other.evidence == pytest.approx(whole.evidence, abs=1e-12)
    assert engine.gradient(m, K, problem.likelihood, whole).log_noise[7] == 0.0


@pytest.mark.parametrize("far", [30.0, -30.0])
@pytest.mark.parametrize("engine", [Laplace(), Variational(), ExpectationPropagation()], ids=lambda e: type(e).__name__)
def test_prior_far_from_the_data_still_ends_well(engine: Engine, far: float) -> None:
    problem = crossing_square()
    m, K = problem.prior()
    result = engine.infer(m + far, K, problem.likelihood)
    assert np.isfinite(result.evidence)
    assert np.all(np.isfinite(result.mean))
    assert result.evidence < engine.infer(m, K, problem.likelihood).evidence


def test_regression_refuses_nan() -> None:
    with pytest.raises(NumericalError, match="site matrix holds NaN"):
        regress(np.zeros(2), np.eye(2), np.zeros(2), np.array([1.0, np.nan]))


def test_regression_with_tiny_noise_keeps_its_digits() -> None:
    """Posterior variance of one value: K v / (K + v), for noise down to 1e-12 of the prior."""
    for v in (1e-4, 1e-8, 1e-12):
        posterior = regress(np.zeros(1), np.eye(1), np.array([0.3]), np.array([1.0 / v]))
        assert posterior.cov[0, 0] == pytest.approx(v / (1.0 + v), abs=4e-16)
        assert posterior.alpha[0] == pytest.approx(0.3 / (1.0 + v), rel=1e-12)
