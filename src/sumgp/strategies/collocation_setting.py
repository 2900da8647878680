"""What every candidate of a fit by collocation shares: measurements, noise, kernels, points and columns.

The law is imposed at training inputs and on a grid as fine as the lengthscales ask for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree
from scipy.stats import qmc
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern, RationalQuadratic

from sumgp.errors import DataError
from sumgp.hyperparameters import OneOutput, OutputFit, fit_output, noise_told
from sumgp.laws import Law, UnitFreeLaw, varying_columns
from sumgp.lawsolve import CollocationProblem, CollocationSolution, OutputWeights
from sumgp.numerics import solve_lower
from sumgp.priors import check_smooth, leaves
from sumgp.solvers import MEAN_VARIANCE, ValueBasis
from sumgp.strategies.problem import FitProblem

SMALLEST_GAP = 1e-6  # of the noise: as in left_out
# Noise variance to begin with, in units of the output's. Few rows can be met exactly, and a search that begins there holds
# on to the noise in them; too large a start is put right by the first update.
SMALLEST_NOISE = 0.05**2
# Scale of the logs of noise sds, in units of the outputs' own sds, around their mean. Of few rows a law that leaves only
# numbers open would else believe one output alone and take its noise for nothing. With .15, as where hyperparameters are
# searched without a law, noises that differ by a factor of four are held alike too (56 problems of 5 to 30 rows: errors 1.26
# times least squares; with .5 1.03, without any 1.06; where noises are alike 1.02, 1.03 and 1.05).
ALIKE_UNDER_LAW = 0.5
WAVE = 17.3  # waves a unit of scaled input, any number that is no frequency of the law
DEGENERATE = 1e-7  # ratio of singular values below which rows repeat each other


@dataclass(frozen=True)
class Family:
    """Kernels of one shape, and how many points a lengthscale their functions need."""

    kernel: Kernel
    per_lengthscale: float

    def at(self, lengthscale: np.ndarray) -> Kernel:
        """The kernel with these lengthscales (D,); RationalQuadratic has their geometric mean."""
        typical = float(np.exp(np.mean(np.log(lengthscale))))
        if isinstance(self.kernel, RationalQuadratic):
            return RationalQuadratic(typical, alpha=self.kernel.alpha)
        size = typical if len(lengthscale) == 1 else lengthscale
        return Matern(size, nu=self.kernel.nu) if isinstance(self.kernel, Matern) else RBF(size)

    @property
    def name(self) -> str:
        """How reports call it."""
        return type(self.kernel).__name__


# Points a lengthscale: kernels whose functions are rougher need more. Residuals between points are then at most about 1e-4
# of the law's size on six textbook equations, 1e-2 for Matern.
PER_LENGTHSCALE = {RationalQuadratic: 5.5, RBF: 3.0, Matern: 8.0}


def kernel_families(problem: FitProblem, order: int) -> tuple[Family, ...]:
    """The shapes among the candidates, heavier tails first; DataError where none can be differentiated so often."""
    found: dict[str, Family] = {}
    for kernel in (leaf for c in problem.candidates for k in c.kernels for leaf in leaves(k)):
        if type(kernel) in PER_LENGTHSCALE:
            check_smooth(kernel, order)
            found[str(type(kernel)) + str(getattr(kernel, "nu", ""))] = Family(kernel, PER_LENGTHSCALE[type(kernel)])
    if not found:
        got = ", ".join(str(k) for c in problem.candidates for k in c.kernels)
        raise DataError("kernel", "RBF, RationalQuadratic or Matern for a law with derivatives", got, "leave kernel=None")
    shapes = list(PER_LENGTHSCALE)
    return tuple(sorted(found.values(), key=lambda family: shapes.index(type(family.kernel))))


@dataclass(frozen=True)
class Setting:
    """Data of a fit by collocation, unit-free unless said otherwise."""

    problem: FitProblem
    law: Law

    @cached_property
    def x(self) -> np.ndarray:
        """(N, D) inputs."""
        return self.problem.x

    @cached_property
    def y(self) -> np.ndarray:
        """(N, T) outputs."""
        return self.problem.y

    @cached_property
    def seen(self) -> np.ndarray:
        """(N, T) truth of whether an output was measured."""
        return ~np.isnan(self.y)

    @cached_property
    def never(self) -> np.ndarray:
        """(T,) truth of whether an output was never measured."""
        return np.logical_not(np.any(self.seen, axis=0))

    @cached_property
    def columns(self) -> tuple[tuple[int, ...], ...]:
        """Columns of the law that belong to each output: its own first, then its derivatives."""
        T, derivatives = self.y.shape[1], self.law.derivatives
        return tuple((t, *(T + i for i, d in enumerate(derivatives) if d.output == t)) for t in range(T))

    @cached_property
    def orders(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """Multi-indices of these columns."""
        none = (0,) * self.x.shape[1]
        derivatives = self.law.derivatives
        return tuple((none, *(d.orders for d in derivatives if d.output == t)) for t in range(self.y.shape[1]))

    @property
    def open_numbers(self) -> int:
        """How many numbers a law with one input leaves open that leaves no function open: constants, and states at the
        start; at most so many where rows of different order bind states to each other."""
        return len(self.law.unknowns) + sum(max(sum(order) for order in orders) for orders in self.orders)

    def scaled_law(self, centre: np.ndarray, size: np.ndarray, row_scale: np.ndarray) -> UnitFreeLaw:
        """The law in unit-free columns, its constants (U,) in units of ``size`` around ``centre``."""
        shift, scale = varying_columns(self.law.derivatives, self.problem.scaling)
        shift, scale = np.concatenate([shift, centre]), np.concatenate([scale, size])
        return UnitFreeLaw(self.law.relaxed(np.maximum(np.abs(shift), scale)), shift, scale, row_scale)

    def in_units(self, z: np.ndarray) -> np.ndarray:
        """Inputs in the user's units."""
        return self.problem.scaling.x_shift + self.problem.scaling.x_scale * z

    def one_output(self, t: int) -> OneOutput:
        """The measurements of one output."""
        seen, noise = self.seen[:, t], self.problem.noise
        known = noise.known is not None
        factors = np.ones(len(self.x)) if noise.row_factor is None else noise.row_factor
        if noise.known is not None:
            factors = factors * noise.known[:, t]
        half_range = self.problem.half_range
        return OneOutput(self.x[seen], self.y[seen, t], factors[seen], known, half_range, MEAN_VARIANCE)

    def fitted(self, family: Family, largest: float = np.inf) -> tuple[OutputFit | None, ...]:
        """Hyperparameters of each output on its own; None where it was never measured.

        An output of more noise than ``largest`` has the lengthscales that are most probable with so much of it.
        """
        return tuple(None if never else self._fitted(t, family, largest) for t, never in enumerate(self.never))

    def _fitted(self, t: int, family: Family, largest: float) -> OutputFit:
        output = self.one_output(t)
        fit = fit_output(output, family.at)
        if output.known:
            return fit
        if fit.noise > largest:
            varying = fit_output(output._replace(known=True, factors=largest * output.factors), family.at)
            return varying._replace(noise=largest)
        return fit._replace(noise=max(fit.noise, SMALLEST_NOISE))

    def noise_variances(self, noise: np.ndarray) -> list[np.ndarray]:
        """(k,) variances of each output's measurements from those of a row of factor one (T,)."""
        result = []
        for t in range(len(noise)):
            output = self.one_output(t)
            result.append(output.factors if output.known else noise[t] * output.factors)
        return result

    def bases(self, family: Family, lengthscales: np.ndarray, variances: np.ndarray, at: LawPoints) -> list[ValueBasis]:
        """One basis an output, of lengthscales (T, D) and variances (T,), over the law's points and those around them.

        As many functions as points and a constant: a law of first order leaves one of them open. One of higher order asks
        for points beyond the ends besides, else it leaves too few.
        """
        highest = [max(sum(order) for order in orders) for orders in self.orders]
        return [
            ValueBasis.over(family.at(a), float(v), np.concatenate([with_ends(at.z, order - 1), at.around]))
            for a, v, order in zip(lengthscales, variances, highest, strict=True)
        ]

    def collocation(
        self, law: UnitFreeLaw, bases: Sequence[ValueBasis], z: np.ndarray, unknown: np.ndarray
    ) -> CollocationProblem:
        """The law at the points z, and the measurements."""
        outputs = []
        for t, basis in enumerate(bases):
            seen = self.seen[:, t]
            at_data = basis.at(self.x[seen], self.orders[t][:1])[0]
            outputs.append(OutputWeights(self.columns[t], tuple(basis.at(z, self.orders[t])), at_data, self.y[seen, t]))
        return CollocationProblem(law, self.in_units(z), tuple(outputs), unknown)

    def determined(self, problem: CollocationProblem, w: np.ndarray) -> bool:
        """Whether the law leaves only numbers open (constants and states at the start), no function.

        Linearised at a point and with coefficients frozen there, waves exp(i q x) obey the hard rows only if the matrix of
        the rows by outputs, sum over derivatives of J (i q)^order, has a null space. Laws in several inputs leave functions
        of fewer inputs open (values at the start, on an edge).
        """
        if self.x.shape[1] > 1:
            return False
        hard = np.setdiff1d(np.arange(problem.law.n_rows), problem.law.soft_rows)
        J = problem.law.jacobian(problem.values(w), problem.x_law)[:, hard]
        symbol = np.zeros((len(J), len(hard), len(self.orders)), dtype=complex)
        for t, (columns, orders) in enumerate(zip(self.columns, self.orders, strict=True)):
            for column, order in zip(columns, orders, strict=True):
                symbol[:, :, t] += J[:, :, column] * (1j * WAVE) ** sum(order)
        if len(hard) < symbol.shape[2]:
            return False
        sizes = np.linalg.norm(symbol, axis=2, keepdims=True)
        singular = np.linalg.svd(symbol / np.where(sizes > 0, sizes, 1.0), compute_uv=False)
        return bool(np.median(singular[:, -1] / singular[:, 0]) > DEGENERATE)


