"""The posterior of outputs, derivatives and constants for one set of hyperparameters, given data and a law at points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline

from sumgp.hyperparameters import OutputFit
from sumgp.laws import UnitFreeLaw
from sumgp.lawsolve import CollocationProblem, CollocationSolution
from sumgp.numerics import solve_lower, spectral_root
from sumgp.priors import lengthscale_mask
from sumgp.solvers import ValueBasis
from sumgp.strategies.collocation_setting import Family, LawPoints, LeftOutScore, Setting, places_between
from sumgp.strategies.weight_component import MovedComponent, Unprojected, moving_metric

NEGLIGIBLE = 1e-10  # variance that the weights do not span, as a share of the prior's, below which draws leave it out

Orders = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class CollocationComponent(MovedComponent):
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

    def unprojected(self, x: np.ndarray, x_law: np.ndarray) -> Unprojected:
        """Each point given the data and the law at its own points, before it is moved onto the law."""
        features = self._features(x)
        mean = self._spanned(features, self.weights[:, None])[:, :, 0]
        root = self._spanned(features, self.root)
        covariance = root @ root.mT
        local = np.zeros_like(covariance)
        for basis, columns, orders, parts in zip(self.bases, self.columns, self.orders, features, strict=True):
            where = np.ix_(range(len(x)), columns, columns)
            covariance[where] += basis.left_over(x, orders, parts)
            local[:, columns, columns] = basis.prior_variances(x, orders)
        if self.law is None:
            return Unprojected(mean, covariance)
        soft = np.arange(self.law.law.n_columns, self.n_columns)
        covariance[:, soft, soft] = local[:, soft, soft] = self.law.soft_variances
        return Unprojected(mean, covariance, moving_metric(local, covariance, True, self.law.constants))

    def free_covariance(self, x: np.ndarray, x_law: np.ndarray) -> np.ndarray:
        """(nC, nC) covariance between all points."""
        free, features = self.unprojected(x, x_law), self._features(x)
        n, C = free.mean.shape
        root = self._spanned(features, self.root).reshape(n * C, -1)
        whole = (root @ root.T).reshape(n, C, n, C)
        for basis, columns, orders, parts in zip(self.bases, self.columns, self.orders, features, strict=True):
            q = len(columns)
            left = basis.joint_left_over(x, orders, parts).reshape(n, q, n, q)
            whole[np.ix_(range(n), columns, range(n), columns)] += left
        whole[range(n), :, range(n), :] = free.covariance
        return whole.reshape(n * C, n * C)

    def free_draws(self, x: np.ndarray, x_law: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
        """(count, n, C) joint draws."""
        features = self._features(x)
        w = self.weights[:, None] + self.root @ generator.standard_normal((self.root.shape[1], count))
        draws = np.ascontiguousarray(self._spanned(features, w).transpose(2, 0, 1))
        for basis, columns, orders, parts in zip(self.bases, self.columns, self.orders, features, strict=True):
            own = basis.left_over(x, orders, parts)
            prior = basis.prior_variances(x, orders)
            if np.all(np.einsum("ncc->nc", own) <= NEGLIGIBLE * prior):
                continue
            spread = spectral_root(basis.joint_left_over(x, orders, parts))
            more = generator.standard_normal((count, len(spread))) @ spread.T
            draws[:, :, columns] += more.reshape(count, len(x), len(columns))
        if self.law is not None:
            soft = slice(self.law.law.n_columns, self.n_columns)
            draws[:, :, soft] = generator.standard_normal(draws[:, :, soft].shape) * np.sqrt(self.law.soft_variances)
        return draws


SAME_MEAN, SAME_SD = 0.25, 0.1  # in sds, and as a share: two lengthscales give the same curves and constants


class Candidate(NamedTuple):
    """One set of hyperparameters, solved: score, share, and what a component is made of."""

    family: Family
    fits: tuple[OutputFit | None, ...]  # of each output on its own
    share: float  # of their lengthscales
    score: float
    left_out: LeftOutScore
    determined: bool  # the law leaves only numbers open
    bases: tuple[ValueBasis, ...]
    problem: CollocationProblem
    solution: CollocationSolution
    noise: np.ndarray
    points: LawPoints
    values: np.ndarray  # (n, T) at z

    @property
    def z(self) -> np.ndarray:
        """(n, D) where the law is imposed."""
        return self.points.z

    @property
    def wide(self) -> bool:
        """Whether its functions are made of points around the law's too."""
        return len(self.points.around) > 0

    @property
    def name(self) -> str:
        """How reports call it."""
        return f"{self.family.name} {self.share:.3g}{' wide' if self.wide else ''}"

    def spread(self) -> np.ndarray:
        """(n, T) posterior standard deviations at z."""
        result = np.zeros_like(self.values)
        for t, (output, part) in enumerate(zip(self.problem.outputs, self.problem.slices, strict=False)):
            padded = np.zeros((self.problem.n_weights, len(self.z)))
            padded[part] = output.at_law[0].T
            result[:, t] = np.sqrt(np.sum(solve_lower(self.solution.factor, padded) ** 2, axis=0))
        return result

    def constants(self) -> tuple[np.ndarray, np.ndarray]:
        """(U,) means and standard deviations of the constants, unit-free."""
        where = self.problem.slices[-1]
        padded = np.eye(self.problem.n_weights)[:, where]
        return self.solution.w[where], np.sqrt(np.sum(solve_lower(self.solution.factor, padded) ** 2, axis=0))

    def missed(self, setting: Setting) -> dict[str, float]:
        """Of each law: rms residual of the curves between its points, relative to the rms size of its terms."""
        law = self.problem.law
        middle = setting.collocation(law, self.bases, places_between(self.z), self.problem.unknown)
        f = law.shift + law.scale * middle.values(self.solution.w)[:, : law.law.n_columns]
        residual, terms = law.law.residual(f, middle.x_law), law.law.magnitude(f, middle.x_law)
        size = np.sqrt(np.mean(terms**2, axis=0))
        rms = np.sqrt(np.mean(residual**2, axis=0))
        return {label: float(r / s) for label, r, s in zip(law.law.labels, rms, np.maximum(size, 1e-300), strict=True)}

    def agrees_with(self, coarser: Candidate) -> bool:
        """Whether curves, constants and their standard deviations are the same as those of a longer lengthscale."""
        mean, sd = (CubicSpline(self.z[:, 0], v)(coarser.z[:, 0]) for v in (self.values, self.spread()))
        (own, own_sd), (other, other_sd) = self.constants(), coarser.constants()
        shift = [*np.sqrt(np.mean(((mean - coarser.values) / sd) ** 2, axis=0)), *np.abs((own - other) / own_sd)]
        wider = [*(np.mean(coarser.spread(), axis=0) / np.mean(sd, axis=0)), *(other_sd / own_sd)]
        return bool(np.all(np.array(shift) < SAME_MEAN) and np.all(np.abs(np.log(wider)) < SAME_SD))
