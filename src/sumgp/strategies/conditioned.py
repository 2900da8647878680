"""Linear laws, imposed exactly by conditioning the prior (the paper's section 3.2)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sumgp.errors import ConstraintError, DataError
from sumgp.laws import Law, SumLaw, linear_rows, set_up_law, task_rows, unit_free_law
from sumgp.priors import MultitaskPrior, TaskLaw, nullspace_basis
from sumgp.solvers import ClosedEvidence, Evidence, build_features, condition_on_data, given_linear_law
from sumgp.strategies.averaging import fit_candidates, mix, one_by_one
from sumgp.strategies.linearized import LawEngine
from sumgp.strategies.problem import FitProblem, Fitted, SeriesPlan, Strategy, closed_imbalance, closed_law_rows
from sumgp.strategies.stacking import stacked
from sumgp.strategies.weight_component import Component

ALIKE = 1e-12  # unit-free: round-off between rows of one law


@dataclass(frozen=True)
class ClosedComponent(Component):
    """Of closed data, with noise P diag(noise) P: what P, onto the null space of the law, leaves of independent noise."""

    within: np.ndarray | None = None  # P (T, T); None: independent

    @property
    def noise_covariance(self) -> np.ndarray:
        """(T, T), as the fit has it: an output whose own share is zero has noise from the others."""
        return super().noise_covariance if self.within is None else (self.within * self.noise) @ self.within


@dataclass(frozen=True)
class Conditioned(Strategy):
    """Condition on F f = S: on the task covariance where F is constant, else on the full joint.

    ``joint=True`` forces the general algorithm (for comparison).
    """

    draws: int = 24
    joint: bool = False

    def series_plan(self, problem: FitProblem) -> SeriesPlan:
        return SeriesPlan(on_tasks=True) if self._is_separable(problem) else SeriesPlan(at_times=True, in_evidence=True)

    def fit_rows(self, problem: FitProblem) -> Fitted:
        law = _linear(problem.law)
        return self._on_tasks(problem, law) if self._is_separable(problem) else self._on_joint(problem, law)

    def _is_separable(self, problem: FitProblem) -> bool:
        """True if the law can be imposed on the task covariance: F is constant, and the prior has one separable term."""
        law = _linear(problem.law)
        single = all(candidate.is_separable for candidate in problem.candidates)
        return law.has_constant_coefficients and not law.unknowns and single and not self.joint

    def _on_tasks(self, problem: FitProblem, law: SumLaw) -> Fitted:
        """Algorithm 3: constant F, S constant or varying, one separable term."""
        rows = task_rows(law, problem.data, problem.scaling)
        task_law, keep = TaskLaw.of(rows, problem.data.x), list(rows.right_sides.keep)
        imbalance = closed_imbalance(problem)
        closed = imbalance is not None and bool(np.all(imbalance.closed[keep] & (rows.noise == 0)))
        problem = replace(problem, noise=replace(problem.noise, closed=closed))
        # The error of a law that holds only roughly has a constant part, as large as the outputs' constants let it be.
        shape = "task" if np.any(rows.noise > 0) else "identity"
        fitted = fit_candidates(problem, problem.priors(shape, task_law=task_law))
        basis = nullspace_basis(rows.F)
        within = basis @ basis.T if closed else None

        def build(prior: MultitaskPrior, theta: np.ndarray) -> Component:
            features = build_features(prior, theta, problem.x, rows.right_sides)
            posterior = condition_on_data(prior, theta, features, problem.x, problem.data.x, problem.y)
            noise = prior.noise.typical(theta[prior.noise_slice])
            return ClosedComponent(posterior, theta, noise, prior.n_outputs, within=within)

        components, weights, report = mix(problem, fitted, one_by_one(build), None, self.draws)
        report |= {"status": report["hyperparameter_status"], "law": "on the task covariance"}
        report["noise_within_law"] = problem.noise.closed
        report["dropped_rows"] = list(rows.dropped)
        # A law that holds only roughly shows in what the outputs of a row have in common: nothing is moved onto it.
        exact = [row for row in range(law.n_rows) if law.noise[row] == 0]
        point_law = unit_free_law(law.rows(exact), problem.data, problem.scaling) if exact else None
        return stacked(problem, Fitted(components, weights, None, report), point_law, rows.F if closed else None)

    def _on_joint(self, problem: FitProblem, law: SumLaw) -> Fitted:
        """Algorithm 2: F(x), several terms, unknown totals, laws on part of the inputs."""
        if problem.solver.separable:
            raise DataError(
                "solver: Kronecker() cannot take a law with varying coefficients, several kernel terms, unknown totals or "
                "where=; use Dense() or leave solver=None"
            )
        setup = set_up_law(law, problem.data, problem.scaling, 1.0)
        rows, totals = linear_rows(setup.law, problem.data)

        T = problem.n_outputs
        closed = closed_law_rows(problem, rows[:, :, :T], totals, np.arange(law.n_rows))

        def evidence(prior: MultitaskPrior, order: np.ndarray) -> Evidence:
            columns = [*order, *range(T, rows.shape[2])]
            joint = given_linear_law(prior, problem.x, problem.y[:, order], rows[:, :, columns], totals)
            return joint if closed is None else ClosedEvidence(joint, prior, closed.of(np.arange(len(rows)), order))

        alike = not law.unknowns and not np.any(law.noise > 0) and bool(np.ptp(rows, axis=0).max() <= ALIKE)
        shape, within = ("identity", rows[0, :, :T]) if alike else ("task", None)
        priors = tuple(replace(prior, within=within) for prior in problem.priors(shape, setup.law))
        fitted = fit_candidates(problem, priors, evidence)
        engine = LawEngine(problem, setup, exact=True)
        components, weights, report = mix(problem, fitted, engine.components, None, self.draws)
        report |= {"status": report["hyperparameter_status"], "law": "on the full joint"}
        return stacked(problem, Fitted(components, weights, setup.law, report), setup.law)


def _linear(law: Law | None) -> SumLaw:
    if not isinstance(law, SumLaw) or not law.is_linear:
        raise ConstraintError(
            "strategy: Conditioned() imposes linear laws only, and this law is nonlinear; use Linearized() or None"
        )
    return law
