"""What a strategy is given (FitProblem), what it is (Strategy) and what it gives (Fitted)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from sumgp.data import Data, Scaling
from sumgp.hyperparameters import MapEstimate, Objective, Scan, maximise, row_spacing, starting_points
from sumgp.laws import Law, UnitFreeLaw
from sumgp.priors import Candidate, MultitaskPrior, NoiseModel, TaskLaw, canonical_order, hyper_priors
from sumgp.solvers import Markov, check_solver_memory

ROWS_IN_SIGHT = 100  # a long series is expected to vary within about so many rows
MANY_PARAMETERS = 25  # above this the default's second further start costs more than it finds; more are made if asked for
DEFAULT_RESTARTS = 2  # of ConstrainedGP

NONE = np.zeros(0)


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
    solver: Any = None

    @property
    def x(self) -> np.ndarray:
        """(N, D) inputs as the kernels see them."""
        return self.scaling.inputs(self.data.x)

    @property
    def y(self) -> np.ndarray:
        """(N, T) unit-free outputs with NaN = not measured."""
        return self.scaling.outputs(self.data.y)

    @property
    def n_outputs(self) -> int:
        """Number of outputs T."""
        return self.data.y.shape[1]

    @property
    def uses_markov(self) -> bool:
        """True if the fit goes through the state-space form."""
        return isinstance(self.solver, Markov)

    @property
    def half_range(self) -> np.ndarray:
        """(D,) half the range of each input, as the kernels see it: where lengthscales are expected."""
        return typical_range(self.x, self.uses_markov)

    def in_order(self) -> FitProblem:
        """The same problem with its rows sorted, so that their order makes no difference at all."""
        return self.at(self.data.order)

    def at(self, rows: np.ndarray) -> FitProblem:
        """The same problem with these rows only, in this order."""
        return replace(self, data=self.data.at(rows), noise=self.noise.at(rows))

    def priors(
        self, mean_shape: str, law: TaskLaw | None = None, unknown: np.ndarray = NONE, soft: np.ndarray = NONE
    ) -> tuple[MultitaskPrior, ...]:
        """One prior per candidate; ``unknown`` and ``soft`` are variances of constants and of soft laws' errors.

        Raises DataError before any work if dense algebra would need more memory than there is.
        """
        T = self.n_outputs
        spacing = row_spacing(self.x / self.half_range)
        result = []
        for candidate in self.candidates:
            result.append(
                MultitaskPrior(
                    kernels=candidate.kernels,
                    kernel_priors=tuple(tuple(hyper_priors(k, self.half_range, spacing)) for k in candidate.kernels),
                    tasks=candidate.tasks(T, self.rank),
                    noise=self.noise,
                    n_outputs=T,
                    # Outputs with terms of their own have constants of their own: no one term is shaped like the mean.
                    mean_shape="identity" if candidate.own else mean_shape,
                    law=law,
                    unknown=unknown,
                    soft=soft,
                )
            )
        if not self.uses_markov:
            check_solver_memory(self.solver, result[0], self.x, self.data.y)
        return tuple(result)

    def maximise(self, objective: Objective, what: str, starts: Sequence[np.ndarray]) -> MapEstimate:
        """Maximum a posteriori hyperparameters, announced to the progress display."""
        self.progress(f"hyperparameters: {what}")
        return maximise(objective, random_state=self.random_state, starts=starts)

    def starts(self, objective: Objective, scan: Scan) -> list[np.ndarray]:
        """Where to begin, for outputs in the order ``output_order``: what the data say first, then what the prior says."""
        few = objective.prior.n_parameters <= MANY_PARAMETERS or self.restarts > DEFAULT_RESTARTS
        restarts = self.restarts if few else min(self.restarts, 1)
        seen = scan.starts(objective.prior, max(restarts, 1))
        return [*seen, *starting_points(objective, restarts, self.random_state)][: 1 + restarts]

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


def kernel_name(prior: MultitaskPrior) -> str:
    """Short name of a candidate, for reports."""
    return " + ".join(type(k).__name__ if not k.hyperparameters else str(k).split("(")[0] for k in prior.kernels)


class PosteriorComponent(Protocol):
    """What predictions need of a posterior for one set of hyperparameters, unit-free (see ``Component``)."""

    @property
    def noise(self) -> np.ndarray:
        """(T,) noise variances of a new measurement."""

    @property
    def n_columns(self) -> int:
        """C: outputs and the law's own columns."""

    def marginals(self, x: np.ndarray, x_law: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (n, C) and covariance (n, C, C) at each point."""

    def joint_covariance(self, x: np.ndarray, x_law: np.ndarray) -> np.ndarray:
        """(nC, nC) covariance between all points."""

    def sample(self, x: np.ndarray, x_law: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
        """(count, n, C) joint draws."""


@dataclass(frozen=True)
class Fitted:
    """Weighted components, the law their mean is brought back onto, and what happened on the way."""

    components: tuple[PosteriorComponent, ...]
    weights: np.ndarray
    law: UnitFreeLaw | None = None
    report: dict[str, Any] = field(default_factory=dict)


class Strategy(ABC):
    """A way to impose a law. ``takes_long_series``: it works on the state-space form too."""

    takes_long_series: ClassVar[bool] = True

    @abstractmethod
    def fit(self, problem: FitProblem) -> Fitted:
        """Fit hyperparameters and condition on the data and the law."""
