"""What a strategy is: a way to turn a fit problem into a mixture of components."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sumgp.inference.unitfree import UnitFreeLaw
from sumgp.strategies.component import Component
from sumgp.strategies.problem import FitProblem


@dataclass(frozen=True)
class Fitted:
    """Weighted components, the law their mean is brought back onto, and what happened on the way."""

    components: tuple[Component, ...]
    weights: np.ndarray
    law: UnitFreeLaw | None = None
    report: dict[str, Any] = field(default_factory=dict)


class Strategy(ABC):
    """A way to impose a law."""

    @abstractmethod
    def fit(self, problem: FitProblem) -> Fitted:
        """Fit hyperparameters and condition on the data and the law."""
