"""Laws with derivatives that the prior obeys as a whole, and whether the data contradict such a law."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from sumgp.errors import doubted, warn
from sumgp.hyperparameters import Objective, Scan, latent_size, maximise, noise_told
from sumgp.priors import MultitaskPrior
from sumgp.solvers import LatentEvidence
from sumgp.strategies.averaging import fit_candidates, mix, one_by_one
from sumgp.strategies.few_rows import prior_on_rows
from sumgp.strategies.problem import FitProblem, Fitted
from sumgp.strategies.weight_component import Component, plain_component

# Log evidence by which outputs fitted each on its own are ahead, and the same for each measured value. A law that holds
# puts them behind: it adds what the outputs say about each other (20 for 20 rows of an oscillator). A velocity in the wrong
# unit puts them ahead by as much; so do many values of a rough field that has not the same size everywhere, by less.
AHEAD, AHEAD_EACH = 10.0, 0.2
# A law that holds nearly: outputs get a part of their own besides what it allows, of an sd in those of the outputs, with
# lengthscales and a noise that differ from those under the law, which bends both to explain what it forbids.
PARTS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
LENGTHS = (1.0, 1.5, 2.5, 4.0)  # times the lengthscales under the law
NOISES = (1.0, 0.5, 0.25, 0.1)  # times the noise sd under the law
LEAST_PART = 0.03  # a smaller one is no contradiction
# Log evidence that such a part adds. Fields that obey the law: 1.3 at most (18 fields of 15 to 100 points). A tenth of a
# field against it: 17 at 100 points, and 1 at 30, which do not show it. A magnetic field in a room, which is not the same
# everywhere as a kernel is: 8 at 150 points of three outputs.
GAIN, GAIN_EACH = 4.0, 0.04

# Factors of the lengthscales that are tried; how far curves at the rows may be apart to count as the same, in sds; the fall
# of what the law costs that speaks for shorter ones, in squared sds. The lengthscales of the data suit a sine. A pendulum
# that swings by 70 degrees needs half of them (costs of 10,000, then 100, then 60), an orbit half or a third (800, 300, 90).
FACTORS = (1.0, 0.7, 0.5, 0.35, 0.25)
SAME, FALL = 1.0, 10.0
# Times the lengthscales, from whose solutions the law is solved again: few branches of a law are open to stiff curves. In
# 6 of 10 falls that rested at the top each of these led to the right one, in 3 of them 4 and 8 did, in one 8 alone.
SMOOTHER = (2.0, 4.0, 8.0)
WITHIN_NOISE = 4.0  # times the cost: a noise of twice the sd, which few rows do not rule out, would explain the other branch
NOISE_ROUNDS = 2  # of curves and noise, which depend on each other: with few numbers open the second changes little
CONTRADICTED = 4.0  # rms distance of the data from the curves, in noise sds: no fit to the data alone has that
SEVERAL = "law and data are met on several branches of the law, by curves whose lengthscales differ"


def short_enough(problem: FitProblem, build: Callable[[float, bool], Component]) -> tuple[float, np.ndarray, str]:
    """Factor of the lengthscales that lets curves follow the law, the values (n, C) that it leads to at its points, and what
    a status must say where shorter ones led to another branch of the law, else nothing.

    By ``build(factor, further)``. A prior with too long lengthscales cannot follow: the law then takes the curve off the
    data. So does a solve that ends on a wrong branch of the law. Where shorter ones make a difference, the law is therefore
    solved again from ``further`` starts too, those of ``smoother``, and if the difference stays, one step more is taken than
    needed, since draws of lengthscales are longer than the maximum too.
    """
    before, after = (_at_rows(problem, build(factor, False)) for factor in FACTORS[:2])
    if _same(before, after):
        return FACTORS[0], before.f, ""
    before, doubt = _searched(problem, build, FACTORS[0]), ""
    for factor, shorter in pairwise(FACTORS):
        after = _searched(problem, build, shorter)
        if _same(before, after):
            return (factor, before.f, doubt) if factor == FACTORS[0] else (shorter, after.f, doubt)
        if after.cost > before.cost - FALL:
            return factor, before.f, doubt
        if after.searched and before.cost < WITHIN_NOISE * after.cost and not doubt:
            doubt = f"converged, but {SEVERAL}"
            warn(f"{SEVERAL}; measure more rows, or give a kernel with the lengthscale that curves are known to have")
        before = after
    return FACTORS[-1], before.f, doubt


class _AtRows(NamedTuple):
    """Mean and variance (N, T) at the rows, the law's values (n, C) at its points, and what the law costs."""

    mean: np.ndarray
    variance: np.ndarray
    f: np.ndarray
    cost: float  # its misfit and the squares of the data's residuals, infinite where it is not met
    searched: bool = False  # the mean leads elsewhere


def _at_rows(problem: FitProblem, component: Component) -> _AtRows:
    mean, covariance = component.marginals(problem.x, problem.data.x)
    mean, variance = mean[:, : problem.n_outputs], np.einsum("ncc->nc", covariance)[:, : problem.n_outputs]
    assert component.conditioning is not None
    solution, residuals = component.conditioning.solution, float(np.nansum((problem.y - mean) ** 2 / component.noise))
    return _AtRows(mean, variance, solution.f, solution.misfit + residuals if solution.met else np.inf)


