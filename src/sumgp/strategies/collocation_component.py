"""The posterior of outputs, derivatives and constants for one set of hyperparameters, given data and a law at points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from sumgp.laws import UnitFreeLaw, project, projected_draws
from sumgp.priors import lengthscale_mask
from sumgp.solvers import ValueBasis
from sumgp.strategies.problem import PosteriorComponent
from sumgp.strategies.weight_component import LocalPosterior, moving_metric

NEGLIGIBLE = 1e-10  # variance that the weights do not span, as a share of the prior's, below which draws leave it out

Orders = tuple[tuple[int, ...], ...]


class _Free(NamedTuple):
    """Mean (n, C) and covariance (n, C, C) of single points, and the metric (n, C, C) in which they are moved."""

    mean: np.ndarray
    covariance: np.ndarray
    metric: np.ndarray


@dataclass(frozen=True)
class CollocationComponent(PosteriorComponent):
    """f | y, law at points, theta: a Gaussian over the weights of all outputs and the constants, unit-free.

    The law at the points around leaves little to be moved at a predicted one, so that its curvature shapes no marginals.
    ``columns`` and ``orders`` tell which columns belong to each output, and how often each is differentiated. Without
    ``law`` there are no columns but the outputs'.
    """

    bases: tuple[ValueBasis, ...]
    columns: tuple[tuple[int, ...], ...]
    orders: tuple[Orders, ...]
    law: UnitFreeLaw | None
    weights: np.ndarray  # (W,) mean
    root: np.ndarray  # (W, W), root root^T is the covariance
    noise: np.ndarray  # (T,) variances
    theta: np.ndarray  # logarithms of lengthscales, variances and noise variances of the outputs

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        """T."""
        return len(self.bases)

    @property
    def n_columns(self) -> int:
        """Outputs, derivatives, constants and soft errors."""
        return self.n_outputs if self.law is None else self.law.n_columns

    @property
    def _slices(self) -> list[slice]:
        """Where the weights of each output stand, and last the constants."""
        ends = np.cumsum([0, *(basis.size for basis in self.bases)])
        return [*(slice(int(a), int(b)) for a, b in pairwise(ends)), slice(int(ends[-1]), len(self.weights))]

    def widened(self, factor: float) -> CollocationComponent:
        """The same means with all standard deviations ``factor`` times as large."""
        bases = tuple(basis.widened(factor) for basis in self.bases)
        parts = [np.full(basis.size, 1.0 / factor) for basis in self.bases]
        scale = np.concatenate([*parts, np.ones(len(self.weights) - sum(map(len, parts)))])
        return replace(self, bases=bases, weights=scale * self.weights, root=factor * scale[:, None] * self.root)

    def differentiated(self, order: tuple[int, ...], x_scale: np.ndarray) -> CollocationComponent:
        """The derivatives of all outputs by inputs as the kernels see them; single points are not moved onto the law."""
        T = self.n_outputs
        return replace(self, columns=tuple((t,) for t in range(T)), orders=((order,),) * T, law=None)

    def distribution(self, x: np.ndarray, x_law: np.ndarray) -> None:
        """None: Gaussian."""

    def joint_gaussian(self, x: np.ndarray, x_law: np.ndarray) -> None:
        """None: the covariance has no form with few columns."""

    def lengthscales(self) -> list[np.ndarray]:
        """Of the kernel of each output."""
        return [np.exp(basis.kernel.theta[lengthscale_mask(basis.kernel)]) for basis in self.bases]

    def _features(self, x: np.ndarray) -> list[list[np.ndarray]]:
        return [basis.at(x, orders) for basis, orders in zip(self.bases, self.orders, strict=True)]

    def _spanned(self, features: list[list[np.ndarray]], by: np.ndarray) -> np.ndarray:
        """(n, C, k) columns for weights or roots ``by`` (W, k); zero for soft errors."""
        n = len(features[0][0])
        result = np.zeros((n, self.n_columns, by.shape[1]))
        for columns, parts, where in zip(self.columns, features, self._slices, strict=False):
            for column, part in zip(columns, parts, strict=True):
                result[:, column] = part @ by[where]
        if self.law is not None:
            result[:, self.law.constants] = by[self._slices[-1]]
        return result

    def _before_projection(self, x: np.ndarray) -> _Free:
        """Each point given the data and the law at its own points, before it is moved onto the law."""
        features = self._features(x)
        mean = self._spanned(features, self.weights[:, None])[:, :, 0]
        root = self._spanned(features, self.root)
        covariance = root @ root.transpose(0, 2, 1)
        local = np.zeros_like(covariance)
        for basis, columns, orders, parts in zip(self.bases, self.columns, self.orders, features, strict=True):
            where = np.ix_(range(len(x)), columns, columns)
            covariance[where] += basis.left_over(x, orders, parts)
            local[:, columns, columns] = basis.prior_variances(x, orders)
        if self.law is None:
            return _Free(mean, covariance, local)
        soft = np.arange(self.law.law.n_columns, self.n_columns)
        covariance[:, soft, soft] = local[:, soft, soft] = self.law.soft_variances
        return _Free(mean, covariance, moving_metric(local, covariance, True, self.law.constants))

    @staticmethod
    def local_posteriors(components: Sequence[Any], x: np.ndarray, x_law: np.ndarray) -> list[LocalPosterior]:
        """Each point on its own, moved onto the law."""
        return [component._local(x, x_law) for component in components]

    def _local(self, x: np.ndarray, x_law: np.ndarray) -> LocalPosterior:
        free = self._before_projection(x)
        if self.law is None:
            return LocalPosterior(free.mean, free.covariance)
        moved = project(self.law, free.mean, free.metric, x_law)
        return LocalPosterior(moved.points, moved.projectors @ free.covariance @ moved.projectors.transpose(0, 2, 1))

    def joint_covariance(self, x: np.ndarray, x_law: np.ndarray) -> np.ndarray:
        """(nC, nC) covariance whose diagonal blocks are those of ``marginals``."""
        free, features = self._before_projection(x), self._features(x)
        n, C = free.mean.shape
        root = self._spanned(features, self.root).reshape(n * C, -1)
        whole = (root @ root.T).reshape(n, C, n, C)
        for basis, columns, orders, parts in zip(self.bases, self.columns, self.orders, features, strict=True):
            q = len(columns)
            left = basis.joint_left_over(x, orders, parts).reshape(n, q, n, q)
            whole[np.ix_(range(n), columns, range(n), columns)] += left
        whole[range(n), :, range(n), :] = free.covariance
        if self.law is None:
            return whole.reshape(n * C, n * C)
        A = project(self.law, free.mean, free.metric, x_law).projectors
        return np.einsum("nab,nbmc,mdc->namd", A, whole, A, optimize=True).reshape(n * C, n * C)

    def sample(self, x: np.ndarray, x_law: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
        """(count, n, C) joint draws, each on the law."""
        free, features = self._before_projection(x), self._features(x)
        w = self.weights[:, None] + self.root @ generator.standard_normal((self.root.shape[1], count))
        draws = np.ascontiguousarray(self._spanned(features, w).transpose(2, 0, 1))
        for basis, columns, orders, parts in zip(self.bases, self.columns, self.orders, features, strict=True):
            own = basis.left_over(x, orders, parts)
            prior = basis.prior_variances(x, orders)
            if np.all(np.einsum("ncc->nc", own) <= NEGLIGIBLE * prior):
                continue
            values, vectors = np.linalg.eigh(basis.joint_left_over(x, orders, parts))
            spread = vectors * np.sqrt(np.maximum(values, 0.0))
            more = generator.standard_normal((count, len(values))) @ spread.T
            draws[:, :, columns] += more.reshape(count, len(x), len(columns))
        if self.law is None:
            return draws
        soft = slice(self.law.law.n_columns, self.n_columns)
        draws[:, :, soft] = generator.standard_normal(draws[:, :, soft].shape) * np.sqrt(self.law.soft_variances)
        return projected_draws(self.law, draws, free.metric, x_law)
