"""Fit every candidate prior and average over their hyperparameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy.special import expit

from sumgp.errors import Status, warn
from sumgp.hyperparameters import CURVATURE_FLOOR, Integration, MapEstimate, Objective, Scan, curvature, integrate
from sumgp.priors import MultitaskPrior, Reordered, kernel_name, reordered, start_at_rest
from sumgp.solvers import Evidence
from sumgp.strategies.few_rows import chosen_rows, improved, prior_on_rows
from sumgp.strategies.left_out import RowNoise, TaperWeights, TrainingRows, component_left_out, heaviest, mixed
from sumgp.strategies.problem import FitProblem
from sumgp.strategies.weight_component import Component

LARGEST_INTEGRATED = 1500  # measured entries above which hyperparameters are plugged in
LARGEST_FIELD = 600  # the same for latent functions of several inputs: all entries share one matrix
LOW_EFFECTIVE = 5.0  # effective draws below which the report says that few count
# Truths are not drawn from our priors. On data sets kept for such choices the log density of the truth is highest with
# bands 5 to 8 % wider than hyperparameters alone make them. Under linear laws, with truths drawn from a prior that is
# narrower than ours, intervals of 50, 80 and 95 % then hold 50.7, 80.8 and 95.4 % of them, not 48.1, 78.0 and 94.1.
# Under curved laws ``stacking.as_draws_disagree`` takes its place in the end.
WIDENING = 1.07
# In so many dimensions no draw is near the maximum and weights are flattened until a dozen count: more tell nothing new.
MANY_FREE, DRAWS_OF_MANY = 40, 6
WELL_DETERMINED = (
    400  # measured entries above which half as many draws do: 30 data sets of 440 to 480, error .997, NLPD -.002
)
RULED_OUT = 20.0  # log evidence of the data by which a candidate is behind the best, for no law to make up for
HOPELESS = 60.0  # log density by which a maximum is behind the best, for no volume around it to make up for
AGAINST_ROWS = 5.0  # log density of left-out rows lost by the law's weights; by chance 3 at most (48 paper problems)
OUT_OF_REACH = 7.0  # candidates whose approximate log evidence is further behind are not averaged over

Priors = tuple[MultitaskPrior, ...]
Pairs = Sequence[tuple[MultitaskPrior, np.ndarray]]  # priors with hyperparameters
Build = Callable[[Pairs], Sequence[Component]]
Score = Callable[[Pairs], Sequence[float]]
Made = TypeVar("Made")


def one_by_one(make: Callable[[MultitaskPrior, np.ndarray], Made]) -> Callable[[Pairs], list[Made]]:
    """For pairs what ``make`` makes of one."""
    return lambda pairs: [make(prior, theta) for prior, theta in pairs]


EvidenceOf = Callable[[MultitaskPrior, np.ndarray], Evidence]


@dataclass(frozen=True)
class Candidates:
    """Priors with their objectives and maxima.

    Objectives are those of ``reorderings``, so that the order of the outputs makes no difference; () = of the priors.
    """

    priors: tuple[MultitaskPrior, ...]
    objectives: tuple[Objective, ...]
    maxima: tuple[MapEstimate, ...]
    reorderings: tuple[Reordered, ...] = ()
    # By objective, which is kept so that its id stays its own, and maximum.
    _hessians: dict[tuple[int, bytes], tuple[Objective, np.ndarray]] = field(default_factory=dict, repr=False)

    @property
    def best(self) -> int:
        """The candidate of highest approximate evidence."""
        return int(np.argmax(self.approximate_evidence()))

    @property
    def supported(self) -> Candidates:
        """Those that the data alone do not rule out: a law is met best by a curve that ignores them and hardly varies."""
        values = self.approximate_evidence()
        return self.only([k for k, value in enumerate(values) if value > max(values) - RULED_OUT])

    @cached_property
    def log_volumes(self) -> tuple[float, ...]:
        """Log of the Gaussian integral around each maximum, which makes candidates of different size comparable."""
        if len(self.priors) == 1:
            return (0.0,)
        least = min(m.value for m in self.maxima)
        return tuple(self._log_volume(k) if m.value < least + HOPELESS else 0.0 for k, m in enumerate(self.maxima))

    def _log_volume(self, candidate: int) -> float:
        spectrum = np.maximum(np.linalg.eigvalsh(self.curvature(candidate)), CURVATURE_FLOOR)
        return 0.5 * float(np.sum(np.log(2.0 * np.pi / spectrum)))

    def approximate_evidence(self, score: Score | None = None) -> list[float]:
        """Log evidence of the data, and of the law by ``score``, for each candidate: from its maximum and the curvature."""
        pairs = [(prior, maximum.theta) for prior, maximum in zip(self.priors, self.maxima, strict=True)]
        extra = [0.0] * len(pairs) if score is None else score(pairs)
        return [-m.value + e + v for m, e, v in zip(self.maxima, extra, self.log_volumes, strict=True)]

    def curvature(self, candidate: int) -> np.ndarray:
        """Hessian of the candidate's objective at its maximum."""
        objective, theta = self.objectives[candidate], self.searched[candidate].theta
        key = (id(objective), theta.tobytes())
        if key not in self._hessians:
            self._hessians[key] = objective, curvature(objective, theta)
        return self._hessians[key][1]

    @property
    def searched(self) -> tuple[MapEstimate, ...]:
        """The maxima as the objectives see them."""
        return tuple(replace(m, theta=self.there(k, m.theta)) for k, m in enumerate(self.maxima))

    def there(self, candidate: int, theta: np.ndarray) -> np.ndarray:
        """Hyperparameters as the candidate's objective sees them."""
        return self.reorderings[candidate].there(theta) if self.reorderings else theta

    def back(self, candidate: int, theta: np.ndarray) -> np.ndarray:
        """Hyperparameters of the candidate's prior from those that its objective sees."""
        return self.reorderings[candidate].back(theta) if self.reorderings else theta

    def only(self, keep: list[int]) -> Candidates:
        """The candidates at these positions."""
        return Candidates(
            tuple(self.priors[k] for k in keep),
            tuple(self.objectives[k] for k in keep),
            tuple(self.maxima[k] for k in keep),
            tuple(self.reorderings[k] for k in keep) if self.reorderings else (),
            self._hessians,
        )


