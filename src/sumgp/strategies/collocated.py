"""Laws with derivatives that no potential solves: imposed at data, on a grid and at each prediction point."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline

from sumgp.errors import ConstraintError, DataError, NumericalError, Status, SumGPWarning, worded
from sumgp.hyperparameters import OutputFit, fit_output
from sumgp.laws import Law
from sumgp.lawsolve import LEVELS, CollocationProblem, CollocationSolution, solve_collocation
from sumgp.numerics import solve_lower
from sumgp.solvers import ValueBasis
from sumgp.strategies.collocation_component import CollocationComponent
from sumgp.strategies.collocation_setting import Family, Setting, kernel_families, left_out_score
from sumgp.strategies.gradient_matching import Start, common_lengthscales, match_gradients
from sumgp.strategies.problem import FitProblem, Fitted, SeriesPlan, Strategy

# Lengthscales that are tried, as shares of the most probable ones given the data alone: a law asks for more detail than
# sparse data show, and priors that are too smooth exclude the functions that obey it.
SHARES = tuple(2.0 ** (-j / 2) for j in range(9))
FIRST = 4  # the share to begin with, 1/4
LOG_SD = 2.0  # of the normal prior on the logarithm of a share
LEFT_BEHIND = 6.0  # a score so far below the best ends the way to longer lengthscales
HOPELESS = 30.0  # and the way of a kernel
NOISE_UPDATES = 2
UNKNOWN_VARIANCE = 100.0  # of a constant, in units of its spread by gradient matching
# Prior variance of an output, in units of the most probable one given the data, or given gradient matching where it was
# never measured: a variance that fits sparse data alone makes sharp turns of the law too costly.
MORE_VARIANCE = 4.0
SMALLEST_WEIGHT = 5e-3  # of a candidate that is kept
MOST_POINTS = 1500
# By how much the log density of left-out data may fall below that without the law: at all, and for each measurement. With
# few rows a fit without a law can seem to predict better than any truth does.
WORSE_THAN_WITHOUT, WORSE_EACH = 10.0, 0.25
OPEN, TIED = 0.3, 0.995  # sd of a constant in units of its prior's, and correlations, above which it is called open


class Candidate(NamedTuple):
    """One set of hyperparameters, solved: score, share, and what a component is made of."""

    family: Family
    share: float
    score: float
    left_out: float
    bases: tuple[ValueBasis, ...]
    problem: CollocationProblem
    solution: CollocationSolution
    noise: np.ndarray
    z: np.ndarray
    values: np.ndarray  # (n, T) at z


@dataclass(frozen=True)
class Collocated(Strategy):
    """Impose a law with derivatives at the training points, a grid between them and each prediction point.

    Outputs are independent Gaussian processes of their own lengthscales, the unknown constants columns of their own with a
    wide prior. Candidates are shorter and shorter lengthscales of two kernels, weighed by the density of each measurement
    given all others and the law. ``points`` multiplies the number of grid points.
    """

    takes_long_series: ClassVar[bool] = False
    takes_derivatives: ClassVar[bool] = True

    points: float = 1.0

    def series_plan(self, problem: FitProblem) -> SeriesPlan:
        raise ConstraintError(
            "solver: Markov() cannot impose this law with derivatives; leave solver=None and give at most "
            f"{MOST_POINTS} rows, or strategy=Unconstrained()"
        )

    def fit_rows(self, problem: FitProblem) -> Fitted:
        assert problem.law is not None
        check_supported(problem, problem.law)
        setting = Setting(problem, problem.law)
        families = kernel_families(problem, max((d.order for d in problem.law.derivatives), default=0))
        path = _Path(setting, match_gradients(setting, families[0], setting.fitted(families[0])), self.points)
        for family in families:
            path.walk(family)
        candidates, weights = _weighed(path.found, problem.uncertainty == "plug-in")
        components = tuple(_component(setting, candidate) for candidate in candidates)
        report = _report(path, candidates, weights, problem) | _constants_report(path, components, weights)
        if report["status"] != Status.CONVERGED:
            warnings.warn(f"the law was imposed with status: {report['status']}", SumGPWarning, stacklevel=2)
        return Fitted(components, weights, components[0].law, report)


def check_supported(problem: FitProblem, law: Law) -> None:
    """ConstraintError for what collocation cannot do, with what to use instead."""
    if problem.data.n_inputs != 1:
        raise ConstraintError(
            "constraint: laws with derivatives that hold no potential are imposed for one input, got "
            f"{problem.data.n_inputs}; give the inputs other than time their own fits, or write the law as a linear "
            "homogeneous one with constant coefficients, which is imposed for any number of inputs"
        )
    if law.extra_columns:
        raise ConstraintError(
            f"constants: a law with derivatives is imposed between rows too, where {law.extra_columns[0]!r} is not known; "
            "give it as a function of the inputs"
        )
    if len(problem.data.x) > MOST_POINTS:
        got = f"{len(problem.data.x)}"
        raise DataError(worded("X", f"at most {MOST_POINTS} rows for a law with derivatives", got, "thin them out"))
    if np.ptp(problem.data.x) == 0:
        raise DataError(worded("X", "at least two different inputs for a law with derivatives", "one", "give more rows"))


@dataclass
class _Path:
    """The walk over candidates; ``best`` score so far decides where it ends."""

    setting: Setting
    start: Start
    density: float  # of the grid
    found: list[Candidate] = field(default_factory=list)

    @property
    def best(self) -> float:
        return max((candidate.score for candidate in self.found), default=-np.inf)

    def walk(self, family: Family) -> None:
        """From a quarter of the most probable lengthscale downwards while that helps, then upwards."""
        fits = self.setting.fitted(family)
        first = self._tried(family, fits, FIRST, None)
        reached = first
        for j in range(FIRST + 1, len(SHARES)):
            if reached is not None and reached.score < self.best - HOPELESS:
                break
            lower = self._tried(family, fits, j, None)
            if lower is None or (reached is not None and lower.score < reached.score):
                break
            reached = lower
        last = first
        for j in range(FIRST - 1, -1, -1):
            if last is None or last.score < self.best - LEFT_BEHIND:
                break
            last = self._tried(family, fits, j, last)

    def _tried(self, family: Family, fits: tuple[OutputFit | None, ...], j: int, last: Candidate | None) -> Candidate | None:
        """The candidate of a share, warm-started from the last; None where it needs too many points or has no solution."""
        z = self._points(family, SHARES[j] * common_lengthscales(fits))
        if len(z) > MOST_POINTS:
            return None
        self.setting.problem.progress(f"law: {family.name}, {SHARES[j]:.2g} of the lengthscale")
        try:
            candidate = self._solved(family, fits, SHARES[j], z, last)
        except NumericalError:
            return None
        self.found.append(candidate)
        return candidate

    def _points(self, family: Family, lengthscales: np.ndarray) -> np.ndarray:
        return self.setting.points(float(lengthscales.min()) / (family.per_lengthscale * self.density))

    def _solved(
        self, family: Family, fits: tuple[OutputFit | None, ...], share: float, z: np.ndarray, last: Candidate | None
    ) -> Candidate:
        setting, start = self.setting, self.start
        lengthscales = share * common_lengthscales(fits)
        bases = setting.bases(family, lengthscales, self._variances(family, fits, lengthscales), z)
        law = setting.scaled_law(start.constants, start.spread, start.row_scale)
        problem = setting.collocation(law, bases, z, np.full(len(start.constants), UNKNOWN_VARIANCE))
        noise = np.array([1.0 if fit is None else fit.noise for fit in fits])
        w = self._start_weights(problem, z, last)
        levels: tuple[float, ...] = LEVELS
        for update in range(NOISE_UPDATES + 1):
            variances = setting.noise_variances(noise)
            solution = solve_collocation(problem, w, variances, levels)
            score = left_out_score(setting, problem, solution, variances)
            if update < NOISE_UPDATES and setting.problem.noise.known is None:
                noise, w, levels = score.noise, solution.w, LEVELS[-1:]
        values = problem.values(solution.w)[:, : len(fits)]
        total = score.log_density - 0.5 * (np.log(share) / LOG_SD) ** 2
        return Candidate(family, share, total, score.log_density, tuple(bases), problem, solution, noise, z, values)

    def _variances(self, family: Family, fits: tuple[OutputFit | None, ...], lengthscales: np.ndarray) -> np.ndarray:
        """(T,) most probable variances of the outputs given their lengthscales."""
        found = np.maximum(np.var(self.start.values, axis=0), 1e-12)
        return np.array(
            [
                MORE_VARIANCE * found[t]
                if fit is None
                else MORE_VARIANCE * fit_output(self.setting.one_output(t), family.at, float(lengthscales[t])).variance
                for t, fit in enumerate(fits)
            ]
        )

    def _start_weights(self, problem: CollocationProblem, z: np.ndarray, last: Candidate | None) -> np.ndarray:
        """Weights that give about the values of the start, or of the last candidate."""
        points, values = (self.start.z, self.start.values) if last is None else (last.z, last.values)
        wanted = CubicSpline(points[:, 0], values)(z[:, 0])
        w = np.zeros(problem.n_weights)
        for t, (output, part) in enumerate(zip(problem.outputs, problem.slices, strict=False)):
            B = output.at_law[0]
            ridge = 1e-8 * float(np.sum(B**2)) / B.shape[1]
            w[part] = np.linalg.solve(B.T @ B + ridge * np.eye(B.shape[1]), B.T @ wanted[:, t])
        if last is not None:
            w[problem.slices[-1]] = last.solution.w[last.problem.slices[-1]]
        return w


def _weighed(found: list[Candidate], plug_in: bool) -> tuple[list[Candidate], np.ndarray]:
    """Candidates that carry weight; only the best one where hyperparameters are plugged in."""
    if not found:
        raise NumericalError("the law could not be imposed with any lengthscale; check the law against the data")
    scores = np.array([candidate.score for candidate in found])
    if plug_in:
        return [found[int(np.argmax(scores))]], np.ones(1)
    weights = np.exp(scores - scores.max())
    kept = weights / weights.sum() > SMALLEST_WEIGHT
    return [c for c, k in zip(found, kept, strict=True) if k], weights[kept] / weights[kept].sum()


def _component(setting: Setting, candidate: Candidate) -> CollocationComponent:
    factor = candidate.solution.factor
    root = solve_lower(factor, np.eye(len(factor)), transposed=True)
    known = setting.problem.noise.known
    noise = candidate.noise if known is None else known.mean(axis=0)
    lengths = [basis.kernel.length_scale for basis in candidate.bases]
    theta = np.log(np.concatenate([lengths, [basis.variance for basis in candidate.bases], noise]))
    law, w = candidate.problem.law, candidate.solution.w
    return CollocationComponent(candidate.bases, setting.columns, setting.orders, law, w, root, noise, theta)


def _report(path: _Path, candidates: list[Candidate], weights: np.ndarray, problem: FitProblem) -> dict[str, Any]:
    best = candidates[int(np.argmax(weights))]
    unconverged = float(sum(w for c, w in zip(candidates, weights, strict=True) if c.solution.status != Status.CONVERGED))
    status = str(Status.CONVERGED)
    if unconverged > 0.2:
        status = f"{Status.STEP_LIMIT}; check the law against the data"
    if best.left_out < path.start.left_out - WORSE_THAN_WITHOUT - WORSE_EACH * path.setting.seen.sum():
        status = (
            "the outputs as measured are predicted better without the law: it is wrong, or its best solution was not "
            "found; check the law, or give constants that are known"
        )
    return {
        "status": status,
        "kernel": " + ".join(dict.fromkeys(c.family.name for c in candidates)),
        "uncertainty": problem.uncertainty,
        "log_evidence": best.left_out,
        "candidate_weights": {f"{c.family.name} {c.share:.3g}": float(w) for c, w in zip(candidates, weights, strict=True)},
        "left_out_log_density": {"law": best.left_out, "no law": path.start.left_out},
        "law_points": len(best.z),
        "law_between_points": _between_points(path.setting, best),
        "unconverged_weight": unconverged,
    }


def _between_points(setting: Setting, candidate: Candidate) -> dict[str, float]:
    """Of each law: rms residual of the curves midway between its points, relative to the rms size of its terms."""
    between = 0.5 * (candidate.z[:-1] + candidate.z[1:])
    law = candidate.problem.law
    middle = setting.collocation(law, candidate.bases, between, candidate.problem.unknown)
    f = law.shift + law.scale * middle.values(candidate.solution.w)[:, : law.law.n_columns]
    residual, terms = law.law.residual(f, middle.x_law), law.law.magnitude(f, middle.x_law)
    size = np.sqrt(np.mean(terms**2, axis=0))
    rms = np.sqrt(np.mean(residual**2, axis=0))
    return {label: float(r / s) for label, r, s in zip(law.law.labels, rms, np.maximum(size, 1e-300), strict=True)}


def _constants_report(path: _Path, components: tuple[CollocationComponent, ...], weights: np.ndarray) -> dict[str, Any]:
    """Constants that data and law leave open, with a warning."""
    open_ = list(_open_constants(path.setting.law, components[int(np.argmax(weights))]))
    for text in open_:
        warnings.warn(text, SumGPWarning, stacklevel=3)
    return {"open_constants": open_} if open_ else {}


def _open_constants(law: Law, component: CollocationComponent) -> Iterator[str]:
    U = len(law.unknowns)
    if not U:
        return
    covariance = component.root[-U:] @ component.root[-U:].T
    sd = np.sqrt(np.diagonal(covariance))
    correlation = covariance / np.outer(sd, sd)
    for i, name in enumerate(law.unknowns):
        tied = [law.unknowns[j] for j in range(i) if abs(correlation[i, j]) > TIED]
        if sd[i] > OPEN * np.sqrt(UNKNOWN_VARIANCE):
            yield (
                f"constants: the law and the data leave {name!r} open; its interval rests on the prior. "
                "Measure where it matters, or give its value"
            )
        elif tied:
            yield (f"constants: only a combination of {name!r} and {tied[0]!r} is determined; give the value of one of them")


__all__ = ["Collocated"]
