"""The paper's method (Algorithm 1): a Gaussian process on transformed outputs, in which the law is linear."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np

from sumgp.errors import ConstraintError, DataError, NumericalError, SumGPWarning, warn
from sumgp.hyperparameters import MapEstimate, Objective, maximise
from sumgp.laws import SumLaw, set_up_law, unit_free_law
from sumgp.numerics import solve_lower
from sumgp.paper_method.component import LatentPosterior, TransformedComponent
from sumgp.paper_method.engines import Engine, ExpectationPropagation, Gaussian, Laplace, MomentMatched, Variational
from sumgp.paper_method.evidence import Observations, TransformedEvidence
from sumgp.paper_method.observations import (
    Datum,
    LatentTasks,
    TaskNoise,
    latent_tasks,
    law_terms,
    noise_of_outputs,
    noise_of_transforms,
    observe,
    task_prior,
)
from sumgp.paper_method.switches import Guide, Switch, find_switches
from sumgp.priors import MultitaskPrior, kernel_name
from sumgp.strategies import (
    LARGEST_INTEGRATED,
    MANY_PARAMETERS,
    Candidates,
    Component,
    FitProblem,
    Fitted,
    LawEngine,
    Linearized,
    Score,
    SeriesPlan,
    Strategy,
    fit_candidates,
    law_spacing,
    mix,
    one_by_one,
    plain_component,
)

SURE = 1e-4  # of a transform's spread: no virtual measurement is more precise, or round-off would take over
SITE_TOLERANCE = 1e-4  # posterior sds up to which sites settle: the evidence is off by the square of that
FAILED = -1e3  # log weight of hyperparameters for which an engine finds no sites
SLOW = (Variational, ExpectationPropagation)  # engines that iterate quadratures


@dataclass(frozen=True)
class Transformed(Strategy):
    """Regression on f' = h(f), where F f' = S(x) is imposed exactly, then back to f (sections 3.1 and 3.2 of the paper).

    ``inference``: the engine for the likelihood that noise on y becomes. ``datum``: "output" explains y itself,
    "transformed" the values h(y), without measurements that have none. ``virtual``: use what the switches between
    branches say. ``relearn``: learn auxiliary outputs again with the law's terms; None = unless there are many.
    ``draws``: of hyperparameters, where they are averaged over. ``guide``: "unconstrained" lets a fit without the law pick
    the branches, as the paper does; "auto" asks a fit conditioned on the law where its turns are within reach.
    """

    takes_long_series: ClassVar[bool] = False

    inference: Engine = field(default_factory=Laplace)
    datum: Literal["output", "transformed"] = "output"
    virtual: bool = True
    relearn: bool | None = None
    draws: int = 12
    guide: Literal["auto", "unconstrained"] = "auto"

    def series_plan(self, problem: FitProblem) -> SeriesPlan:
        raise DataError("solver: Markov() does not work with strategy=Transformed(); use Linearized() or another solver")

    def fit_rows(self, problem: FitProblem) -> Fitted:
        law = self._checked(problem)
        alone = fit_alone(problem)
        guide, on_law = choose_guide(problem, alone) if self.guide == "auto" else without_law(problem, alone)
        model = prepare(self, problem, law, guide)
        fitted, engine = self._search(problem, model, alone)
        own = TransformedEvidence(fitted.priors[0], model.observations, engine)
        unit_free = unit_free_law(law, problem.data, problem.scaling)
        # A law with an error of its own has columns that the guide knows nothing of.
        joined = None if len(unit_free.soft_rows) else unit_free

        def build(prior: MultitaskPrior, theta: np.ndarray) -> Any:
            assert prior is own.prior
            return replace(component(problem, model, guide, own, theta), law=joined)

        components, weights, report = mix(problem, fitted, one_by_one(build), _correction(problem, fitted, own), self.draws)
        report |= self._report(problem, model, engine, report["hyperparameter_status"]) | {"branches_from": on_law}
        return Fitted(components, weights, unit_free, report)

    def _checked(self, problem: FitProblem) -> SumLaw:
        if self.datum not in ("output", "transformed"):
            raise ConstraintError("datum", "'output' or 'transformed'", repr(self.datum), "choose one of them")
        if self.guide not in ("auto", "unconstrained"):
            raise ConstraintError("guide", "'auto' or 'unconstrained'", repr(self.guide), "choose one of them")
        if not isinstance(problem.law, SumLaw):
            raise ConstraintError(
                "strategy: Transformed() needs a sum of transforms of single outputs, but a term of this law joins several; "
                "use Linearized()"
            )
        if not any(candidate.is_separable for candidate in problem.candidates):
            raise ConstraintError("strategy: Transformed() takes one kernel, got a list; give one or use Linearized()")
        law_terms(problem.law)
        return problem.law

    def _search(self, problem: FitProblem, model: Model, alone: Candidates) -> tuple[Candidates, Engine]:
        """Hyperparameters: matched moments first, from those of the guide; then the engine's own evidence from there.

        Only the kernel that is best under matched moments is carried on: a second one changed the error by a few per cent
        either way and took half as long again. Where hyperparameters are averaged over, matched moments give the draws,
        and the engine's own evidence (unless it costs tens of times as much) only weighs those that are picked.
        """
        first = Gaussian() if isinstance(self.inference, Gaussian) else MomentMatched()
        starts = []
        for prior in _worth_trying(model.priors, alone):
            objective = Objective(prior, TransformedEvidence(prior, model.observations, first))
            problem.progress(f"hyperparameters: {kernel_name(prior)}, {type(first).__name__}")
            starts.append((objective, maximise(objective, random_state=problem.random_state, starts=_starts(prior, alone))))
        best = min(starts, key=lambda pair: pair[1].value)
        if type(first) is type(self.inference):
            return _candidate(*best), first
        engine = _searching(self.inference)
        averaged = problem.uncertainty == "integrated" and int(problem.data.measured.sum()) <= LARGEST_INTEGRATED
        try:
            if averaged:
                # An engine that fails where the data are explained best is not asked elsewhere.
                TransformedEvidence(best[0].prior, model.observations, engine).value(best[1].theta)
                return _candidate(*best), engine
            return _candidate(*_refined(problem, model, engine, *best)), engine
        except NumericalError as error:
            names = type(self.inference).__name__, type(first).__name__
            warn(f"{names[0]}: {error}; the result is that of {names[1]}")
            return _candidate(*best), first

    def _report(self, problem: FitProblem, model: Model, engine: Engine, status: str) -> dict[str, Any]:
        names = problem.data.output_names
        return {
            "status": status if type(engine) is type(self.inference) else f"fell back to {type(engine).__name__}",
            "law": "on the task covariance of transformed outputs",
            "engine": type(engine).__name__,
            "dropped_rows": list(model.tasks.dropped_rows),
            "dropped_measurements": model.observations.likelihood.n_dropped,
            "virtual_measurements": [(names[s.output], *map(float, s.x), s.value, s.sd) for s in model.switches],
            "relearnt_auxiliary_outputs": model.tasks.has_auxiliary and len(model.tasks.tasks) > model.tasks.n_outputs,
        }


def fit_alone(problem: FitProblem) -> Candidates:
    """Hyperparameters without the law, the likelier candidate first: its posterior guides all that follows."""
    # One further start only: a guide need not be the very best.
    quick = replace(problem, uncertainty="plug-in", restarts=min(problem.restarts, 1))
    fitted = fit_candidates(quick, quick.priors("task"))
    return fitted.only(np.argsort([maximum.value for maximum in fitted.maxima]).tolist())


def without_law(problem: FitProblem, alone: Candidates) -> tuple[Component, str]:
    """The paper's guide, and a word on it."""
    return plain_component(problem, alone.priors[0], alone.maxima[0].theta), "posterior without the law"


