"""Mixtures over hyperparameters: joint covariances and draws, and marginals of skewed components."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sumgp.numerics import Bracket, bracketed_roots, root, standard_normal
from sumgp.prediction.marginals import Points
from sumgp.solvers import JointSum
from sumgp.strategies import Fitted, Marginals


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
    if not count:
        return np.zeros((0, len(points.x), len(noise_scale)))
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
