"""Posterior given data and law under one set of hyperparameters, in weight space, and what the law makes of it at points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from sumgp.laws import Bend, UnitFreeLaw, bend, project
from sumgp.lawsolve import LawSolution
from sumgp.numerics import solve_lower
from sumgp.priors import MultitaskPrior, lengthscale_mask
from sumgp.solvers import JointGaussian, WeightPosterior, build_features, condition_on_data
from sumgp.strategies.problem import FitProblem, PosteriorComponent

DRAW_HALVINGS = 30  # of a draw's step: among thousands some start where a law is almost flat
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


def join_points(parts: Sequence[Unprojected]) -> Unprojected:
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


class MovedOntoLaw(Protocol):
    """A component that tells single points before projection, and the law they are to be moved onto."""

    @property
    def law(self) -> UnitFreeLaw | None:
        """None: there is nothing to move onto."""

    def unprojected(self, x: np.ndarray, x_law: np.ndarray) -> Unprojected:
        """At x (n, D) as the kernels see it, ``x_law`` in the user's units."""


def local_posteriors(components: Sequence[MovedOntoLaw], x: np.ndarray, x_law: np.ndarray) -> list[LocalPosterior]:
    """Local posteriors of components; those with a law, which is the same for all, are moved onto it in one call."""
    parts = [component.unprojected(x, x_law) for component in components]
    result = [LocalPosterior(part.mean, part.covariance) for part in parts]
    laws, n = {k: c.law for k, c in enumerate(components) if c.law is not None}, len(x_law)
    if laws:
        moved = moved_onto_law(
            next(iter(laws.values())), join_points([parts[k] for k in laws]), np.tile(x_law, (len(laws), 1))
        )
        for place, k in enumerate(laws):
            result[k] = moved.at(slice(place * n, (place + 1) * n))
    return result


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
        # An exponential a standard deviation away may overflow.
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


TRACE = 1e-10  # of the largest local variance, added to every output's: no output is immovable


