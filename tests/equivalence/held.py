"""Fits with hyperparameters held at given values, so that two algorithms can be compared without two optimisers."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from sumgp import ConstrainedGP
from sumgp.estimator import default_strategy
from sumgp.hyperparameters.optimise import Attempt, MapEstimate, Objective
from sumgp.priors import reordered
from sumgp.strategies.problem import FitProblem


@dataclass(frozen=True)
class HeldProblem(FitProblem):
    """A fit problem whose hyperparameter search returns ``theta``."""

    theta: Any = None

    def maximise(self, objective: Objective, what: str, starts: object = None) -> MapEstimate:
        # The search has the outputs in an order of its own; ``theta`` is for the order of the problem.
        given = reordered(objective.prior, np.argsort(self.output_order))
        theta = objective.prior.start() if self.theta is None else given.back(self.theta)
        value = objective(theta)[0]
        return MapEstimate(theta, value, "converged", (Attempt(theta, value, 0, "converged"),))


def fit_held(gp: ConstrainedGP, X: Any, Y: Any, theta: np.ndarray | None = None) -> ConstrainedGP:
    """Fit with hyperparameters theta (None = the prior's start); only data and law are conditioned on."""
    problem, law = gp._problem(X, Y, lambda stage: None)
    held = HeldProblem(**{f.name: getattr(problem, f.name) for f in fields(FitProblem)}, theta=theta)
    strategy = gp.strategy if gp.strategy is not None else default_strategy(law)
    gp._keep(problem, law, strategy, strategy.fit(held.in_order()))
    return gp
