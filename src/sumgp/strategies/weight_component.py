"""One fitted posterior for one set of hyperparameters; a prediction is a weighted mixture of these."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sumgp.laws import UnitFreeLaw, project
from sumgp.lawsolve import LawSolution
from sumgp.numerics import solve_lower
from sumgp.priors import MultitaskPrior
from sumgp.solvers import WeightPosterior, build_features, condition_on_data
from sumgp.strategies.joint_gaussian import JointGaussian, LeftOpen
from sumgp.strategies.point_posterior import Unprojected, local_posteriors, projected_draws
from sumgp.strategies.problem import FitProblem

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
    """A solved law at fixed points: what every asked point is conditioned on in addition to the data."""

    points: np.ndarray  # (n, D) as the kernels see them
    root: np.ndarray  # (n, C, weights) of the posterior at these points
    solution: LawSolution
    taper: Taper | None
    exact: bool = False  # a linear law: asked points are conditioned in the covariance that the law has left

    def widened(self, factor: float) -> LawConditioning:
        """The same move onto the law with all standard deviations ``factor`` times as large."""
        return replace(self, root=factor * self.root, solution=self.solution.widened(factor))


@dataclass(frozen=True)
class Component:
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

    def marginals(self, x: np.ndarray, x_law: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (n, C) and covariance (n, C, C) at each point, which do not depend on what other points are asked."""
        local = local_posteriors([self], x, x_law)[0]
        return local.mean, local.covariance

    def remembered_marginals(self, x: np.ndarray, x_law: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``marginals``, kept for the points asked last: a guide is asked for the same by each component."""
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
        if self.law is None:
            return Unprojected(mean, data_only)
        covariance = data_only
        if self.conditioning is not None:
            mean, gain = self._law_update(x, mean, root)
            covariance = data_only - gain @ gain.transpose(0, 2, 1)
        return Unprojected(mean, covariance, self._metric(data_only, covariance), np.einsum("ncc->nc", data_only))

    def joint(self, x: np.ndarray, x_law: np.ndarray) -> tuple[JointGaussian, np.ndarray]:
        """All points together before projection, and the metric (n, C, C) of that."""
        mean, root, left, phis = self.posterior.at(x, x_law)
        n, C = mean.shape
        terms = zip(self.posterior.features.terms, phis, strict=True)
        open_ = tuple(
            LeftOpen(term.joint_left_over(x, phi), np.broadcast_to(term.B, (n, *term.B.shape)))
            for term, phi in terms
            if term.kernel is not None
        )
        local = root @ root.transpose(0, 2, 1) + left
        gain = np.zeros((n, C, 0))
        if self.conditioning is not None:
            mean, gain = self._law_update(x, mean, root)
        whole = JointGaussian(mean, root, gain, open_)
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
        assert self.law is not None
        return projected_draws(self.law, draws.reshape(count, n, C), metric, x_law)

    def _weight_draws(
        self, x: np.ndarray, x_law: np.ndarray, count: int, generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draws given the data alone, by way of the weights: a linear law in the task covariance holds to round-off."""
        mean, root, left, phis = self.posterior.at(x, x_law)
        draws = mean + np.einsum("ncw,kw->knc", root, generator.standard_normal((count, root.shape[2])))
        for term, phi in zip(self.posterior.features.terms, phis, strict=True):
            if term.kernel is None:
                continue
            values, vectors = np.linalg.eigh(term.joint_left_over(x, phi))
            spread = vectors * np.sqrt(np.maximum(values, 0.0))
            draws += spread @ generator.standard_normal((count, len(x), term.B.shape[1])) @ term.B.T
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
        return moving_metric(local, conditioned, exact, self.law.law.unknown_columns)


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
