"""The evidence of the latent tasks: gradients by differences, moments by a dense joint, likelihoods in other units."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from sumgp import ConstrainedGP, SumConstraint, Term
from sumgp.paper_method import Transformed
from sumgp.paper_method.engines import ExpectationPropagation, Gaussian, Laplace, MomentMatched, Variational
from sumgp.paper_method.engines.sites import Engine
from sumgp.paper_method.evidence import Observations, TransformedEvidence
from sumgp.paper_method.likelihoods import LinkedLikelihood, StackedLikelihood
from sumgp.paper_method.transformed import Model, _correction, _starts, fit_alone, prepare
from sumgp.priors.multitask import MultitaskPrior
from sumgp.strategies import Unconstrained
from sumgp.strategies.weight_component import plain_component
from sumgp.transforms import Log, Sin, Square

ENGINES = [Gaussian(), MomentMatched(), Laplace(), Variational(), ExpectationPropagation()]
LAWS = {
    "squares": SumConstraint([Term("a", 0.5, Square()), Term("b", 0.5, Square())], 0.8),
    "square and height": SumConstraint([Term("a", 2.0), Term("b", 0.5, Square())], 1.0),
    "log and sine": SumConstraint([Term("a", 1.0, Log()), Term("b", 1.0, Sin())], lambda X: 0.3 + 0.1 * X[:, 0]),
}


def outputs(name: str, t: np.ndarray) -> np.ndarray:
    if name == "squares":
        return np.sqrt(1.6) * np.column_stack([np.sin(t), np.cos(t)])
    if name == "square and height":
        return np.column_stack([0.5 - 0.25 * (1.0 - 0.4 * t) ** 2, 1.0 - 0.4 * t])
    return np.column_stack([np.exp(0.3 + 0.1 * t - np.sin(0.6 * t)), 0.6 * t])


def model_of(name: str, strategy: Transformed, noise: object = "per-output") -> Model:
    rng = np.random.default_rng(1)
    t = np.linspace(0.0, 5.0, 9)
    Y = outputs(name, t) + 0.1 * rng.standard_normal((9, 2))
    Y[2, 0] = Y[6, 1] = np.nan
    gp = ConstrainedGP(LAWS[name], outputs=["a", "b"], kernel=RBF(), strategy=strategy, uncertainty="plug-in", noise=noise)
    problem, law = gp._problem(t[:, None], Y, lambda stage: None)
    guide = Unconstrained().fit(problem).components[0]
    return prepare(strategy, problem, law, guide)


def moved_start(model: Model) -> np.ndarray:
    """A theta at which everything is away from symmetric values, with a short lengthscale that the data allow."""
    prior = model.priors[0]
    theta = prior.start() + 0.2 * np.random.default_rng(2).standard_normal(prior.n_parameters)
    theta[0] = np.log(1.2)
    return theta


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("noise", ["per-output", "shared"])
@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: type(e).__name__)
def test_gradient_equals_differences(name: str, noise: str, engine: object) -> None:
    model = model_of(name, Transformed(engine), noise)
    assert model.observations.virtual.any()
    evidence, theta = TransformedEvidence(model.priors[0], model.observations, engine), moved_start(model)
    _, gradient = evidence(theta)
    # Every parameter moves in each direction: one wrong entry shows in both of them.
    directions = np.random.default_rng(3).choice([-1.0, 1.0], size=(2, len(theta)))
    for direction in directions:
        values = [evidence(theta + k * 2e-4 * direction)[0] for k in (-2, -1, 1, 2)]
        difference = (values[0] - 8.0 * values[1] + 8.0 * values[2] - values[3]) / (12.0 * 2e-4)
        assert gradient @ direction == pytest.approx(difference, rel=0, abs=1e-5 * np.max(np.abs(gradient)))


def test_latent_moments_are_those_of_a_joint_conditioned_on_the_law_at_every_point() -> None:
    model = model_of("log and sine", Transformed())
    prior, o = model.priors[0], model.observations
    theta = moved_start(model)
    latent = TransformedEvidence(prior, o, MomentMatched()).latent(theta)
    L, P = prior.n_outputs, len(o.x)
    K = prior.unpack(theta).kernels[0](o.x) + prior.mean_variance
    joint = np.kron(prior.Sigmas(theta)[0], K)
    F = np.kron(model.tasks.F, np.eye(P))
    gain = joint @ F.T @ np.linalg.inv(F @ joint @ F.T)
    mean, cov = gain @ o.totals.T.ravel(), joint - gain @ F @ joint
    index = o.task * P + o.point
    assert L == 3
    np.testing.assert_allclose(latent.mean, mean[index], atol=1e-6)
    np.testing.assert_allclose(latent.cov, cov[np.ix_(index, index)], atol=1e-6)


def test_remembered_values_and_cold_starts_agree() -> None:
    model = model_of("squares", Transformed())
    warm = TransformedEvidence(model.priors[0], model.observations, Laplace())
    theta = moved_start(model)
    warm(theta + 0.3)
    first = warm(theta)
    assert warm(theta)[0] == first[0]
    cold = TransformedEvidence(model.priors[0], model.observations, Laplace())(theta)
    np.testing.assert_allclose(first[0], cold[0], rtol=1e-9)
    np.testing.assert_allclose(first[1], cold[1], rtol=1e-5, atol=1e-6)


def test_values_measured_once_and_seen_twice_count_once() -> None:
    """Squares with auxiliary outputs see each value twice, without them once; a height beside a square three for two."""
    for name, relearn, expected in (("squares", True, 0.5), ("squares", False, 1.0), ("square and height", True, 16 / 24)):
        model = model_of(name, Transformed(relearn=relearn))
        assert model.observations.share == pytest.approx(expected)
        evidence, theta = TransformedEvidence(model.priors[0], model.observations, Laplace()), moved_start(model)
        latent, likelihood = evidence.latent(theta), evidence._likelihood(theta)
        sites = Laplace().infer(latent.mean, latent.cov, likelihood)
        assert evidence.value(theta) == pytest.approx(expected * sites.evidence, rel=1e-9)


def test_posterior_counts_values_seen_twice_once() -> None:
    """Tasks that see a value of another task once more have twice the noise variance; those alone and virtual ones not."""
    model = model_of("square and height", Transformed())
    observations, theta = model.observations, moved_start(model)
    variances = model.priors[0].noise.variances(theta[model.priors[0].noise_slice])
    plain, once = observations.with_noise(variances).noise, observations.with_noise(variances, counted_once=True).noise
    squares = np.isin(observations.task, np.flatnonzero(model.tasks.outputs == 1)) & ~observations.virtual
    assert 0 < squares.sum() < len(squares)
    np.testing.assert_allclose(once[squares], np.sqrt(2.0) * plain[squares])
    np.testing.assert_array_equal(once[~squares], plain[~squares])
    assert not model_of("squares", Transformed(datum="transformed")).observations.twice.any()


def test_search_begins_at_the_guide_and_draws_are_weighed_by_the_engine() -> None:
    t = np.linspace(0.0, 5.0, 9)[:, None]
    Y = outputs("squares", t[:, 0]) + 0.1 * np.random.default_rng(3).standard_normal((9, 2))
    gp = ConstrainedGP(LAWS["squares"], outputs=["a", "b"], strategy=Transformed(), uncertainty="integrated")
    problem, law = gp._problem(t, Y, lambda stage: None)
    alone = fit_alone(problem)
    assert [m.value for m in alone.maxima] == sorted(m.value for m in alone.maxima)
    guide = plain_component(problem, alone.priors[0], alone.maxima[0].theta)
    model = prepare(Transformed(), problem, law, guide)
    for prior in model.priors:
        own = next(k for k, p in enumerate(alone.priors) if type(p.kernels[0]) is type(prior.kernels[0]))
        (start,) = _starts(prior, alone)
        assert start[0] == alone.maxima[own].theta[0]
        np.testing.assert_array_equal(start[prior.noise_slice], alone.maxima[own].theta[alone.priors[own].noise_slice])
    fitted, engine = Transformed()._search(problem, model, alone)
    cheap = fitted.objectives[0].evidence
    assert (type(cheap.engine), type(engine)) == (MomentMatched, Laplace)
    theta = fitted.maxima[0].theta + 0.1
    evidences = [TransformedEvidence(fitted.priors[0], model.observations, e) for e in (Laplace(), MomentMatched())]
    correction = _correction(problem, fitted, TransformedEvidence(fitted.priors[0], model.observations, engine))
    assert correction is not None
    (found,) = correction([(fitted.priors[0], theta)])
    assert found == pytest.approx(evidences[0](theta)[0] - evidences[1](theta)[0], abs=1e-8)
    with pytest.raises(AssertionError):  # values are kept by theta alone: another prior's must not be among them
        correction([(replace(fitted.priors[0], mean_variance=1.0), theta)])
    for other in (MomentMatched(), ExpectationPropagation()):
        assert _correction(problem, fitted, TransformedEvidence(fitted.priors[0], model.observations, other)) is None


def test_value_alone_equals_that_with_its_gradient_and_keeps_its_sites() -> None:
    model = model_of("squares", Transformed())
    for engine in ENGINES:
        alone, both = (TransformedEvidence(model.priors[0], model.observations, engine) for _ in range(2))
        theta = moved_start(model)
        assert alone.value(theta) == pytest.approx(both(theta)[0], rel=1e-12)
        np.testing.assert_allclose(alone.infer(theta).mean, both.infer(theta).mean, atol=1e-6)
        single = TransformedEvidence(*_without_auxiliary(engine), engine)
        start = single.prior.start()
        single.value(start)
        assert single.infer(start) is single.infer(start)


def _without_auxiliary(engine: Engine) -> tuple[MultitaskPrior, Observations]:
    model = model_of("squares", Transformed(engine, relearn=False))
    return model.priors[0], model.observations


def test_unit_free_likelihood_chains_every_derivative() -> None:
    y, reference = np.array([0.4, -1.1, 0.9]), np.array([0.5, -1.0, 1.0])
    inner = LinkedLikelihood(y, np.array([0.1, 0.2, 0.3]), Square(), reference)
    shift, scale = np.array([0.3, 0.5, -0.2]), np.array([2.0, 0.7, 5.0])
    likelihood = StackedLikelihood((inner,), (np.arange(3),), shift, scale)
    u, step = np.array([0.2, 0.9, 0.3]), 1e-5
    here, up, down = (likelihood.terms(u + k * step) for k in (0, 1, -1))
    np.testing.assert_allclose(here.log_density, inner.terms(shift + scale * u).log_density)
    for value, slope in (("log_density", "first"), ("first", "second"), ("curvature", "curvature_first")):
        differences = (getattr(up, value) - getattr(down, value)) / (2 * step)
        np.testing.assert_allclose(getattr(here, slope), differences, rtol=1e-6, atol=1e-6)
    louder, softer = (likelihood.with_noise(likelihood.noise * np.exp(k * step)).terms(u) for k in (1, -1))
    for value, slope in (("log_density", "noise"), ("first", "first_noise"), ("curvature", "curvature_noise")):
        differences = (getattr(louder, value) - getattr(softer, value)) / (2 * step)
        np.testing.assert_allclose(getattr(here, slope), differences, rtol=1e-6, atol=1e-6)
    sites, own = likelihood.moment_sites(), inner.moment_sites()
    np.testing.assert_allclose(shift + scale * sites.targets, own.targets)
    np.testing.assert_allclose(scale**2 * sites.variances, own.variances)
    np.testing.assert_allclose(likelihood.kinks * scale[:, None] + shift[:, None], inner.kinks)
