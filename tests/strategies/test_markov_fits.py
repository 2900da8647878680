"""Markov() gives what Dense() gives, for every strategy; linear laws against regression written out in full."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern
from support.dense_markov import dense_posterior

from sumgp import ConstrainedGP, Dense, LinearConstraint, Markov, SumConstraint, SumGPWarning, Term, Unknown
from sumgp.errors import DataError
from sumgp.estimator.preparation import LONG_SERIES, series_solver
from sumgp.hyperparameters.optimise import MapEstimate, Objective
from sumgp.paper_method import Transformed
from sumgp.priors.candidates import canonical_order, reordered
from sumgp.solvers import Automatic
from sumgp.strategies import Conditioned, Linearized, Projected, Unconstrained
from sumgp.strategies import markov_fits as time_series

# The law's own grid of 20 steps lies on these times as long as the lengthscale is above 1.5: both solvers then impose
# the law at the same points.
T = np.linspace(0.0, 6.0, 41)
ASKED = np.array([-0.3, 0.2, 1.1, 1.15, 2.9, 5.2, 6.3])


def varying(x: np.ndarray) -> np.ndarray:
    return np.column_stack([1.0 + 0.3 * x[:, 0], np.ones(len(x))])[:, None, :]


def waves(t: np.ndarray) -> np.ndarray:
    return np.column_stack([np.sin(t), 1.0 - np.sin(t)])


def circle(t: np.ndarray) -> np.ndarray:
    return np.column_stack([np.cos(0.7 * t), np.sin(0.7 * t)])


@dataclass(frozen=True)
class Case:
    """A law, curves that obey it, a strategy; how far means may differ, in sds, and sds, relatively."""

    law: Any
    curves: Callable[[np.ndarray], np.ndarray]
    strategy: Any
    share: float


# Exact up to round-off where no law is linearised. The dense law solve keeps a law variance of 1e-6 relative to the
# posterior's and drops tiny weights.
CASES = {
    "unconstrained": Case(None, waves, Unconstrained(), 1e-8),
    "constant F": Case(LinearConstraint([1.0, 1.0], 1.0), waves, Conditioned(), 1e-8),
    "S(x)": Case(
        LinearConstraint([1.0, 1.0], lambda x: 1.0 + x[:, 0]), lambda t: waves(t) + [0, 1] * t[:, None], Conditioned(), 1e-8
    ),
    "projected": Case("p**2 + q**2 = 1", circle, Projected(), 1e-7),
    "F(x)": Case(
        LinearConstraint(varying, 1.0),
        lambda t: np.column_stack([np.sin(t), 1 - (1 + 0.3 * t) * np.sin(t)]),
        Conditioned(),
        1e-3,
    ),
    "unknown total": Case(SumConstraint([Term("p", 1.0), Term("q", 1.0)], Unknown()), waves, Conditioned(), 1e-3),
    "linearised circle": Case("p**2 + q**2 = 1", circle, Linearized(taper=None), 1e-3),
    "linearised line": Case(LinearConstraint([1.0, 1.0], 1.0), waves, Linearized(taper=None), 1e-3),
}


def noisy(case: Case, times: np.ndarray = T, seed: int = 0) -> np.ndarray:
    """Measurements with a fifth of the entries missing."""
    rng = np.random.default_rng(seed)
    Y = case.curves(times) + 0.05 * rng.standard_normal((len(times), 2))
    Y[rng.random(Y.shape) < 0.2] = np.nan
    return Y


def fitted(case: Case, times: np.ndarray, Y: np.ndarray, solver: Any) -> ConstrainedGP:
    choices = {"outputs": ["p", "q"], "kernel": Matern(nu=2.5), "uncertainty": "plug-in"}
    return ConstrainedGP(case.law, strategy=case.strategy, solver=solver, **choices).fit(times, Y)


def handed_over(dense: ConstrainedGP, case: Case, times: np.ndarray = T) -> ConstrainedGP:
    """The fit by Markov() at the hyperparameters of another fit."""
    theta = dense.fitted_.components[0].theta
    rows = dense.data_.order
    order = canonical_order(dense.scaling_.outputs(dense.data_.y[rows]), dense.data_.output_names)

    def no_search(objective: Objective, **_: Any) -> MapEstimate:
        there = reordered(objective.prior, np.argsort(order)).back(theta)
        return MapEstimate(there, objective(there)[0], "converged", ())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time_series, "maximise", no_search)
        return fitted(case, times, noisy(case, times), Markov())


Searched = Callable[[str, Any], ConstrainedGP]
Pair = Callable[[str], tuple[ConstrainedGP, ConstrainedGP]]


@pytest.fixture(scope="module")
def searched() -> Searched:
    """The fit of a case at the times T with a solver's own search, computed once."""
    return cache(lambda name, solver: fitted(CASES[name], T, noisy(CASES[name]), solver))


