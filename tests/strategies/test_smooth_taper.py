"""Tapers of latent functions keep one output the derivative of another."""

from collections.abc import Callable

import numpy as np
import pytest
from sumgp.strategies.taper import SmoothTaper, lowering

import sumgp
from sumgp.laws import Potential

MOTION, ENERGY = "d(z, t) = v", "k/2*z**2 + m/2*v**2 = E"


def chain(*factors: float) -> Potential:
    """Outputs that are a function and its derivatives, times factors."""
    T = len(factors)
    return Potential(np.arange(T)[:, None], np.diag(factors)[:, None, :])


def test_a_lowering_takes_each_derivative_to_the_one_before() -> None:
    np.testing.assert_allclose(lowering(chain(2.0, 3.0, 5.0)), [[0, 0, 0], [1.5, 0, 0], [0, 10 / 3, 0]], atol=1e-12)


def test_there_is_none_without_the_lower_derivative_or_with_two_inputs() -> None:
    assert lowering(Potential(np.array([[1]]), np.ones((1, 1, 1)))) is None
    assert lowering(Potential(np.array([[0, 1], [1, 0]]), np.array([[[1.0, 0.0]], [[0.0, -1.0]]]))) is None


def test_tapered_blocks_are_the_derivatives_of_the_tapered_function() -> None:
    """Second way: differences of P(x, z) tau(x - z) for one function P = exp(-(x - z)^2) cos(x + 2 z)."""
    factors = np.array([2.0, 3.0])
    taper = SmoothTaper(0.4, lowering(chain(*factors)))

    def value(x: float, z: float) -> float:
        return np.exp(-((x - z) ** 2)) * np.cos(x + 2 * z)

    def block(function: Callable[[float, float], float], x: float, z: float, h: float = 1e-3) -> np.ndarray:
        by_x = (function(x + h, z) - function(x - h, z)) / (2 * h)
        by_z = (function(x, z + h) - function(x, z - h)) / (2 * h)
        both = (function(x + h, z + h) - function(x + h, z - h) - function(x - h, z + h) + function(x - h, z - h)) / (
            4 * h * h
        )
        return np.outer(factors, factors) * np.array([[function(x, z), by_z], [by_x, both]])

    x, z = 0.3, 0.55
    plain = block(value, x, z)[None, :, None, :]
    tapered = taper.apply(plain, np.array([[x]]), np.array([[z]]))[0, :, 0]
    expected = block(lambda a, b: value(a, b) * np.exp(-0.5 * ((a - b) / 0.4) ** 2), x, z)
    np.testing.assert_allclose(tapered, expected, rtol=1e-4, atol=1e-4)


def test_no_gain_takes_more_than_there_is() -> None:
    taper = SmoothTaper(0.1, lowering(chain(1.0, 1.0)))
    P = np.array([[[1.0, 0.3], [0.3, 2.0]]])
    N = taper.lowering
    whole = np.linalg.cholesky(P + N @ P @ N.T / 0.1**2)  # all that the tapered covariance holds
    gain = taper.within(whole, P)
    np.testing.assert_allclose(gain @ gain.transpose(0, 2, 1), P, rtol=1e-9)


@pytest.fixture(scope="module")
def wrong_energy() -> sumgp.ConstrainedGP:
    """An oscillator whose energy drifts, told to be constant up to an error."""
    t = np.linspace(0.0, 10.0, 20)[:, None]
    drift = 1.0 + 0.15 * np.sin(0.9 * t)
    z = drift * np.sin(t)
    v = 0.135 * np.cos(0.9 * t) * np.sin(t) + drift * np.cos(t)
    Y = np.hstack([z, v]) + 0.01 * np.random.default_rng(1000).standard_normal((20, 2))
    gp = sumgp.ConstrainedGP(
        [MOTION, ENERGY + " +- unknown"],
        outputs=["z", "v"],
        inputs=["t"],
        constants={"k": 1.0, "m": 1.0, "E": 0.5},
        uncertainty="plug-in",
    )
    return gp.fit(t, Y)


def test_a_soft_law_beside_a_derivative_stays_soft(wrong_energy: sumgp.ConstrainedGP) -> None:
    at = np.linspace(0.0, 10.0, 41)[:, None]
    missed = np.abs(wrong_energy.posterior(at).residual())
    assert missed.max() > 0.05  # imposed exactly it would be zero


def test_the_derivative_holds_exactly_beside_a_tapered_law(wrong_energy: sumgp.ConstrainedGP) -> None:
    assert set(wrong_energy.fit_report_["taper_scores"]) == {"None", "0.35", "no law"}
    at = np.linspace(0.3, 9.7, 31)[:, None]
    post, h = wrong_energy.posterior(at), 1e-3
    slope = (wrong_energy.predict(at + h)[:, 0] - wrong_energy.predict(at - h)[:, 0]) / (2 * h)
    np.testing.assert_allclose(np.asarray(post.derivative("z", "t").mean).ravel(), post.mean[:, 1], atol=1e-9)
    np.testing.assert_allclose(slope, post.mean[:, 1], atol=1e-5)


def test_left_out_rows_find_that_a_drifting_energy_is_not_joint(wrong_energy: sumgp.ConstrainedGP) -> None:
    at = np.linspace(0.0, 10.0, 41)[:, None]
    drift = 1.0 + 0.15 * np.sin(0.9 * at)
    error = wrong_energy.predict(at)[:, :1] - drift * np.sin(at)
    assert np.sqrt(np.mean(error**2)) < 0.02
    lower, upper = wrong_energy.posterior(at).interval(0.95)
    assert np.all(upper > lower)
