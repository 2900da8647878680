"""Linearized beside a long MCMC over hyperparameters and outputs, on small problems with one RBF kernel.

The target has two law sds, as the package has: hyperparameters see the law through its evidence, with the sd stated by
``smeared_law``; outputs given hyperparameters obey it to a hundredth of that, which the package's last level is close to.
Means are expected values (averages of the posterior's quantiles), in units of the MCMC's sd.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF
from support.law_draws import draw_outputs, linearise
from support.law_mcmc import Proposal, Samples, r_hat, sample, tightened
from support.smeared_law import SmearedLaw, smeared_law

from sumgp import ConstrainedGP, Linearized
from sumgp.hyperparameters.objective import Objective
from sumgp.laws.points import LawSetup
from sumgp.prediction import Posterior
from sumgp.solvers.choice import choose_evidence
from sumgp.strategies.averaging import WIDENING
from sumgp.strategies.imposed_law import LawEngine
from sumgp.strategies.interface import Fitted
from sumgp.strategies.problem import FitProblem

TIGHT = 0.01
THETAS, EACH = 40, 35  # hyperparameters that package and MCMC share, and draws of outputs for each
QUANTILES = 60
MANY_DRAWS = 2500
MEAN, SD = 0.15, 0.15

LAWS = {"circle": "a**2 + b**2 = 1.6", "logarithm": "0.5*a + log(b) = 1", "product": "a*b = 2"}


def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Inputs (N, 1) and noisy outputs (N, 2) that obey the law but for the noise."""
    if name == "circle":
        x = np.linspace(0.0, 4.0, 6)
        truth, noise, seed = np.sqrt(1.6) * np.column_stack([np.sin(x), np.cos(x)]), 0.05, 1020
    elif name == "logarithm":
        x = np.linspace(0.0, 3.0, 8)
        truth, noise, seed = np.column_stack([np.sin(x), np.exp(1.0 - 0.5 * np.sin(x))]), 0.03, 1023
    else:
        x = np.linspace(0.0, 3.0, 8)
        a = 1.5 + 0.7 * np.sin(1.3 * x)
        truth, noise, seed = np.column_stack([a, 2.0 / a]), 0.03, 1022
    return x[:, None], truth + noise * np.random.default_rng(seed).standard_normal(truth.shape)


