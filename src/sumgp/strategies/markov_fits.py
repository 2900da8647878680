"""Fits on one input in linear time: the same strategies, on a state-space form of the prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from sumgp.errors import Status, doubted, warn
from sumgp.hyperparameters import Objective, Scan, latent_starts, maximise, starting_points
from sumgp.laws import RightSides, SumLaw, UnitFreeLaw, linear_rows, project, task_rows, unit_free_law
from sumgp.priors import MultitaskPrior, TaskLaw, kernel_name, reordered, shown_period
from sumgp.solvers import ClosedEvidence, ClosedRows, Evidence, SlopeOfOffset, markov
from sumgp.strategies.averaging import WIDENING
from sumgp.strategies.eliminated import disagreement
from sumgp.strategies.few_rows import prior_on_rows
from sumgp.strategies.problem import FitProblem, Fitted, SeriesPlan, closed_law_rows
from sumgp.strategies.weight_component import MovedComponent, Unprojected, moving_metric

TUNED_ON = 8000  # values in the rows used to fit hyperparameters; more would only repeat what they say
FEWEST_TUNED = 1000  # of those rows
# Consecutive rows at which rougher kernels, waves and every lengthscale of latent functions (some 60 evaluations) are tried.
LOOKED_AT = 300
ROUGHER_BY = 3.0  # log units by which a rougher kernel must be ahead there
# In a lengthscale, under a law with derivatives. A sine of noise 5 % with its slope, 500 periods: 95 % intervals hold 58 %
# at 2.0 rows, 78 % at 2.5, 97 % at 3.4: with fewer the noise is taken for a rough curve, which values and slopes fix.
FEWEST_ROWS = 3.0
UNEXPLAINED = 0.25  # of an output's variance, left by the curve: less is what its noise takes from a wave that it follows
# Variances of the noise: five standard errors of the mean square of 600 values, about the fewest of a long series.
MORE_THAN_NOISE = 1.3
NOT_FOLLOWED = "no curve of the kind tried follows both the law and the data: intervals may be too narrow"
SHORTER_PIECES = "fit pieces of at most 600 rows with solver=Dense(), which tries more kinds of curves"
POINT_BY_POINT = "imposed at all times together, the law leaves more of the data than noise; at each time alone it does not"


@dataclass(frozen=True)
class TaskMean:
    """Mean D^T S(x) that a law on the task covariance gives."""

    right_sides: RightSides
    D: np.ndarray  # (R, T)

    def __call__(self, x_law: np.ndarray) -> np.ndarray:
        """(n, T) unit-free means at law inputs in the user's units."""
        return self.right_sides(x_law) @ self.D


