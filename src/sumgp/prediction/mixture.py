"""Mixtures over hyperparameters: marginals at points, their quantiles, and joint covariances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, ndtr, ndtri

from sumgp.numerics import LOG_2PI, Bracket, bracketed_roots, root, standard_normal
from sumgp.prediction.point_draws import likelier_mean
from sumgp.strategies import Fitted, JointSum, Marginals, Unprojected, joined


def mixture_covariance(fitted: Fitted, inputs: np.ndarray, x: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """(nT, nT) unit-free mean square deviations from ``centre`` (n, T), ordered point by point."""
    n, T = centre.shape
    joint, total = JointSum(n, T), np.zeros((n * T, n * T))
    offsets = []
    for weight, component in zip(fitted.weights, fitted.components, strict=True):
        whole = component.joint_gaussian(inputs, x)
        if whole is not None:
            part = whole.outputs(T)
            joint.add(part, weight)
            mean = part.mean
        else:
            C = component.n_columns
            mean = component.marginals(inputs, x)[0][:, :T]
            dense = component.joint_covariance(inputs, x).reshape(n, C, n, C)[:, :T, :, :T]
            total += weight * dense.reshape(n * T, n * T)
        offsets.append(np.sqrt(weight) * (mean - centre).ravel())
    joint.add_squares(np.stack(offsets, axis=1))
    total += joint.matrix()
    return total


def with_variances(total: np.ndarray, scale: np.ndarray, std: np.ndarray) -> np.ndarray:
    """A covariance (m, m) times ``scale`` (m,), with these standard deviations (m,).

    The law's curvature changes single points: where it narrows them their correlations stay; what it adds to their
    variances has no correlations we know of.
    """
    total *= scale
    total *= scale[:, None]
    own = np.sqrt(np.maximum(np.diagonal(total), 0.0))
    narrower = np.divide(std, own, out=np.ones_like(own), where=own > std)
    total *= narrower
    total *= narrower[:, None]
    total[np.diag_indices(len(total))] = std**2
    return total


class Points(NamedTuple):
    """Prediction points: unit-free inputs (n, D) and the user's (n, D + E)."""

    inputs: np.ndarray
    x: np.ndarray


def mixture_draws(
    fitted: Fitted,
    points: Points,
    outputs_of: Callable[[np.ndarray, np.ndarray], np.ndarray],
    noise_scale: np.ndarray,
    count: int,
    random_state: int,
) -> np.ndarray:
    """(count, n, T) joint draws of the outputs and of their noise.

    ``outputs_of`` makes outputs from unit-free columns and the noise variances (T,) of their component.

    The noise of measurements is multiplied by ``noise_scale`` (T,): the outputs' scales, or zeros for true values.
    """
    generator = np.random.default_rng(random_state)
    owners = np.sort(generator.choice(len(fitted.weights), size=count, p=fitted.weights))
    parts = []
    for owner in np.unique(owners):
        component = fitted.components[owner]
        draws = component.sample(points.inputs, points.x, int(np.sum(owners == owner)), generator)
        outputs = outputs_of(draws, component.noise_covariance)
        if np.any(noise_scale):
            noise = generator.standard_normal(outputs.shape) @ root(component.noise_covariance[None])[0]
            outputs = outputs + noise * noise_scale
        parts.append(outputs)
    return np.concatenate(parts)[generator.permutation(count)]


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
    z = ndtri(probability)
    ends = means + z * sds
    if len(weights) == 1:
        return ends[0]
    # The quantile lies between the smallest and the largest of the components' own quantiles.
    low, high = ends.min(axis=0).ravel(), ends.max(axis=0).ravel()
    value = np.einsum("k,knt->nt", weights, ends).ravel()
    flat_means, flat_sds = means.reshape(len(weights), -1), sds.reshape(len(weights), -1)
    going = np.arange(len(value))
    for _ in range(60):
        m, sd, v = flat_means[:, going], flat_sds[:, going], value[going]
        s = (v - m) / sd
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


MOST_WIDENED = 45  # doublings of a bracket that starts four spreads wide
SKEWED_PRECISION = 1e-10  # of a quantile, in probability
NARROW = 1e-8  # bracket around a jump of the distribution function, in spreads
POINTS_AT_ONCE = 20_000  # values in one call, which bounds memory
NODES = 12  # of the average over the noise of a new measurement