def choose_guide(problem: FitProblem, alone: Candidates) -> tuple[Component, str]:
    """The posterior that picks branches, and a word on it: that without the law, as in the paper.

    Where an output is hardly measured, its mean runs back to its average and may stay on one branch all the time. If the
    law turns within reach of the posterior at many points, the posterior given the law is asked instead; and if following
    the law from known points outwards finds a branch that fits better, one whose hyperparameters are conditioned on it.
    """
    assert problem.law is not None
    prior, theta = alone.priors[0], alone.maxima[0].theta
    setup = set_up_law(problem.law, problem.data, problem.scaling, law_spacing(problem, prior, theta))
    soft = bool(len(setup.law.soft_rows))  # the priors without the law have no columns for its errors
    if soft:
        return without_law(problem, alone)
    state_of = LawEngine(problem, setup).state
    states = [state_of(candidate, maximum.theta) for candidate, maximum in zip(alone.priors, alone.maxima, strict=True)]
    engine = LawEngine.calibrated(problem, setup, states[0])
    if all(engine.other_branch(state) is None for state in states):
        if not engine.turns(states[0]):
            return without_law(problem, alone)
        return engine.components([(prior, theta)])[0], "posterior given the law, whose turns are within reach"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SumGPWarning)
        followed = Linearized().fit(replace(problem, uncertainty="plug-in")).components[0]
    assert isinstance(followed, Component)
    return followed, "posterior given the law, which can be met on several branches"