@dataclass(frozen=True)
class Taper:
    """exp(-|x - x'| / length) between points: how far the law at one point may speak about another (0 = not at all).

    Only outputs are tapered; constants shared by all points and soft errors keep their correlations.
    """

    length: float  # in lengthscales along each input
    lengthscale: np.ndarray  # (D,)
    n_outputs: int

    def between(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """(n, m) factors."""
        distance = np.sqrt(np.sum(((x[:, None, :] - z[None, :, :]) / self.lengthscale) ** 2, axis=2))
        if self.length == 0.0:
            return (distance == 0.0).astype(float)
        return np.exp(-distance / self.length)

    def apply(self, blocks: np.ndarray, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Multiply covariance blocks (n, C, m, C) between points x and z."""
        T = self.n_outputs
        result = blocks.copy()
        result[:, :T, :, :T] *= self.between(x, z)[:, None, :, None]
        result[:, :T, :, T:] = 0.0
        result[:, T:, :, :T] = 0.0
        return result


@dataclass(frozen=True)
class LawConditioning:
    """A solved law at fixed points: what every prediction point is conditioned on in addition to the data."""

    points: np.ndarray  # (n, D) as the kernels see them
    root: np.ndarray  # (n, C, weights) of the posterior at these points
    solution: LawSolution
    taper: Taper | None
    exact: bool = False  # a linear law: prediction points are conditioned in the covariance that the law has left

    def widened(self, factor: float) -> LawConditioning:
        """The same move onto the law with all standard deviations ``factor`` times as large."""
        return replace(self, root=factor * self.root, solution=self.solution.widened(factor))


@dataclass(frozen=True)
class Component(PosteriorComponent):
    """f | y, theta and the law, unit-free. Without ``law`` a plain Gaussian process."""

    posterior: WeightPosterior
    theta: np.ndarray
    noise: np.ndarray  # (T,) variances
    n_outputs: int
    law: UnitFreeLaw | None = None
    conditioning: LawConditioning | None = None

    @property
    def n_columns(self) -> int:
        """Outputs and the law's own columns."""
        return self.posterior.features.n_columns

    def widened(self, factor: float) -> Component:
        """The same means with all standard deviations ``factor`` times as large."""
        law = None if self.conditioning is None else self.conditioning.widened(factor)
        return replace(self, posterior=self.posterior.widened(factor), conditioning=law)

    def differentiated(self, order: tuple[int, ...], x_scale: np.ndarray) -> Component:
        """The derivatives of all outputs by inputs, given data and law; single points are not moved onto the law."""
        return replace(self, posterior=self.posterior.differentiated(order, x_scale), law=None)

    @staticmethod
    def local_posteriors(components: Sequence[Any], x: np.ndarray, x_law: np.ndarray) -> list[LocalPosterior]:
        """All moved onto the law in one call."""
        return local_posteriors(components, x, x_law)

    def distribution(self, x: np.ndarray, x_law: np.ndarray) -> None:
        """None: Gaussian."""

    def lengthscales(self) -> list[np.ndarray]:
        """Of the kernel of each term."""
        kernels = [term.kernel for term in self.posterior.features.terms if term.kernel is not None]
        return [np.exp(kernel.theta[lengthscale_mask(kernel)]) for kernel in kernels]

    def remembered_marginals(self, x: np.ndarray, x_law: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``marginals``, kept for the last points: a guide is asked for the same by each component."""
        key = x.tobytes() + x_law.tobytes()
        if key not in self._remembered:
            self._remembered.clear()
            self._remembered[key] = self.marginals(x, x_law)
        return self._remembered[key]

    @cached_property
    def _remembered(self) -> dict[bytes, tuple[np.ndarray, np.ndarray]]:
        return {}

    def unprojected(self, x: np.ndarray, x_law: np.ndarray) -> Unprojected:
        """Each point on its own, given the data and the law elsewhere, before it is moved onto the law."""
        mean, root, left, _ = self.posterior.at(x, x_law)
        data_only = root @ root.transpose(0, 2, 1) + left
        covariance = data_only
        if self.conditioning is not None:
            mean, gain = self._law_update(x, mean, root)
            covariance = data_only - gain @ gain.transpose(0, 2, 1)
        if self.law is None:
            return Unprojected(mean, covariance)
        return Unprojected(mean, covariance, self._metric(data_only, covariance), np.einsum("ncc->nc", data_only))

    def joint(self, x: np.ndarray, x_law: np.ndarray) -> tuple[JointGaussian, np.ndarray]:
        """All points together before projection, and the metric (n, C, C) of that."""
        mean, root, left, phis = self.posterior.at(x, x_law)
        n, C = mean.shape
        local = root @ root.transpose(0, 2, 1) + left
        gain = np.zeros((n, C, 0))
        if self.conditioning is not None:
            mean, gain = self._law_update(x, mean, root)
        whole = JointGaussian(mean, root, gain, self.posterior.features.opened(x, phis))
        if self.law is None:
            return whole, local
        return whole, self._metric(local, local - gain @ gain.transpose(0, 2, 1))

    def joint_gaussian(self, x: np.ndarray, x_law: np.ndarray) -> JointGaussian:
        """All points together, with the means and the variances of ``marginals``."""
        whole, metric = self.joint(x, x_law)
        if self.law is None:
            return whole
        projection = project(self.law, whole.mean, metric, x_law)
        return whole.moved(projection.points, projection.projectors)

    def joint_covariance(self, x: np.ndarray, x_law: np.ndarray) -> np.ndarray:
        """(nC, nC) covariance whose diagonal blocks are those of ``marginals``."""
        return self.joint_gaussian(x, x_law).covariance()

    def sample(self, x: np.ndarray, x_law: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
        """(count, n, C) joint draws, each on the law."""
        if self.conditioning is None:
            draws, local = self._weight_draws(x, x_law, count, generator)
            return draws if self.law is None else projected_draws(self.law, draws, self._metric(local, local), x_law)
        whole, metric = self.joint(x, x_law)
        n, C = whole.mean.shape
        values, vectors = np.linalg.eigh(whole.covariance())
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        draws = whole.mean.ravel() + generator.standard_normal((count, n * C)) @ root.T
        draws = draws.reshape(count, n, C)
        return draws if self.law is None else projected_draws(self.law, draws, metric, x_law)

    def _weight_draws(
        self, x: np.ndarray, x_law: np.ndarray, count: int, generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draws given the data alone, by way of the weights: a linear law in the task covariance holds to round-off."""
        mean, root, left, phis = self.posterior.at(x, x_law)
        draws = mean + np.einsum("ncw,kw->knc", root, generator.standard_normal((count, root.shape[2])))
        draws += self.posterior.features.open_draws(x, phis, count, generator)
        return draws, root @ root.transpose(0, 2, 1) + left

    def _law_update(self, x: np.ndarray, mean: np.ndarray, root: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (n, C) given the law at its points, and gain (n, C, rows) with covariance drop gain gain^T."""
        law = self.conditioning
        assert law is not None
        n, C = mean.shape
        if law.taper is None:
            both = root.reshape(n * C, -1) @ self._law_on_weights
            return mean + both[:, -1].reshape(n, C), both[:, :-1].reshape(n, C, -1)
        blocks = law.taper.apply(np.tensordot(root, law.root, axes=([2], [2])), x, law.points)  # (n, C, m, C)
        cross = np.einsum("ncmd,mrd->mrnc", blocks, law.solution.J).reshape(-1, n * C)
        updated = mean + (law.solution.w @ cross).reshape(n, C)
        return updated, solve_lower(law.solution.factor, cross).T.reshape(n, C, -1)

    @cached_property
    def _law_on_weights(self) -> np.ndarray:
        """(weights, rows + 1): what a root at any point is multiplied by to give the gain, and the change of the mean."""
        law = self.conditioning
        assert law is not None
        J_root = np.einsum("mrd,mdw->mrw", law.solution.J, law.root).reshape(-1, law.root.shape[2])
        return np.column_stack([solve_lower(law.solution.factor, J_root).T, law.solution.w @ J_root])

    def _metric(self, local: np.ndarray, conditioned: np.ndarray) -> np.ndarray:
        """Covariance (n, C, C) in which points are moved onto the law."""
        assert self.law is not None
        exact = self.conditioning is not None and self.conditioning.exact
        return moving_metric(local, conditioned, exact, self.law.constants)


def moving_metric(local: np.ndarray, conditioned: np.ndarray, exact: bool, unknown: slice) -> np.ndarray:
    """Covariance (n, C, C) in which points are moved: the columns ``unknown``, constants shared by all points, stay put.

    ``local`` is given the data alone, ``conditioned`` given a law elsewhere too. If that is linear (``exact``), the latter
    makes the move exact conditioning; it vanishes where the law is known already, so a trace of the former keeps
    directions defined there.
    """
    metric = conditioned + TRACE * local if exact else local.copy()
    metric[:, unknown, :] = 0.0
    metric[:, :, unknown] = 0.0
    movable = [c for c in range(metric.shape[1]) if not unknown.start <= c < unknown.stop]
    size = local[:, movable, movable].max(axis=1)
    outputs = range(unknown.start)
    metric[:, outputs, outputs] += TRACE * size[:, None]
    return metric


def given_data(
    problem: FitProblem, prior: MultitaskPrior, theta: np.ndarray, also: np.ndarray | None = None
) -> WeightPosterior:
    """Weights given the data alone, exact at the training inputs and at the points ``also`` (unit-free)."""
    features = build_features(prior, theta, problem.x if also is None else np.vstack([problem.x, also]))
    return condition_on_data(prior, theta, features, problem.x, problem.data.x, problem.y)


def plain_component(
    problem: FitProblem, prior: MultitaskPrior, theta: np.ndarray, law: UnitFreeLaw | None = None
) -> Component:
    """Posterior given the data alone; with a ``law`` each point is moved onto it."""
    noise = prior.noise.typical(theta[prior.noise_slice])
    return Component(given_data(problem, prior, theta), theta, noise, prior.n_outputs, law)
