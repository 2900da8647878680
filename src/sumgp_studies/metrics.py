"""Scores of predictions: error, violation of the law, and how far the stated uncertainty can be trusted.

Shapes: ``mean``, ``truth``, ``lower``, ``upper``, ``std`` are (n, T): n points, T outputs. A mixture of M Gaussians has
``weights`` (M,), ``means`` and ``stds`` (M, n, T). Truths that are NaN (not known) are left out of every average.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from scipy.special import ndtr

from sumgp.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Of the calibration curve: even, and the two that people state.
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_NODES = 32  # of quadrature over quantiles
_DISTRIBUTION_NODES = 60  # over values, where a narrow component of a mixture must not fall between two nodes


class HasIntervals(Protocol):
    """The part of a posterior that the scores need."""

    mean: np.ndarray

    def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """(lower, upper), each (n, T), holding ``level`` of the probability of each value."""


@runtime_checkable
class HasLogDensity(Protocol):
    """A posterior that knows its own marginal densities."""

    def log_density(self, values: np.ndarray) -> np.ndarray:
        """(n, T) log density of each value under the marginal of its point and output."""


@runtime_checkable
class HasDistribution(Protocol):
    """A posterior that knows its own marginal distribution functions."""

    def cdf(self, values: np.ndarray) -> np.ndarray:
        """(n, T) probability of an output below each value."""


@runtime_checkable
class MayBeGaussianMixture(Protocol):
    """A posterior that may be a mixture of Gaussians."""

    def gaussian_mixture(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Weights (M,), means and stds (M, n, T), or None if it is no such mixture."""


def rmse(mean: np.ndarray, truth: np.ndarray) -> float:
    """Root of the mean squared error over points and outputs."""
    mean, truth = _same_shape(mean, truth)
    return float(np.sqrt(_mean_where_known((mean - truth) ** 2, truth)))


def rmse_norm(mean: np.ndarray, truth: np.ndarray) -> float:
    """Root of the mean over points of the squared error summed over outputs: sqrt(T) times ``rmse`` if none is missing."""
    mean, truth = _same_shape(mean, truth)
    squares = np.where(np.isnan(truth), 0.0, (mean - truth) ** 2)
    return float(np.sqrt(np.mean(np.sum(squares.reshape(len(truth), -1), axis=1))))


def violation(residual: np.ndarray) -> float:
    """Mean |g| over points and laws, for residuals g = F h(f) - S of any shape."""
    return float(np.mean(np.abs(residual)))


def coverage(lower: np.ndarray, upper: np.ndarray, truth: np.ndarray) -> float:
    """Share of the true values inside [lower, upper]; NaN bounds (no interval given) make it NaN."""
    lower, truth = _same_shape(lower, truth)
    upper, truth = _same_shape(upper, truth)
    known = np.isfinite(truth)
    if np.any(np.isnan(lower[known])) or np.any(np.isnan(upper[known])):
        return float("nan")
    return float(np.mean((lower[known] <= truth[known]) & (truth[known] <= upper[known])))


def coverage_at(posterior: HasIntervals, truth: np.ndarray, levels: Sequence[float] = LEVELS) -> np.ndarray:
    """(len(levels),) share of the true values inside the central interval of each level.

    A value lies inside the interval of level l if its probability F obeys |2 F - 1| <= l, which needs no quantiles.
    """
    truth = np.asarray(truth, dtype=float)
    if not isinstance(posterior, HasDistribution):
        return np.array([coverage(*posterior.interval(level), truth) for level in levels])
    known = np.isfinite(truth)
    centrality = np.abs(2.0 * posterior.cdf(truth)[known] - 1.0)
    return np.array([float(np.mean(centrality <= level)) for level in levels])


def sharpness(lower: np.ndarray, upper: np.ndarray) -> float:
    """Mean width of the intervals: of two with the right coverage, the narrower is the better."""
    lower, upper = _same_shape(lower, upper)
    return float(np.mean(upper - lower))


def nlpd_gaussian(mean: np.ndarray, std: np.ndarray, truth: np.ndarray) -> float:
    """Mean negative log density of the truth: mean of log(std sqrt(2 pi)) + ((truth - mean) / std)^2 / 2."""
    mean, truth = _same_shape(mean, truth)
    std, truth = _same_shape(std, truth)
    return -_mean_where_known(_log_normal(mean, std, truth), truth)


