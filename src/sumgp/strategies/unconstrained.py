"""The plain multitask Gaussian process."""

from __future__ import annotations

from dataclasses import dataclass

from sumgp.strategies.averaging import fit_candidates, mix
from sumgp.strategies.interface import Fitted, Strategy
from sumgp.strategies.markov_fits import fit_time_series
from sumgp.strategies.problem import FitProblem
from sumgp.strategies.stacking import stacked
from sumgp.strategies.weight_component import plain_component


@dataclass(frozen=True)
class Unconstrained(Strategy):
    """Ignore the law: multitask regression on the outputs as measured."""

    draws: int = 24

    def fit(self, problem: FitProblem) -> Fitted:
        if problem.uses_markov:
            return fit_time_series(problem, "unconstrained")
        fitted = fit_candidates(problem, problem.priors("task"))
        components, weights, report = mix(
            problem, fitted, lambda prior, theta: plain_component(problem, prior, theta), None, self.draws
        )
        return stacked(problem, Fitted(components, weights, None, {"status": report["hyperparameter_status"], **report}), None)