def _same(one: _AtRows, other: _AtRows) -> bool:
    return bool(np.mean((other.mean - one.mean) ** 2) < SAME**2 * np.mean(other.variance))


def _searched(problem: FitProblem, build: Callable[[float, bool], Component], factor: float) -> _AtRows:
    """From further starts if that costs clearly less: branches that cost about the same are told apart by the mean."""
    plain, further = (_at_rows(problem, build(factor, way)) for way in (False, True))
    return further._replace(searched=True) if further.cost < plain.cost - FALL else plain


def smoother(prior: MultitaskPrior, theta: np.ndarray) -> list[np.ndarray]:
    """Hyperparameters of ``SMOOTHER`` lengthscales, and as many times the size of what outputs are the slopes of."""
    grows = prior.lengthscales()
    for _, own in prior.slices:
        grows[own] = True
    return [theta + np.log(times) * grows for times in SMOOTHER]


def noise_given_law(
    problem: FitProblem, prior: MultitaskPrior, theta: np.ndarray, build: Callable[[np.ndarray], Component]
) -> np.ndarray:
    """What to add to the log noise sds of ``theta`` for the most probable ones given data and law, by ``build(that)``.

    Zeros where the law contradicts the data.
    """
    model, known, seen = prior.noise, theta[prior.noise_slice], ~np.isnan(problem.y)
    louder = np.zeros(len(known))
    factors = np.ones((len(seen), 1)) if model.row_factor is None else model.row_factor[:, None]
    for _ in range(NOISE_ROUNDS if len(louder) else 0):
        rows = _at_rows(problem, build(louder))
        squares = np.where(seen, (problem.y - rows.mean) ** 2, 0.0) / factors
        degrees = seen * (1.0 - rows.variance / model.variances(known + louder))
        louder = noise_told(model, squares.sum(axis=0), degrees.sum(axis=0)) - known
    return louder if np.all(louder < np.log(CONTRADICTED)) else np.zeros(len(louder))


def disagreement(problem: FitProblem, prior: MultitaskPrior, theta: np.ndarray) -> str:
    """What a status must say of a contradiction, also warned of; empty where there is none.

    ``prior`` over latent functions at its most probable ``theta``; compared at the rows that a scan looks at.
    """
    scan = Scan(problem.x, problem.y)
    rows = scan.rows
    at_rows = prior_on_rows(prior, rows)
    evidence = LatentEvidence(at_rows, problem.x[rows], problem.y[rows])
    alone = scan.log_evidence_alone(prior.kernels[0], prior.kernel_priors[0])
    found = _contradiction(evidence, theta, alone)
    if found and len(rows) < len(problem.x):
        # Single outputs have parameters for these rows; real fields vary more in one place than in another.
        found = _contradiction(evidence, maximise(Objective(at_rows, evidence), starts=[theta]).theta, alone)
    if not found:
        return ""
    text = f"the data contradict the law with derivatives: {found}"
    return doubted(text, "; check its signs, its factors and the units of inputs and outputs")


def _contradiction(evidence: LatentEvidence, theta: np.ndarray, alone: float) -> str:
    """What the data say against the law; ``alone``: log evidence of each output on its own."""
    if evidence.value(theta) < alone - max(AHEAD, AHEAD_EACH * len(evidence.targets)):
        return "each output alone explains them far better"
    part = _part_off_the_law(evidence, theta)
    return f"about {part:.0%} of the outputs' spread does not obey it" if part else ""


def _part_off_the_law(evidence: LatentEvidence, theta: np.ndarray) -> float:
    """Sd of a part of each output that obeys no law, in those of the outputs; zero where the data do not ask for one."""
    prior = evidence.prior
    values = []
    for factor in LENGTHS:
        longer = theta + np.log(factor) * prior.lengthscales()
        for (_, own), kernel, longer_kernel, task in zip(
            prior.slices, prior.unpack(theta).kernels, prior.unpack(longer).kernels, prior.tasks, strict=True
        ):
            sizes = [latent_size(prior, k, task.speaks_of or 0) for k in (kernel, longer_kernel)]
            longer[own] += np.log(sizes[1] / sizes[0])
        values.append(evidence.values_off_the_law(longer, PARTS, NOISES))
    best = np.max(values, axis=(0, 2))
    needed = max(GAIN, GAIN_EACH * len(evidence.targets))
    part = PARTS[int(np.argmax(best))]
    return part if part >= LEAST_PART and best.max() > best[0] + needed else 0.0


def fit_eliminated(problem: FitProblem, draws: int) -> Fitted:
    """The posterior of a prior that obeys the whole law: nothing is left to impose."""
    fitted = fit_candidates(problem, problem.priors("identity"))
    components, weights, report = mix(
        problem, fitted, one_by_one(lambda prior, theta: plain_component(problem, prior, theta)), None, draws
    )
    best = fitted.best
    contradiction = disagreement(problem, fitted.priors[best], fitted.maxima[best].theta)
    return Fitted(components, weights, None, {"status": contradiction or report["hyperparameter_status"], **report})