def _most_averaged(problem: FitProblem) -> int:
    return LARGEST_FIELD if problem.split is not None and len(problem.half_range) > 1 else LARGEST_INTEGRATED


def fit_candidates(
    problem: FitProblem, priors: Priors, evidence: EvidenceOf | None = None, before: Candidates | None = None
) -> Candidates:
    """Maximise each candidate's posterior; ``evidence`` None = that of the data, by the problem's solver.

    ``evidence(prior, order)`` is that of a prior over the outputs ``order``. With many data the candidates are fitted to
    some of the rows, and the best of them is improved on all. ``before``: others of the same data, whose maxima are starts.
    """
    if evidence is None and int(problem.data.measured.sum()) > _most_averaged(problem):
        rows = chosen_rows(problem)
        thin = replace(problem.at(rows), restarts=min(problem.restarts, 1))
        scan = Scan(problem.x, problem.y[:, thin.output_order])
        some = _fit_each(thin, tuple(prior_on_rows(p, rows) for p in priors), scan=scan)
        turned = reordered(priors[some.best], problem.output_order)
        found = replace(some.maxima[some.best], theta=turned.there(some.maxima[some.best].theta))
        objective, maximum = improved(problem, turned.prior, found)
        return Candidates((priors[some.best],), (objective,), (_back(turned, maximum),), (turned,))
    return _fit_each(problem, priors, evidence, before=before)


def _fit_each(
    problem: FitProblem,
    priors: Priors,
    evidence: EvidenceOf | None = None,
    scan: Scan | None = None,
    before: Candidates | None = None,
) -> Candidates:
    """Maximise each candidate's posterior; ``scan`` None = starts from the problem's own rows."""
    order = problem.output_order
    of_data = evidence or (lambda prior, order: problem.solver.evidence(prior, problem.x, problem.y[:, order]))
    turned = tuple(reordered(prior, order) for prior in priors)
    objectives = tuple(Objective(t.prior, of_data(t.prior, order)) for t in turned)
    known = [] if before is None else list(zip(before.objectives, before.searched, strict=True))
    for objective in objectives:
        # Kernels with the same parameters have their maxima close together.
        slices = objective.prior.slices
        alike = [m.theta for o, m in known if o.prior.slices == slices and m.status is Status.CONVERGED]
        at_rest = start_at_rest(objective.prior, [(o.prior, m.theta) for o, m in known])
        starts = alike[:1] or at_rest or problem.starts(objective, scan or problem.scan)
        known.append((objective, problem.maximise(objective, kernel_name(objective.prior), starts)))
    maxima = tuple(_back(t, m) for t, (_, m) in zip(turned, known[-len(priors) :], strict=True))
    return Candidates(priors, objectives, maxima, turned)