def _starts(prior: MultitaskPrior, alone: Candidates) -> list[np.ndarray]:
    """Where a search begins: with the lengthscales that the same kernel has without the law, and the noise."""
    start = prior.start()
    for other, maximum in zip(alone.priors, alone.maxima, strict=True):
        if type(other.kernels[0]) is type(prior.kernels[0]):
            start[prior.slices[0][0]] = maximum.theta[other.slices[0][0]]
            if other.noise.n_parameters == prior.noise.n_parameters:
                start[prior.noise_slice] = maximum.theta[other.noise_slice]
            break
    return [start]


def _worth_trying(priors: tuple[MultitaskPrior, ...], alone: Candidates) -> tuple[MultitaskPrior, ...]:
    """All priors, or with many parameters that of the kernel which is likeliest without the law."""
    if priors[0].n_parameters <= MANY_PARAMETERS:
        return priors
    return tuple(p for p in priors if type(p.kernels[0]) is type(alone.priors[0].kernels[0]))[:1]


def _correction(problem: FitProblem, fitted: Candidates, own: TransformedEvidence) -> Score | None:
    """Log of the engine's own evidence over that of matched moments, which the draws come from."""
    cheap = fitted.objectives[0].evidence
    assert isinstance(cheap, TransformedEvidence)
    if type(cheap.engine) is type(own.engine) or isinstance(own.engine, SLOW) or problem.uncertainty == "plug-in":
        return None

    def correction(prior: MultitaskPrior, theta: np.ndarray) -> float:
        assert prior is own.prior and prior is cheap.prior  # their values are kept by theta alone
        try:
            return own.value(theta) - cheap.value(theta)
        except NumericalError:
            return FAILED

    return one_by_one(correction)


@dataclass(frozen=True, eq=False)
class Model:
    """All that stays while hyperparameters vary."""

    tasks: LatentTasks
    noise: TaskNoise
    switches: tuple[Switch, ...]
    observations: Observations
    priors: tuple[MultitaskPrior, ...]