def nlpd(posterior: HasIntervals, truth: np.ndarray) -> float:
    """Mean negative log density of the truth under a posterior.

    The posterior's own ``log_density`` is used where it has one; else a Gaussian with its mean and, as standard
    deviation, half the width of its 68.27 % interval.
    """
    if isinstance(posterior, HasLogDensity):
        truth = np.asarray(truth, dtype=float)
        return -_mean_where_known(posterior.log_density(truth), truth)
    lower, upper = posterior.interval(float(ndtr(1.0) - ndtr(-1.0)))
    return nlpd_gaussian(posterior.mean, (upper - lower) / 2.0, truth)


def crps_gaussian(mean: np.ndarray, std: np.ndarray, truth: np.ndarray) -> float:
    """Mean continuous ranked probability score of Gaussians: E|X - y| - E|X - X'| / 2, in closed form."""
    mean, truth = _same_shape(mean, truth)
    std, truth = _same_shape(std, truth)
    return _mean_where_known(_mean_absolute(truth - mean, std) - std / np.sqrt(np.pi), truth)


def crps_mixture(weights: np.ndarray, means: np.ndarray, stds: np.ndarray, truth: np.ndarray) -> float:
    """Mean CRPS of Gaussian mixtures, in closed form.

    sum_i w_i A(y - mu_i, s_i) - 1/2 sum_ij w_i w_j A(mu_i - mu_j, (s_i^2 + s_j^2)^(1/2)) with A(d, s) = E|d + s Z|.
    """
    weights, means, stds, truth = _mixture(weights, means, stds, truth)
    score = np.tensordot(weights, _mean_absolute(truth[None] - means, stds), axes=1)
    # One component against all others at a time keeps memory at M n T instead of M^2 n T.
    for weight, mean, std in zip(weights, means, stds, strict=True):
        pairs = _mean_absolute(means - mean[None], np.hypot(stds, std[None]))
        score -= 0.5 * weight * np.tensordot(weights, pairs, axes=1)
    return _mean_where_known(score, truth)


def crps_samples(samples: np.ndarray, truth: np.ndarray) -> float:
    """Mean CRPS estimated without bias from M >= 2 samples (M, n, T).

    mean_i|x_i - y| - sum_{i<j}|x_i - x_j| / (M (M - 1)).
    """
    samples = np.sort(np.asarray(samples, dtype=float), axis=0)
    truth = np.asarray(truth, dtype=float)
    n_samples = len(samples)
    if n_samples < 2 or samples.shape[1:] != truth.shape:
        raise DataError("samples", f"at least two of shape {truth.shape}", f"an array {samples.shape}", "draw samples first")
    # For sorted values the sum over pairs is linear in the order statistics, so no M x M array is needed.
    ranks = 2.0 * np.arange(1, n_samples + 1) - n_samples - 1.0
    spread = np.tensordot(ranks, samples, axes=1) / (n_samples * (n_samples - 1.0))
    return _mean_where_known(np.mean(np.abs(samples - truth[None]), axis=0) - spread, truth)


def crps(posterior: HasIntervals, truth: np.ndarray, nodes: int = _DISTRIBUTION_NODES) -> float:
    """Mean CRPS of any posterior: in closed form for a mixture of Gaussians, else by quadrature.

    With a distribution function F it is the integral of (F(z) - 1[z >= y])^2, taken on both sides of the truth y; without
    one, twice the pinball loss integrated over the quantiles that intervals give (good to about 0.2 % for a Gaussian).
    ``nodes`` are those on each side of the truth.
    """
    truth = np.asarray(truth, dtype=float)
    mixture = posterior.gaussian_mixture() if isinstance(posterior, MayBeGaussianMixture) else None
    if mixture is not None:
        return crps_mixture(*mixture, truth)
    known = isinstance(posterior, HasDistribution)
    score = _crps_of_distribution(posterior, truth, nodes) if known else _crps_of_intervals(posterior, truth)  # type: ignore[arg-type]
    return _mean_where_known(score, truth)


class _HasBoth(HasIntervals, HasDistribution, Protocol):
    """Intervals and distribution functions."""


def _crps_of_distribution(posterior: _HasBoth, truth: np.ndarray, count: int) -> np.ndarray:
    lower, upper = posterior.interval(0.95)
    width = upper - lower
    # About six standard deviations to both sides: beyond, nothing is left.
    lower, upper = lower - width, upper + width
    middle = np.clip(truth, lower, upper)
    nodes, node_weights = np.polynomial.legendre.leggauss(count)
    # Beyond the interval F is 0 or 1, so that what is left of the integral is a distance.
    score = np.abs(truth - middle)
    for u, weight in zip((nodes + 1.0) / 2.0, node_weights / 2.0, strict=True):
        below = posterior.cdf(lower + u * (middle - lower)) ** 2
        above = (1.0 - posterior.cdf(middle + u * (upper - middle))) ** 2
        score += weight * ((middle - lower) * below + (upper - middle) * above)
    return score


