"""Single points of a mixture of components: Gaussians in the law's tangent, and the points where its curvature counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sumgp.data import Scaling
from sumgp.prediction.branches import likelier_mean
from sumgp.prediction.gaussian_mixture import GaussianMixture
from sumgp.strategies import Fitted, LocalPosterior, MovedOntoLaw, PosteriorComponent, Unprojected, joined, local_posteriors

# Share of an output's variance due to the law's curvature above which draws tell its distribution. A parabola's end is
# nearer than a Gaussian's 97.5 % quantile from a share of 3 % on, nearer than its 99.95 % quantile from 1 %.
BENT = 0.01


@dataclass(frozen=True, eq=False)
class PointMarginals:
    """Unit-free: the mixture of the outputs, mean (n, C) and covariance (n, C, C) of all columns, and which points' marginals
    draws tell: strongly bent ones, and those near a bound."""

    mixture: GaussianMixture
    centre: np.ndarray
    covariance: np.ndarray
    drawn: np.ndarray  # (n,)
    drawn_parts: list[Unprojected]  # of each component, at these points


def local_parts(components: tuple[PosteriorComponent, ...], inputs: np.ndarray, x: np.ndarray) -> list[LocalPosterior]:
    """Local posteriors of all components."""
    known = [c for c in components if isinstance(c, MovedOntoLaw)]
    if len(known) == len(components):
        return local_posteriors(known, inputs, x)
    first: Any = components[0]
    if hasattr(first, "marginals_of_all"):
        return [LocalPosterior(*found) for found in first.marginals_of_all(components, inputs, x)]
    return [LocalPosterior(*c.marginals(inputs, x)) for c in components]


def point_marginals(
    fitted: Fitted, scaling: Scaling, x: np.ndarray, near: Callable[[GaussianMixture, np.ndarray], np.ndarray] | None
) -> PointMarginals:
    """Marginals at x (n, ...) in the user's units; ``near`` tells points whose mixture comes near a bound."""
    n_outputs, inputs = len(scaling.y_scale), scaling.inputs(x)
    weights, T = fitted.weights, n_outputs
    parts = local_parts(fitted.components, inputs, x)
    mean = np.stack([p.mean for p in parts])
    variance = np.stack([np.einsum("ncc->nc", p.covariance)[:, :T] for p in parts])
    bends_law = fitted.law is not None and not fitted.law.is_linear
    centre = likelier_mean(mean, variance, weights) if bends_law else np.einsum("k,knc->nc", weights, mean)
    if fitted.law is not None:
        # Constants are one value for all points: the mixture's own mean of them.
        unknown = slice(T, T + len(fitted.law.law.unknowns))
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
