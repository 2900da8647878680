"""Linearized: condition on data, then on the law, linearised where the result is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from sumgp.errors import NumericalError
from sumgp.laws import LawSetup, UnitFreeLaw, set_up_law, unit_free_law
from sumgp.lawsolve import (
    ENOUGH,
    FULL,
    LawSolution,
    follow_law,
    law_evidences,
    least_misfit,
    second_order,
    solve_laws,
    solve_linear_law,
    turns,
)
from sumgp.priors import MultitaskPrior
from sumgp.solvers import IndependentOutputs, Taper, WeightPosterior
from sumgp.strategies.averaging import MANY_FREE, Candidates, Mixed, Pairs, fit_candidates, joined, mix, not_against_rows
from sumgp.strategies.eliminated import disagreement, fit_eliminated, noise_given_law, short_enough, smoother
from sumgp.strategies.left_out import FEWER_ROUGH, TAPERS, TaperWeights, rough_share, taper_weights
from sumgp.strategies.only_numbers import fit_numbers
from sumgp.strategies.problem import FitProblem, Fitted, SeriesPlan, Strategy
from sumgp.strategies.stacking import as_draws_disagree, stacked
from sumgp.strategies.weight_component import Component, LawConditioning, given_data, plain_component

EVIDENCE_SHARE = 0.3  # law sd in the evidence, relative to the law's unconstrained posterior sd, for 120 law points
EVIDENCE_POINTS = 120.0  # law points for which ``EVIDENCE_SHARE`` holds: the sd grows with the root of their number
POINTS_PER_LENGTHSCALE = 5.0  # within one lengthscale: curves of the prior have no room to leave the law between them
MOST_FOLLOWED = 1500  # points times columns of a law that is followed point by point
ANOTHER_BRANCH = 1.0  # by how much the log evidence of a law is higher on one
MOST_TOGETHER = 1_000_000  # entries of covariances in one law solve: with more, memory takes longer than calls do
ASTRAY = 10.0  # a log evidence so far below the highest is looked for again from where that was found
DRAWS_FOR_BRANCHES = 4  # times as many draws where the law can be met on several branches
SHORT, WELL_TOLD = 1.0, 400  # taper to neighbours, measured values: with more, the law's weights gain nothing (30 tables)
HOPELESS = -1e6  # score of hyperparameters under which the law cannot be imposed


@dataclass(frozen=True)
class LawState:
    """Posterior given the data at the law's points."""

    posterior: WeightPosterior | IndependentOutputs
    mean: np.ndarray  # (n, C)
    root: np.ndarray  # (n, C, weights)

    def covariance(self, taper: Taper | None, x: np.ndarray) -> np.ndarray:
        """(nC, nC) covariance between the points, tapered where asked."""
        P, shape = self.posterior.between(self.root), self.root.shape[:2] * 2
        return P if taper is None else taper.apply(P.reshape(shape), x, x).reshape(P.shape)