def _back(turned: Reordered, maximum: MapEstimate) -> MapEstimate:
    attempts = tuple(replace(a, theta=turned.back(a.theta)) for a in maximum.attempts)
    return replace(maximum, theta=turned.back(maximum.theta), attempts=attempts)


class Mixed(NamedTuple):
    """Components, their weights, and what happened on the way."""

    components: tuple[Component, ...]
    weights: np.ndarray
    report: dict[str, Any]

    def law_report(self) -> dict[str, Any]:
        """Worst status among components that carry weight, also warned of, and the steps taken."""
        imposed = [
            (w, c.conditioning) for w, c in zip(self.weights, self.components, strict=True) if c.conditioning is not None
        ]
        solutions = [(w, conditioning.solution) for w, conditioning in imposed]
        if not solutions:
            return {"status": Status.CONVERGED, "law_steps": 0}
        bad = [(w, s) for w, s in solutions if s.status != Status.CONVERGED]
        share = sum(w for w, _ in bad)
        status = Status.CONVERGED if share < 0.2 else max(bad, key=lambda pair: pair[0])[1].status
        if status != Status.CONVERGED:
            warn(f"the law was imposed with status: {status}; {Status.of(status).remedy}")
        return {
            "status": status,
            "law_steps": int(np.mean([s.steps for _, s in solutions])),
            "unconverged_weight": float(share),
        }


def joined(first: Mixed, second: Mixed, share: float) -> Mixed:
    """One average of two, of which the second gets ``share``."""
    kernels = {name: (1.0 - share) * w for name, w in first.report["candidate_weights"].items()}
    for name, w in second.report["candidate_weights"].items():
        kernels[name] = kernels.get(name, 0.0) + share * w
    tried = first.report["candidates"]
    report = first.report | {
        "candidates": tried + [c for c in second.report["candidates"] if c not in tried],
        "candidate_weights": kernels,
        "draws": len(first.weights) + len(second.weights),
    }
    weights = np.concatenate([(1.0 - share) * first.weights, share * second.weights])
    return Mixed(first.components + second.components, weights, report)


def mix(
    problem: FitProblem, fitted: Candidates, build: Build, score: Score | None, draws: int, undecided: bool = False
) -> Mixed:
    """Components and weights: the best maximum alone ("plug-in"), or draws around all maxima ("integrated").

    ``undecided``: maxima of different candidates meet the law in different ways. Then the draw of highest weight is plugged
    in, since a maximum says nothing of how many hyperparameters agree with it. What is averaged is widened.
    """
    large = (measured := int(problem.data.measured.sum())) > _most_averaged(problem)
    report: dict[str, Any] = {"candidates": _describe(fitted), "uncertainty": problem.uncertainty}
    n_free = max(p.n_parameters for p in fitted.priors)
    enough = 1 if n_free > MANY_FREE else draws // 2 if measured > WELL_DETERMINED else draws
    draws = min(draws, max(enough, DRAWS_OF_MANY))
    if problem.uncertainty == "plug-in" or large or n_free == 0:
        if large and problem.uncertainty == "integrated":
            report["uncertainty"] = (
                f"plug-in (more than {_most_averaged(problem)} measurements: hyperparameters are well determined)"
            )
        if undecided and not large:
            fitted, result = _integrated(problem, fitted, score, draws)
            heaviest = max(result.draws, key=lambda d: d.weight)
            best, theta = heaviest.candidate, heaviest.theta
        else:
            best = int(np.argmax(fitted.approximate_evidence(score)))
            theta = fitted.maxima[best].theta
        report |= _chosen(fitted, best, fitted.maxima[best].status, theta)
        component = build([(fitted.priors[best], theta)])[0]
        if large and n_free and problem.uncertainty == "integrated":
            # Bands must not become narrower because one more value was measured.
            component, report["widening"] = component.widened(WIDENING), WIDENING
        return Mixed((component,), np.ones(1), report)
    fitted, result = _integrated(problem, fitted, score, draws)
    built = build([(fitted.priors[d.candidate], d.theta) for d in result.draws])
    components = tuple(component.widened(WIDENING) for component in built)
    weights = np.array([d.weight for d in result.draws])
    most = int(np.argmax(result.candidate_weights))
    report |= _chosen(fitted, most, fitted.maxima[fitted.best].status, fitted.maxima[most].theta)
    report |= {
        "draws": len(weights),
        "widening": WIDENING,
        "effective_sample_size": result.effective,
        "temperature": result.temperature,
        "candidate_weights": dict(zip([kernel_name(p) for p in fitted.priors], result.candidate_weights, strict=True)),
    }
    if result.effective < LOW_EFFECTIVE:
        warn(
            f"the average over hyperparameters rests on an effective {result.effective:.1f} draws only; "
            "intervals may be too narrow: give a kernel with fewer hyperparameters or more data"
        )
    return Mixed(components, weights, report)


