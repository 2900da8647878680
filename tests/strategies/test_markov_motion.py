"""Laws with derivatives on long series: position and velocity as read-outs of one state, in linear time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern

import sumgp
from sumgp.errors import ConstraintError, DataError
from sumgp.estimator.preparation import LONG_SERIES
from sumgp.hyperparameters.optimise import MapEstimate, Objective
from sumgp.priors.candidates import canonical_order, reordered
from sumgp.strategies import markov_fits as time_series

BOTH = ["d(z, t) = v", "z**2/2 + v**2/2 = E"]
NEW = np.array([-0.4, 0.03, 2.52, 7.77, 9.96, 10.3])[:, None]


def oscillator(n: int = 120, seed: int = 0, noise: float = 0.1, step: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    t = step * np.arange(n)[:, None]
    f = np.column_stack([np.sin(t), np.cos(t)])
    return t, f + noise * np.random.default_rng(seed).normal(size=f.shape)


def motion(law: Any = "d(z, t) = v", **settings: Any) -> sumgp.ConstrainedGP:
    settings = {"outputs": ["z", "v"], "inputs": ["t"], "solver": sumgp.Markov(), "uncertainty": "plug-in", **settings}
    return sumgp.ConstrainedGP(law, **settings)


def slope(function: Any, x: np.ndarray, step: float = 1e-3) -> np.ndarray:
    """Derivative by differences of fourth order."""
    near, far = function(x + step) - function(x - step), function(x + 2 * step) - function(x - 2 * step)
    return (8.0 * near - far) / (12.0 * step)


@pytest.fixture(scope="module")
def fitted() -> sumgp.ConstrainedGP:
    t, y = oscillator(101)
    y[13:20, 0] = np.nan
    y[70:80] = np.nan
    return motion().fit(t, y)


def test_the_mean_is_its_derivative(fitted: sumgp.ConstrainedGP) -> None:
    assert fitted.fit_report_["solver"] == "Markov"
    assert fitted.fit_report_.status == "converged"
    posterior = fitted.posterior(NEW)
    assert np.allclose(posterior.derivative("z", "t").mean, posterior.mean[:, 1], rtol=1e-10, atol=1e-10)
    assert np.allclose(posterior.derivative("z", "t").std, posterior.std[:, 1], rtol=1e-10, atol=1e-10)
    assert np.allclose(slope(lambda x: fitted.posterior(x).mean, NEW)[:, 0], posterior.mean[:, 1], atol=1e-6)
    assert np.abs(posterior.residual()).max() < 1e-10


def test_every_draw_is_its_derivative(fitted: sumgp.ConstrainedGP) -> None:
    posterior = fitted.posterior(NEW)
    draws = posterior.sample(5, random_state=3)
    slopes = posterior.derivative("z", "t").sample(5, random_state=3)
    assert np.abs(draws[:, :, 1] - slopes).max() < 1e-10
    beside = (NEW + 1e-3 * np.array([0.0, 1.0, -1.0, 2.0, -2.0])).reshape(-1, 1)
    z = fitted.posterior(beside).sample(5, random_state=3).reshape(5, len(NEW), 5, 2)
    differences = (8.0 * (z[:, :, 1, 0] - z[:, :, 2, 0]) - (z[:, :, 3, 0] - z[:, :, 4, 0])) / (12.0 * 1e-3)
    assert np.allclose(differences, z[:, :, 0, 1], atol=1e-5)


@pytest.mark.parametrize("law", ["d(z, t) = v", BOTH], ids=["motion", "and energy"])
def test_markov_equals_dense(law: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same kernel and hyperparameters: to 1e-8 of an sd where no law is linearised.

    The dense law solve keeps a law variance of 1e-6 relative to the posterior's, at points of its own.
    """
    t, y = oscillator(41, step=0.25)
    y[5:9, 1] = np.nan
    settings = {"constants": {"E": 0.5} if law == BOTH else None, "kernel": Matern(nu=3.5)}
    dense = motion(law, solver=sumgp.Dense(), **settings).fit(t, y)
    theta = dense.fitted_.components[0].theta
    order = canonical_order(dense.scaling_.outputs(dense.data_.y[dense.data_.order]), dense.data_.output_names)

    def handed_over(objective: Objective, **_: Any) -> MapEstimate:
        there = reordered(objective.prior, np.argsort(order)).back(theta)
        return MapEstimate(there, objective(there)[0], "converged", ())

    monkeypatch.setattr(time_series, "maximise", handed_over)
    found, expected = (gp.posterior(NEW) for gp in (motion(law, **settings).fit(t, y), dense))
    share = 1e-8 if law != BOTH else 0.1
    assert np.abs(found.mean - expected.mean).max() < share * expected.std.min()
    assert np.allclose(found.std, expected.std, rtol=max(share, 1e-7))


def test_energy_and_motion(fitted: sumgp.ConstrainedGP) -> None:
    """The energy to round-off at any point, the motion up to what moving single points onto the energy changes."""
    t, y = oscillator(400)
    gp = motion(BOTH, constants={"E": 0.5}).fit(t, y)
    new = np.linspace(0.02, 39.0, 70)[:, None]
    posterior = gp.posterior(new)
    truth = np.column_stack([np.sin(new), np.cos(new)])
    assert gp.fit_report_.status == "converged"
    assert np.abs(posterior.residual()[:, 1]).max() < 1e-12
    assert np.abs(posterior.residual()[:, 0]).max() < 1e-3
    alone = motion().fit(t, y).predict(new)
    assert np.sqrt(np.mean((posterior.mean - truth) ** 2)) < 0.3 * np.sqrt(np.mean((alone - truth) ** 2))
    draws = posterior.sample(3)
    assert np.abs(draws[..., 0] ** 2 + draws[..., 1] ** 2 - 1.0).max() < 1e-10


