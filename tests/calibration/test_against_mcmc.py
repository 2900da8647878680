"""Linearized beside a long MCMC over hyperparameters and outputs, on small problems with one RBF kernel.

The target has two law sds, as the package has: hyperparameters see the law through its evidence, with the sd stated by
``smeared_law``; outputs given hyperparameters obey it to a hundredth of that, which the package's last level is close to.
Means are expected values (averages of the posterior's quantiles), in units of the MCMC's sd. Bounds are the systematic error
that the method may have, in root mean square over points and outputs, plus the noise of both sides (``monte_carlo``): noise
alone fails a test with a chance below 1e-4.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF
from support.law_draws import draw_outputs, linearise
from support.law_mcmc import Proposal, Samples, r_hat, sample, tightened
from support.monte_carlo import Comparison, compared, root_mean_square
from support.smeared_law import SmearedLaw, smeared_law

from sumgp import ConstrainedGP, Linearized
from sumgp.hyperparameters.optimise import Objective
from sumgp.laws.points import LawSetup
from sumgp.prediction import Posterior
from sumgp.strategies.linearized import LawEngine
from sumgp.strategies.problem import FitProblem, Fitted

TIGHT = 0.01
THETAS, EACH = 40, 40  # hyperparameters that package and MCMC share, and draws of outputs for each
QUANTILES = 60
MANY_DRAWS = 150
MEANS, SDS, AVERAGE_SD = 0.05, np.log1p(0.075), 0.04  # systematic errors: sds, and logarithms of sds

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
    """A target, its chains, and the package's problem for the same data, with the model that poses it."""

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
        setup = LawSetup(self.target.law, self.target.x[:, None], self.target.x_law)
        return LawEngine(self.problem, setup, law_sd=self.target.law_sd)

    @cached_property
    def f(self) -> np.ndarray:
        """(steps, chains, n, T) outputs for every fourth step of the chains."""
        theta = self.samples.theta[::4]
        f, _ = tightened(self.target, theta.reshape(-1, theta.shape[2]), TIGHT, 2, seed=1)
        return f.reshape(*theta.shape[:2], *f.shape[1:])

    def compared(self, posterior: Posterior, f: np.ndarray, effective: float = np.inf, widening: float = 1.0) -> Comparison:
        """A posterior at the target's points beside draws f (steps, groups, n, T)."""
        scaling = self.target.scaling
        mean = np.mean([posterior.quantile(p) for p in (np.arange(QUANTILES) + 0.5) / QUANTILES], axis=0)
        return compared(scaling.outputs(mean), posterior.std / scaling.y_scale / widening, f, effective)


@pytest.fixture(scope="module", params=list(LAWS))
def reference(request: pytest.FixtureRequest) -> Reference:
    X, Y = data(request.param)
    target = smeared_law(LAWS[request.param], X, Y)
    strategy = Linearized(taper=None)  # the taper is a safeguard, not part of the model
    model = ConstrainedGP(LAWS[request.param], outputs=["a", "b"], inputs=["x"], kernel=RBF(), strategy=strategy)
    problem, _ = model._problem(X, Y, lambda stage: None)
    return Reference(target, sample(target), problem, model)


def test_chains_agree(reference: Reference) -> None:
    assert reference.samples.accepted > 0.3
    assert np.max(r_hat(reference.samples.theta)) < 1.1
    assert np.max(r_hat(reference.samples.f)) < 1.1


def test_evidences_of_data_and_law(reference: Reference) -> None:
    """The data's is the package's to round-off; the law's, by Laplace, is within the error of that approximation."""
    target, thetas = reference.target, reference.some(8)
    given = target.given_data(thetas)
    prior = target.prior
    objective = Objective(prior, reference.problem.solver.evidence(prior, reference.problem.x, reference.problem.y))
    assert -given.log_weight == pytest.approx([objective.value(theta) for theta in thetas], abs=1e-3)
    rng, at = np.random.default_rng(0), linearise(target, given)
    weights = np.array([draw_outputs(target, given, at, rng).log_weight for _ in range(100)])
    exact = logsumexp(weights, axis=0) - np.log(len(weights))
    engine = reference.engine()
    scored = engine.evidences([engine.state(prior, theta) for theta in thetas], [None])
    laplace = np.array([found.value for found in scored if found is not None])
    assert np.ptp(exact) > 1.0
    assert np.max(np.abs(laplace - exact)) < 0.3


def test_outputs_given_hyperparameters(reference: Reference) -> None:
    """The law imposed by linearisation, averaged over the MCMC's own hyperparameters: their noise drops out.

    Low noise makes this the test that sees sds that are wrong by a tenth.
    """
    thetas = reference.some(THETAS)
    engine = reference.engine()
    parts = tuple(engine.components([(reference.target.prior, theta) for theta in thetas]))
    fitted = Fitted(parts, np.full(THETAS, 1.0 / THETAS), reference.target.law, {})
    problem = reference.problem
    posterior = Posterior(fitted, problem.scaling, problem.law, problem.data, reference.target.x_law)
    f, accepted = tightened(reference.target, np.repeat(thetas, EACH, axis=0), TIGHT, 2, seed=1)
    assert accepted > 0.7
    found = reference.compared(posterior, f.reshape(THETAS, EACH, *f.shape[1:]))
    assert root_mean_square(found.means.value) < MEANS + found.means.noise()
    assert root_mean_square(found.log_sds.value) < SDS + found.log_sds.noise()
    assert abs(found.average.value) < AVERAGE_SD + found.average.noise()


def test_the_whole_fit_with_many_draws(reference: Reference) -> None:
    """What the average over hyperparameters converges to.

    Both sides have noise of their own here: sds that are wrong by a third are seen, finer errors in the test above. The
    chains have the package's own prior, so that the widening for few draws is taken out.
    """
    X, Y = reference.problem.data.x, reference.problem.data.y
    many = clone(reference.model).set_params(strategy=Linearized(taper=None, draws=MANY_DRAWS)).fit(X, Y)
    details = many.fit_report_.details
    posterior = many.posterior(reference.target.x_law)
    found = reference.compared(posterior, reference.f, details["effective_sample_size"], details["widening"])
    assert root_mean_square(found.means.value) < MEANS + found.means.noise()
    assert root_mean_square(found.log_sds.value) < SDS + found.log_sds.noise()
    assert abs(found.average.value) < AVERAGE_SD + found.average.noise()


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
    """Hyperparameters of the MCMC beside importance sampling from a wide Student t, in batches."""
    X, Y = data("circle")
    target = smeared_law(LAWS["circle"], X, Y)
    chains = sample(target, burn=60, keep=60, seed=3).theta
    fitted = Proposal.fitted(chains.reshape(-1, 6))
    wide = Proposal(fitted.mean + 0.3 * np.diagonal(fitted.root), 1.4 * fitted.root)
    rng = np.random.default_rng(4)
    thetas = wide.draw(1600, rng)
    given = target.given_data(thetas)
    drawn = draw_outputs(target, given, linearise(target, given), rng)
    log_weights = given.log_weight + drawn.log_weight - wide.log_density(thetas)
    weights = np.exp(log_weights - logsumexp(log_weights))
    effective = 1.0 / np.sum(weights**2)
    assert effective > 150.0
    mean = weights @ thetas
    sd = np.sqrt(weights @ (thetas - mean) ** 2)
    found = compared(mean, sd, chains, effective)
    assert root_mean_square(found.means.value) < found.means.noise()
    assert root_mean_square(found.log_sds.value) < found.log_sds.noise()
