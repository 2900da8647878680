"""What a strategy is given (FitProblem), what it is (Strategy) and what it gives (Fitted)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from sumgp.data import Data, Scaling
from sumgp.hyperparameters import MapEstimate, Objective, Scan, gappy, latent_starts, maximise, row_spacing, starting_points
from sumgp.laws import UNKNOWN_VARIANCE, Imbalance, Inequalities, Law, SplitLaw, UnitFreeLaw, latent_map, measured_imbalance
from sumgp.priors import (
    Candidate,
    MultitaskPrior,
    NoiseModel,
    OneOutputTask,
    TaskCovariance,
    TaskLaw,
    canonical_order,
    check_smooth,
    hyper_priors,
    potential_candidates,
)
from sumgp.solvers import Automatic, ClosedRows, JointGaussian, Solver, closed_rows

if TYPE_CHECKING:
    from sumgp.strategies.weight_component import CurvedPoints

ROWS_IN_SIGHT = 100  # a long series is expected to vary within about so many rows
MANY_PARAMETERS = 25  # above this the default's second further start costs more than it finds; asked for, it is made
DEFAULT_RESTARTS = 2  # of ConstrainedGP

# Points are predicted in whole groups of so many: BLAS takes them four to sixteen at a time and rounds the rest otherwise.
POINTS_TOGETHER = 16


@dataclass(frozen=True)
class FitProblem:
    """Data and choices of one fit. ``x`` and ``y`` are unit-free, ``data`` is in the user's units."""

    data: Data
    scaling: Scaling
    law: Law | None
    candidates: tuple[Candidate, ...]
    rank: int | None
    noise: NoiseModel
    uncertainty: str
    restarts: int
    random_state: int
    progress: Callable[[str], None]
    solver: Solver = field(default_factory=Automatic)
    rougher: tuple[Candidate, ...] = ()  # curves that a nonlinear law may need although the data alone do not
    split: SplitLaw | None = None  # rows of the law that the prior obeys; ``law`` is then the rest
    bounds: Inequalities | None = None  # obeyed by predictions; fits do not look at them
    default_kernels: bool = False  # nothing was said of kernels

    @property
    def x(self) -> np.ndarray:
        """(N, D) inputs as the kernels see them."""
        return self.scaling.inputs(self.data.x)

    @property
    def y(self) -> np.ndarray:
        """(N, T) unit-free outputs with NaN = not measured."""
        return self.scaling.outputs(self.data.y)

    @property
    def own_kernels(self) -> bool:
        """Whether outputs may have kernels of their own: nothing was said of kernel or rank."""
        return self.default_kernels and self.rank is None

    @property
    def n_outputs(self) -> int:
        """Number of outputs T."""
        return self.data.y.shape[1]

    @property
    def half_range(self) -> np.ndarray:
        """(D,) half the range of each input, as the kernels see it: where lengthscales are expected."""
        return typical_range(self.x, self.solver.on_series)

    def in_order(self) -> FitProblem:
        """The same problem with its rows sorted, so that their order makes no difference at all."""
        return self.at(self.data.order)

    def at(self, rows: np.ndarray) -> FitProblem:
        """The same problem with these rows only, in this order."""
        return replace(self, data=self.data.at(rows), noise=self.noise.at(rows))

    def priors(
        self, mean_shape: str, law: UnitFreeLaw | None = None, task_law: TaskLaw | None = None
    ) -> tuple[MultitaskPrior, ...]:
        """One prior per candidate, with the columns that a ``law`` has of its own: constants and errors of soft rows.

        Raises DataError before any work if dense algebra would need more memory than there is.
        """
        columns: dict[str, Any] = {}
        if law is not None:
            columns = {"unknown": np.full(len(law.law.unknowns), UNKNOWN_VARIANCE), "soft": law.soft_variances}
        if self.split is not None:
            result = self._latent_priors(self.split, columns)
        else:
            # Outputs with terms of their own have constants of their own: no one term is shaped like the mean.
            columns |= {"law": task_law, "alike": gappy(self.x / self.half_range, self.spacing)}
            shapes = ["identity" if candidate.own else mean_shape for candidate in self.candidates]
            terms = [(c.kernels, c.tasks(self.n_outputs, self.rank)) for c in self.candidates]
            result = [self._prior(*t, shape, **columns) for t, shape in zip(terms, shapes, strict=True)]
        self.solver.check(result[0], self.x, self.data.y)
        return tuple(result)

    def _prior(
        self, kernels: tuple[Kernel, ...], tasks: tuple[TaskCovariance, ...], shape: str, **rest: Any
    ) -> MultitaskPrior:
        """With what is expected of lengthscales and of noise."""
        expected = tuple(tuple(hyper_priors(kernel, self.half_range, self.spacing)) for kernel in kernels)
        return MultitaskPrior(kernels, expected, tasks, self.noise, self.n_outputs, mean_shape=shape, **rest)

    def _latent_priors(self, split: SplitLaw, columns: dict[str, Any]) -> list[MultitaskPrior]:
        """Priors over latent functions, one for each kernel of the candidates, all functions with their own parameters."""
        potential = split.potential.scaled(self.scaling.y_scale, self.scaling.x_scale)
        constants = split.constants(self.scaling, self.y) / np.sqrt(MultitaskPrior.mean_variance)
        latent = latent_map(potential, split.offset(self.scaling), self.x, constants)
        K, result = latent.n_latent, []
        several = self.default_kernels and len(self.half_range) > 1
        candidates = potential_candidates(self.half_range, potential.degree) if several else self.candidates
        for kernels in dict.fromkeys(tuple(dict.fromkeys(map(repr, c.kernels))) for c in candidates):
            own = {repr(k): k for c in candidates for k in c.kernels}
            terms = [own[name] for name in kernels for _ in range(K)]
            for kernel in terms:
                check_smooth(kernel, potential.degree)
            tasks = tuple(OneOutputTask(K, k % K) for k in range(len(terms)))
            result.append(self._prior(tuple(terms), tasks, "identity", latent=latent, **columns))
        return result

    def maximise(self, objective: Objective, what: str, starts: Sequence[np.ndarray]) -> MapEstimate:
        """Maximum a posteriori hyperparameters, announced to the progress display."""
        self.progress(f"hyperparameters: {what}")
        return maximise(objective, random_state=self.random_state, starts=starts)

    def starts(self, objective: Objective, scan: Scan) -> list[np.ndarray]:
        """Where to begin, for outputs in the order ``output_order``: what the data say first, then what the prior says."""
        many = objective.prior.n_parameters > MANY_PARAMETERS and self.restarts in (1, DEFAULT_RESTARTS)
        if objective.prior.latent is not None:
            return latent_starts(objective, 2 if many else 1 + self.restarts)
        if many:
            # Each further start costs as much as the search; which lengthscale explains all outputs together costs little.
            return [*scan.starts(objective.prior, 1, objective.value), objective.prior.start()]
        seen = scan.starts(objective.prior, max(self.restarts, 1))
        return [*seen, *starting_points(objective, self.restarts, self.random_state)][: 1 + self.restarts]

    @cached_property
    def spacing(self) -> float:
        """Of neighbouring rows, over half the range."""
        return row_spacing(self.x / self.half_range)

    @cached_property
    def scan(self) -> Scan:
        """Starts of the search, whose outputs are in the order ``output_order``."""
        return Scan(self.x, self.y[:, self.output_order])

    @cached_property
    def output_order(self) -> np.ndarray:
        """(T,) positions of the outputs in the order in which hyperparameters are looked for, whatever the given one."""
        return canonical_order(self.y, self.data.output_names)