@pytest.fixture(scope="module")
def pair(searched: Searched) -> Pair:
    """Dense() and Markov() at the times T, the second at the first's hyperparameters."""
    return cache(lambda name: (searched(name, Dense()), handed_over(searched(name, Dense()), CASES[name])))


@pytest.mark.parametrize("name", CASES)
def test_markov_equals_dense(name: str, pair: Pair) -> None:
    """Means and sds at the data and between them, to the share of an sd that the case states."""
    dense, markov = pair(name)
    assert markov.fit_report_["solver"] == "Markov"
    for x in (T, ASKED):
        expected, found = dense.posterior(x), markov.posterior(x)
        assert np.max(np.abs(found.mean - expected.mean) / expected.std) < CASES[name].share
        assert np.max(np.abs(found.std / expected.std - 1.0)) < CASES[name].share
    if CASES[name].law is not None:
        assert np.max(np.abs(markov.posterior(ASKED).residual())) < 1e-12


@pytest.mark.parametrize("name", ["unconstrained", "constant F", "F(x)", "unknown total", "projected", "linearised circle"])
def test_the_same_hyperparameters_are_found(name: str, searched: Searched) -> None:
    """Nothing handed over: both search on their own and stop within the search's own tolerance of one maximum."""
    dense, markov = searched(name, Dense()), searched(name, Markov())
    assert markov.fit_report_.log_evidence == pytest.approx(dense.fit_report_.log_evidence, abs=1e-3)
    share = max(CASES[name].share, 1e-3)
    assert np.max(np.abs(markov.predict(ASKED) - dense.predict(ASKED)) / dense.posterior(ASKED).std) < share


@pytest.mark.parametrize("name", ["unconstrained", "constant F", "linearised circle"])
def test_repeated_and_unordered_times(name: str) -> None:
    case = CASES[name]
    times = np.concatenate([T, T[5:8], T[:2]])[np.random.default_rng(1).permutation(len(T) + 5)]
    dense = fitted(case, times, noisy(case, times), Dense())
    expected, found = dense.posterior(ASKED), handed_over(dense, case, times).posterior(ASKED)
    assert np.max(np.abs(found.mean - expected.mean) / expected.std) < case.share
    assert np.max(np.abs(found.std / expected.std - 1.0)) < case.share


@pytest.mark.parametrize("name", ["unconstrained", "constant F", "projected", "linearised circle"])
def test_joint_covariance(name: str, pair: Pair) -> None:
    dense, markov = pair(name)
    expected, found = dense.posterior(ASKED).covariance(), markov.posterior(ASKED).covariance()
    sd = np.sqrt(np.diagonal(expected))
    tolerance = max(1e-6, CASES[name].share)
    np.testing.assert_allclose(found / np.outer(sd, sd), expected / np.outer(sd, sd), rtol=0, atol=2 * tolerance)
    np.testing.assert_allclose(np.sqrt(np.diagonal(found)), markov.posterior(ASKED).std.ravel(), rtol=1e-6)


