"""Posteriors: standard deviations, covariances, intervals, samples, new measurements, frames, figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from test_estimator import ASKED, BUDGET, X, Y, outputs, plug_in

from sumgp import ConstrainedGP, DataError, LinearConstraint
from sumgp.prediction import Posterior, mixture_quantile
from sumgp.prediction.marginals import likelier_mean


@pytest.fixture(scope="module")
def plugged() -> Posterior:
    return plug_in(BUDGET).fit(X, Y).posterior(ASKED)


@pytest.fixture(scope="module")
def mixed() -> Posterior:
    """A mixture over hyperparameters."""
    return ConstrainedGP(BUDGET).fit(X, outputs(sd=0.2)).posterior(ASKED)


def test_predict_gives_means_deviations_and_covariance() -> None:
    gp = plug_in(BUDGET).fit(X, Y)
    mean, std = gp.predict(ASKED, return_std=True)
    again, covariance = gp.predict(ASKED, return_cov=True)
    np.testing.assert_array_equal(mean, again)
    np.testing.assert_array_equal(mean, gp.predict(ASKED))
    assert mean.shape == std.shape == (9, 3)
    np.testing.assert_allclose(np.sqrt(np.diagonal(covariance)).reshape(9, 3), std, rtol=1e-7)


def test_one_output_comes_back_one_dimensional() -> None:
    gp = plug_in().fit(X, Y[:, 0])
    mean, std = gp.predict(ASKED, return_std=True)
    assert mean.shape == std.shape == (9,)
    assert gp.predict(ASKED, return_cov=True)[1].shape == (9, 9)


def test_covariance_of_a_mixture_has_the_deviations_on_its_diagonal(mixed: Posterior) -> None:
    assert len(mixed.fitted.weights) > 3
    covariance = mixed.covariance()
    np.testing.assert_allclose(np.sqrt(np.diagonal(covariance)).reshape(9, 3), mixed.std, rtol=1e-7)
    assert np.linalg.eigvalsh(covariance)[0] > -1e-10
    # The law leaves no variance in the sum of the outputs.
    sums = covariance.reshape(9, 3, 9, 3).sum(axis=(1, 3))
    np.testing.assert_allclose(sums, 0.0, atol=1e-10)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_intervals_of_one_gaussian(plugged: Posterior, level: float) -> None:
    lower, upper = plugged.interval(level)
    half = norm.ppf(0.5 + level / 2)
    np.testing.assert_allclose(lower, plugged.mean - half * plugged.std, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(upper, plugged.mean + half * plugged.std, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_intervals_of_a_mixture_hold_their_probability(mixed: Posterior, level: float) -> None:
    lower, upper = mixed.interval(level)
    np.testing.assert_allclose(mixed.cdf(lower), 0.5 - level / 2, atol=1e-9)
    np.testing.assert_allclose(mixed.cdf(upper), 0.5 + level / 2, atol=1e-9)


def test_density_is_the_derivative_of_the_distribution_and_integrates_to_one(mixed: Posterior) -> None:
    at = mixed.mean + 0.3 * mixed.std
    step = 1e-4 * mixed.std
    slope = (mixed.cdf(at + step) - mixed.cdf(at - step)) / (2.0 * step)
    np.testing.assert_allclose(np.exp(mixed.log_density(at)), slope, rtol=1e-6)
    value, spread = mixed.mean, mixed.std

    def density(z: float) -> float:
        return float(np.exp(mixed.log_density(value + z * spread)[3, 1]) * spread[3, 1])

    assert quad(density, -12, 12, limit=200)[0] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("bad", [0.0, 1.0, -1.0, 95.0, np.nan])
def test_levels_outside_zero_and_one_are_refused(plugged: Posterior, bad: float) -> None:
    with pytest.raises(DataError, match=r"^level: expected a probability"):
        plugged.interval(bad)


def test_quantiles_where_a_law_fixes_the_value_in_some_components() -> None:
    """A slope times t is known at t = 0; numbers were divided by a spread of zero there."""
    weights = np.array([0.5, 0.3, 0.2])
    means, sds = (
        np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 2.0]])[:, None],
        np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 0.1]])[:, None],
    )
    np.testing.assert_allclose(mixture_quantile(means, sds, weights, 0.025), [[0.0, 0.0]], atol=1e-12)
    found = mixture_quantile(means, sds, weights, 0.975)
    np.testing.assert_allclose(found, [[0.0, 2.0 + 0.1 * 1.15034938]], atol=1e-8)  # seven eighths of the last component


def test_mixture_quantiles_against_sorting_many_draws() -> None:
    rng = np.random.default_rng(0)
    means, sds, weights = np.array([-3.0, 0.0, 5.0]), np.array([0.5, 2.0, 0.1]), np.array([0.3, 0.5, 0.2])
    owner = rng.choice(3, 200000, p=weights)
    draws = means[owner] + sds[owner] * rng.standard_normal(200000)
    for p in (0.025, 0.3, 0.5, 0.81, 0.975):
        found = mixture_quantile(means[:, None, None], sds[:, None, None], weights, p)[0, 0]
        assert np.mean(draws < found) == pytest.approx(p, abs=0.005)


def test_samples_are_repeatable_on_the_law_and_have_the_posteriors_moments(mixed: Posterior) -> None:
    draws = mixed.sample(4000, random_state=3)
    assert draws.shape == (4000, 9, 3)
    np.testing.assert_array_equal(draws[:], mixed.sample(4000, random_state=3))
    assert not np.array_equal(draws, mixed.sample(4000, random_state=4))
    assert mixed.sample(0).shape == (0, *draws.shape[1:])
    np.testing.assert_allclose(draws.sum(axis=2), 1.0, atol=1e-10)
    assert np.max(np.abs(draws.mean(axis=0) - mixed.mean) / mixed.std) < 0.1
    np.testing.assert_allclose(draws.std(axis=0), mixed.std, rtol=0.12)
    flat = draws.reshape(4000, -1)
    expected = mixed.covariance() / np.outer(mixed.std.ravel(), mixed.std.ravel())
    np.testing.assert_allclose(np.cov(flat.T) / np.outer(mixed.std.ravel(), mixed.std.ravel()), expected, atol=0.2)


def test_mean_and_every_sample_obey_a_constant_law_to_1e_10_and_a_varying_one_to_1e_8() -> None:
    def coefficients(x: np.ndarray) -> np.ndarray:
        return np.column_stack([1.0 + x[:, 0], np.cos(x[:, 0]), np.ones(len(x))])

    def total(x: np.ndarray) -> np.ndarray:
        return 1.0 + x[:, 0] * np.sin(x[:, 0])

    for law, bar in ((BUDGET, 1e-10), (LinearConstraint(coefficients, total), 1e-8)):
        posterior = ConstrainedGP(law).fit(X, Y).posterior(np.linspace(-2.0, 8.0, 40))
        bound = posterior.law
        assert bound is not None
        size = bound.magnitude(posterior.mean, posterior.x)
        assert np.max(np.abs(posterior.residual()) / size) < bar
        for draw in posterior.sample(10):
            assert np.max(np.abs(bound.residual(draw, posterior.x)) / bound.magnitude(draw, posterior.x)) < bar


def test_a_new_measurement_is_wider_by_the_noise(plugged: Posterior) -> None:
    noisy = plugged.observed()
    np.testing.assert_array_equal(noisy.mean, plugged.mean)
    noise = plugged.fitted.components[0].noise * plugged.scaling.y_scale**2
    np.testing.assert_allclose(noisy.std**2, plugged.std**2 + noise, rtol=1e-10)
    np.testing.assert_allclose(np.diagonal(noisy.covariance()), noisy.std.ravel() ** 2, rtol=1e-7)
    draws = noisy.sample(4000)
    np.testing.assert_allclose(draws.std(axis=0), noisy.std, rtol=0.08)
    assert np.all(noisy.interval()[0] < plugged.interval()[0])


def test_noise_of_a_new_measurement_matches_what_was_added() -> None:
    rng = np.random.default_rng(5)
    x = np.linspace(0.0, 5.0, 60)
    true = np.column_stack([np.sin(x), np.cos(x)])
    gp = plug_in().fit(x, true + np.array([0.1, 0.3]) * rng.standard_normal((60, 2)))
    sd = np.sqrt(gp.fitted_.components[0].noise) * gp.scaling_.y_scale
    np.testing.assert_allclose(sd, [0.1, 0.3], rtol=0.3)


def test_frame_holds_everything_by_name(plugged: Posterior) -> None:
    frame = plugged.to_frame(0.5)
    lower, upper = plugged.interval(0.5)
    assert list(frame.columns[:5]) == ["x", "y1", "y1_sd", "y1_lower", "y1_upper"]
    np.testing.assert_array_equal(frame["x"], ASKED)
    np.testing.assert_array_equal(frame["y2"], plugged.mean[:, 1])
    np.testing.assert_array_equal(frame["y2_sd"], plugged.std[:, 1])
    np.testing.assert_array_equal(frame["y3_lower"], lower[:, 2])
    np.testing.assert_array_equal(frame["y3_upper"], upper[:, 2])
    np.testing.assert_array_equal(frame["law_residual"], plugged.residual()[:, 0])
    assert "law_residual" not in plug_in().fit(X, Y).posterior(ASKED).to_frame()


def test_figure_shows_each_output_its_gaps_and_the_residual() -> None:
    y = Y.copy()
    y[2:5, 1] = np.nan
    posterior = plug_in(BUDGET).fit(X, y).posterior(ASKED)
    figure = posterior.plot(residual=True)
    assert [a.get_ylabel() for a in figure.axes] == ["y1", "y2", "y3", "law residual"]
    labels = [line.get_label() for line in figure.axes[1].get_lines()]
    assert {"mean", "measured", "not measured"} <= set(labels)
    marks = next(line for line in figure.axes[1].get_lines() if line.get_label() == "not measured")
    np.testing.assert_array_equal(marks.get_xdata(), X[2:5])
    assert "not measured" not in [line.get_label() for line in figure.axes[0].get_lines()]
    assert len(plug_in().fit(X, Y).posterior(ASKED).plot().axes) == 3


def test_residual_without_a_law_has_no_columns() -> None:
    assert plug_in().fit(X, Y).posterior(ASKED).residual().shape == (9, 0)
    assert plug_in().fit(X, Y).posterior(ASKED).constants().empty


def test_joint_quantities_of_too_many_points_are_refused_with_a_number(plugged: Posterior) -> None:
    many = plug_in(BUDGET).fit(X, Y).posterior(np.linspace(0.0, 5.0, 5000))
    assert many.mean.shape == (5000, 3)
    for method in (many.covariance, many.sample):
        with pytest.raises(DataError, match="at most 2000 points at a time"):
            method()


def test_blocks_of_points_give_what_single_points_give() -> None:
    posterior = plug_in(BUDGET).fit(X, Y).posterior(np.linspace(0.0, 5.0, 600))
    alone: Any = plug_in(BUDGET).fit(X, Y).posterior(posterior.x[300:301])
    np.testing.assert_allclose(posterior.mean[300], alone.mean[0], atol=1e-9)
    np.testing.assert_allclose(posterior.std[300], alone.std[0], rtol=1e-7)


def test_means_of_separate_branches_are_that_of_the_likelier() -> None:
    """Point 0: two branches four units apart; point 1: no gap; both columns follow the branch."""
    means = np.array([[[2.0, 1.0], [0.1, 0.0]], [[2.2, 1.2], [0.2, 0.0]], [[-2.0, 5.0], [0.3, 0.0]]])
    variances = np.full((3, 2, 1), 0.01)
    weights = np.array([0.3, 0.3, 0.4])
    found = likelier_mean(means, variances, weights)
    np.testing.assert_allclose(found[0], [2.1, 1.1])
    np.testing.assert_allclose(found[1], [0.3 * 0.1 + 0.3 * 0.2 + 0.4 * 0.3, 0.0])
    np.testing.assert_allclose(likelier_mean(means, variances, np.array([0.2, 0.2, 0.6]))[0], [-2.0, 5.0])
    np.testing.assert_allclose(likelier_mean(means, 100.0 * variances, weights), np.tensordot(weights, means, axes=1))
    np.testing.assert_allclose(likelier_mean(means[:1], variances[:1], np.ones(1)), means[0])
