"""The posterior of single points: where it lies on the law, its Gaussian in the tangent, and how far that bends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from sumgp.inference.curvature import Bend, bend
from sumgp.inference.projection import project
from sumgp.inference.unitfree import UnitFreeLaw


@dataclass(frozen=True, eq=False)
class LocalPosterior:
    """Mean (n, C) and covariance (n, C, C) of single points; with a curved law its bend, and the metric of projection."""

    mean: np.ndarray
    covariance: np.ndarray
    bend: Bend | None = None
    metric: np.ndarray | None = None


@runtime_checkable
class KnowsItsBend(Protocol):
    """A component that tells the local posterior of points."""

    def local(self, x: np.ndarray, x_law: np.ndarray) -> LocalPosterior:
        """At x (n, D) as the kernels see it, ``x_law`` in the user's units."""


def moved_onto_law(
    law: UnitFreeLaw, mean: np.ndarray, covariance: np.ndarray, metric: np.ndarray, open_by_data: np.ndarray, x: np.ndarray
) -> LocalPosterior:
    """Project N(mean, covariance) at each point; ``open_by_data`` (n, C) are variances given the data alone.

    Far from the law's neighbourhood its second derivative says nothing: no bend exceeds what the data leave open.
    """
    projection = project(law, mean, metric, x)
    A = projection.projectors
    tangent = A @ covariance @ A.transpose(0, 2, 1)
    if law.is_linear:
        return LocalPosterior(projection.points, tangent)
    curved = bend(law, projection.points, tangent, projection.gain, x)
    share = np.minimum(1.0, open_by_data / np.maximum(curved.size**2, 1e-300))
    limited = Bend(np.sqrt(share) * curved.shift, share * curved.variance)
    return LocalPosterior(projection.points, tangent, limited, metric)


def pointwise_draws(
    law: UnitFreeLaw, local: LocalPosterior, x: np.ndarray, count: int, generator: np.random.Generator
) -> np.ndarray:
    """(count, n, C) draws of each point on its own, on the law."""
    assert local.metric is not None
    values, vectors = np.linalg.eigh(local.covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    noise = generator.standard_normal((count, *local.mean.shape))
    return projected_draws(law, local.mean + np.einsum("ncd,knd->knc", root, noise), local.metric, x)


def projected_draws(law: UnitFreeLaw, draws: np.ndarray, metric: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Draws (count, n, C) moved onto the law point by point."""
    count, n, C = draws.shape
    everywhere = np.tile(metric, (count, 1, 1)), np.tile(x, (count, 1))
    return project(law, draws.reshape(count * n, C), *everywhere).points.reshape(count, n, C)