def _integrated(problem: FitProblem, fitted: Candidates, score: Score | None, draws: int) -> tuple[Candidates, Integration]:
    """Draws of hyperparameters around the maxima of all candidates within reach."""
    problem.progress("averaging over hyperparameters")
    approximate = fitted.approximate_evidence(score)
    near = fitted.only([k for k, value in enumerate(approximate) if value > max(approximate) - OUT_OF_REACH])
    weigh = None if score is None else lambda draws: score([(near.priors[k], near.back(k, theta)) for k, theta in draws])
    hessians = [near.curvature(k) for k in range(len(near.priors))]
    result = integrate(near.objectives, near.searched, weigh, draws, problem.random_state, hessians)
    return near, replace(result, draws=tuple(replace(d, theta=near.back(d.candidate, d.theta)) for d in result.draws))


def _describe(fitted: Candidates) -> list[dict[str, Any]]:
    return [
        {
            "kernel": " + ".join(str(k) for k in prior.unpack(maximum.theta).kernels),
            "objective": maximum.value,
            "status": maximum.status,
            "starts": [(a.status, a.value, a.steps) for a in maximum.attempts],
        }
        for prior, maximum in zip(fitted.priors, fitted.maxima, strict=True)
    ]


def _chosen(fitted: Candidates, best: int, status: str, theta: np.ndarray) -> dict[str, Any]:
    prior, maximum, objective = fitted.priors[best], fitted.maxima[best], fitted.objectives[best]
    there = fitted.there(best, theta)
    return {
        "kernel": kernel_name(prior),
        "theta": theta,
        "log_evidence": objective.evidence(there)[0],
        "log_posterior": -objective.value(there),
        "hyperparameter_status": status,
        "restarts": len(maximum.attempts),
    }


def rows_density(problem: FitProblem, average: Mixed) -> float:
    """Log density of all rows, each left out on its own, under an average over hyperparameters."""
    rows = TrainingRows(problem.x, problem.data.x, problem.y)
    heavy = heaviest(average.weights)
    parts = []
    for component in (average.components[k] for k in heavy):
        noise = RowNoise.learnt(problem.noise, component.noise, len(rows.x))
        parts.append(component_left_out(component, rows, noise, widening=WIDENING))
    weights = average.weights[heavy] / average.weights[heavy].sum()
    return float(np.sum(mixed(parts, weights).log_density))


def not_against_rows(problem: FitProblem, average: Mixed, tapers: TaperWeights, by_data: Callable[[], Mixed]) -> Mixed:
    """The average, joined by that ``by_data``, whose hyperparameters the data alone weigh, where left-out rows ask for that.

    The evidence of a law is highest for curves that hardly vary. With few noisy rows it can outweigh the data and end at a
    flat curve. Left-out rows are then predicted far worse than at the maximum of the data's evidence, the law imposed.
    """
    if not tapers.scores or "draws" not in average.report:
        return average
    of_law = rows_density(problem, average)
    if of_law > tapers.log_density - AGAINST_ROWS:
        return average._replace(report=average.report | {"law_weights_reason": "left-out rows agree with the law"})
    of_data = by_data()
    gain = rows_density(problem, of_data) - of_law
    reason = f"left-out rows are {gain:.1f} more probable in log density where the law does not weigh hyperparameters"
    both = joined(average, of_data, float(expit(gain)))
    return both._replace(report=both.report | {"law_weights_reason": reason})
