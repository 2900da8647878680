"""Derivatives of predictions: means against differences, spreads against draws and the prior, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

import sumgp
from sumgp.errors import DataError

T_TRAIN = np.linspace(0.0, 6.0, 16)[:, None]
NEW = np.array([[0.3], [2.2], [5.1], [6.5]])
STEP = 1e-3


def wave(noise: float = 0.05) -> np.ndarray:
    f = np.column_stack([np.sin(T_TRAIN), 1.0 - np.sin(T_TRAIN)])
    return f + noise * np.random.default_rng(0).normal(size=f.shape)


def differences(gp: sumgp.ConstrainedGP, x: np.ndarray, column: int = 0) -> np.ndarray:
    step = STEP * np.eye(x.shape[1])[column]
    near, far = gp.predict(x + step) - gp.predict(x - step), gp.predict(x + 2 * step) - gp.predict(x - 2 * step)
    return (8.0 * near - far) / (12.0 * STEP)


CASES = {
    "no law": (None, {}),
    "no law, averaged": (None, {"uncertainty": "integrated"}),
    "no law, Matern 3/2": (None, {"kernel": Matern(nu=1.5)}),
    "linear law": ("a + b = 1", {}),
    "linear law with a varying total": ("a + b = S", {"constants": {"S": lambda X: 1.0 + 0.1 * np.sin(X[:, 0])}}),
    "linear law on points": ("a + b = 1", {"strategy": sumgp.Conditioned(joint=True)}),
}


def fitted(name: str) -> sumgp.ConstrainedGP:
    law, settings = CASES[name]
    return sumgp.ConstrainedGP(
        law, outputs=["a", "b"], inputs=["t"], **{"uncertainty": "plug-in", "restarts": 0, **settings}
    )


@pytest.mark.parametrize("name", CASES)
def test_the_mean_is_the_slope_of_the_mean(name):
    gp = fitted(name).fit(T_TRAIN, wave())
    posterior = gp.posterior(NEW)
    found = np.column_stack([posterior.derivative(output, "t").mean for output in ("a", "b")])
    assert np.allclose(found, differences(gp, NEW), atol=1e-6)


def test_under_a_nonlinear_law_too():
    gp = sumgp.ConstrainedGP(
        "z**2/2 + v**2/2 = E", outputs=["z", "v"], inputs=["t"], constants={"E": 0.5}, uncertainty="plug-in"
    )
    f = np.column_stack([np.sin(T_TRAIN), np.cos(T_TRAIN)])
    gp.fit(T_TRAIN, f + 0.05 * np.random.default_rng(0).normal(size=f.shape))
    slope = gp.posterior(NEW).derivative("z", "t")
    assert np.allclose(slope.mean, differences(gp, NEW)[:, 0], atol=1e-5)
    lower, upper = slope.interval(0.95)
    assert np.all((lower < slope.mean) & (slope.mean < upper))


@pytest.mark.parametrize("name", ["no law", "no law, averaged", "linear law", "linear law on points"])
def test_draws_have_the_mean_the_spread_and_the_interval(name):
    slope = fitted(name).fit(T_TRAIN, wave()).posterior(NEW).derivative("a", "t")
    draws = slope.sample(4000, random_state=1)
    # 4000 draws know a mean to 1/63 of their spread, a spread to 1/90 and such a quantile to 1/23 of it.
    assert np.all(np.abs(draws.mean(axis=0) - slope.mean) < 5.0 / 63.0 * slope.std)
    assert np.allclose(draws.std(axis=0), slope.std, rtol=5.0 / 90.0)
    lower, upper = slope.interval(0.95)
    assert np.all(np.abs(np.quantile(draws, 0.025, axis=0) - lower) < 5.0 / 23.0 * slope.std)
    assert np.all(np.abs(np.quantile(draws, 0.975, axis=0) - upper) < 5.0 / 23.0 * slope.std)


def test_draws_are_slopes_of_joint_draws():
    """The covariance of the derivative is the mixed difference of the outputs' joint covariance."""
    gp = fitted("no law").fit(T_TRAIN, wave())
    h = 1e-3
    joint = gp.posterior(np.array([[2.2 - h], [2.2 + h]])).covariance().reshape(2, 2, 2, 2)[:, 0, :, 0]
    variance = (joint[0, 0] + joint[1, 1] - 2.0 * joint[0, 1]) / (2.0 * h) ** 2
    assert gp.posterior(np.array([[2.2]])).derivative("a", "t").std[0] ** 2 == pytest.approx(variance, rel=1e-4)