def _crps_of_intervals(posterior: HasIntervals, truth: np.ndarray) -> np.ndarray:
    """An interval of level l holds the quantiles (1 - l)/2 and (1 + l)/2; l = 1 - u^3 puts more nodes into the tails."""
    nodes, node_weights = np.polynomial.legendre.leggauss(_NODES)
    score = np.zeros(truth.shape)
    for u, weight in zip((nodes + 1.0) / 2.0, node_weights / 2.0, strict=True):
        level = 1.0 - u**3
        lower, upper = posterior.interval(float(level))
        both = _pinball(truth - lower, (1.0 - level) / 2.0) + _pinball(truth - upper, (1.0 + level) / 2.0)
        score += weight * 3.0 * u**2 * both
    return score


@dataclass(frozen=True)
class CalibrationCurve:
    """Observed against nominal coverage: ``levels`` and ``observed`` (L,), from ``n_values`` true values."""

    levels: np.ndarray
    observed: np.ndarray
    n_values: int

    @property
    def error(self) -> float:
        """Mean |observed - stated| coverage over the levels."""
        return float(np.mean(np.abs(self.observed - self.levels)))


def calibration_curve(posterior: HasIntervals, truth: np.ndarray, levels: Sequence[float] = LEVELS) -> CalibrationCurve:
    """Coverage of the central intervals at several levels; a trustworthy posterior lies on the diagonal."""
    n_values = int(np.sum(np.isfinite(truth)))
    return CalibrationCurve(np.asarray(levels, dtype=float), coverage_at(posterior, truth, levels), n_values)


def plot_calibration(curves: Mapping[str, CalibrationCurve], axes: Axes | None = None) -> Axes:
    """Draw observed against nominal coverage, one line per name, with the diagonal for reference."""
    if axes is None:
        # Imported here because matplotlib takes longer to load than everything else in this file together.
        import matplotlib.pyplot as plt

        axes = plt.subplots(figsize=(4.0, 4.0), layout="constrained")[1]
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=1.0, linestyle="--", zorder=1)
    for name, curve in curves.items():
        axes.plot(curve.levels, curve.observed, marker="o", markersize=3.5, linewidth=1.4, label=name)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="nominal coverage", ylabel="observed coverage")
    if curves:
        axes.legend(frameon=False, loc="upper left")
    return axes


def _mean_where_known(scores: np.ndarray, truth: np.ndarray) -> float:
    """Mean over the known truths; a prediction that is NaN there makes it NaN instead of passing unnoticed."""
    known = np.isfinite(truth)
    return float(np.mean(scores[known])) if np.any(known) else float("nan")


def _same_shape(values: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values, truth = np.asarray(values, dtype=float), np.asarray(truth, dtype=float)
    if values.shape != truth.shape:
        raise DataError("truth", f"shape {values.shape}", f"{truth.shape}", "give one true value per prediction")
    return values, truth


def _mixture(
    weights: np.ndarray, means: np.ndarray, stds: np.ndarray, truth: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    weights, means, stds, truth = (np.asarray(a, dtype=float) for a in (weights, means, stds, truth))
    expected = (len(weights), *truth.shape)
    if means.shape != expected or stds.shape != expected:
        got = f"{means.shape} and {stds.shape}"
        raise DataError("means, stds", f"shape {expected}", got, "give one mean and std per component and value")
    return weights, means, stds, truth


def _log_normal(mean: np.ndarray, std: np.ndarray, value: np.ndarray) -> np.ndarray:
    # A standard deviation of zero states certainty: density 0 off the mean, infinite on it.
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(std > 0, (value - mean) / std, np.where(value == mean, 0.0, np.inf))
        penalty = np.where(np.isinf(z), np.inf, np.log(std) + 0.5 * z**2)
    return np.where(np.isnan(value), np.nan, -0.5 * np.log(2.0 * np.pi) - penalty)


def _mean_absolute(shift: np.ndarray, std: np.ndarray) -> np.ndarray:
    """E|shift + std Z| for a standard normal Z: 2 s phi(d/s) + d (2 Phi(d/s) - 1), |d| where s = 0."""
    z = np.divide(shift, std, out=np.zeros(np.broadcast_shapes(shift.shape, std.shape)), where=std > 0)
    spread = 2.0 * std * np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi) + shift * (2.0 * ndtr(z) - 1.0)
    return np.where(std > 0, spread, np.abs(shift))


def _pinball(error: np.ndarray, quantile: float) -> np.ndarray:
    return np.where(error >= 0, quantile * error, (quantile - 1.0) * error)