def test_an_unknown_energy_is_found() -> None:
    t, y = oscillator(400, noise=0.05)
    gp = motion(BOTH, constants={"E": "unknown"}).fit(t, y)
    energy = gp.posterior(NEW).constants().loc["E"]
    assert abs(energy["mean"] - 0.5) < 0.01
    assert energy["lower"] < 0.5 < energy["upper"]


def test_a_velocity_that_was_never_measured_follows_from_positions() -> None:
    t, y = oscillator(400, noise=0.05)
    y[:, 1] = np.nan
    posterior = motion().fit(t, y).posterior(t[20:-20])
    assert np.sqrt(np.mean((posterior.mean[:, 1] - np.cos(t[20:-20, 0])) ** 2)) < 0.06


def test_chains_of_derivatives() -> None:
    t = np.linspace(0.0, 20.0, 200)[:, None]
    f = np.column_stack([np.sin(t), np.cos(t), -np.sin(t)])
    y = f + 0.1 * np.random.default_rng(0).normal(size=f.shape)
    settings = {"outputs": ["z", "v", "a"], "inputs": ["t"], "solver": sumgp.Markov(), "uncertainty": "plug-in"}
    gp = sumgp.ConstrainedGP(["d(z, t) = v", "d(v, t) = a"], **settings).fit(t, y)
    posterior = gp.posterior(t[3:-3] + 0.03)
    assert np.abs(posterior.residual()).max() < 1e-10
    assert np.sqrt(np.mean((gp.predict(t) - f) ** 2)) < 0.04
    rough = sumgp.ConstrainedGP(["d(z, t) = v", "d(v, t) = a"], kernel=Matern(nu=2.5), **settings)
    with pytest.raises(DataError, match=r"Matern\(nu=4.5\) at least"):
        rough.fit(t, y)
    twice = sumgp.ConstrainedGP("d(z, t, 2) = a", **{**settings, "outputs": ["z", "a"]}).fit(t, y[:, [0, 2]])
    assert np.abs(twice.posterior(NEW).residual()).max() < 1e-10


def test_a_law_that_the_data_contradict_is_named() -> None:
    t, y = oscillator(300, noise=0.05)
    with pytest.warns(sumgp.SumGPWarning, match="contradict the law with derivatives"):
        wrong = motion("d(z, t) = v/60").fit(t, y)
    assert "contradict" in wrong.fit_report_.status


def test_what_does_not_work_says_what_does() -> None:
    t, y = oscillator(30)
    with pytest.raises(DataError, match=r"Dense\(\) or Markov\(\) for a law with derivatives, got Vecchia"):
        motion(solver=sumgp.Vecchia()).fit(t, y)
    with pytest.raises(ConstraintError, match="which holds at points only; with solver=None it takes at most 1500 rows"):
        motion("d(z, t) = v; d(v, t) = -z").fit(t, y)


def test_units_and_the_order_of_outputs_do_not_matter() -> None:
    t, y = oscillator()
    plain = motion().fit(t, y).posterior(NEW)
    scaled = motion("d(z, t) = 1e3*v").fit(1e-3 * t, y).posterior(1e-3 * NEW)
    assert np.allclose(scaled.mean, plain.mean, atol=1e-5)
    turned = motion(outputs=["v", "z"]).fit(t, y[:, ::-1]).posterior(NEW)
    assert np.allclose(turned.mean[:, ::-1], plain.mean, atol=1e-6)


def test_models_are_stored(fitted: sumgp.ConstrainedGP, tmp_path: Any) -> None:
    fitted.save(tmp_path / "motion.sumgp")
    assert np.array_equal(sumgp.load(tmp_path / "motion.sumgp").predict(NEW), fitted.predict(NEW))
    t, y = oscillator()
    both = motion(BOTH, constants={"E": 0.5}).fit(t, y)
    both.save(tmp_path / "both.sumgp")
    assert np.array_equal(sumgp.load(tmp_path / "both.sumgp").predict(NEW), both.predict(NEW))


def test_long_series_are_fitted_so_by_themselves() -> None:
    """6,000 rows with both laws: errors and coverage."""
    t, y = oscillator(6000, step=0.05)
    assert y.size > LONG_SERIES
    gp = motion(BOTH, solver=None, uncertainty="integrated", constants={"E": 0.5}).fit(t, y)
    assert gp.fit_report_["solver"] == "Markov"
    assert gp.fit_report_.status == "converged"
    new = t[::12] + 0.02
    truth = np.column_stack([np.sin(new), np.cos(new)])
    posterior = gp.posterior(new)
    lower, upper = posterior.interval(0.95)
    # Without laws 2.5e-2, with the motion alone 1.7e-2.
    assert np.sqrt(np.mean((posterior.mean - truth) ** 2)) < 3e-3
    assert np.mean((lower <= truth) & (truth <= upper)) > 0.93