@pytest.mark.parametrize("name", ["unconstrained", "constant F", "F(x)", "linearised circle"])
def test_samples_lie_on_the_law_and_spread_as_the_covariance_says(name: str, searched: Searched) -> None:
    gp = searched(name, Markov())
    posterior = gp.posterior(ASKED)
    draws = posterior.sample(2000, random_state=3)
    assert draws.shape == (2000, len(ASKED), 2)
    if gp.law_ is not None:
        residual = gp.law_.residual(draws.reshape(-1, 2), np.tile(ASKED, len(draws))[:, None])
        assert np.max(np.abs(residual)) < 1e-11
    # Five standard errors of a mean and of an sd estimated from 2000 draws; a curved law moves the mean a little.
    curved = 0.1 if name == "linearised circle" else 0.0
    assert np.max(np.abs(draws.mean(axis=0) - posterior.mean) / posterior.std) < 5 / np.sqrt(2000) + curved
    assert np.max(np.abs(draws.std(axis=0) / posterior.std - 1.0)) < 5 / np.sqrt(4000) + curved


@pytest.mark.parametrize("name", ["F(x)", "unknown total"])
def test_linear_laws_equal_regression_written_out_in_full(name: str, searched: Searched) -> None:
    """Law rows as further, nearly exact observations in one dense regression with the same hyperparameters."""
    Y = noisy(CASES[name])
    gp = searched(name, Markov())
    component, scaling = gp.fitted_.components[0], gp.scaling_
    states, law = component.free.prior, component.law
    C = law.n_columns
    zero = np.zeros((len(T), C))
    J, target = law.jacobian(zero, T[:, None]), -law.residual(zero, T[:, None])
    y = np.concatenate([scaling.outputs(Y), np.full((len(T), C - 2), np.nan)], axis=1)
    noise = np.concatenate([component.noise, np.ones(C - 2)])
    rows = (J, target, np.full(target.shape, 1e-9))
    x = scaling.inputs(T[:, None])[:, 0]
    expected = dense_posterior(states, x, y, noise, x, rows)
    sd = np.sqrt(np.einsum("ncc->nc", expected.blocks))[:, :2]
    posterior = gp.posterior(T)
    assert np.max(np.abs(scaling.outputs(posterior.mean) - expected.mean[:, :2]) / sd) < 1e-4
    np.testing.assert_allclose(posterior.std / scaling.y_scale, sd, rtol=1e-4)


def test_far_from_all_data_the_sd_is_the_kernels_own() -> None:
    """At least the sum of the terms' variances, at most with the whole variance of the mean."""
    case = CASES["unconstrained"]
    gp = ConstrainedGP(kernel=[Matern(nu=2.5), Matern(0.1, nu=0.5)], solver=Markov()).fit(T, noisy(case))
    states = gp.fitted_.components[0].free.prior
    far = gp.posterior(np.array([1e6])).std[0] / gp.scaling_.y_scale
    alone = sum(np.diagonal(term.covariance) for term in states.terms)
    total = alone + np.diagonal(states.mean_covariance)
    assert np.all(far**2 > alone * (1 - 1e-9))
    assert np.all(far**2 < total)


def test_an_output_that_was_never_measured_follows_from_the_law() -> None:
    Y = noisy(CASES["linearised circle"])
    choices = {"outputs": ["p", "q", "r"], "kernel": Matern(nu=2.5), "solver": Markov()}
    gp = ConstrainedGP("p**2 + 2*q**2 = r", **choices).fit(T, np.column_stack([Y, np.full(len(T), np.nan)]))
    posterior = gp.posterior(ASKED)
    p, q, r = posterior.mean.T
    np.testing.assert_allclose(p**2 + 2 * q**2, r, rtol=1e-10)
    by_slopes = np.sqrt((2 * p * posterior.std[:, 0]) ** 2 + (4 * q * posterior.std[:, 1]) ** 2)
    assert np.all(posterior.std[:, 2] < 3.0 * by_slopes)
    assert np.all(posterior.std[:, 2] > 0.2 * by_slopes)


