"""Our own method: keep the Gaussian process on the outputs as measured, and condition it on g(f, x) = 0."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from sumgp.errors import NumericalError, SumGPWarning
from sumgp.laws import set_up_law
from sumgp.lawsolve import ENOUGH
from sumgp.priors import MultitaskPrior
from sumgp.strategies.averaging import Candidates, approximate_evidence, fit_candidates, mix
from sumgp.strategies.imposed_law import LawEngine, law_spacing
from sumgp.strategies.interface import Fitted, Strategy
from sumgp.strategies.left_out import RowNoise, TrainingRows, component_left_out
from sumgp.strategies.markov_fits import fit_time_series
from sumgp.strategies.problem import FitProblem
from sumgp.strategies.stacking import stacked
from sumgp.strategies.weight_component import Component

# How far the law at one point speaks about others, in lengthscales (None: as far as the prior does), and how likely each is
# beforehand. The joint posterior is the right one where the prior holds functions that obey the law; it is far too sure
# of itself where it does not. Projection alone predicts left-out rows well, but gaps badly: it is not among them.
TAPERS = (None, 4.0, 1.0)
BELIEFS = (0.7, 0.2, 0.1)
GOLDEN = 0.5 * (5.0**0.5 - 1.0)  # multiples of it, modulo one, fill the unit interval evenly
DRAWS_FOR_BRANCHES = 4  # times as many draws where the law can be met on several branches
HOPELESS = -1e6  # score of hyperparameters under which the law cannot be imposed


@dataclass(frozen=True)
class Linearized(Strategy):
    """Condition on the law by iterated linearisation at training points, a grid between them and each asked point.

    ``taper`` is how far the law at one point speaks about others: None is joint conditioning, 0 is projection point by
    point, a number is a distance in lengthscales; "auto" averages over several, weighed by how well they predict left-out
    rows (``fit_report_["taper_weights"]``). ``draws``: of hyperparameters; up to twice as many are weighed by the law.
    """

    taper: str | float | None = "auto"
    draws: int = 24

    def fit(self, problem: FitProblem) -> Fitted:
        assert problem.law is not None
        if problem.uses_markov:
            return fit_time_series(problem, "law")
        spaced = set_up_law(problem.law, problem.data, problem.scaling, 1.0)
        priors = problem.priors("identity", unknown=spaced.unknown, soft=spaced.law.soft_variances)
        fitted = fit_candidates(problem, priors).supported
        best = fitted.best
        spacing = law_spacing(problem, fitted.priors[best], fitted.maxima[best].theta)
        setup = set_up_law(problem.law, problem.data, problem.scaling, spacing)
        engine = LawEngine(problem, setup)
        engine.calibrate(engine.state(fitted.priors[best], fitted.maxima[best].theta))
        found = [engine.look_for_branches(p, m.theta) for p, m in zip(fitted.priors, fitted.maxima, strict=True)]

        known: dict[tuple[int, bytes], float] = {}

        def score(prior: MultitaskPrior, theta: np.ndarray) -> float:
            key = (id(prior), theta.tobytes())
            if key not in known:
                try:
                    known[key] = engine.log_evidence(prior, theta)
                except NumericalError:
                    known[key] = HOPELESS
            return known[key]

        tapers, taper_report = self._weigh_tapers(problem, engine, fitted, score)
        lengths = _in_turn(tapers)

        def build(prior: MultitaskPrior, theta: np.ndarray) -> Component:
            return engine.component(prior, theta, next(lengths))

        # A law that speaks point by point only says nothing about hyperparameters, which are about neighbours.
        weigh = None if taper_report["taper"] == 0.0 else score
        # How much weight each branch has depends on many hyperparameters.
        many = any(found) and problem.uncertainty == "integrated"
        draws = self.draws * (DRAWS_FOR_BRANCHES if many else 1)
        undecided = any(found) and not all(found)
        components, weights, report = mix(problem, fitted, build, weigh, draws, undecided)
        report |= taper_report | _law_report(components, weights) | {"law_starts": 1 + len(engine.branches)}
        if report["status"] != "converged":
            warnings.warn(
                f"the law was imposed with status: {report['status']}; {_remedy(report['status'])}",
                SumGPWarning,
                stacklevel=2,
            )
        return stacked(problem, Fitted(components, weights, setup.law, report), setup.law)

    def _weigh_tapers(
        self, problem: FitProblem, engine: LawEngine, fitted: Candidates, score: Any
    ) -> tuple[dict[float | None, float], dict[str, Any]]:
        """Weights of the tapers: belief times the density of each row given all others and the law."""
        if not isinstance(self.taper, str):
            return {self.taper: 1.0}, {"taper": self.taper, "taper_reason": "as asked"}
        best = int(np.argmax(approximate_evidence(fitted, score)))
        prior, theta = fitted.priors[best], fitted.maxima[best].theta
        rows = TrainingRows(problem.x, problem.data.x, problem.y)
        noise = RowNoise.of(prior, theta, len(rows.x))
        components = [engine.component(prior, theta, length, ENOUGH) for length in TAPERS]
        values = [float(np.sum(component_left_out(c, rows, noise).log_density)) for c in components]
        logs = np.log(BELIEFS) + np.array(values)
        shares = np.exp(logs - logs.max()) / np.sum(np.exp(logs - logs.max()))
        most = TAPERS[int(np.argmax(shares))]
        weights = dict(zip(TAPERS, shares.tolist(), strict=True)) if problem.uncertainty == "integrated" else {most: 1.0}
        return weights, {
            "taper": most,
            "taper_scores": dict(zip(map(str, TAPERS), values, strict=True)),
            "taper_weights": {str(t): w for t, w in weights.items()},
            "taper_reason": "density of left-out rows given the others and the law",
        }


def _in_turn(weights: dict[float | None, float]) -> Iterator[float | None]:
    """Tapers without end, each as often as its weight says."""
    lengths, ends = list(weights), np.cumsum(list(weights.values()))
    for i in count():
        yield lengths[min(int(np.searchsorted(ends, (0.5 + i * GOLDEN) % 1.0)), len(lengths) - 1)]


def _law_report(components: tuple[Component, ...], weights: np.ndarray) -> dict[str, Any]:
    """Worst status among components that carry weight, and the steps taken."""
    solutions = [
        (w, c.conditioning.solution) for w, c in zip(weights, components, strict=True) if c.conditioning is not None
    ]
    if not solutions:
        return {"status": "converged", "law_steps": 0}
    bad = [(w, s) for w, s in solutions if s.status != "converged"]
    share = sum(w for w, _ in bad)
    status = "converged" if share < 0.2 else max(bad, key=lambda pair: pair[0])[1].status
    return {"status": status, "law_steps": int(np.mean([s.steps for _, s in solutions])), "unconverged_weight": float(share)}


def _remedy(status: str) -> str:
    if status.startswith("law infeasible"):
        return "check the law and its constants there, or allow an error with noise= on the law"
    return "check the law against the data (fit_report_), or use strategy=Projected()"