@dataclass(frozen=True)
class LawEngine:
    """Law solves for many hyperparameters of one fit: each depends on nothing but these fields and its arguments."""

    problem: FitProblem
    setup: LawSetup
    exact: bool = False  # a linear law, solved in one step
    law_sd: np.ndarray | None = None  # (n R,) in the evidence, the same for all hyperparameters
    branches: tuple[np.ndarray, ...] = ()  # (n, C) each: further starts at the law's points
    factor: float = 1.0  # of all lengthscales: those of the data alone may be too long for the curve that the law asks for
    louder: np.ndarray | float = 0.0  # added to log noise sds, which the data alone tell less well than data and law

    def used(self, prior: MultitaskPrior, theta: np.ndarray) -> np.ndarray:
        """Hyperparameters with lengthscales ``factor`` times as long and with the noise that data and law tell."""
        changed = theta + np.log(self.factor) * prior.lengthscales()
        changed[prior.noise_slice] += self.louder
        return changed

    def state(self, prior: MultitaskPrior, theta: np.ndarray) -> LawState:
        """Condition on the data."""
        posterior = given_data(self.problem, prior, self.used(prior, theta), self.setup.x)
        return LawState(posterior, *posterior.carried(self.setup.x, self.setup.x_law))

    @classmethod
    def calibrated(cls, problem: FitProblem, setup: LawSetup, state: LawState) -> LawEngine:
        """With the law's sd in the evidence from its rms size, constants held, row by row, in a posterior for reference."""
        J = setup.law.jacobian(state.mean, setup.x_law)
        J[:, :, setup.law.constants] = 0.0  # their priors are wide: beside them the law would say nothing of curves
        n, size = len(J), np.sqrt(np.mean(np.sum(np.einsum("nrc,ncw->nrw", J, state.root) ** 2, axis=2), axis=0))
        share = EVIDENCE_SHARE * np.sqrt(n / EVIDENCE_POINTS)
        return cls(problem, setup, law_sd=np.tile(np.maximum(share * size, 1e-12), n))

    def turns(self, state: LawState) -> bool:
        return turns(self.setup.law, self.setup.x_law, state.mean, np.sqrt(np.einsum("ncw,ncw->nc", state.root, state.root)))

    def other_branch(self, state: LawState) -> np.ndarray | None:
        """(n, C) at the law's points: a further start, where following the law from known points fits better."""
        setup = self.setup
        assert self.law_sd is not None
        if setup.law.is_linear or state.mean.size > MOST_FOLLOWED or not self.turns(state):
            return None
        followed = follow_law(setup.law, setup.x_law, state.mean, state.covariance(None, setup.x), self.law_sd**2)
        plain, better = (self.evidences([state], [start])[0] for start in (None, followed))
        return better.f if plain is not None and better is not None and better.value > plain.value + ANOTHER_BRANCH else None

    def evidences(self, states: Sequence[LawState], starts: Sequence[np.ndarray | None]) -> list[Scored | None]:
        """Log evidences of the law at its points, given the data, and the law's values there; None where one fails."""
        assert self.law_sd is not None
        found: list[Scored | None] = []
        for some in self._together(states):
            mean, P = self._gaussians(some, [None] * len(some))
            try:
                values, f = law_evidences(self.setup.law, self.setup.x_law, mean, P, self.law_sd, starts)
                found += [Scored(float(value), at, state) for value, at, state in zip(values, f, some, strict=True)]
            except NumericalError:
                found += [None] if len(some) == 1 else [self.evidences([state], starts)[0] for state in some]
        return found

    def _together(self, items: Sequence[Any]) -> Iterator[Sequence[Any]]:
        """So many of them at a time that their covariances at the law's points fit into a fast memory."""
        count = max(1, MOST_TOGETHER // (len(self.setup.x) * self.setup.law.n_columns) ** 2)
        return (items[i : i + count] for i in range(0, len(items), count))

    def _gaussians(self, states: Sequence[LawState], tapers: Sequence[Taper | None]) -> tuple[np.ndarray, np.ndarray]:
        """Means (B, n, C) and covariances (B, nC, nC) at the law's points."""
        covariances = [state.covariance(taper, self.setup.x) for state, taper in zip(states, tapers, strict=True)]
        P = covariances[0][None] if len(states) == 1 else np.stack(covariances)
        return np.stack([state.mean for state in states]), P

    def components(
        self,
        pairs: Pairs,
        lengths: Sequence[float | None] | None = None,
        known: Sequence[Scored | None] | None = None,
        tolerance: float | None = None,
    ) -> list[Component]:
        """Posteriors given data and law; ``lengths`` of tapers in lengthscales, None = joint conditioning, 0 = projection.

        ``known``: what the law's evidence found. ``tolerance`` as in ``solve_laws``; None = what is fit for predictions.
        """
        nothing, law = [None] * len(pairs), self.setup.law
        result: dict[int, Component] = {}
        cold, warm = [], []  # place, state, taper and start of each
        for i, ((prior, theta), length, scored) in enumerate(zip(pairs, lengths or nothing, known or nothing, strict=True)):
            if length == 0.0 and not self.setup.law.law.unknowns:
                result[i] = plain_component(self.problem, prior, theta, law)
            elif scored is not None and length is None:
                warm.append((i, scored.state, None, scored.f))
            else:
                state = self.state(prior, theta) if scored is None else scored.state
                unit = prior.shortest_lengthscales(theta, self.problem.half_range)
                cold.append((i, state, None if length is None else Taper(length, unit, prior.n_outputs), None))
        for some in (*self._together(warm), *self._together(cold)):
            places, states, tapers, starts = zip(*some, strict=True)
            solutions = self.solve(states, tapers, None if starts[0] is None else np.stack(starts), tolerance)
            for i, state, taper, solution in zip(places, states, tapers, solutions, strict=True):
                prior, own = pairs[i][0], self.used(*pairs[i])
                noise = prior.noise.typical(own[prior.noise_slice])
                beyond = second_order(law, self.setup.x_law, state.root, solution) if self.leaves_numbers else None
                conditioning = LawConditioning(self.setup.x, state.root, solution, taper, self.exact, beyond)
                result[i] = Component(state.posterior, own, noise, prior.n_outputs, self.onto, conditioning)
        return [result[i] for i in range(len(pairs))]

    @property
    def leaves_numbers(self) -> bool:
        """True for a curved law beside derivatives, which together mostly leave a few numbers open."""
        return self.problem.split is not None and not (self.exact or self.setup.law.is_linear or self.setup.law.is_soft)

    @property
    def onto(self) -> UnitFreeLaw | None:
        """The law that points are moved onto; None where that would only take them off derivatives that hold exactly."""
        law, split = self.setup.law, self.problem.split
        return None if split is not None and law.is_soft and not law.law.unknowns else law

    def solve(
        self, states: Sequence[LawState], tapers: Sequence[Taper | None], start: np.ndarray | None, tolerance: float | None
    ) -> list[LawSolution]:
        """The law's most probable values at its points, for each state; ``start`` (B, n, C) if that is known."""
        law, x, (mean, P) = self.setup.law, self.setup.x_law, self._gaussians(states, tapers)
        if self.exact:
            return [solve_linear_law(law, x, *each) for each in zip(mean, P, strict=True)]
        tolerance = tolerance or (FULL if self.problem.uncertainty == "plug-in" else ENOUGH)
        starts = [start] if start is not None else [None, *(np.broadcast_to(f, mean.shape) for f in self.branches)]
        tried = [solve_laws(law, x, mean, P, each, tolerance) for each in starts]
        return [least_misfit(solutions) for solutions in zip(*tried, strict=True)]


class Scored(NamedTuple):
    """The law's log evidence for one set of hyperparameters, the law's values (n, C), the posterior given the data."""

    value: float
    f: np.ndarray
    state: LawState


class LawScores:
    """The law's log evidence, once for each set of hyperparameters, the same whatever was asked for before; far below the
    best of the candidates' maxima it is looked for again from there."""

    def __init__(self, engine: LawEngine, fitted: Candidates, states: Sequence[LawState]) -> None:
        self.engine, self.fitted, self._states = engine, fitted, states  # one for each candidate's maximum
        self._values: dict[tuple[int, bytes], tuple[MultitaskPrior, float]] = {}  # with the prior: its id stays its own
        self._found: dict[tuple[int, bytes], Scored | None] = {}
        self._starts = [None, *engine.branches]

    def __call__(self, pairs: Pairs) -> list[float]:
        new = {(id(p), t.tobytes()): (p, t) for p, t in pairs if (id(p), t.tobytes()) not in self._values}
        unseen = [key for key in new if key not in self._maxima]
        seen = self.engine.evidences([self.engine.state(*new[key]) for key in unseen], self._starts)
        for key, found in zip(new, self._compared([self._maxima.get(key) or seen.pop(0) for key in new]), strict=True):
            self._found[key], self._values[key] = found, (new[key][0], HOPELESS if found is None else found.value)
        return [self._values[id(p), t.tobytes()][1] for p, t in pairs]

    def found(self, prior: MultitaskPrior, theta: np.ndarray, keep: bool = False) -> Scored | None:
        """What a score was found with, once, or again where ``keep``; None without a score."""
        return (self._found.get if keep else self._found.pop)((id(prior), theta.tobytes()), None)

    @cached_property
    def _maxima(self) -> dict[tuple[int, bytes], Scored]:
        """Of the candidates, as seen from the mean, the best first."""
        keys = [(id(p), m.theta.tobytes()) for p, m in zip(self.fitted.priors, self.fitted.maxima, strict=True)]
        found = zip(keys, self.engine.evidences(self._states, self._starts), strict=True)
        known = [(key, scored) for key, scored in found if scored is not None]
        return dict(sorted(known, key=lambda pair: -pair[1].value))

    def _compared(self, found: list[Scored | None]) -> list[Scored | None]:
        """The same, or what is found from the best of the maxima where that is far better."""
        result, best = list(found), next(iter(self._maxima.values()), None)
        far = [(i, s) for i, s in enumerate(found) if s is not None and best is not None and s.value < best.value - ASTRAY]
        again = self.engine.evidences([s.state for _, s in far], [best.f]) if best is not None else []
        for (i, scored), other in zip(far, again, strict=True):
            result[i] = None if other is None else max(scored, other, key=lambda s: s.value)
        return result


def law_spacing(problem: FitProblem, prior: MultitaskPrior, theta: np.ndarray) -> float:
    """Distance between the points at which the law is imposed, as the kernels see inputs."""
    return float(np.min(prior.shortest_lengthscales(theta, problem.half_range))) / POINTS_PER_LENGTHSCALE


@dataclass(frozen=True)
class Linearized(Strategy):
    """Condition on the law by iterated linearisation at training points, a grid between them and each prediction point.

    ``taper`` is how far the law at one point speaks about others: None is joint conditioning, 0 is projection point by
    point, a number is a distance in lengthscales; "auto" averages over several, weighed by how well they predict left-out
    rows (``fit_report_["taper_weights"]``), and over rougher curves where these predict such rows better.
    ``draws``: of hyperparameters; up to twice as many are weighed by the law, half as many above 400 measured values.
    """

    series: ClassVar[SeriesPlan] = SeriesPlan(at_times=True)

    taper: str | float | None = "auto"
    draws: int = 24

    def fit_rows(self, problem: FitProblem) -> Fitted:
        if problem.law is None:
            return fit_eliminated(problem, self.draws)
        law = unit_free_law(problem.law, problem.data, problem.scaling)
        if law.law.unknowns and (numbers := fit_numbers(problem, law)) is not None:
            return numbers
        fitted = fit_candidates(problem, problem.priors("identity", law)).supported
        prior, theta = fitted.priors[fitted.best], fitted.maxima[fitted.best].theta
        ready = cache(partial(_prepared, problem, fitted))
        (engine, states), doubt, alone = ready(1.0), "", [(prior, theta)]
        if engine.leaves_numbers:

            @cache
            def solved(factor: float, further: bool) -> Component:
                there = ready(factor)[0]
                given = (there.state(prior, longer) for longer in smoother(prior, theta)) if further else ()
                starts = (there.solve([state], [None], None, ENOUGH)[0].f for state in given)
                return replace(there, branches=(*there.branches, *starts)).components(alone)[0]

            factor, start, doubt = short_enough(problem, solved)
            branch, states = replace(ready(factor)[0], branches=(start,)), ready(factor)[1]
            louder = noise_given_law(problem, prior, theta, lambda by: replace(branch, louder=by).components(alone)[0])
            engine = replace(branch, louder=louder)
        score = LawScores(engine, fitted, states)
        tapers = self._tapers(fitted, score)
        # A law that speaks point by point says nothing about hyperparameters, which are about neighbours. Where it reaches
        # these alone, many data say enough; under a differential law all do. Many hyperparameters would leave one draw.
        many_free = max(p.n_parameters for p in fitted.priors) > MANY_FREE
        reach, farthest = tapers.heaviest, SHORT if problem.data.measured.sum() > WELL_TOLD else 0.0
        weigh = None if (reach is not None and reach <= farthest) or problem.split is not None or many_free else score
        several = 0 if engine.leaves_numbers else len(engine.branches)  # whose weights hang on many hyperparameters
        draws = self.draws * (DRAWS_FOR_BRANCHES if several and problem.uncertainty == "integrated" else 1)
        average = mix(problem, fitted, _in_turn(score, tapers), weigh, draws, undecided=0 < several < len(states))
        if weigh is not None:
            by_data = partial(mix, problem, fitted, _in_turn(score, tapers), None, draws)
            average = not_against_rows(problem, average, tapers, by_data)
        average = self._with_rougher(average, tapers, score)
        report = average.report | tapers.report() | average.law_report() | {"law_starts": 1 + len(engine.branches)}
        if problem.split is not None:
            report["status"] = disagreement(problem, prior, theta) or doubt or report["status"]
            report["lengthscale_factor"] = engine.factor
        jointly = None if tapers.heaviest == 0.0 else engine.components
        fit = Fitted(average.components, average.weights, engine.onto, report)
        return as_draws_disagree(problem, stacked(problem, fit, engine.setup.law, jointly=jointly))

    def _tapers(self, fitted: Candidates, score: LawScores) -> TaperWeights:
        """Those asked for, or all of them, weighed at the best candidate's maximum."""
        engine = score.engine
        # A taper would take from the covariance between points what makes one output the derivative of another.
        length = self.taper if engine.problem.split is None else None
        if not isinstance(length, str):
            return TaperWeights((length,), (1.0,))
        best = int(np.argmax(fitted.approximate_evidence(score)))
        prior, theta = fitted.priors[best], fitted.maxima[best].theta
        known = score.found(prior, theta, keep=True)
        lengths = TAPERS[:-1] if engine.setup.law.law.unknowns else TAPERS  # or each point would be a measurement of these
        imposed = engine.components([(prior, theta)] * len(lengths), lengths, [known] * len(lengths), ENOUGH)
        return taper_weights(engine.problem, prior, theta, imposed, plain_component(engine.problem, prior, theta))

    def _with_rougher(self, smooth: Mixed, tapers: TaperWeights, score: LawScores) -> Mixed:
        """The average with rougher curves added to it, as far as left-out rows ask for them."""
        problem = score.engine.problem
        many_free = max(len(c.theta) for c in smooth.components) > MANY_FREE  # outputs of their own are rough where need be
        if not (problem.rougher and tapers.scores and "candidate_weights" in smooth.report) or many_free:
            return smooth
        rougher = replace(problem, candidates=problem.rougher)
        try:
            fitted = fit_candidates(rougher, rougher.priors("identity", score.engine.setup.law), before=score.fitted)
            rough = self._tapers(fitted, score)
            if not (share := rough_share(tapers, rough)):
                return smooth
            added = mix(rougher, fitted, _in_turn(score, rough), score, max(1, self.draws // FEWER_ROUGH))
        except NumericalError:
            return smooth
        return joined(smooth, added, share)


def _prepared(problem: FitProblem, fitted: Candidates, factor: float) -> tuple[LawEngine, list[LawState]]:
    """The engine for lengthscales ``factor`` times as long, and the posterior given the data at each candidate's maximum."""
    assert problem.law is not None
    best, prior = fitted.best, fitted.priors[fitted.best]
    theta = fitted.maxima[best].theta + np.log(factor) * prior.lengthscales()
    setup = set_up_law(problem.law, problem.data, problem.scaling, law_spacing(problem, prior, theta))
    uncalibrated = LawEngine(problem, setup, factor=factor)
    states = [uncalibrated.state(p, m.theta) for p, m in zip(fitted.priors, fitted.maxima, strict=True)]
    engine = replace(LawEngine.calibrated(problem, setup, states[best]), factor=factor)
    found = [engine.other_branch(state) for state in states]
    return replace(engine, branches=tuple(f for f in found if f is not None)), states


def _in_turn(score: LawScores, tapers: TaperWeights) -> Callable[[Pairs], list[Component]]:
    """Components of hyperparameters, each with the next of the tapers."""
    lengths = tapers.in_turn()
    return lambda pairs: score.engine.components(pairs, [next(lengths) for _ in pairs], [score.found(*p) for p in pairs])
