"""Marginals at single points: Gaussian mixtures, and draws where the law bends or a bound is near.

Draws that belong to a point are the same standard normal numbers at every point, moved onto the law there. What is read off
them at one point (interval ends, spread, probabilities) does not depend on which other points are predicted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import logsumexp, ndtr, ndtri
from scipy.stats import qmc

from sumgp.laws import UnitFreeLaw, projected_draws
from sumgp.numerics import LOG_2PI
from sumgp.prediction.closed_noise import drawn_measurements, noise_variances
from sumgp.priors import canonical_order
from sumgp.strategies import Fitted, LocalPosterior, Unprojected, join_points

if TYPE_CHECKING:
    from sumgp.prediction.posterior import Posterior


class Points(NamedTuple):
    """Prediction points: unit-free inputs (n, D) and the user's (n, D + E)."""

    inputs: np.ndarray
    x: np.ndarray


NO_SPREAD = 1e-150  # stands for none, where a law fixes a value: its inverse is a number
FAR_OUT = 1e3  # standard deviations: the density there is zero in floating point
PRECISION = 1e-9  # of a quantile, in standard deviations of the narrowest component


@dataclass(frozen=True, eq=False)
class GaussianMixture:
    """K weighted Gaussians at each of n points and T outputs: means and sds (K, n, T), weights (K,)."""

    means: np.ndarray
    sds: np.ndarray
    weights: np.ndarray

    def cdf(self, values: np.ndarray) -> np.ndarray:
        """(n, T) probability below ``values``."""
        return np.einsum("k,knt->nt", self.weights, ndtr((values - self.means) / self.sds))

    def log_density(self, values: np.ndarray) -> np.ndarray:
        """(n, T) log densities at ``values``."""
        z = (values - self.means) / self.sds
        parts = -0.5 * z**2 - np.log(self.sds) - 0.5 * LOG_2PI + np.log(self.weights)[:, None, None]
        return logsumexp(parts, axis=0)

    @property
    def std(self) -> np.ndarray:
        """(n, T) standard deviations."""
        centre = np.einsum("k,knt->nt", self.weights, self.means)
        return np.sqrt(np.einsum("k,knt->nt", self.weights, self.sds**2 + (self.means - centre) ** 2))

    def quantile(self, probability: float) -> np.ndarray:
        """(n, T) quantiles."""
        return mixture_quantile(self.means, self.sds, self.weights, probability)


def mixture_quantile(means: np.ndarray, sds: np.ndarray, weights: np.ndarray, probability: float) -> np.ndarray:
    """(n, T) quantiles of Gaussian mixtures with means, sds (K, n, T) and weights (K,), by safeguarded Newton steps."""
    ends = means + ndtri(probability) * sds
    if len(weights) == 1:
        return ends[0]
    # The quantile lies between the smallest and the largest of the components' own quantiles.
    low, high = ends.min(axis=0).ravel(), ends.max(axis=0).ravel()
    value = np.einsum("k,knt->nt", weights, ends).ravel()
    flat_means, flat_sds = means.reshape(len(weights), -1), np.maximum(sds, NO_SPREAD).reshape(len(weights), -1)
    going = np.arange(len(value))
    for _ in range(60):
        m, sd, v = flat_means[:, going], flat_sds[:, going], value[going]
        s = np.clip((v - m) / sd, -FAR_OUT, FAR_OUT)
        # Not as matrix products, which round otherwise where other points are open too.
        F = np.einsum("k,kp->p", weights, ndtr(s))
        density = np.einsum("k,kp->p", weights / np.sqrt(2.0 * np.pi), np.exp(-0.5 * s**2) / sd)
        below = probability > F
        low[going], high[going] = np.where(below, v, low[going]), np.where(below, high[going], v)
        with np.errstate(all="ignore"):
            newton = v - (F - probability) / density
        inside = np.isfinite(newton) & (newton > low[going]) & (newton < high[going])
        value[going] = np.where(inside, newton, 0.5 * (low[going] + high[going]))
        going = going[np.abs(value[going] - v) >= PRECISION * sd.min(axis=0)]
        if not len(going):
            break
    return value.reshape(means.shape[1:])


SEPARATE = 4.0  # a gap between component means that separates branches, in the components' own standard deviations