def typical_range(x: np.ndarray, long_series: bool) -> np.ndarray:
    """(D,) half the range of each input; of a long series, half of what about a hundred rows span."""
    span = np.ptp(x, axis=0)
    share = min(1.0, ROWS_IN_SIGHT / len(x)) if long_series else 1.0
    return 0.5 * share * np.where(span > 0, span, 1.0)


def closed_imbalance(problem: FitProblem) -> Imbalance | None:
    """How the rows meet the law, if they meet some row of it up to rounding; None where the noise was given or differs."""
    law = problem.law
    if law is None or law.unknowns or problem.noise.known is not None or problem.noise.row_factor is not None:
        return None
    found = measured_imbalance(law, problem.data, problem.scaling)
    return found if bool(np.any(found.closed & (law.noise == 0))) else None


def closed_law_rows(problem: FitProblem, F: np.ndarray, totals: np.ndarray, laws: np.ndarray) -> ClosedRows | None:
    """A linear law F (N, R, T), ``totals`` (N, R), unit-free, at rows that meet it; ``laws`` (R,) are its rows' own numbers.

    None where the data are not closed.
    """
    found = closed_imbalance(problem)
    if found is None:
        return None
    met = found.closed[laws] & (problem.law.noise[laws] == 0)  # type: ignore[union-attr]
    return closed_rows(problem.y, F * met[:, None], totals * met, found.misprints) if met.any() else None


class Marginals(Protocol):
    """Marginals that are not Gaussian; values are (..., n, T), unit-free."""

    def cdf(self, values: np.ndarray) -> np.ndarray:
        """Probabilities of outputs below ``values``."""

    def density(self, values: np.ndarray) -> np.ndarray:
        """Densities at ``values``."""

    def at(self, rows: np.ndarray) -> Marginals:
        """Some of the points."""

    def followed_by(self, others: Sequence[Any]) -> Marginals:
        """The points of this one and then those of the others, as points of one."""


@dataclass(frozen=True, eq=False)
class LocalPosterior:
    """Mean (n, C) and covariance (n, C, C) of single points; with a curved law what that makes of them."""

    mean: np.ndarray
    covariance: np.ndarray
    curved: CurvedPoints | None = None

    def at(self, rows: slice | np.ndarray) -> LocalPosterior:
        """Some of the points."""
        curved = None if self.curved is None else replace(self.curved, rows=self.curved.rows[rows])
        return LocalPosterior(self.mean[rows], self.covariance[rows], curved)


