"""Laws with derivatives that no potential solves: imposed at data, on a grid and at each prediction point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student_t

from sumgp.errors import ConstraintError, DataError, NumericalError, Status, warn
from sumgp.laws import UNKNOWN_VARIANCE, Law
from sumgp.numerics import triangular_inverse
from sumgp.strategies.collocation_component import Candidate, CollocationComponent
from sumgp.strategies.collocation_path import MOST_POINTS, Path
from sumgp.strategies.collocation_setting import Setting, kernel_families
from sumgp.strategies.gradient_matching import match_gradients
from sumgp.strategies.open_constants import warn_of_open_constants
from sumgp.strategies.problem import FitProblem, Fitted, SeriesPlan, Strategy

MISSED = 0.03  # residual between the points, as a share of the law's terms, from which on a fit says so
SMALLEST_WEIGHT = 5e-3  # of a candidate that is kept
# By how much the log density of left-out data may fall below that without the law: at all, and for each measurement. With
# few rows a fit without a law can seem to predict better than any truth does.
WORSE_THAN_WITHOUT, WORSE_EACH = 10.0, 0.25
UNEXPLAINED = 0.4  # noise variance, as a share of an output's: no solution that was found follows its data


@dataclass(frozen=True)
class Collocated(Strategy):
    """Impose a law with derivatives at the training points, a grid between them and each prediction point.

    Outputs are independent Gaussian processes of their own lengthscales, the unknown constants columns of their own with a
    wide prior. A law that leaves only numbers open (constants, states at the start) is solved with shorter and shorter
    lengthscales until the answer stays the same. Where it leaves functions open, shorter and shorter lengthscales of two
    kernels are weighed by the density of each measurement given all others and the law; so they are with several inputs,
    where a law leaves open what holds at a start or on an edge, and functions made of the law's points alone or of points
    around them too. ``points`` multiplies the number of grid points along each
    input; with several inputs there are at most 600, and the status says where these are too few.
    """

    takes_long_series: ClassVar[bool] = False
    takes_derivatives: ClassVar[bool] = True

    points: float = 1.0

    def series_plan(self, problem: FitProblem) -> SeriesPlan:
        raise ConstraintError(
            "solver: Markov() cannot impose this law with derivatives, which holds at points only; with solver=None it "
            f"takes at most {MOST_POINTS} rows, and strategy=Unconstrained() takes all of them without the law"
        )

    def fit_rows(self, problem: FitProblem) -> Fitted:
        assert problem.law is not None
        check_supported(problem, problem.law)
        setting = Setting(problem, problem.law)
        families = kernel_families(problem, max((d.order for d in problem.law.derivatives), default=0))
        path = Path(setting, match_gradients(setting, families[0], setting.fitted(families[0])), self.points)
        for family in families:
            path.walk(family)
            if any(not _worse_than_without(path, candidate) for candidate in path.settled):
                break
        candidates, weights = _weighed(path, problem.uncertainty == "plug-in")
        candidates = [path.refined(candidate) for candidate in candidates]
        components = tuple(_component(setting, candidate) for candidate in candidates)
        report = _report(path, candidates, weights, problem) | _constants_report(path, components, weights)
        if report["status"] != Status.CONVERGED:
            warn(f"the law was imposed with status: {report['status']}")
        return Fitted(components, weights, components[0].law, report)


def check_supported(problem: FitProblem, law: Law) -> None:
    """ConstraintError for what collocation cannot do, with what to use instead."""
    if law.extra_columns:
        raise ConstraintError(
            f"constants: a law with derivatives is imposed between rows too, where {law.extra_columns[0]!r} is not known; "
            "give it as a function of the inputs"
        )
    if len(problem.data.x) > MOST_POINTS:
        rows = len(problem.data.x)
        wanted = f"at most {MOST_POINTS} rows for a law with derivatives that is imposed at points"
        remedy = f"fit one of every {-(-rows // MOST_POINTS)} rows, or means of as many"
        raise DataError("X", wanted, f"{rows}", remedy)
    if np.all(np.ptp(problem.data.x, axis=0) == 0):
        raise DataError("X", "at least two different inputs for a law with derivatives", "one", "give more rows")


def _worse_than_without(path: Path, candidate: Candidate) -> bool:
    """Whether left-out measurements are predicted worse than without the law, by more than chance tells."""
    allowed = WORSE_THAN_WITHOUT + WORSE_EACH * path.setting.seen.sum()
    return candidate.left_out.log_density < path.start.left_out - allowed


def _unexplained(setting: Setting, best: Candidate) -> str:
    """Measured outputs of which a law explains little, in one input one that leaves only numbers open; empty for none."""
    if not (best.determined or setting.x.shape[1] > 1) or setting.problem.noise.known is not None:
        return ""
    shares = [np.nan if never else best.noise[t] / np.nanvar(setting.y[:, t]) for t, never in enumerate(setting.never)]
    return ", ".join(setting.law.outputs[t] for t, share in enumerate(shares) if share > UNEXPLAINED)


def _weighed(path: Path, plug_in: bool) -> tuple[list[Candidate], np.ndarray]:
    """Candidates that carry weight; only the best one where lengthscales no longer matter or are plugged in."""
    found = path.settled or path.found
    if not found:
        raise NumericalError("the law could not be imposed with any lengthscale; check the law against the data")
    scores = np.array([candidate.score for candidate in found])
    if plug_in or path.settled:
        return [found[int(np.argmax(scores))]], np.ones(1)
    weights = np.exp(scores - scores.max())
    kept = weights / weights.sum() > SMALLEST_WEIGHT
    return [c for c, k in zip(found, kept, strict=True) if k], weights[kept] / weights[kept].sum()


def _component(setting: Setting, candidate: Candidate) -> CollocationComponent:
    """Where only numbers are open, sds are widened so that 95 % intervals are Student's: the noise is estimated."""
    factor = candidate.solution.factor
    root = triangular_inverse(factor).T
    known = setting.problem.noise.known
    noise = candidate.noise if known is None else known.mean(axis=0)
    lengths = [np.atleast_1d(basis.kernel.length_scale) for basis in candidate.bases]
    theta = np.log(np.concatenate([*lengths, [basis.variance for basis in candidate.bases], noise]))
    law, w = candidate.problem.law, candidate.solution.w
    component = CollocationComponent(candidate.bases, setting.columns, setting.orders, law, w, root, noise, theta)
    if known is not None or not candidate.determined:
        return component
    return component.widened(float(student_t.ppf(0.975, max(candidate.left_out.degrees, 1.0)) / norm.ppf(0.975)))