def likelier_mean(means: np.ndarray, variances: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(n, C) weighted means of component means (K, n, C), at each point of those on the likelier side of a wide gap, if
    there is one. ``variances`` (K, n, T) are the components' own, of the outputs, which are the first T columns."""
    count, n, T = variances.shape
    if count == 1:
        return means[0]
    outputs = means[:, :, :T]
    ordered = np.sort(outputs, axis=0)
    own = np.sqrt(np.tensordot(weights, np.maximum(variances, 0.0), axes=1))  # (n, T)
    ratios = np.diff(ordered, axis=0) / np.maximum(own, 1e-300)
    widest = ratios.transpose(1, 0, 2).reshape(n, -1).argmax(axis=1)
    place, output = np.divmod(widest, T)
    points = np.arange(n)
    separate = ratios[place, points, output] > SEPARATE
    below = outputs[:, points, output] <= ordered[place, points, output]  # (K, n)
    side = np.where(weights @ below >= 0.5, below, ~below)
    share = weights[:, None] * np.where(separate, side, True)
    return np.einsum("kn,knc->nc", share, means) / share.sum(axis=0)[:, None]


# Share of an output's variance due to the law's curvature above which draws tell its distribution. A parabola's end is
# nearer than a Gaussian's 97.5 % quantile from a share of 3 % on, nearer than its 99.95 % quantile from 1 %.
BENT = 0.01


class Centres(NamedTuple):
    """Unit-free means (n, C) of a mixture and its covariances (n, C, C), of all columns."""

    mean: np.ndarray
    covariance: np.ndarray


def point_centres(fitted: Fitted, n_outputs: int, points: Points) -> Centres:
    """Of the mixture at some points."""
    return _centres(fitted, n_outputs, fitted.local_posteriors(*points))


def _centres(fitted: Fitted, T: int, parts: Sequence[LocalPosterior]) -> Centres:
    weights, mean = fitted.weights, np.stack([p.mean for p in parts])
    bends_law = fitted.law is not None and not fitted.law.is_linear
    variance = np.stack([np.einsum("ncc->nc", p.covariance)[:, :T] for p in parts])
    centre = likelier_mean(mean, variance, weights) if bends_law else np.einsum("k,knc->nc", weights, mean)
    if fitted.law is not None:
        # Constants are one value for all points: the mixture's own mean of them.
        unknown = fitted.law.constants
        centre[:, unknown] = np.einsum("k,knc->nc", weights, mean[:, :, unknown])
    offset = mean - centre
    covariance = np.einsum("k,kncd->ncd", weights, np.stack([p.covariance for p in parts]))
    return Centres(centre, covariance + np.einsum("k,knc,knd->ncd", weights, offset, offset))


@dataclass(frozen=True, eq=False)
class PointMarginals:
    """Unit-free: the mixture of the outputs, its centres, and the points whose marginals are told by draws, because they
    are strongly bent or near a bound."""

    mixture: GaussianMixture
    centres: Centres
    drawn: np.ndarray  # (n,)
    drawn_parts: list[Unprojected]  # of each component, at these points


def point_marginals(
    fitted: Fitted, n_outputs: int, points: Points, near: Callable[[GaussianMixture, np.ndarray], np.ndarray] | None
) -> PointMarginals:
    """Marginals at some points; ``near`` tells those whose mixture comes near a bound."""
    weights, T, x = fitted.weights, n_outputs, points.x
    parts = fitted.local_posteriors(*points)
    means = np.stack([p.mean[:, :T] for p in parts])
    variance = np.stack([np.einsum("ncc->nc", p.covariance)[:, :T] for p in parts])
    drawn = np.zeros(len(x), dtype=bool)
    bends = [p.curved.bend for p in parts if p.curved is not None]
    if len(bends) == len(parts):
        extra = np.stack([b.variance[:, :T] for b in bends])
        means = means + np.stack([b.shift[:, :T] for b in bends])
        drawn = np.any(np.einsum("k,knt->nt", weights, extra / (variance + extra + 1e-300)) > BENT, axis=1)
        variance = variance + extra
    mixture = GaussianMixture(means, np.sqrt(np.maximum(variance, 1e-300)), weights)
    if near is not None:
        drawn = drawn | near(mixture, x)
    starts = [Unprojected(p.mean, p.covariance) if p.curved is None else p.curved.free for p in parts] if drawn.any() else []
    return PointMarginals(mixture, _centres(fitted, T, parts), drawn, [start.at(drawn) for start in starts])


def join_centres(parts: Iterable[Centres]) -> Centres:
    """The points of all parts in turn."""
    return Centres(*map(np.concatenate, zip(*parts, strict=True)))


def join_marginals(parts: Sequence[PointMarginals]) -> PointMarginals:
    """The points of all parts in turn."""
    means, sds = [p.mixture.means for p in parts], [p.mixture.sds for p in parts]
    return PointMarginals(
        GaussianMixture(np.concatenate(means, axis=1), np.concatenate(sds, axis=1), parts[0].mixture.weights),
        join_centres(p.centres for p in parts),
        np.concatenate([p.drawn for p in parts]),
        [join_points(some) for some in zip(*(p.drawn_parts for p in parts if p.drawn_parts), strict=True)],
    )


BANDWIDTH = 0.9  # of the smoothed density, times the spread and M^(-1/5) (Silverman's rule)
INTERQUARTILE = 1.34  # of a Gaussian, in standard deviations


@dataclass(frozen=True, eq=False)
class DrawnMarginals:
    """M sorted draws (M, n, T) of each output at each point. The i-th stands for the probability (i - 1/2) / M, with
    straight lines between: quantiles stay within the draws, so that intervals end where a law does that all lie on."""

    draws: np.ndarray

    @property
    def std(self) -> np.ndarray:
        """(n, T) standard deviations."""
        return self.draws.std(axis=0)

    def quantile(self, probability: float) -> np.ndarray:
        """(n, T) quantiles."""
        last = len(self.draws) - 1
        place = float(np.clip(probability * (last + 1) - 0.5, 0.0, last))
        low = min(int(place), last - 1)
        return self.draws[low] + (place - low) * (self.draws[low + 1] - self.draws[low])

    def cdf(self, values: np.ndarray) -> np.ndarray:
        """(n, T) probabilities below ``values``, the inverse of ``quantile``."""
        last = len(self.draws) - 1
        below = np.sum(self.draws <= values, axis=0)
        low = np.clip(below - 1, 0, last - 1)[None]
        a, b = np.take_along_axis(self.draws, low, axis=0)[0], np.take_along_axis(self.draws, low + 1, axis=0)[0]
        share = np.divide(values - a, b - a, out=np.zeros_like(a), where=b > a)
        inside = (low[0] + np.clip(share, 0.0, 1.0) + 0.5) / (last + 1)
        return np.where(below == 0, 0.0, np.where(below > last, 1.0, inside))

    def log_density(self, values: np.ndarray) -> np.ndarray:
        """(n, T) log densities, smoothed by a Gaussian kernel. One part in M + 1 is a Gaussian with the moments of the
        draws: a value beyond all draws is unlikely, not impossible."""
        M = len(self.draws)
        quartiles = self.quantile(0.75) - self.quantile(0.25)
        tiny = np.finfo(float).tiny ** 0.5
        std = np.maximum(self.std, tiny)
        narrower = np.minimum(std, np.where(quartiles > 0, quartiles / INTERQUARTILE, std))
        width = np.maximum(BANDWIDTH * M**-0.2 * narrower, tiny)
        with np.errstate(under="ignore", over="ignore"):
            kernels = np.sum(np.exp(-0.5 * ((values - self.draws) / width) ** 2), axis=0) / width
            z = (values - self.draws.mean(axis=0)) / std
        # The Gaussian's logarithm is kept apart: far out its density underflows.
        far = -0.5 * z**2 - np.log(std)
        near = np.log(np.maximum(kernels, np.finfo(float).tiny))
        return np.logaddexp(near, far) - np.log(M + 1) - 0.5 * LOG_2PI


POWER = 9  # 512 draws: ends of 95 % intervals within 0.05 sd of those of many draws
SEED = 0  # of the scrambled Sobol numbers
NEGLIGIBLE = 1e-9  # eigenvalues of correlations that round-off may make
TIE = 1e-3  # bias that tells equal variances apart, in correlations
GOLDEN = 0.618  # ratio of the weights that tell a direction's two sides apart
AT_ONCE = 4_000_000  # draws times points times entries of a covariance: 32 MB an array


@dataclass(frozen=True, eq=False)
class CommonNumbers:
    """Which component each of M draws comes from (M,), standard normal numbers (M, C), and (M, 1 or T) for the noise.

    ``rank`` (C,): places of the columns in an order that does not depend on the one they are given in.
    """

    owners: np.ndarray
    normal: np.ndarray
    noise: np.ndarray
    rank: np.ndarray


def common_numbers(weights: np.ndarray, rank: np.ndarray, noises: int = 1) -> CommonNumbers:
    """Scrambled Sobol numbers; components get their share of the draws by weight, rounded up or down.

    ``noises``: 1 where only marginals count, T where the noise of all outputs is drawn together.
    """
    columns = len(rank)
    uniform = qmc.Sobol(columns + 1 + noises, scramble=True, seed=SEED).random_base2(POWER)
    owners = np.searchsorted(np.cumsum(weights) / np.sum(weights), uniform[:, 0], side="right")
    normal = ndtri(np.clip(uniform[:, 1:], 2.0**-40, 1.0 - 2.0**-40))
    return CommonNumbers(np.minimum(owners, len(weights) - 1), normal[:, :columns], normal[:, columns:], rank)


def point_draws(law: UnitFreeLaw | None, parts: Sequence[Unprojected], numbers: CommonNumbers, x: np.ndarray) -> np.ndarray:
    """(M, n, C) draws of the components' single points, each moved onto the law at x (n, ...) in the user's units.

    Parts without a metric, whose Gaussian lies on a linear law already, need not be moved. A draw of component k is
    m_k + S_k e with S_k S_k^T its covariance (see ``principal_root``).
    """
    n, C = parts[0].mean.shape
    step = max(1, AT_ONCE // (len(numbers.owners) * C * C))
    rows = [slice(start, start + step) for start in range(0, n, step)]
    return np.concatenate([_some(law, parts, numbers, x, some) for some in rows], axis=1)


def _some(
    law: UnitFreeLaw | None, parts: Sequence[Unprojected], numbers: CommonNumbers, x: np.ndarray, rows: slice
) -> np.ndarray:
    draws = np.empty((len(numbers.owners), *parts[0].mean[rows].shape))
    moves = law is not None and parts[0].metric is not None
    metrics = np.empty((*draws.shape, draws.shape[2])) if moves else draws
    for k in np.unique(numbers.owners):
        part, own = parts[k], numbers.owners == k
        root = principal_root(part.covariance[rows], numbers.rank)
        draws[own] = part.mean[rows] + np.einsum("ncd,kd->knc", root, numbers.normal[own])
        if part.metric is not None and moves:
            metrics[own] = part.metric[rows]
    return projected_draws(law, draws, metrics, x[rows]) if law is not None and moves else draws


def principal_root(covariance: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """(n, C, C) S with S S^T = covariance, the directions of largest variance first, where Sobol numbers are most even.

    S = R V: R is the symmetric root of the covariance, V are eigenvectors of its correlations. A small bias towards the
    columns of low ``rank`` (C,), and a fixed side for each direction, make V the same whatever round-off does.
    """
    C = covariance.shape[1]
    sd = np.sqrt(np.maximum(np.einsum("ncc->nc", covariance), 0.0))
    size = np.where(sd > 0, sd, 1.0)
    correlation = covariance / (size[:, :, None] * size[:, None, :])
    values, vectors = np.linalg.eigh(correlation)
    # Directions that round-off alone would open stay closed.
    roots = np.sqrt(np.where(values > NEGLIGIBLE, values, 0.0))
    root = (vectors * roots[:, None, :]) @ vectors.mT
    _, V = np.linalg.eigh(correlation + TIE * np.diag((C - rank) / C))
    V = V[:, :, ::-1]
    side = np.where(np.einsum("c,ncd->nd", GOLDEN**rank, V) < 0, -1.0, 1.0)
    return sd[:, :, None] * (root @ (V * side[:, None, :]))


def drawn_marginals(posterior: Posterior, parts: Sequence[Unprojected], points: np.ndarray) -> DrawnMarginals:
    """Marginals, in the user's units, at the ``points`` (n,) of a posterior whose components there are ``parts``."""
    fitted, data, T = posterior.fitted, posterior.data, len(posterior.output_names)
    law, C, rows = fitted.law, parts[0].mean.shape[1], data.order
    slopes = np.zeros(C)
    if law is not None:
        # Outputs that were never measured are told apart by their place in the law.
        slopes = np.abs(law.jacobian(np.ones((1, C)), data.x[rows][:1])).sum(axis=(0, 1))
    order = canonical_order(posterior.scaling.outputs(data.y[rows]), data.output_names, slopes[:T])
    closed = posterior.noisy and posterior.closed and posterior.ends is not None
    rank = np.concatenate([np.argsort(order), np.arange(T, C)])
    numbers = common_numbers(fitted.weights, rank, T if closed else 1)
    columns = point_draws(law, parts, numbers, posterior.x[points])
    if closed:
        return DrawnMarginals(np.sort(drawn_measurements(posterior, columns, numbers, points), axis=0))
    draws = posterior.outputs_of(columns, points)
    if posterior.noisy:
        sds = posterior.scaling.y_scale * np.sqrt(noise_variances(posterior, points))[numbers.owners]
        draws = draws + numbers.noise[:, :, None] * sds
        draws = draws if posterior.ends is None else posterior.ends.at(points).clipped(draws)
    return DrawnMarginals(np.sort(draws, axis=0))