def test_far_from_the_data_slopes_are_those_of_the_prior():
    kernel = RBF(0.7, "fixed")
    gp = sumgp.ConstrainedGP(None, outputs=["a"], inputs=["t"], kernel=kernel, uncertainty="plug-in")
    posterior = gp.fit(T_TRAIN, wave()[:, :1]).posterior(np.array([[60.0]]))
    # Var f' = Var f / l^2; the constant mean has no slope.
    varying = posterior.fitted.components[0].posterior.features.terms[0]
    expected = np.linalg.norm(varying.B) * posterior.scaling.y_scale[0] / 0.7
    assert posterior.derivative("a", "t").std[0] == pytest.approx(expected, rel=1e-9)


def test_second_derivatives_and_several_inputs():
    generator = np.random.default_rng(0)
    x = generator.uniform(-1.0, 1.0, (40, 2))
    y = np.sin(2.0 * x[:, 0]) * x[:, 1] + 0.01 * generator.normal(size=40)
    gp = sumgp.ConstrainedGP(None, outputs=["u"], inputs=["x", "y"], uncertainty="plug-in").fit(x, y)
    new = np.array([[0.2, 0.1], [-0.3, 0.5]])
    posterior = gp.posterior(new)
    assert np.allclose(posterior.derivative("u", "y").mean, np.sin(2.0 * new[:, 0]), atol=0.05)
    lower, upper = posterior.derivative("u", "x", 2).interval(0.999)
    truth = -4.0 * np.sin(2.0 * new[:, 0]) * new[:, 1]
    assert np.all((lower < truth) & (truth < upper))


def test_what_cannot_be_differentiated_is_refused():
    gp = fitted("no law").fit(T_TRAIN, wave())
    posterior = gp.posterior(NEW)
    with pytest.raises(DataError, match="one of a, b"):
        posterior.derivative("c", "t")
    with pytest.raises(DataError, match="by: expected one of t"):
        posterior.derivative("a", "x")
    with pytest.raises(DataError, match="order"):
        posterior.derivative("a", "t", 0)
    rough = sumgp.ConstrainedGP(None, outputs=["a", "b"], inputs=["t"], kernel=Matern(nu=0.5), uncertainty="plug-in")
    with pytest.raises(DataError, match="first derivatives"):
        _ = rough.fit(T_TRAIN, wave()).posterior(NEW).derivative("a", "t").mean


@pytest.mark.parametrize("law", [None, "a + b = 1", "a + b = S"], ids=["no law", "linear law", "varying total"])
def test_the_state_of_a_long_series_holds_the_slopes(law):
    """State space against differences and against dense algebra with the same kernel and hyperparameters."""
    constants = {"S": lambda X: 1.0 + 0.1 * np.sin(X[:, 0])} if law == "a + b = S" else None
    settings = {"outputs": ["a", "b"], "inputs": ["t"], "kernel": Matern(nu=2.5), "constants": constants}
    gp = sumgp.ConstrainedGP(law, solver=sumgp.Markov(), uncertainty="plug-in", **settings).fit(T_TRAIN, wave())
    slope = gp.posterior(NEW).derivative("a", "t")
    assert np.allclose(slope.mean, differences(gp, NEW)[:, 0], atol=1e-6)
    component, h = gp.fitted_.components[0], 1e-3
    x = gp.scaling_.inputs(np.array([[2.2 - h], [2.2 + h]]))
    joint = component.joint_covariance(x, np.array([[2.2 - h], [2.2 + h]])).reshape(2, 2, 2, 2)[:, 0, :, 0]
    variance = (joint[0, 0] + joint[1, 1] - 2.0 * joint[0, 1]) / (2.0 * h) ** 2 * gp.scaling_.y_scale[0] ** 2
    assert gp.posterior(np.array([[2.2]])).derivative("a", "t").std[0] ** 2 == pytest.approx(variance, rel=1e-2)
    draws = slope.sample(2000, random_state=1)
    assert np.allclose(draws.std(axis=0), slope.std, rtol=5.0 / 63.0)
    assert np.all(np.abs(draws.mean(axis=0) - slope.mean) < 5.0 / 44.0 * slope.std)


def test_rough_states_are_refused():
    settings = {"outputs": ["a", "b"], "inputs": ["t"], "kernel": Matern(nu=0.5), "solver": sumgp.Markov()}
    gp = sumgp.ConstrainedGP(None, uncertainty="plug-in", **settings).fit(T_TRAIN, wave())
    with pytest.raises(DataError, match="Matern"):
        _ = gp.posterior(NEW).derivative("a", "t").mean