def prepare(strategy: Transformed, problem: FitProblem, law: SumLaw, guide: Component) -> Model:
    """Tasks, virtual measurements, observations and priors, with the branches that ``guide`` picks."""
    moments = guide_moments(problem, guide)
    reference = moments(problem.data.x)[0]
    tasks = latent_tasks(law, problem.data, problem.scaling, reference, strategy.relearn)
    switches: tuple[Switch, ...] = ()
    if strategy.virtual:
        found = find_switches(moments, problem.data, law_terms(law)[0])
        smallest = SURE * tasks.scale[tasks.main]
        found = tuple(replace(s, sd=max(s.sd, smallest[s.output])) for s in found)
        switches = tuple(s for s in found if np.all(np.isfinite(tasks.right_sides(s.x[None]))))
    plain = isinstance(strategy.inference, Gaussian)
    noise = noise_of_transforms(problem, tasks, reference) if plain else noise_of_outputs(problem, tasks)
    datum = Datum.PLAIN if plain else Datum.TRANSFORMED if strategy.datum == "transformed" else Datum.OUTPUT
    observations = observe(problem, tasks, noise, switches, reference, datum)
    # The law on the task covariance needs one separable term: of a sum of terms only the first is taken.
    single = {str(candidate.kernels[0]): candidate.kernels[:1] for candidate in problem.candidates}
    priors = tuple(task_prior(problem, tasks, noise.model, kernels, observations.totals) for kernels in single.values())
    return Model(tasks, noise, switches, observations, priors)


def guide_moments(problem: FitProblem, guide: Component) -> Guide:
    """Means and standard deviations of the outputs without the law, in the user's units."""

    def moments(x_law: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, cov = guide.marginals(problem.scaling.inputs(x_law), x_law)
        sd = np.sqrt(np.maximum(np.einsum("ncc->nc", cov), 0.0))
        return problem.scaling.restore(mean), sd * problem.scaling.y_scale

    return moments


def component(
    problem: FitProblem, model: Model, guide: Component, evidence: TransformedEvidence, theta: np.ndarray
) -> TransformedComponent:
    """The posterior for one set of hyperparameters."""
    prior, observations, tasks = evidence.prior, evidence.observations, model.tasks
    latent, result = evidence.latent(theta), evidence.infer(theta)
    posterior = LatentPosterior(
        kernel=prior.unpack(theta).kernels[0],
        mean_variance=prior.mean_variance,
        Sigma=latent.conditioning.covariance,
        D=latent.conditioning.D,
        x=observations.x,
        point=observations.point,
        task=observations.task,
        alpha=result.posterior.alpha,
        half=solve_lower(result.posterior.factor, np.diag(np.sqrt(result.posterior.precisions))),
    )
    noise = _output_noise(problem, model, prior, theta)
    return TransformedComponent(posterior, tasks, guide, problem.scaling, theta, noise, tasks.n_outputs)


def _output_noise(problem: FitProblem, model: Model, prior: MultitaskPrior, theta: np.ndarray) -> np.ndarray:
    """(T,) unit-free noise variances of the outputs; by the slope of h where only h(y) has one."""
    variances = prior.noise.typical(theta[prior.noise_slice])
    result = np.empty(model.tasks.n_outputs)
    for t in range(len(result)):
        own = np.flatnonzero(model.tasks.outputs == t)
        task = own[-1]
        variance = variances[task] * model.noise.unit[task] ** 2
        if model.noise.unit[task] != problem.scaling.y_scale[t]:
            h = model.tasks.tasks[task].transform.relaxed(float(problem.scaling.y_scale[t]))
            measured = problem.data.y[problem.data.measured[:, t], t]
            variance /= max(float(np.mean(h.derivative(measured) ** 2)), 1e-300)
        result[t] = variance / problem.scaling.y_scale[t] ** 2
    return result


def _searching(engine: Engine) -> Engine:
    """The engine with sites that settle to a small share of a posterior standard deviation, which takes fewer steps."""
    if isinstance(engine, SLOW):
        return replace(engine, tolerance=max(engine.tolerance, SITE_TOLERANCE))
    return engine


def _refined(
    problem: FitProblem, model: Model, engine: Engine, objective: Objective, maximum: MapEstimate
) -> tuple[Objective, MapEstimate]:
    """The maximum of the engine's own objective, from that of matched moments."""
    problem.progress(f"hyperparameters: {kernel_name(objective.prior)}, {type(engine).__name__}")
    own = Objective(objective.prior, TransformedEvidence(objective.prior, model.observations, engine))
    return own, maximise(own, random_state=problem.random_state, starts=[maximum.theta])


def _candidate(objective: Objective, maximum: MapEstimate) -> Candidates:
    return Candidates((objective.prior,), (objective,), (maximum,))
