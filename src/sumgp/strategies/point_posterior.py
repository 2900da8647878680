"""The posterior of single points: where it lies on the law, its Gaussian in the tangent, and how far that bends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np

from sumgp.laws import Bend, UnitFreeLaw, bend, project

DRAW_HALVINGS = 30
FLAT = 0.05  # standard deviation across the law, relative to that along it, below which draws start in the tangent


@dataclass(frozen=True, eq=False)
class LocalPosterior:
    """Mean (n, C) and covariance (n, C, C) of single points; with a curved law its bend, and what its draws start from."""

    mean: np.ndarray
    covariance: np.ndarray
    bend: Bend | None = None
    free: Unprojected | None = None

    def at(self, rows: slice | np.ndarray) -> LocalPosterior:
        """Some of the points."""
        bent = None if self.bend is None else Bend(self.bend.shift[rows], self.bend.variance[rows])
        free = None if self.free is None else self.free.at(rows)
        return LocalPosterior(self.mean[rows], self.covariance[rows], bent, free)


@dataclass(frozen=True, eq=False)
class Unprojected:
    """Single points before they are moved onto the law: N(mean, covariance), the metric to move them in (None without
    a law), and the variances (n, C) that the data alone leave open."""

    mean: np.ndarray
    covariance: np.ndarray
    metric: np.ndarray | None = None
    open_by_data: np.ndarray | None = None

    def at(self, rows: slice | np.ndarray) -> Unprojected:
        """Some of the points."""
        metric = None if self.metric is None else self.metric[rows]
        left = None if self.open_by_data is None else self.open_by_data[rows]
        return Unprojected(self.mean[rows], self.covariance[rows], metric, left)


def joined(parts: Sequence[Unprojected]) -> Unprojected:
    """The points of all parts in turn."""
    mean, covariance = np.concatenate([part.mean for part in parts]), np.concatenate([part.covariance for part in parts])
    if parts[0].metric is None:
        return Unprojected(mean, covariance)
    return Unprojected(
        mean,
        covariance,
        np.concatenate([part.metric for part in parts if part.metric is not None]),
        np.concatenate([part.open_by_data for part in parts if part.open_by_data is not None]),
    )


@runtime_checkable
class MovedOntoLaw(Protocol):
    """A component that tells single points before projection, and the law they are to be moved onto."""

    @property
    def law(self) -> UnitFreeLaw | None:
        """None: there is nothing to move onto."""

    def unprojected(self, x: np.ndarray, x_law: np.ndarray) -> Unprojected:
        """At x (n, D) as the kernels see it, ``x_law`` in the user's units."""


def local_posteriors(components: Sequence[MovedOntoLaw], x: np.ndarray, x_law: np.ndarray) -> list[LocalPosterior]:
    """Local posteriors of components of one law, all moved onto it in one call."""
    parts = [component.unprojected(x, x_law) for component in components]
    law = components[0].law
    if law is None:
        return [LocalPosterior(part.mean, part.covariance) for part in parts]
    moved = moved_onto_law(law, joined(parts), np.tile(x_law, (len(parts), 1)))
    n = len(x_law)
    return [moved.at(slice(k * n, (k + 1) * n)) for k in range(len(parts))]


def moved_onto_law(law: UnitFreeLaw, free: Unprojected, x: np.ndarray) -> LocalPosterior:
    """Project each point onto the law at x in the user's units.

    Far from the law's neighbourhood its second derivative says nothing: no bend exceeds what the data leave open.
    """
    assert free.metric is not None and free.open_by_data is not None
    projection = project(law, free.mean, free.metric, x)
    A = projection.projectors
    tangent = A @ free.covariance @ A.transpose(0, 2, 1)
    if law.is_linear:
        return LocalPosterior(projection.points, tangent)
    with np.errstate(over="ignore", invalid="ignore"):
        curved = bend(law, projection.points, tangent, projection.gain, x)
        size = curved.size**2
        share = np.minimum(1.0, free.open_by_data / np.maximum(size, 1e-300))
        # An exponential a standard deviation away may be beyond all numbers.
        limited = Bend(
            np.where(np.isfinite(size), np.sqrt(share) * curved.shift, 0.0),
            np.where(np.isfinite(size), share * curved.variance, free.open_by_data),
        )
    # A spread across the law that is small against that along it is taken back by the projection of draws, but is known
    # to few digits only.
    across = np.eye(A.shape[1]) - A
    crossing = np.einsum("ncd,nde,nce->nc", across, free.covariance, across).max(axis=1)
    flat = crossing < (FLAT * FLAT) * np.einsum("ncc->nc", tangent).max(axis=1)
    drawn = replace(free, covariance=np.where(flat[:, None, None], tangent, free.covariance))
    return LocalPosterior(projection.points, tangent, limited, drawn)


def projected_draws(law: UnitFreeLaw, draws: np.ndarray, metric: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Draws (count, n, C) moved onto the law point by point, in one metric (n, C, C) for all or each in its own."""
    # Among many draws some start where the law is almost flat.
    count, n, C = draws.shape
    metrics = np.broadcast_to(metric, (count, n, C, C)).reshape(count * n, C, C)
    moved = project(law, draws.reshape(count * n, C), metrics, np.tile(x, (count, 1)), halvings=DRAW_HALVINGS)
    return moved.points.reshape(count, n, C)
