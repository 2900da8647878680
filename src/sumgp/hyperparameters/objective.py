"""The function that hyperparameter search minimises: minus log evidence minus log prior."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sumgp.errors import NumericalError
from sumgp.priors import MultitaskPrior

Evidence = Callable[[np.ndarray], tuple[float, np.ndarray]]

REFUSED = 1e25  # value of a point where the evidence cannot be computed; finite, so that a line search backs off


@dataclass(frozen=True)
class Objective:
    """-log p(y | theta) - log p(theta) with its gradient."""

    prior: MultitaskPrior
    evidence: Evidence

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient; a failed Cholesky factor is a very bad value, not an exception."""
        try:
            value, gradient = self.evidence(theta)
        except NumericalError:
            return REFUSED, np.zeros(len(theta))
        prior_value, prior_gradient = self.prior.log_prior(theta)
        if not np.isfinite(value) or not np.all(np.isfinite(gradient)):
            return REFUSED, np.zeros(len(theta))
        return -value - prior_value, -gradient - prior_gradient

    def value(self, theta: np.ndarray) -> float:
        """The value alone, which some evidences give at less cost."""
        if not hasattr(self.evidence, "value"):
            return self(theta)[0]
        try:
            value = float(self.evidence.value(theta))
        except NumericalError:
            return REFUSED
        return -value - self.prior.log_prior(theta)[0] if np.isfinite(value) else REFUSED
