"""Posterior given data and law under one set of hyperparameters, in weight space."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from sumgp.laws import Bend, Projection, UnitFreeLaw, bend, project, projected_draws
from sumgp.lawsolve import LawSolution, SecondOrder
from sumgp.numerics import solve_lower, spectral_root
from sumgp.priors import MultitaskPrior, lengthscale_mask
from sumgp.solvers import (
    MANY_VALUES,
    IndependentOutputs,
    JointGaussian,
    Taper,
    WeightPosterior,
    are_apart,
    build_features,
    condition_on_data,
    independent_outputs,
    squares,
)
from sumgp.strategies.problem import FitProblem, LocalPosterior, PosteriorComponent

FLAT = 0.05  # standard deviation across the law, relative to that along it, below which draws start in the tangent


@dataclass(frozen=True, eq=False)
class Unprojected:
    """Single points before they are moved onto the law: N(mean, covariance), the metric to move them in (of no use without
    a law), and the variances (n, C) that the data alone leave open."""

    mean: np.ndarray
    covariance: np.ndarray
    metric: Any = None  # (n, C, C)
    open_by_data: np.ndarray | None = None

    def at(self, rows: slice | np.ndarray) -> Unprojected:
        """Some of the points."""
        some: list[Any] = [None if values is None else values[rows] for values in vars(self).values()]
        return Unprojected(*some)


def join_points(parts: Sequence[Unprojected]) -> Unprojected:
    """The points of all parts in turn."""
    each = zip(*(vars(part).values() for part in parts), strict=True)
    joined: list[Any] = [None if values[0] is None else np.concatenate(values) for values in each]
    return Unprojected(*joined)


@dataclass(frozen=True, eq=False)
class CurvedPoints:
    """The ``rows`` of points moved onto a curved law; what only spreads need is computed when first asked for."""

    moved: _Moved
    rows: np.ndarray

    @property
    def bend(self) -> Bend:
        """Of the law there."""
        return Bend(self.moved.bend.shift[self.rows], self.moved.bend.variance[self.rows])

    @property
    def free(self) -> Unprojected:
        """What draws start from."""
        return self.moved.start.at(self.rows)


@dataclass(frozen=True, eq=False)
class _Moved:
    """Points at x, in the user's units, before and after they were moved onto a curved law."""

    law: UnitFreeLaw
    free: Unprojected
    projection: Projection
    tangent: np.ndarray  # (n, C, C) covariances
    x: np.ndarray

    @cached_property
    def bend(self) -> Bend:
        """Far from the law's neighbourhood its second derivative says nothing: no bend exceeds what the data leave open."""
        left = self.free.open_by_data
        assert left is not None
        with np.errstate(over="ignore", invalid="ignore"):
            curved = bend(self.law, self.projection.points, self.tangent, self.projection.gain, self.x)
            size = curved.size**2
            share = np.minimum(1.0, left / np.maximum(size, 1e-300))
            # An exponential a standard deviation away may overflow.
            return Bend(
                np.where(np.isfinite(size), np.sqrt(share) * curved.shift, 0.0),
                np.where(np.isfinite(size), share * curved.variance, left),
            )

    @cached_property
    def start(self) -> Unprojected:
        """Of draws. A small spread across the law, which projection takes back, has few digits only: it counts as none."""
        A, free, tangent = self.projection.projectors, self.free, self.tangent
        across = np.eye(A.shape[1]) - A
        crossing = np.einsum("ncd,nde,nce->nc", across, free.covariance, across).max(axis=1)
        flat = crossing < (FLAT * FLAT) * np.einsum("ncc->nc", tangent).max(axis=1)
        return replace(free, covariance=np.where(flat[:, None, None], tangent, free.covariance))