@dataclass(frozen=True, eq=False)
class SkewedMixture:
    """Weighted marginals (K of them), each with Gaussian noise of standard deviation ``noise`` (K, T) added; 0 = none."""

    parts: Sequence[Marginals]
    weights: np.ndarray
    noise: np.ndarray

    def cdf(self, values: np.ndarray) -> np.ndarray:
        """(n, T) probabilities of outputs below ``values`` (n, T)."""
        return self._averaged(values, "cdf")

    def density(self, values: np.ndarray) -> np.ndarray:
        """(n, T) densities at ``values`` (n, T)."""
        return self._averaged(values, "density")

    def _averaged(self, values: np.ndarray, what: str) -> np.ndarray:
        n, T = np.shape(values)
        total = np.zeros((n, T))
        noisy = bool(np.any(self.noise > 0))
        z, shares = standard_normal(NODES) if noisy else (np.zeros(1), np.ones(1))
        each = max(1, POINTS_AT_ONCE // (n * len(z)))
        for start in range(0, len(self.parts), each):
            some = slice(start, start + each)
            joined = self._joined(start, each)
            # (nodes, parts, n, T): a call for all parts costs little more than one for a single part.
            asked = values - z[:, None, None, None] * self.noise[some][:, None, :]
            flat = asked.reshape(len(z), -1, T)
            found = (joined.cdf(flat) if what == "cdf" else joined.density(flat)).reshape(asked.shape)
            total += np.einsum("z,k,zknt->nt", shares, self.weights[some], found)
        return total

    def _joined(self, start: int, count: int) -> Marginals:
        if (start, count) not in self._known_joined:
            first, *others = self.parts[start : start + count]
            self._known_joined[start, count] = first.followed_by(others)
        return self._known_joined[start, count]

    @cached_property
    def _known_joined(self) -> dict[tuple[int, int], Marginals]:
        """Quantiles ask for the same again and again."""
        return {}

    def quantile(self, probability: float, centre: np.ndarray, spread: np.ndarray) -> np.ndarray:
        """(n, T) values below which ``probability`` lies, in a bracket around centre and spread (n, T).

        The distribution function jumps where an interval ends at the edge of a domain.
        """
        kept = [(np.arange(len(centre)), self)]

        def missed(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
            if len(rows) < len(kept[0][0]):
                kept[0] = (rows, self.at(rows))
            return kept[0][1].cdf(values) - probability

        def close(miss: np.ndarray, width: np.ndarray, rows: np.ndarray) -> np.ndarray:
            return (np.abs(miss) < SKEWED_PRECISION) | (width < NARROW * spread[rows])

        return bracketed_roots(missed, self._bracket(probability, centre, spread), close)

    def at(self, rows: np.ndarray) -> SkewedMixture:
        """The mixture at some of its points."""
        return SkewedMixture([part.at(rows) for part in self.parts], self.weights, self.noise)

    def _bracket(self, probability: float, centre: np.ndarray, spread: np.ndarray) -> Bracket:
        """Ends (n, T) around the quantile, widened until they hold it, and how far the probability is missed there."""
        low, high = centre - 2.0 * spread, centre + 2.0 * spread
        below, above = self.cdf(low) - probability, self.cdf(high) - probability
        for _ in range(MOST_WIDENED):
            short, over = below > 0, above < 0
            if not (short.any() or over.any()):
                break
            low, high = np.where(short, low - (high - low), low), np.where(over, high + (high - low), high)
            below, above = self.cdf(low) - probability, self.cdf(high) - probability
        return Bracket(low, high, below, above)


# Share of an output's variance due to the law's curvature above which draws tell its distribution. A parabola's end is
# nearer than a Gaussian's 97.5 % quantile from a share of 3 % on, nearer than its 99.95 % quantile from 1 %.
BENT = 0.01


@dataclass(frozen=True, eq=False)
class PointMarginals:
    """Unit-free: the mixture of the outputs, mean (n, C) and covariance (n, C, C) of all columns; and the points whose
    marginals are told by draws, because they are strongly bent or near a bound."""

    mixture: GaussianMixture
    centre: np.ndarray
    covariance: np.ndarray
    drawn: np.ndarray  # (n,)
    drawn_parts: list[Unprojected]  # of each component, at these points


def point_marginals(
    fitted: Fitted, n_outputs: int, points: Points, near: Callable[[GaussianMixture, np.ndarray], np.ndarray] | None
) -> PointMarginals:
    """Marginals at some points; ``near`` tells those whose mixture comes near a bound."""
    weights, T = fitted.weights, n_outputs
    inputs, x = points
    parts = fitted.local_posteriors(inputs, x)
    mean = np.stack([p.mean for p in parts])
    variance = np.stack([np.einsum("ncc->nc", p.covariance)[:, :T] for p in parts])
    bends_law = fitted.law is not None and not fitted.law.is_linear
    centre = likelier_mean(mean, variance, weights) if bends_law else np.einsum("k,knc->nc", weights, mean)
    if fitted.law is not None:
        # Constants are one value for all points: the mixture's own mean of them.
        unknown = fitted.law.constants
        centre[:, unknown] = np.einsum("k,knc->nc", weights, mean[:, :, unknown])
    offset = mean - centre
    covariance = np.einsum("k,kncd->ncd", weights, np.stack([p.covariance for p in parts]))
    covariance = covariance + np.einsum("k,knc,knd->ncd", weights, offset, offset)
    means = mean[:, :, :T]
    drawn = np.zeros(len(x), dtype=bool)
    bends = [p.bend for p in parts if p.bend is not None]
    if len(bends) == len(parts):
        extra = np.stack([b.variance[:, :T] for b in bends])
        means = means + np.stack([b.shift[:, :T] for b in bends])
        drawn = np.any(np.einsum("k,knt->nt", weights, extra / (variance + extra + 1e-300)) > BENT, axis=1)
        variance = variance + extra
    sds = np.sqrt(np.maximum(variance, 1e-300))
    mixture = GaussianMixture(means, sds, weights)
    if near is not None:
        drawn = drawn | near(mixture, x)
    free = [(p.free or Unprojected(p.mean, p.covariance)).at(drawn) for p in parts] if drawn.any() else []
    return PointMarginals(mixture, centre, covariance, drawn, free)


def followed(parts: Sequence[PointMarginals]) -> PointMarginals:
    """The points of all parts in turn."""
    mixture = GaussianMixture(
        np.concatenate([p.mixture.means for p in parts], axis=1),
        np.concatenate([p.mixture.sds for p in parts], axis=1),
        parts[0].mixture.weights,
    )
    return PointMarginals(
        mixture,
        np.concatenate([p.centre for p in parts]),
        np.concatenate([p.covariance for p in parts]),
        np.concatenate([p.drawn for p in parts]),
        [joined(some) for some in zip(*(p.drawn_parts for p in parts if p.drawn_parts), strict=True)],
    )