class PosteriorComponent(ABC):
    """f given data and law for one set of hyperparameters, unit-free: all that predictions, reports and scores ask of it.

    x (n, D) are inputs as the kernels see them, ``x_law`` (n, D + E) the same in the user's units.
    """

    theta: np.ndarray
    noise: np.ndarray  # (T,) noise variances of a new measurement
    n_outputs: int
    law: UnitFreeLaw | None

    @property
    def noise_covariance(self) -> np.ndarray:
        """(T, T) of that noise between outputs, which is independent unless a component says otherwise."""
        return np.diag(self.noise)

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """C: outputs and the law's own columns."""

    @abstractmethod
    def widened(self, factor: float) -> PosteriorComponent:
        """The same means with all standard deviations ``factor`` times as large."""

    @abstractmethod
    def differentiated(self, order: tuple[int, ...], x_scale: np.ndarray) -> PosteriorComponent | None:
        """The derivatives of all outputs by inputs, which are the user's divided by ``x_scale``; None if not known.

        Single points are not moved onto the law.
        """

    @staticmethod
    @abstractmethod
    def local_posteriors(components: Sequence[Any], x: np.ndarray, x_law: np.ndarray) -> list[LocalPosterior]:
        """Each point on its own, of all components of one fit in one call."""

    def marginals(self, x: np.ndarray, x_law: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (n, C) and covariance (n, C, C) at each point, which do not depend on the other points."""
        local = self.local_posteriors([self], x, x_law)[0]
        return local.mean, local.covariance

    @abstractmethod
    def joint_covariance(self, x: np.ndarray, x_law: np.ndarray) -> np.ndarray:
        """(nC, nC) covariance between all points."""

    def joint_gaussian(self, x: np.ndarray, x_law: np.ndarray) -> JointGaussian | None:
        """The same with few columns; None where the covariance has no such form."""
        return None

    @abstractmethod
    def sample(self, x: np.ndarray, x_law: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
        """(count, n, C) joint draws."""

    def distribution(self, x: np.ndarray, x_law: np.ndarray) -> Marginals | None:
        """Marginals at each point; None where they are Gaussian."""
        return None

    @abstractmethod
    def lengthscales(self) -> list[np.ndarray]:
        """Of each kernel, as the kernels see inputs."""


@dataclass(frozen=True)
class Fitted:
    """Weighted components, the law their mean is brought back onto, and what happened on the way."""

    components: tuple[PosteriorComponent, ...]
    weights: np.ndarray
    law: UnitFreeLaw | None = None
    report: dict[str, Any] = field(default_factory=dict)

    def local_posteriors(self, x: np.ndarray, x_law: np.ndarray) -> list[LocalPosterior]:
        """Each point on its own, of all components; the same, up to round-off, whatever other points are asked for."""
        n = len(x)
        filled = np.concatenate([np.arange(n), np.zeros(-n % POINTS_TOGETHER, dtype=int)])
        parts = self.components[0].local_posteriors(self.components, x[filled], x_law[filled])
        return [part.at(slice(n)) for part in parts]


@dataclass(frozen=True)
class SeriesPlan:
    """How a law enters the state-space form: not at all, or as one of these."""

    on_tasks: bool = False  # a linear law, on the task covariance
    at_times: bool = False  # at every time, by iterated linearisation
    in_evidence: bool = False  # a linear law: hyperparameters are those of the data given the law
    projected: bool = False  # predictions alone are moved onto it


class Strategy(ABC):
    """A way to impose a law, or none.

    ``series``: how the law enters the state-space form; ``takes_long_series``: it works on that form and on large maps too;
    ``takes_derivatives``: on laws with derivatives.
    """

    series: ClassVar[SeriesPlan] = SeriesPlan()
    takes_long_series: ClassVar[bool] = True
    takes_derivatives: ClassVar[bool] = False
    imposes_law: ClassVar[bool] = True

    def fit(self, problem: FitProblem) -> Fitted:
        """Fit hyperparameters and condition on the data and the law, by the solver that the problem has."""
        if problem.solver.on_blocks:
            from sumgp.strategies.vecchia_fits import fit_many_points

            return fit_many_points(problem, problem.law if self.imposes_law else None)
        if not problem.solver.on_series:
            return self.fit_rows(problem)
        from sumgp.strategies.markov_fits import fit_time_series

        return fit_time_series(problem, self.series_plan(problem))

    @abstractmethod
    def fit_rows(self, problem: FitProblem) -> Fitted:
        """The fit in weight space."""

    def series_plan(self, problem: FitProblem) -> SeriesPlan:
        """How the law enters the state-space form; not at all where the prior obeys the whole of it."""
        return SeriesPlan() if problem.law is None else self.series