@dataclass(frozen=True)
class MarkovComponent(MovedComponent):
    """f given a time series and, where there is one, a law at all its times; unit-free."""

    free: markov.MarkovPosterior  # given the data alone: the metric in which points are moved onto the law
    posterior: markov.MarkovPosterior  # given the law's last linearisation too
    theta: np.ndarray
    noise: np.ndarray
    n_outputs: int
    law: UnitFreeLaw | None = None
    offset: TaskMean | SlopeOfOffset | None = None
    exact: bool = False  # a linear law at every time: prediction points are moved in the covariance that it has left
    widening: float = 1.0  # of all standard deviations
    order: int = 0  # of the derivative by time that is meant

    @property
    def n_columns(self) -> int:
        """Outputs and the law's own columns."""
        return self.free.series.n_outputs

    def widened(self, factor: float) -> MarkovComponent:
        """The same means with all standard deviations ``factor`` times as large."""
        return replace(self, widening=factor * self.widening)

    def differentiated(self, order: tuple[int, ...], x_scale: np.ndarray) -> MarkovComponent:
        """The derivatives of all outputs by time, given data and law; single points are not moved onto the law."""
        offset = None if self.offset is None else SlopeOfOffset(self.offset, order, x_scale)
        return replace(self, order=order[0], law=None, offset=offset)

    def lengthscales(self) -> list[np.ndarray]:
        """Of each Matern term."""
        return [np.array([term.lengthscale]) for term in self.posterior.prior.terms]

    def unprojected(self, x: np.ndarray, x_law: np.ndarray) -> Unprojected:
        """Each point on its own, before it is moved onto the law."""
        mean, covariance = self._predicted(x)
        if self.offset is not None:
            mean = mean + self.offset(x_law)
        if self.law is None:
            return Unprojected(mean, covariance)
        local = self.widening**2 * markov.predict(self.free, x[:, 0])[1]
        metric = moving_metric(local, covariance, self.exact, self.law.constants)
        return Unprojected(mean, covariance, metric, np.einsum("ncc->nc", local))

    def free_draws(self, x: np.ndarray, x_law: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
        """(count, n, C) joint draws."""
        draws = markov.sample(self.posterior, x[:, 0], count, generator, self.order)
        mean, _ = self._predicted(x)
        draws = mean + self.widening * (draws - mean) if self.widening != 1.0 else draws
        return draws if self.offset is None else draws + self.offset(x_law)

    def free_covariance(self, x: np.ndarray, x_law: np.ndarray) -> np.ndarray:
        """(nC, nC) covariance, column by column: how all means move when one more value is seen."""
        n, C = len(x), self.n_columns
        result = np.zeros((n * C, n * C))
        series, places = markov.with_times(self.posterior.series, x[:, 0])
        base = markov.smooth(self.posterior.prior, series)
        for i in range(n):
            for c in range(C):
                J = np.zeros((len(series.times), 1, C))
                J[places[i], 0, c] = 1.0
                variance = float(base.time_covariance[places[i], c, c])
                if variance <= 0:
                    continue
                # Observing f_ic = m_ic + sd with unit-sized noise moves every mean by cov / (2 variance) * sd.
                target = np.zeros((len(series.times), 1))
                target[places[i]] = base.time_mean[places[i], c] + np.sqrt(variance)
                moved = markov.smooth(
                    self.posterior.prior, markov.with_rows(series, J, target, np.full_like(target, variance))
                )
                column = (moved.time_mean - base.time_mean)[places] * 2.0 * np.sqrt(variance)
                result[:, i * C + c] = column.ravel()
        return 0.5 * self.widening**2 * (result + result.T)

    def _predicted(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, covariance = markov.predict(self.posterior, x[:, 0], self.order)
        return mean, self.widening**2 * covariance


def fit_time_series(problem: FitProblem, plan: SeriesPlan) -> Fitted:
    """Fit by the state-space form, the law entering as ``plan`` says."""
    task_law, right_sides, law = None, None, None
    if plan.on_tasks:
        assert isinstance(problem.law, SumLaw)
        rows = task_rows(problem.law, problem.data, problem.scaling)
        task_law, right_sides = TaskLaw.of(rows, problem.data.x), rows.right_sides
    elif plan.at_times or plan.projected:
        assert problem.law is not None
        law = unit_free_law(problem.law, problem.data, problem.scaling)
    loose = plan.in_evidence or (task_law is not None and bool(np.any(task_law.noise > 0)))
    shape = "task" if loose else "identity"
    rougher = problem.rougher if problem.split is None else ()  # a law with derivatives says how smooth its outputs are
    priors = replace(problem, candidates=(*problem.candidates, *rougher)).priors(shape, law, task_law)
    law_rows = None
    if plan.in_evidence:
        assert law is not None
        law_rows = markov.LawRows(*linear_rows(law, problem.data))
    closed = _closed(problem, task_law, right_sides, law_rows)
    prior = as_rough_as_the_data(problem, priors, law_rows, closed)
    theta, report = _hyperparameters(problem, prior, law_rows, closed)
    problem.progress("smoothing")
    series = markov.observed_series(prior, theta, problem.x, problem.y)
    states = markov.state_space_prior(prior, theta)
    free = markov.smooth(states, series)
    last, status, steps = free, report["hyperparameter_status"], 0
    if plan.at_times:
        assert law is not None
        last, status, steps, found = _imposed(problem, law, states, free)
        report |= found
    offset = None
    if right_sides is not None:
        offset = TaskMean(right_sides, prior.conditioned(prior.Sigmas(theta)[0]).D)  # type: ignore[union-attr]
    noise = prior.noise.typical(theta[prior.noise_slice])
    if plan.on_tasks and not np.any(problem.law.noise > 0):  # type: ignore[union-attr]
        # The task covariance holds the law already; the projection removes what round-off adds where data contradict it.
        law = unit_free_law(problem.law, problem.data, problem.scaling)  # type: ignore[arg-type]
    status = _misfit(problem, prior, theta, free) or status
    component = MarkovComponent(free, last, theta, noise, prior.n_outputs, law, offset, plan.in_evidence)
    report |= {"status": status, "law_steps": steps, "solver": "Markov", "uncertainty": "plug-in (Markov solver)"}
    if problem.uncertainty == "integrated":
        component, report["widening"] = component.widened(WIDENING), WIDENING
    return Fitted((component,), np.ones(1), law, report)


class _Imposed(NamedTuple):
    """The posterior that points are moved onto the law from, its status, the steps of the law's solve, what to report."""

    posterior: markov.MarkovPosterior
    status: str
    steps: int
    report: dict[str, Any]


def _imposed(problem: FitProblem, law: UnitFreeLaw, states: markov.MarkovPrior, free: markov.MarkovPosterior) -> _Imposed:
    """The law at all times together, or at each alone where that would be off the data."""
    series = free.series
    solved = markov.law_smooth(states, series, law, problem.data.x[series.first])
    if _is_off_the_data(problem, law, solved.mean, free):
        why = {"taper": 0.0, "taper_reason": POINT_BY_POINT}
        return _Imposed(free, doubted(NOT_FOLLOWED, f"; {SHORTER_PIECES}"), solved.steps, why)
    if solved.status != Status.CONVERGED:
        warn(f"the law was imposed with status: {solved.status}; check the law against the data")
    return _Imposed(solved.linearised, solved.status, solved.steps, {})


def _is_off_the_data(problem: FitProblem, law: UnitFreeLaw, mean: np.ndarray, free: markov.MarkovPosterior) -> bool:
    """Whether the law at all times together leaves more of the data than noise, and at each time alone it does not.

    Functions of the prior that obey the law are then none that follow the data, or none were found.
    """
    if law.law.unknowns or len(law.soft_rows) or problem.split is not None:
        return False  # these need neighbours
    T, series = problem.n_outputs, free.series

    def unexplained(at: np.ndarray) -> np.ndarray:
        """(T,) mean squares of what is left of the data, in variances of the noise."""
        return np.ma.masked_invalid((series.values[:, :T] - at[:, :T]) ** 2 / series.variance[..., :T]).mean(axis=0)

    together = unexplained(mean)
    if np.all(together <= MORE_THAN_NOISE):
        return False
    alone = unexplained(project(law, free.mean, free.covariance, problem.data.x).points)
    return bool(np.any(together > MORE_THAN_NOISE * np.maximum(alone, 1.0)))


def _misfit(problem: FitProblem, prior: MultitaskPrior, theta: np.ndarray, free: markov.MarkovPosterior) -> str:
    """What a status must say of data that the fit does not explain, also warned of; empty where it does.

    A wave of few rows a period looks like noise to functions that forget within a row or two, but not to a periodogram of
    what they leave.
    """
    if problem.split is not None and (contradiction := disagreement(problem, prior, theta)):
        return contradiction
    T, rows = problem.n_outputs, _stretch(problem.x, LOOKED_AT)
    y = np.ma.masked_invalid(free.series.values[rows, :T])
    left = y - free.mean[rows, :T]
    flat = (left**2).mean(axis=0) > UNEXPLAINED * y.var(axis=0)
    wave = shown_period(problem.x[rows], np.where(flat.filled(False), left.filled(np.nan), np.nan))
    apart = float(np.median(np.diff(free.series.times))) if len(free.series.times) > 1 else 0.0
    remedy = "fit pieces of at most 600 rows with solver=Dense(), which tries periodic curves, or measure more often"
    if wave is not None:
        period = wave.length * problem.scaling.x_scale[0]
        text = f"the rows vary with a period of about {period:.4g} that the curves do not follow"
    elif problem.split is not None and min(term.lengthscale for term in free.prior.terms) < FEWEST_ROWS * apart:
        text = "the curves vary within so few rows that they cannot be told from noise: intervals may be too narrow"
    else:
        return ""
    return doubted(text, f"; {remedy}")


def _stretch(x: np.ndarray, count: int) -> np.ndarray:
    """At most ``count`` consecutive rows from the middle, in the order of time."""
    first = max(0, (len(x) - count) // 2)
    return np.argsort(x[:, 0], kind="stable")[first : first + count]


def _closed(
    problem: FitProblem, task_law: TaskLaw | None, right_sides: RightSides | None, law_rows: markov.LawRows | None
) -> ClosedRows | None:
    """The law at rows that meet it as measured, where the law is in the evidence."""
    if task_law is not None and right_sides is not None:
        F = np.broadcast_to(task_law.F, (len(problem.y), *task_law.F.shape))
        return closed_law_rows(problem, F, task_law.totals, np.array(right_sides.keep))
    if law_rows is not None:
        R = law_rows.rows.shape[1]
        return closed_law_rows(problem, law_rows.rows[:, :, : problem.n_outputs], law_rows.totals, np.arange(R))
    return None


def as_rough_as_the_data(
    problem: FitProblem, priors: Sequence[MultitaskPrior], law_rows: markov.LawRows | None, closed: ClosedRows | None
) -> MultitaskPrior:
    """The first prior, or one of the rougher ones after it as long as a stretch of the rows speaks for the next."""
    chosen, density = priors[0], -np.inf
    for prior in priors if len(priors) > 1 else ():
        found = _hyperparameters(problem, prior, law_rows, closed, LOOKED_AT)[1]["log_posterior"]
        if found < density + ROUGHER_BY:
            break
        chosen, density = prior, found
    return chosen


def _hyperparameters(
    problem: FitProblem,
    prior: MultitaskPrior,
    law_rows: markov.LawRows | None,
    closed: ClosedRows | None,
    most: int | None = None,
) -> tuple[np.ndarray, dict[str, Any]]:
    """Maximum a posteriori theta, on consecutive rows from the middle where there are more than ``most``."""
    x, y = problem.x, problem.y
    wanted = most or max(FEWEST_TUNED, TUNED_ON // problem.n_outputs)
    rows = np.sort(_stretch(x, wanted)) if len(x) > wanted else np.argsort(x[:, 0], kind="stable")
    local = prior_on_rows(prior, rows) if len(rows) < len(x) else prior
    problem.progress(f"hyperparameters: {kernel_name(prior)} on {len(rows)} rows")
    outputs = problem.output_order
    if law_rows is not None:
        columns = [*outputs, *range(problem.n_outputs, law_rows.rows.shape[2])]
        law_rows = markov.LawRows(law_rows.rows[rows][:, :, columns], law_rows.totals[rows])
    turned = reordered(local, outputs)
    x, y = x[rows], y[rows][:, outputs]
    evidence: Evidence = markov.Markov().evidence(turned.prior, x, y, law_rows)
    if closed is not None:
        evidence = ClosedEvidence(evidence, turned.prior, closed.of(rows, outputs))
    objective = Objective(turned.prior, evidence)
    starts = _starts(objective, x, y, problem.random_state)[: None if most is None else 1]
    best = maximise(objective, random_state=problem.random_state, max_steps=100, starts=starts)
    theta = turned.back(best.theta)
    return theta, {
        "kernel": kernel_name(prior),
        "smoothness": [float(kernel.nu) for kernel in prior.kernels],
        "theta": theta,
        "log_evidence": objective.evidence(best.theta)[0],
        "log_posterior": -best.value,
        "hyperparameter_status": best.status,
        "restarts": len(best.attempts),
        "tuned_on": len(rows),
    }


def _starts(objective: Objective, x: np.ndarray, y: np.ndarray, random_state: int) -> list[np.ndarray]:
    """Two at most, from the data first: a shorter lengthscale than the prior's is one that the rows were seen to have."""
    prior = objective.prior
    if prior.latent is None:
        return [*Scan(x, y).starts(prior, 1), *starting_points(objective, 1, random_state)][:2]
    rows = _stretch(x, LOOKED_AT)
    local = prior_on_rows(prior, rows)
    return latent_starts(Objective(local, markov.Markov().evidence(local, x[rows], y[rows])), 2)
