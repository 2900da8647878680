"""Unconstrained: ignore the law. Projected: ignore it, then move each prediction onto it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sumgp.errors import Status, warn
from sumgp.laws import UnitFreeLaw, set_up_law
from sumgp.strategies.averaging import fit_candidates, mix, one_by_one
from sumgp.strategies.linearized import LawEngine
from sumgp.strategies.problem import FitProblem, Fitted, SeriesPlan, Strategy
from sumgp.strategies.stacking import stacked
from sumgp.strategies.weight_component import Component, plain_component


@dataclass(frozen=True)
class Unconstrained(Strategy):
    """Ignore the law: multitask regression on the outputs as measured."""

    imposes_law: ClassVar[bool] = False

    draws: int = 24

    def fit_rows(self, problem: FitProblem) -> Fitted:
        fitted = fit_candidates(problem, problem.priors("identity"))
        components, weights, report = mix(
            problem, fitted, one_by_one(lambda prior, theta: plain_component(problem, prior, theta)), None, self.draws
        )
        return stacked(
            problem, Fitted(components, weights, None, {"status": report["hyperparameter_status"], **report}), None
        )


UNMET = 1e-6  # scaled residual of a projected point above which the law counts as not met


@dataclass(frozen=True)
class Projected(Strategy):
    """Unconstrained regression, each point (and each sample) moved onto the law in the metric of its own covariance."""

    series: ClassVar[SeriesPlan] = SeriesPlan(projected=True)

    draws: int = 24

    def fit_rows(self, problem: FitProblem) -> Fitted:
        assert problem.law is not None
        setup = set_up_law(problem.law, problem.data, problem.scaling, 1.0)
        fitted = fit_candidates(problem, problem.priors("identity", setup.law))
        engine = LawEngine(problem, setup)
        components, weights, report = mix(problem, fitted, lambda p: engine.components(p, [0.0] * len(p)), None, self.draws)
        status = report["hyperparameter_status"]
        unmet = _unmet_near(setup.law, problem, components[int(np.argmax(weights))])
        if unmet is not None:
            status = Status.LAW_INFEASIBLE.at(f"near x = {unmet}")
            warn(f"the law was imposed with status: {status}; {Status.LAW_INFEASIBLE.remedy}")
        return stacked(problem, Fitted(components, weights, setup.law, {**report, "status": status}), setup.law)


def _unmet_near(law: UnitFreeLaw, problem: FitProblem, component: Component) -> str | None:
    """The training input at which the projected mean misses the law most, or None where it is met everywhere."""
    mean, _ = component.marginals(problem.x, problem.data.x)
    missed = np.max(np.abs(law.residual(mean, problem.data.x)), axis=1)
    worst = int(np.argmax(missed))
    return np.array2string(problem.data.x[worst], precision=4) if missed[worst] > UNMET else None