@dataclass(frozen=True)
class LeftOutScore:
    """Log density of each measurement given all others and the law, summed; and a new estimate of the noise (T,).

    ``degrees``: of freedom of the noise that fewest measurements tell. ``used``: degrees of freedom of the curves.
    """

    log_density: float
    noise: np.ndarray
    degrees: float
    used: float


def left_out_score(
    setting: Setting, problem: CollocationProblem, solution: CollocationSolution, variances: Sequence[np.ndarray]
) -> LeftOutScore:
    """With posterior variance v, noise s^2 and residual r: the left-out residual is r / (1 - v / s^2), its variance
    s^2 / (1 - v / s^2); the noise is sum r^2 / (N - sum v / s^2), rows weighted by their factors."""
    T, total = len(problem.outputs), 0.0
    squares, degrees = np.zeros(T), np.zeros(T)
    for t, (output, part) in enumerate(zip(problem.outputs, problem.slices, strict=False)):
        if not len(output.y):
            continue
        padded = np.zeros((problem.n_weights, len(output.y)))
        padded[part] = output.at_data.T
        posterior = np.sum(solve_lower(solution.factor, padded) ** 2, axis=0)
        residual, noise = output.y - output.at_data @ solution.w[part], variances[t]
        share = np.maximum(1.0 - posterior / noise, SMALLEST_GAP)
        total -= 0.5 * float(np.sum(residual**2 / (noise * share) + np.log(2.0 * np.pi * noise / share)))
        squares[t] = np.sum(residual**2 / setting.one_output(t).factors)
        degrees[t] = len(residual) - np.sum(posterior / noise)
    measured = (list(group) for group in setting.problem.noise.groups if not setting.never[list(group)].all())
    fewest = min(float(np.sum(degrees[group])) for group in measured)
    used = sum(len(output.y) for output in problem.outputs) - float(degrees.sum())
    model = setting.problem.noise
    told = np.ones(T) if model.known is not None else model.typical(noise_told(model, squares, degrees, ALIKE_UNDER_LAW))
    return LeftOutScore(total, told, fewest, used)


