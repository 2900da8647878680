"""Scores against hand-made numbers, quadrature and sampling."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import integrate, stats

from sumgp.errors import DataError
from sumgp_studies import metrics


@dataclass(frozen=True)
class GaussianPosterior:
    mean: np.ndarray
    std: np.ndarray

    def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        half = stats.norm.ppf((1 + level) / 2) * self.std
        return self.mean - half, self.mean + half


@dataclass(frozen=True)
class ShiftedExponential:
    """A skewed posterior, so that lower and upper quantiles cannot be exchanged unnoticed."""

    mean: np.ndarray

    def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        quantiles = stats.expon.ppf([(1 - level) / 2, (1 + level) / 2])
        return self.mean - 1 + quantiles[0], self.mean - 1 + quantiles[1]

    def log_density(self, values: np.ndarray) -> np.ndarray:
        return stats.expon.logpdf(values - self.mean + 1)


@pytest.fixture
def gaussian() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    mean, std = generator.normal(size=(40, 3)), generator.uniform(0.2, 2.0, size=(40, 3))
    return mean, std, mean + std * generator.normal(size=mean.shape)


@pytest.fixture
def mixture() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(1)
    weights = np.array([0.5, 0.3, 0.2])
    means, stds = generator.normal(size=(3, 4, 2)), generator.uniform(0.2, 1.5, size=(3, 4, 2))
    return weights, means, stds, generator.normal(size=(4, 2))


def mixture_cdf(z: float, weights: np.ndarray, means: np.ndarray, stds: np.ndarray) -> float:
    return float(weights @ stats.norm.cdf(z, means, stds))


def crps_by_quadrature(cdf, truth: float) -> float:
    below = integrate.quad(lambda z: cdf(z) ** 2, truth - 25, truth, limit=400)[0]
    above = integrate.quad(lambda z: (1 - cdf(z)) ** 2, truth, truth + 25, limit=400)[0]
    return below + above


def test_errors_by_hand():
    mean, truth = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 4.0], [0.0, 4.0]])
    assert metrics.rmse(mean, truth) == pytest.approx(np.sqrt(13 / 4))
    assert metrics.rmse_norm(mean, truth) == pytest.approx(np.sqrt(13 / 2))
    assert metrics.violation(np.array([[1.0], [-3.0]])) == 2.0


def test_unknown_truth_is_left_out():
    mean, truth = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, np.nan], [0.0, 4.0]])
    assert metrics.rmse(mean, truth) == pytest.approx(np.sqrt(9 / 3))
    assert metrics.coverage(mean - 1, mean + 1, truth) == pytest.approx(2 / 3)
    assert metrics.nlpd_gaussian(mean, np.ones((2, 2)), truth) == pytest.approx(0.5 * np.log(2 * np.pi) + 9 / 6)


def test_shapes_must_agree():
    with pytest.raises(DataError, match="truth: expected shape"):
        metrics.rmse(np.zeros((3, 2)), np.zeros((2, 3)))
    with pytest.raises(DataError, match="means, stds"):
        metrics.crps_mixture(np.ones(2) / 2, np.zeros((2, 3)), np.zeros((3, 3)), np.zeros(3))
    with pytest.raises(DataError, match="at least two"):
        metrics.crps_samples(np.zeros((1, 3)), np.zeros(3))


def test_coverage_and_sharpness_by_hand():
    lower, upper = np.zeros((4, 1)), np.array([[1.0], [1.0], [1.0], [3.0]])
    assert metrics.coverage(lower, upper, np.array([[0.5], [2.0], [-1.0], [3.0]])) == 0.5
    assert metrics.sharpness(lower, upper) == 1.5
    assert np.isnan(metrics.coverage(lower * np.nan, upper, np.zeros((4, 1))))


def test_coverage_at_levels_matches_the_levels_for_a_true_posterior():
    generator = np.random.default_rng(2)
    mean, std = generator.normal(size=(20000, 1)), generator.uniform(0.5, 2, size=(20000, 1))
    truth = mean + std * generator.normal(size=mean.shape)
    right = metrics.calibration_curve(GaussianPosterior(mean, std), truth)
    np.testing.assert_allclose(right.observed, right.levels, atol=4 * 0.5 / np.sqrt(20000))
    too_sure = metrics.calibration_curve(GaussianPosterior(mean, std / 2), truth)
    expected = 2 * stats.norm.cdf(stats.norm.ppf((1 + right.levels) / 2) / 2) - 1
    np.testing.assert_allclose(too_sure.observed, expected, atol=4 * 0.5 / np.sqrt(20000))
    assert right.n_values == 20000
    assert right.error < 0.01 < too_sure.error


def test_gaussian_density_score(gaussian):
    mean, std, truth = gaussian
    expected = -np.mean(stats.norm.logpdf(truth, mean, std))
    assert metrics.nlpd_gaussian(mean, std, truth) == pytest.approx(expected, rel=1e-12)
    assert metrics.nlpd(GaussianPosterior(mean, std), truth) == pytest.approx(expected, rel=1e-10)


def test_density_score_uses_the_posteriors_own_density():
    posterior, truth = ShiftedExponential(np.zeros((3, 1))), np.array([[0.0], [1.0], [2.0]])
    assert metrics.nlpd(posterior, truth) == pytest.approx(2.0)


def test_certainty_in_a_wrong_value_is_infinitely_bad():
    zeros = np.zeros((1, 1))
    assert metrics.nlpd_gaussian(zeros, zeros, zeros + 1) == np.inf
    assert metrics.nlpd_gaussian(zeros, zeros, zeros) == -np.inf
    assert metrics.crps_gaussian(zeros, zeros, zeros + 1) == 1.0


def test_gaussian_crps_against_quadrature(gaussian):
    mean, std, truth = (values[:3] for values in gaussian)
    expected = np.mean([
        crps_by_quadrature(lambda z, m=m, s=s: float(stats.norm.cdf(z, m, s)), y)
        for m, s, y in zip(mean.ravel(), std.ravel(), truth.ravel(), strict=True)
    ])  # fmt: skip
    assert metrics.crps_gaussian(mean, std, truth) == pytest.approx(expected, rel=1e-7)


def test_mixture_crps_against_quadrature(mixture):
    weights, means, stds, truth = mixture
    scores = []
    for point in np.ndindex(truth.shape):
        part = (weights, means[(slice(None), *point)], stds[(slice(None), *point)])
        scores.append(crps_by_quadrature(lambda z, part=part: mixture_cdf(z, *part), float(truth[point])))
    assert metrics.crps_mixture(weights, means, stds, truth) == pytest.approx(np.mean(scores), rel=1e-7)


def test_mixture_of_one_is_a_gaussian(gaussian):
    mean, std, truth = gaussian
    assert metrics.crps_mixture(np.ones(1), mean[None], std[None], truth) == pytest.approx(
        metrics.crps_gaussian(mean, std, truth), rel=1e-12
    )


def test_sample_crps_is_the_pairwise_formula_and_unbiased(gaussian):
    mean, std, truth = gaussian
    generator = np.random.default_rng(3)
    few = generator.normal(mean, std, size=(5, *mean.shape))
    pairs = np.abs(few[:, None] - few[None]).sum(axis=(0, 1)) / (2 * 5 * 4)
    assert metrics.crps_samples(few, truth) == pytest.approx(np.mean(np.abs(few - truth).mean(axis=0) - pairs), rel=1e-12)
    estimates = [metrics.crps_samples(generator.normal(mean, std, size=(4, *mean.shape)), truth) for _ in range(400)]
    error = np.std(estimates) / np.sqrt(400)
    assert abs(np.mean(estimates) - metrics.crps_gaussian(mean, std, truth)) < 4 * error


def test_crps_from_intervals(gaussian):
    mean, std, truth = gaussian
    exact = metrics.crps_gaussian(mean, std, truth)
    assert metrics.crps(GaussianPosterior(mean, std), truth) == pytest.approx(exact, rel=1e-3)
    skewed, value = ShiftedExponential(np.zeros((1, 1))), np.array([[1.3]])
    expected = crps_by_quadrature(lambda z: float(stats.expon.cdf(z + 1)), 1.3)
    assert metrics.crps(skewed, value) == pytest.approx(expected, rel=2e-3)


@dataclass(frozen=True)
class MixturePosterior:
    """Means, stds (M, n, T) and weights, with intervals wide enough to hold every component."""

    weights: np.ndarray
    means: np.ndarray
    stds: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        return np.tensordot(self.weights, self.means, axes=1)

    def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        half = stats.norm.ppf((1 + level) / 2) * self.stds
        return (self.means - half).min(axis=0), (self.means + half).max(axis=0)

    def cdf(self, values: np.ndarray) -> np.ndarray:
        return np.tensordot(self.weights, stats.norm.cdf(values, self.means, self.stds), axes=1)


def test_crps_from_distribution_functions(mixture):
    weights, means, stds, truth = mixture
    for shift in (0.0, 30.0, -30.0):
        exact = metrics.crps_mixture(weights, means, stds, truth + shift)
        assert metrics.crps(MixturePosterior(weights, means, stds), truth + shift) == pytest.approx(exact, rel=1e-5)


def test_calibration_plot_shows_each_curve(gaussian):
    mean, std, truth = gaussian
    curve = metrics.calibration_curve(GaussianPosterior(mean, std), truth, levels=(0.5, 0.9))
    axes = metrics.plot_calibration({"ours": curve})
    drawn = axes.get_lines()[1]
    np.testing.assert_allclose(drawn.get_xdata(), [0.5, 0.9])
    np.testing.assert_allclose(drawn.get_ydata(), curve.observed)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["ours"]


def test_a_prediction_that_is_not_a_number_is_not_overlooked():
    mean, truth = np.array([[1.0], [np.nan]]), np.array([[1.0], [2.0]])
    assert np.isnan(metrics.rmse(mean, truth))
    assert np.isnan(metrics.crps_gaussian(mean, np.ones((2, 1)), truth))