@dataclass(frozen=True)
class Reference:
    """A target, its chains, and the package's problem for the same data."""

    target: SmearedLaw
    samples: Samples
    problem: FitProblem
    model: ConstrainedGP

    @property
    def thetas(self) -> np.ndarray:
        """All kept hyperparameters, (count, p)."""
        return self.samples.theta.reshape(-1, self.samples.theta.shape[2])

    def some(self, count: int) -> np.ndarray:
        """(count, p), spread over steps and chains."""
        return self.thetas[np.linspace(0, len(self.thetas) - 1, count).astype(int)]

    def engine(self) -> LawEngine:
        """The package's law solver at the target's points and sd."""
        setup = LawSetup(self.target.law, np.zeros(0), self.target.x[:, None], self.target.x_law)
        return LawEngine(self.problem, setup, law_sd=self.target.law_sd)

    def differences(self, posterior: Posterior, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(n, T) differences of means in sds, and ratios of sds, of a posterior at the target's points and draws f."""
        scaling, sd = self.target.scaling, f.std(axis=0)
        mean = np.mean([posterior.quantile(p) for p in (np.arange(QUANTILES) + 0.5) / QUANTILES], axis=0)
        return (scaling.outputs(mean) - f.mean(axis=0)) / sd, posterior.std / scaling.y_scale / sd


@pytest.fixture(scope="module", params=list(LAWS))
def reference(request: pytest.FixtureRequest) -> Reference:
    X, Y = data(request.param)
    target = smeared_law(LAWS[request.param], X, Y)
    strategy = Linearized(taper=None)  # the taper is a safeguard, not part of the model
    model = ConstrainedGP(LAWS[request.param], outputs=["a", "b"], inputs=["x"], kernel=RBF(), strategy=strategy)
    problem, _ = model._problem(X, Y, lambda stage: None)
    return Reference(target, sample(target), problem, model.fit(X, Y))


def root_mean_square(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def test_chains_agree(reference: Reference) -> None:
    assert reference.samples.accepted > 0.3
    assert np.max(r_hat(reference.samples.theta)) < 1.1
    assert np.max(r_hat(reference.samples.f)) < 1.1


def test_evidences_of_data_and_law(reference: Reference) -> None:
    """The data's is the package's to round-off; the law's, by Laplace, is within the error of that approximation."""
    target, thetas = reference.target, reference.some(8)
    given = target.given_data(thetas)
    prior = target.prior
    objective = Objective(prior, choose_evidence(reference.problem.solver, prior, reference.problem.x, reference.problem.y))
    assert -given.log_weight == pytest.approx([objective.value(theta) for theta in thetas], abs=1e-3)
    rng, at = np.random.default_rng(0), linearise(target, given)
    weights = np.array([draw_outputs(target, given, at, rng).log_weight for _ in range(100)])
    exact = logsumexp(weights, axis=0) - np.log(len(weights))
    engine = reference.engine()
    laplace = np.array([engine.log_evidence(prior, theta) for theta in thetas])
    assert np.ptp(exact) > 1.0
    assert np.max(np.abs(laplace - exact)) < 0.3


def test_outputs_given_hyperparameters(reference: Reference) -> None:
    """The law imposed by linearisation, averaged over the MCMC's own hyperparameters.

    Single values near turning points, where the law's bend is all that is left, the MCMC itself knows to a tenth only.
    """
    thetas = reference.some(THETAS)
    engine = reference.engine()
    parts = tuple(engine.component(reference.target.prior, theta) for theta in thetas)
    fitted = Fitted(parts, np.full(THETAS, 1.0 / THETAS), reference.target.law, {})
    problem = reference.problem
    posterior = Posterior(fitted, problem.scaling, problem.law, problem.data, reference.target.x_law)
    f, accepted = tightened(reference.target, np.repeat(thetas, EACH, axis=0), TIGHT, 2, seed=1)
    assert accepted > 0.7
    means, sds = reference.differences(posterior, f)
    assert np.quantile(np.abs(means), 0.9) < MEAN
    assert root_mean_square(np.log(sds)) < np.log1p(SD)
    assert np.median(np.abs(sds - 1.0)) < SD / 3.0


def test_the_whole_fit(reference: Reference) -> None:
    """Hyperparameters averaged over by the package itself: sds on average over points and outputs.

    Its few dozen draws leave errors of 0.1 to 0.3 sd in the means: those are compared with many more draws. The chains
    have the package's own prior, so that the widening for priors of another form is taken out.
    """
    f, _ = tightened(reference.target, reference.some(1200), TIGHT, 2, seed=1)
    _, sds = reference.differences(reference.model.posterior(reference.target.x_law), f)
    widening = reference.model.fit_report_.details["widening"]
    assert widening == WIDENING
    assert abs(np.exp(np.mean(np.log(sds / widening))) - 1.0) < SD


def test_the_whole_fit_with_many_draws(reference: Reference) -> None:
    """What the average over hyperparameters converges to: all means, and all sds but for single ones at turning points."""
    X, Y = reference.model.data_.x, reference.model.data_.y
    many = clone(reference.model).set_params(strategy=Linearized(taper=None, draws=MANY_DRAWS)).fit(X, Y)
    f, _ = tightened(reference.target, reference.some(1200), TIGHT, 2, seed=1)
    means, sds = reference.differences(many.posterior(reference.target.x_law), f)
    assert np.max(np.abs(means)) < MEAN
    assert np.quantile(np.abs(sds / WIDENING - 1.0), 0.9) < SD
    assert root_mean_square(np.log(sds / WIDENING)) < np.log1p(SD / 2.0)


def test_a_linear_law_is_drawn_exactly() -> None:
    """Draws have the density of the target itself: all weights are equal, and their value is a Gaussian's."""
    X, Y = data("circle")
    target = smeared_law("a + 2*b = 0.5", X, Y)
    thetas = target.start + 0.3 * np.random.default_rng(0).standard_normal((5, 6))
    given = target.given_data(thetas)
    rng = np.random.default_rng(1)
    at = linearise(target, given)
    weights = np.array([draw_outputs(target, given, at, rng).log_weight for _ in range(4)])
    assert np.max(np.ptp(weights, axis=0)) < 1e-6
    for theta, mean, root, value in zip(thetas, given.mean, given.root, weights[0], strict=True):
        slopes = target.slopes(mean[None])[0]
        rows = np.einsum("nt,ntw->nw", slopes, root.reshape(-1, 2, root.shape[1]))
        covariance = rows @ rows.T + np.eye(len(rows))
        z = target.misses(mean[None])[0]
        expected = -0.5 * z @ np.linalg.solve(covariance, z) - 0.5 * np.linalg.slogdet(covariance)[1]
        assert value == pytest.approx(expected, rel=1e-6), theta


def test_chains_have_the_mean_of_weighted_draws() -> None:
    """Hyperparameters of the MCMC beside importance sampling from a wide Student t."""
    X, Y = data("circle")
    target = smeared_law(LAWS["circle"], X, Y)
    chains = sample(target, keep=120, seed=3).theta.reshape(-1, 6)
    fitted = Proposal.fitted(chains)
    wide = Proposal(fitted.mean + 0.3 * np.diagonal(fitted.root), 1.4 * fitted.root)
    rng = np.random.default_rng(4)
    thetas = wide.draw(3500, rng)
    given = target.given_data(thetas)
    drawn = draw_outputs(target, given, linearise(target, given), rng)
    log_weights = given.log_weight + drawn.log_weight - wide.log_density(thetas)
    weights = np.exp(log_weights - logsumexp(log_weights))
    assert 1.0 / np.sum(weights**2) > 300.0
    mean = weights @ thetas
    sd = np.sqrt(weights @ (thetas - mean) ** 2)
    assert np.max(np.abs(chains.mean(axis=0) - mean) / sd) < 0.15
    assert chains.std(axis=0) == pytest.approx(sd, rel=0.15)
