"""What a strategy is: a way to turn a fit problem into a mixture of components."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from sumgp.laws import UnitFreeLaw
from sumgp.strategies.problem import FitProblem


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
    """A way to impose a law. ``takes_long_series``: it works on the state-space form too; ``takes_derivatives``: on laws
    with derivatives."""

    takes_long_series: ClassVar[bool] = True
    takes_derivatives: ClassVar[bool] = False

    @abstractmethod
    def fit(self, problem: FitProblem) -> Fitted:
        """Fit hyperparameters and condition on the data and the law."""