class MovedComponent(PosteriorComponent):
    """A component that tells points, draws and joint covariances before they are moved onto its law, if it has one."""

    @abstractmethod
    def unprojected(self, x: np.ndarray, x_law: np.ndarray) -> Unprojected:
        """Each point on its own; without ``open_by_data`` the law's curvature shapes no marginals."""

    @abstractmethod
    def free_draws(self, x: np.ndarray, x_law: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
        """(count, n, C) joint draws."""

    def free_joint(self, x: np.ndarray, x_law: np.ndarray) -> JointGaussian | None:
        """All points together; None where ``free_covariance`` tells that."""
        return None

    def free_covariance(self, x: np.ndarray, x_law: np.ndarray) -> np.ndarray:
        """(nC, nC) covariance between all points."""
        whole = self.free_joint(x, x_law)
        assert whole is not None
        return whole.covariance()

    @staticmethod
    def local_posteriors(components: Sequence[Any], x: np.ndarray, x_law: np.ndarray) -> list[LocalPosterior]:
        """Those with a law, which is the same for all, are moved onto it in one call."""
        parts = [component.unprojected(x, x_law) for component in components]
        result = [LocalPosterior(part.mean, part.covariance) for part in parts]
        lawful, n = [k for k, component in enumerate(components) if component.law is not None], len(x_law)
        if lawful:
            joined = join_points([parts[k] for k in lawful])
            moved = moved_onto_law(components[lawful[0]].law, joined, np.tile(x_law, (len(lawful), 1)))
            for place, k in enumerate(lawful):
                result[k] = moved.at(slice(place * n, (place + 1) * n))
        return result

    def joint_gaussian(self, x: np.ndarray, x_law: np.ndarray) -> JointGaussian | None:
        """All points together, with the means and the variances of ``marginals``."""
        whole = self.free_joint(x, x_law)
        if whole is None or self.law is None:
            return whole
        onto = self._projection(x, x_law)
        return whole.moved(onto.points, onto.projectors)

    def joint_covariance(self, x: np.ndarray, x_law: np.ndarray) -> np.ndarray:
        """(nC, nC) covariance whose diagonal blocks are those of ``marginals``."""
        whole = self.joint_gaussian(x, x_law)
        if whole is not None:
            return whole.covariance()
        covariance = self.free_covariance(x, x_law)
        if self.law is None:
            return covariance
        A = self._projection(x, x_law).projectors
        blocks = covariance.reshape(*A.shape[:2], *A.shape[:2])
        return np.einsum("nab,nbmc,mdc->namd", A, blocks, A, optimize=True).reshape(covariance.shape)

    def _projection(self, x: np.ndarray, x_law: np.ndarray) -> Projection:
        assert self.law is not None
        free = self.unprojected(x, x_law)
        return project(self.law, free.mean, free.metric, x_law)

    def sample(self, x: np.ndarray, x_law: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
        """(count, n, C) joint draws, each on the law."""
        draws = self.free_draws(x, x_law, count, generator)
        return draws if self.law is None else projected_draws(self.law, draws, self.unprojected(x, x_law).metric, x_law)


def moved_onto_law(law: UnitFreeLaw, free: Unprojected, x: np.ndarray) -> LocalPosterior:
    """Project each point onto the law at x in the user's units."""
    projection = project(law, free.mean, free.metric, x)
    A = projection.projectors
    tangent = A @ free.covariance @ A.mT
    bends = not law.is_linear and free.open_by_data is not None
    curved = CurvedPoints(_Moved(law, free, projection, tangent, x), np.arange(len(x))) if bends else None
    return LocalPosterior(projection.points, tangent, curved)


TRACE = 1e-10  # of the largest local variance, added to every output's: no output is immovable


def moving_metric(local: np.ndarray, conditioned: np.ndarray, exact: bool, unknown: slice) -> np.ndarray:
    """Covariance (n, C, C) in which points are moved: the columns ``unknown``, constants shared by all points, stay put.

    ``local`` is given the data alone, ``conditioned`` given a law elsewhere too. If that is linear (``exact``), the latter
    makes the move exact conditioning; where it vanishes, the law being known, a trace of the former keeps directions.
    """
    metric = conditioned + TRACE * local if exact else local.copy()
    metric[:, unknown, :] = 0.0
    metric[:, :, unknown] = 0.0
    size = np.delete(np.einsum("ncc->nc", local), unknown, axis=1).max(axis=1)
    outputs = range(unknown.start)
    metric[:, outputs, outputs] += TRACE * size[:, None]
    return metric


def with_soft_errors(mean: np.ndarray, covariance: np.ndarray, variances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means (n, C) and covariances (n, C, C) of outputs and of the errors of soft laws, whose bias is in the law."""
    T, more = mean.shape[1], ((0, 0), (0, len(variances)))
    covariance = np.pad(covariance, (*more, more[1]))
    covariance[:, T:, T:] = np.diag(variances)
    return np.pad(mean, more), covariance


def own_points(law: UnitFreeLaw, mean: np.ndarray, covariance: np.ndarray) -> Unprojected:
    """Outputs at single points, with errors of soft laws, before they are moved onto the law in their own covariance."""
    mean, V = with_soft_errors(mean, covariance, law.soft_variances)
    return Unprojected(mean, V, moving_metric(V, V, False, law.constants), np.einsum("ncc->nc", V))


@dataclass(frozen=True)
class LawConditioning:
    """A solved law at fixed points: what every prediction point is conditioned on in addition to the data."""

    points: np.ndarray  # (n, D) as the kernels see them
    root: np.ndarray  # (n, C, weights) of the posterior at these points
    solution: LawSolution
    taper: Taper | None
    exact: bool = False  # a linear law: prediction points are conditioned in the covariance that the law has left
    beyond: SecondOrder | None = None  # what the law says besides its tangent; without a taper

    @cached_property
    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """(weights, rows): the law's rows at its points, by the columns that a taper reaches and by the others."""
        T = self.root.shape[1] if self.taper is None else self.taper.n_outputs
        parts = [np.einsum("mrd,mdw->wmr", self.solution.J[:, :, c], self.root[:, c]) for c in (slice(T), slice(T, None))]
        return parts[0].reshape(len(parts[0]), -1), parts[1].reshape(len(parts[1]), -1)

    @cached_property
    def on_weights(self) -> np.ndarray:
        """(weights, rows + 1): what a root at any point is multiplied by to give the gain, and the change of the mean."""
        rows, solution, beyond = self.rows[0], self.solution, self.beyond
        gain, shift = solve_lower(solution.factor, rows.T).T, rows @ solution.w
        return np.column_stack([gain, shift] if beyond is None else [gain, beyond.drop, shift + beyond.shift])


@dataclass(frozen=True)
class Component(MovedComponent):
    """f | y, theta and the law, unit-free. Without ``law`` a plain Gaussian process.

    Standard deviations are ``widening`` times those of ``posterior`` and ``conditioning``.
    """

    posterior: WeightPosterior | IndependentOutputs
    theta: np.ndarray
    noise: np.ndarray  # (T,) variances
    n_outputs: int
    law: UnitFreeLaw | None = None
    conditioning: LawConditioning | None = None
    widening: float = 1.0

    @property
    def n_columns(self) -> int:
        """Outputs and the law's own columns."""
        return self.posterior.features.n_columns

    def widened(self, factor: float) -> Component:
        """The same means with all standard deviations ``factor`` times as large."""
        return replace(self, widening=factor * self.widening)

    def differentiated(self, order: tuple[int, ...], x_scale: np.ndarray) -> Component:
        """The derivatives of all outputs by inputs, given data and law; single points are not moved onto the law."""
        return replace(self, posterior=self.posterior.differentiated(order, x_scale), law=None)

    def lengthscales(self) -> list[np.ndarray]:
        """Of the kernel of each term."""
        kernels = [term.kernel for term in self.posterior.features.terms if term.kernel is not None]
        return [np.exp(kernel.theta[lengthscale_mask(kernel)]) for kernel in kernels]

    def unprojected(self, x: np.ndarray, x_law: np.ndarray) -> Unprojected:
        """Each point on its own, given the data and the law elsewhere, before it is moved onto the law."""
        mean, root, left, _ = self.posterior.at(x, x_law)
        data_only = self.widening**2 * (squares(root) + left)
        covariance = data_only
        if self.conditioning is not None:
            mean, gain = self._law_update(x, mean, root)
            covariance = data_only - self.widening**2 * squares(gain)
        if self.law is None:
            return Unprojected(mean, covariance)
        exact = self.conditioning is not None and self.conditioning.exact
        metric = moving_metric(data_only, covariance, exact, self.law.constants)
        return Unprojected(mean, covariance, metric, np.einsum("ncc->nc", data_only))

    def free_joint(self, x: np.ndarray, x_law: np.ndarray) -> JointGaussian:
        """All points together before projection."""
        mean, root, _, phis = self.posterior.at(x, x_law)
        gain = np.zeros((*mean.shape, 0))
        if self.conditioning is not None:
            mean, gain = self._law_update(x, mean, root)
        whole = JointGaussian(mean, root, gain, self.posterior.features.opened(x, phis))
        return whole if self.widening == 1.0 else whole.moved(mean, self.widening * np.eye(mean.shape[1]))

    def free_draws(self, x: np.ndarray, x_law: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
        """Given the data alone by way of the weights: a linear law in the task covariance holds to round-off."""
        if self.conditioning is None:
            mean, root, _, phis = self.posterior.at(x, x_law)
            draws = mean + np.einsum("ncw,kw->knc", root, generator.standard_normal((count, root.shape[2])))
            draws += self.posterior.features.open_draws(x, phis, count, generator)
            return mean + self.widening * (draws - mean)
        whole = self.free_joint(x, x_law)
        root = spectral_root(whole.covariance())
        return whole.mean + (generator.standard_normal((count, len(root))) @ root.T).reshape(count, *whole.mean.shape)

    def _law_update(self, x: np.ndarray, mean: np.ndarray, root: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (n, C) given the law at its points, and gain (n, C, rows) with covariance drop gain gain^T."""
        law = self.conditioning
        assert law is not None
        n, C = mean.shape
        if law.taper is None:
            both = root.reshape(n * C, -1) @ law.on_weights
            return mean + both[:, -1].reshape(n, C), both[:, :-1].reshape(n, C, -1)
        T, shape = law.taper.n_outputs, (-1, *law.solution.J.shape[:2])
        by_outputs, by_others = law.rows
        factors = law.taper.between(x, law.points)[:, None, :, None]
        cross = (root[:, :T].reshape(n * T, root.shape[2]) @ by_outputs).reshape(n, *shape)
        cross *= factors
        if C > T:
            others = (root[:, T:].reshape(n * (C - T), root.shape[2]) @ by_others).reshape(n, *shape)
            cross = np.concatenate([cross, others], axis=1)
        cross = cross.reshape(n * C, -1)
        gain = solve_lower(law.solution.factor, cross.T).T
        return mean + (cross @ law.solution.w).reshape(n, C), gain.reshape(n, C, -1)


def given_data(
    problem: FitProblem, prior: MultitaskPrior, theta: np.ndarray, also: np.ndarray | None = None
) -> WeightPosterior | IndependentOutputs:
    """Weights given the data alone, exact at the training inputs and at the points ``also`` (unit-free)."""
    points = problem.x if also is None else np.vstack([problem.x, also])
    if problem.y.size > MANY_VALUES and are_apart(prior):
        return independent_outputs(prior, theta, points, problem.x, problem.data.x, problem.y)
    features = build_features(prior, theta, points)
    return condition_on_data(prior, theta, features, problem.x, problem.data.x, problem.y)


def plain_component(
    problem: FitProblem, prior: MultitaskPrior, theta: np.ndarray, law: UnitFreeLaw | None = None
) -> Component:
    """Posterior given the data alone; with a ``law`` each point is moved onto it."""
    noise = prior.noise.typical(theta[prior.noise_slice])
    return Component(given_data(problem, prior, theta), theta, noise, prior.n_outputs, law)