def test_long_series_choose_the_state_space_form_by_themselves() -> None:
    t = np.linspace(0.0, 60.0, LONG_SERIES // 2 + 50)
    Y = circle(t) + 0.1 * np.random.default_rng(0).standard_normal((len(t), 2))
    gp = ConstrainedGP("p**2 + q**2 = 1", outputs=["p", "q"]).fit(t, Y)
    assert gp.fit_report_["solver"] == "Markov"
    assert gp.fit_report_.kernel == "Matern"
    assert "kernel: Matern" in str(gp.fit_report_)
    assert gp.fitted_.components[0].free.prior.terms[0].nu == 2.5
    error = np.sqrt(np.mean((gp.predict(t) - circle(t)) ** 2))
    assert error < 0.02
    assert np.max(np.abs(gp.posterior(t).residual())) < 1e-12


def test_shorter_series_and_other_kernels_do_not() -> None:
    choose = series_solver
    assert choose(None, None, None, 1, LONG_SERIES)[0] == Automatic()
    assert isinstance(choose(None, None, None, 1, LONG_SERIES + 1)[0], Markov)
    assert choose(None, None, None, 2, LONG_SERIES + 1)[0] == Automatic()
    assert choose(None, RBF(), None, 1, LONG_SERIES + 1)[0] == Automatic()
    assert choose(None, None, Transformed(), 1, LONG_SERIES + 1)[0] == Automatic()
    assert choose(Dense(), None, None, 1, LONG_SERIES + 1)[0] == Dense()


def test_markov_is_refused_where_it_cannot_work() -> None:
    Y = noisy(CASES["linearised circle"])
    with pytest.raises(DataError, match=r"one input for Markov\(\).*2 inputs"):
        ConstrainedGP(solver=Markov()).fit(np.column_stack([T, T**2]), Y)
    with pytest.raises(DataError, match=r"Matern 1/2, 3/2 \.\.\. 9/2"):
        ConstrainedGP(solver=Markov(), kernel=RBF()).fit(T, Y)
    with pytest.raises(DataError, match=r"Markov\(\) does not work with strategy=Transformed\(\)"):
        ConstrainedGP("p**2 + q**2 = 1", outputs=["p", "q"], solver=Markov(), strategy=Transformed()).fit(T, Y)


def test_a_law_that_cannot_hold_is_warned_of() -> None:
    Y = np.abs(noisy(CASES["linearised circle"])) + 3.0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ConstrainedGP("p**2 + q**2 = 1", outputs=["p", "q"], solver=Markov()).fit(T, Y)
    assert any(isinstance(w.message, SumGPWarning) for w in caught)


def test_a_law_that_the_prior_cannot_follow_is_imposed_point_by_point() -> None:
    """One lengthscale for a share and its log-odds: with the law at all times the error was eight times that without."""
    t = np.linspace(0, 70, 700)
    truth = np.column_stack([1 / (1 + np.exp(-3 * np.sin(t))), 3 * np.sin(t)])
    y = truth + [0.05, 0.5] * np.random.default_rng(2000).standard_normal(truth.shape)
    with pytest.warns(SumGPWarning, match="no curve of the kind tried follows both"):
        gp = ConstrainedGP("p = 1/(1 + exp(-u))", outputs=["p", "u"], inputs=["t"], solver=Markov()).fit(t, y)
    error = np.sqrt(np.mean(((gp.predict(t) - truth) / truth.std(axis=0)) ** 2))
    assert error < 0.12  # without the law .08
    assert gp.fit_report_["status"].startswith("converged, but no curve of the kind tried")
    assert gp.fit_report_["taper"] == 0.0
    assert np.abs(gp.posterior(t).residual()).max() < 1e-12