SAME_POINT = 1e-9  # of the range
# With several inputs: points of the grid, and of grid and rows together. Weights are as many, and a solve takes their cube.
MOST_ON_GRID, MOST_SPREAD = 600, 900
# With several inputs the grid is this much finer, and closer together at the edges (0: even, 1: Chebyshev's points), where
# residuals between points are largest. Heat equation, 4 fields: 7e-5 of the law's terms at most, without it 2.7e-4.
FINER, TOWARDS_ENDS = 1.2, 0.3
CLOSE = 0.5  # of the grid's spacing: rows nearer to a point than that bring no new one
BETWEEN = 8  # power of two of the places where several inputs are checked


class LawPoints(NamedTuple):
    """Points (n, D), by how much their grid is coarser than asked for (1 where it is not), and points (k, D) around them.

    Those around continue the grid by one step beyond each face of its box; with one input there are none.
    """

    z: np.ndarray
    coarser: float
    around: np.ndarray

    @property
    def alone(self) -> LawPoints:
        """The same without those around."""
        return self._replace(around=self.around[:0])


def law_points(x: np.ndarray, spacing: np.ndarray) -> LawPoints:
    """Training inputs x (N, D) and an even grid of a ``spacing`` (D,) over their box, none twice.

    One input: as many as it takes. Several: at most MOST_SPREAD; the grid is made coarser, and rows close to others count
    as one.
    """
    low, span = x.min(axis=0), np.ptp(x, axis=0)
    if x.shape[1] == 1:
        grid = np.linspace(low, low + span, int(np.ceil(span[0] / spacing[0])) + 1)
        together = np.concatenate([x, grid])
        _, first = np.unique(np.round((together - low) / max(span[0], 1e-300) / SAME_POINT), return_index=True)
        return LawPoints(np.sort(together[first], axis=0), 1.0, np.zeros((0, 1)))
    coarser = 1.0 / FINER
    while np.prod(np.ceil(span / (coarser * spacing)) + 1) > MOST_ON_GRID:
        coarser *= 1.05
    counts = np.ceil(span / (coarser * spacing)).astype(int) + 1
    axes = [a + s * _towards_ends(n) for a, s, n in zip(low, span, counts, strict=True)]
    grid = _all_of(axes)
    # In an order of their own, so that a limit keeps rows from everywhere.
    rows = x[np.random.default_rng(0).permutation(len(x))]
    cell = CLOSE * np.where(counts > 1, span / np.maximum(counts - 1, 1), 1.0)
    apart, _ = cKDTree(grid / cell).query(rows / cell, p=np.inf)
    rows = rows[apart > 0.5]
    _, first = np.unique(np.round((rows - low) / cell), axis=0, return_index=True)
    z = np.concatenate([grid, rows[np.sort(first)]])[:MOST_SPREAD]
    return LawPoints(z, max(coarser, 1.0), _around(axes))


