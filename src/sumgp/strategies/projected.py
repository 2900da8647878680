"""The baseline everybody tries first: fit without the law, then move each point onto it."""

from __future__ import annotations

from dataclasses import dataclass

from sumgp.solvers.choice import choose_evidence
from sumgp.strategies.base import Fitted, Strategy
from sumgp.strategies.law_engine import LawEngine
from sumgp.strategies.law_setup import set_up_law
from sumgp.strategies.mixture import fit_candidates, mix
from sumgp.strategies.problem import FitProblem


@dataclass(frozen=True)
class Projected(Strategy):
    """Unconstrained regression, each point (and each sample) moved onto the law in the metric of its own covariance."""

    draws: int = 16

    def fit(self, problem: FitProblem) -> Fitted:
        assert problem.law is not None
        setup = set_up_law(problem.law, problem.data, problem.scaling, 1.0)
        priors = problem.priors("identity", unknown=setup.unknown, soft=setup.law.soft_variances)
        fitted = fit_candidates(problem, priors, lambda p: choose_evidence(problem.solver, p, problem.x, problem.y))
        engine = LawEngine(problem, setup)
        components, weights, report = mix(problem, fitted, lambda p, t: engine.component(p, t, 0.0), None, self.draws)
        return Fitted(components, weights, setup.law, {"status": report["hyperparameter_status"], **report})