def _report(path: Path, candidates: list[Candidate], weights: np.ndarray, problem: FitProblem) -> dict[str, Any]:
    best = candidates[int(np.argmax(weights))]
    missed = best.missed(path.setting)
    unconverged = float(sum(w for c, w in zip(candidates, weights, strict=True) if c.solution.status != Status.CONVERGED))
    status = str(Status.CONVERGED)
    if unconverged > 0.2:
        status = f"{Status.STEP_LIMIT}; check the law against the data"
    if best.determined and not path.settled:
        status = (
            "the curves still change with shorter lengthscales: the law turns too sharply for the points in hand, or its "
            "solution was not found; give constants that are known, or a shorter range of inputs"
        )
    elif unexplained := _unexplained(path.setting, best):
        status = (
            f"under the law {unexplained} is mostly noise: so it is, or the best solution was not found; give constants "
            "that are known, more rows, or rows where the outputs turn"
        )
    if _worse_than_without(path, best):
        status = (
            "the outputs as measured are predicted better without the law: it is wrong, or its best solution was not "
            "found; check the law, or give constants that are known"
        )
    if max(missed.values()) > MISSED and (path.coarser > 1.0 or status == Status.CONVERGED):
        status = (
            f"between its {len(best.z)} points the law is missed by {max(missed.values()):.0%} of its terms: the outputs "
            "vary too fast for so few; fit a smaller range of inputs, or give a smoother kernel"
        )
    return {
        "status": status,
        "kernel": " + ".join(dict.fromkeys(c.family.name for c in candidates)),
        "uncertainty": problem.uncertainty,
        "log_evidence": best.left_out.log_density,
        "candidate_weights": _by_name(candidates, weights),
        "left_out_log_density": {"law": best.left_out.log_density, "no law": path.start.left_out},
        "law_points": len(best.z),
        "law_between_points": missed,
        "unconverged_weight": unconverged,
    }


def _by_name(candidates: list[Candidate], weights: np.ndarray) -> dict[str, float]:
    result: dict[str, float] = {}
    for candidate, weight in zip(candidates, weights, strict=True):
        result[candidate.name] = result.get(candidate.name, 0.0) + float(weight)
    return result


def _constants_report(path: Path, components: tuple[CollocationComponent, ...], weights: np.ndarray) -> dict[str, Any]:
    """Constants that data and law leave open, with a warning."""
    component, U = components[int(np.argmax(weights))], len(path.setting.law.unknowns)
    if not U:
        return {}
    assert component.law is not None
    where = component.law.constants
    unit_free = (component.law.shift[where] / component.law.scale[where]) + component.weights[-U:]
    covariance = component.root[-U:] @ component.root[-U:].T
    return warn_of_open_constants(path.setting.law.unknowns, unit_free, covariance, np.full(U, np.sqrt(UNKNOWN_VARIANCE)))