def _all_of(axes: list[np.ndarray]) -> np.ndarray:
    """(n, D) points of the grid with these axes."""
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def _around(axes: list[np.ndarray]) -> np.ndarray:
    """(k, D) points of the grid that is longer by its mean step at both ends of each axis, without those within."""
    steps = [np.ptp(axis) / max(len(axis) - 1, 1) for axis in axes]
    wider = _all_of([np.concatenate([[a[0] - s], a, [a[-1] + s]]) for a, s in zip(axes, steps, strict=True)])
    low, high = ([axis[end] for axis in axes] for end in (0, -1))
    return wider[np.any((wider < low) | (wider > high), axis=1)]


def _towards_ends(count: int) -> np.ndarray:
    """(count,) numbers from 0 to 1, closer together at both ends, where a curve has neighbours on one side only."""
    even = np.linspace(0.0, 1.0, count)
    return (1.0 - TOWARDS_ENDS) * even + TOWARDS_ENDS * 0.5 * (1.0 - np.cos(np.pi * even))


def places_between(z: np.ndarray) -> np.ndarray:
    """Where a law imposed at z (n, D) is checked: midway between neighbours; for several inputs, places all over the box."""
    if z.shape[1] == 1:
        return 0.5 * (z[:-1] + z[1:])
    low, high = z.min(axis=0), z.max(axis=0)
    return low + (high - low) * qmc.Sobol(z.shape[1], scramble=True, seed=0).random_base2(BETWEEN)


def with_ends(z: np.ndarray, count: int) -> np.ndarray:
    """Rising points z (n, 1) with ``count`` more beyond each end; with several inputs z as it is."""
    if z.shape[1] > 1 or count < 1:
        return z
    steps, gap = np.arange(1, count + 1)[:, None], np.max(np.diff(z[:, 0]))
    return np.concatenate([z[:1] - gap * steps[::-1], z, z[-1:] + gap * steps])
