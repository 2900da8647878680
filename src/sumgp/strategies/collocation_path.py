"""The hyperparameters that a fit by collocation tries: shorter and shorter lengthscales, each solved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline, RBFInterpolator

from sumgp.errors import NumericalError, Status
from sumgp.hyperparameters import OutputFit, fit_output
from sumgp.laws import UNKNOWN_VARIANCE
from sumgp.lawsolve import FINE_LEVELS, LEVELS, CollocationProblem, CollocationSolution, law_volume, solve_collocation
from sumgp.solvers import ValueBasis
from sumgp.strategies.collocation_component import Candidate
from sumgp.strategies.collocation_setting import Family, LawPoints, LeftOutScore, Setting, law_points, left_out_score
from sumgp.strategies.gradient_matching import Start, common_lengthscales

# Lengthscales that are tried, as shares of the most probable ones given the data alone: a law asks for more detail than
# sparse data show, and priors that are too smooth exclude the functions that obey it.
SHARES = tuple(2.0 ** (-j / 2) for j in range(9))
FIRST = 4  # the share to begin with, 1/4
LOG_SD, LOG_SD_SEVERAL = 2.0, 0.5  # of the normal prior on the logarithm of a share, with one input and with several
LEFT_BEHIND = 6.0  # a score so far below the best ends the way to longer lengthscales
HOPELESS = 30.0  # and the way of a kernel
NOISE_UPDATES = 2  # of the noise by the residuals of the last solve, each followed by another solve
# Largest noise variance to begin with, for several inputs, in units of the output's: a search that takes all variation for
# noise at first stays there, though the law tells otherwise.
LARGEST_NOISE = 0.3**2
VOLUME_ROUNDS = 5  # of constants, prior variances and the room that the law leaves, which depend on each other
# Prior variance of an output, in units of the most probable one given the data, or given gradient matching where it was
# never measured: a variance that fits sparse data alone makes sharp turns of the law too costly.
MORE_VARIANCE = 4.0
# Prior sds of the outputs grow by this factor once a law is met that leaves only numbers open. The prior then has nothing
# to tell; left as it is, it pulls the constants to flatter curves and makes the intervals too short.
RELEASE = 15.0
# Levels of a law that leaves only numbers open. What a level allows must be little beside the noise: lower ones are tried
# until the curves have as many degrees of freedom as numbers are open, up to 3 %. One that is too low for the functions in
# hand takes more from them and outweighs the data: left-out measurements are less probable, by more than CHANCE in all.
HARDER = (0.003, 0.001, 0.0003, 0.0001, 0.00003)
MORE_THAN_OPEN, CHANCE = 1.03, 5.0  # degrees of freedom over the numbers that are open; log density
MORE_UPDATES, SAME_NOISE = 6, 0.05  # at most of the noise of such a law, and the change of its logarithm that ends them
MOST_POINTS = 1500  # of the law: shorter lengthscales, which would need more, are not tried
MOST_WORK = 1e11  # multiplications in all solves, after which no further lengthscale is tried (one input): 10 to 15 s
DENSER = 1.4  # points a lengthscale with several inputs, over those with one: residuals between them are 1e-4 again


# Residual between the points, as a share of the law's terms, above which the law is imposed at more of them. Far above it
# the functions are too rough.
LARGEST_MISS, OUT_OF_REACH = 1e-4, 1e-3
REFINEMENTS, REFINED = 3, 1.15  # so many times, each with so many times the points along each input


class _Solved(NamedTuple):
    """A solution, the noise (T,) it was found with, and how well it predicts."""

    solution: CollocationSolution
    noise: np.ndarray
    score: LeftOutScore


@dataclass
class Path:
    """The walk over candidates; ``best`` score so far decides where it ends.

    ``settled`` are those that a shorter lengthscale would not change, of laws that leave only numbers open.
    """

    setting: Setting
    start: Start
    density: float  # of the grid
    found: list[Candidate] = field(default_factory=list)
    settled: list[Candidate] = field(default_factory=list)
    work: float = 0.0
    coarser: float = 1.0  # than the lengthscales ask for is the grid, where a limit on its points is reached

    @property
    def _several(self) -> bool:
        return self.setting.x.shape[1] > 1

    @property
    def best(self) -> float:
        return max((candidate.score for candidate in self.found), default=-np.inf)

    def walk(self, family: Family) -> None:
        """From a quarter of the most probable lengthscale downwards while that helps, then upwards.

        With several inputs: all from the most probable one downwards, until the grid has too many points; without points
        around the law's and with them. Functions made of the law's points alone cannot follow all solutions up to the edges
        (Greenberg's equation at 1 % noise: left-out log density 10 to 27 higher with them); at edges that vary little, what
        they leave open is better left out (heat in a rod: 2 to 4 lower).
        """
        fits = self.setting.fitted(family)
        if self._several:
            self._all_down(family, fits)
            if any(fit is not None and fit.noise > LARGEST_NOISE for fit in fits):
                self._with_less_noise(family)
            return
        first = self._tried(family, fits, FIRST, None)
        if first is not None and first.determined:
            self._refine(family, fits, first)
            return
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

    def refined(self, candidate: Candidate) -> Candidate:
        """The same hyperparameters with the law at more points, until it is met between them or there are no more."""
        density = self.density
        for _ in range(REFINEMENTS):
            miss = max(candidate.missed(self.setting).values())
            if not LARGEST_MISS < miss < OUT_OF_REACH:
                break
            density *= REFINED
            fits = candidate.fits
            at = self._points(candidate.family, candidate.share * common_lengthscales(fits), density, candidate.wide)
            if at.coarser > 1.0 or len(at.z) > MOST_POINTS:
                break
            self.setting.problem.progress(f"law: {len(at.z)} points")
            try:
                finer = self._solved(candidate.family, fits, candidate.share, at, candidate)
            except NumericalError:
                break
            if max(finer.missed(self.setting).values()) < miss:
                candidate = finer
        return candidate

    def _with_less_noise(self, family: Family) -> None:
        """The same from lengthscales at which data alone show little noise, kept where it explains them far better.

        Outputs that turn more often than the rows show look like noise without the law, and their lengthscales too long.
        """
        other = replace(self, found=[], coarser=1.0)
        other._all_down(family, self.setting.fitted(family, LARGEST_NOISE))
        if other.best > self.best + CHANCE:
            self.found, self.coarser = other.found, other.coarser

    def _all_down(self, family: Family, fits: tuple[OutputFit | None, ...]) -> None:
        for wide in (False, True):
            for j in range(len(SHARES)):
                candidate = self._tried(family, fits, j, None, wide)
                if candidate is None or candidate.score < self.best - HOPELESS:
                    break

    def _refine(self, family: Family, fits: tuple[OutputFit | None, ...], last: Candidate) -> None:
        """Downwards until the curves stay the same."""
        for j in range(FIRST + 1, len(SHARES)):
            finer = self._tried(family, fits, j, None)
            if finer is None:
                return
            if finer.agrees_with(last):
                self.settled.append(finer)
                return
            last = finer

    def _tried(
        self, family: Family, fits: tuple[OutputFit | None, ...], j: int, last: Candidate | None, wide: bool = False
    ) -> Candidate | None:
        """The candidate of a share, warm-started from the last; None where it needs too many points or has no solution."""
        at = self._points(family, SHARES[j] * common_lengthscales(fits), self.density, wide)
        enough = j > 0 and at.coarser > 1.0 if self._several else self.work > MOST_WORK
        if len(at.z) > MOST_POINTS or (self.found and enough):
            return None
        self.coarser = max(self.coarser, at.coarser)
        self.setting.problem.progress(f"law: {family.name}, {SHARES[j]:.2g} of the lengthscale")
        try:
            candidate = self._solved(family, fits, SHARES[j], at, last)
        except NumericalError:
            return None
        self.found.append(candidate)
        return candidate

    def _points(self, family: Family, lengthscales: np.ndarray, density: float, wide: bool) -> LawPoints:
        per_lengthscale = family.per_lengthscale * density * (DENSER if self._several else 1.0)
        found = law_points(self.setting.x, lengthscales.min(axis=0) / per_lengthscale)
        return found if wide else found.alone

    def _solved(
        self, family: Family, fits: tuple[OutputFit | None, ...], share: float, at: LawPoints, last: Candidate | None
    ) -> Candidate:
        setting, start = self.setting, self.start
        lengthscales = share * common_lengthscales(fits)
        bases = setting.bases(family, lengthscales, self._variances(family, fits, lengthscales), at)
        law = setting.scaled_law(start.constants, start.spread, start.row_scale)
        problem = setting.collocation(law, bases, at.z, np.full(len(start.constants), UNKNOWN_VARIANCE))
        largest = LARGEST_NOISE if self._several else np.inf
        noise = np.array([1.0 if fit is None else min(fit.noise, largest) for fit in fits])
        levels = FINE_LEVELS if self._several else LEVELS
        solution = self._solve(problem, self._start_weights(problem, at.z, last), noise, levels)
        determined = setting.determined(problem, solution.w)
        if determined:
            bases, problem, w = _released(bases, problem, solution.w)
            solution = self._solve(problem, w, noise, levels[-1:])
        elif self._several:
            bases, problem, w = _with_volume(bases, problem, solution.w, setting.noise_variances(noise), levels[-1])
            solution = self._solve(problem, w, noise, levels[-1:])
        found = self._with_noise(problem, self._scored(problem, solution, noise), levels[-1], determined)
        solution, noise, score = found
        values = problem.values(solution.w)[:, : len(fits)]
        total = score.log_density - 0.5 * (np.log(share) / (LOG_SD_SEVERAL if self._several else LOG_SD)) ** 2
        return Candidate(family, fits, share, total, score, determined, tuple(bases), problem, solution, noise, at, values)

    def _with_noise(self, problem: CollocationProblem, at: _Solved, level: float, determined: bool) -> _Solved:
        """With the noise that the solution tells, which depends on it; a law that leaves only numbers open is hardened."""
        known = self.setting.problem.noise.known is not None
        for _ in range(MORE_UPDATES if determined else NOISE_UPDATES):
            if determined:
                at, level = self._hardened(problem, at, level)
            if known:
                break
            before, noise = at.noise, at.score.noise
            at = self._scored(problem, self._solve(problem, at.solution.w, noise, (level,)), noise)
            if determined and np.all(np.abs(np.log(noise / before)) < SAME_NOISE):
                break
        return at

    def _hardened(self, problem: CollocationProblem, at: _Solved, level: float) -> tuple[_Solved, float]:
        """At lower levels until the curves have as few degrees of freedom as numbers are open, and the last of them."""
        numbers = self.setting.open_numbers
        for lower in (value for value in HARDER if value < level):
            if at.score.used < MORE_THAN_OPEN * numbers:
                break
            harder = self._scored(problem, self._solve(problem, at.solution.w, at.noise, (lower,)), at.noise)
            worse = harder.score.log_density < at.score.log_density - CHANCE
            if worse or harder.score.used < numbers / MORE_THAN_OPEN or harder.solution.status != Status.CONVERGED:
                break
            at, level = harder, lower
        return at, level

    def _scored(self, problem: CollocationProblem, solution: CollocationSolution, noise: np.ndarray) -> _Solved:
        score = left_out_score(self.setting, problem, solution, self.setting.noise_variances(noise))
        return _Solved(solution, noise, score)

    def _solve(
        self, problem: CollocationProblem, start: np.ndarray, noise: np.ndarray, levels: Sequence[float]
    ) -> CollocationSolution:
        """The law solved, its work counted."""
        solution = solve_collocation(problem, start, self.setting.noise_variances(noise), levels)
        rows = len(problem.x_law) * problem.law.n_rows
        self.work += solution.steps * problem.n_weights**2 * (rows + problem.n_weights / 3)
        return solution

    def _variances(self, family: Family, fits: tuple[OutputFit | None, ...], lengthscales: np.ndarray) -> np.ndarray:
        """(T,) most probable variances of the outputs given their lengthscales; with several inputs not below the data's."""
        found = np.maximum(np.var(self.start.values, axis=0), 1e-12)
        least = 1.0 if self._several else 0.0
        return np.array(
            [
                MORE_VARIANCE * found[t]
                if fit is None
                else max(least, MORE_VARIANCE * fit_output(self.setting.one_output(t), family.at, lengthscales[t]).variance)
                for t, fit in enumerate(fits)
            ]
        )

    def _start_weights(self, problem: CollocationProblem, z: np.ndarray, last: Candidate | None) -> np.ndarray:
        """Weights that give about the values of the start, or of the last candidate."""
        points, values = (self.start.z, self.start.values) if last is None else (last.z, last.values)
        wanted = _interpolated(points, values, z)
        w = np.zeros(problem.n_weights)
        for t, (output, part) in enumerate(zip(problem.outputs, problem.slices, strict=False)):
            B = output.at_law[0]
            ridge = 1e-8 * float(np.sum(B**2)) / B.shape[1]
            w[part] = np.linalg.solve(B.T @ B + ridge * np.eye(B.shape[1]), B.T @ wanted[:, t])
        if last is not None:
            w[problem.slices[-1]] = last.solution.w[last.problem.slices[-1]]
        return w


def _released(
    bases: list[ValueBasis], problem: CollocationProblem, w: np.ndarray
) -> tuple[list[ValueBasis], CollocationProblem, np.ndarray]:
    """The same functions under priors of larger variance."""
    factors = np.full(len(bases), RELEASE)
    return [basis.released(RELEASE) for basis in bases], problem.released(factors), problem.shrunk(w, factors)


def _with_volume(
    bases: list[ValueBasis], problem: CollocationProblem, w: np.ndarray, noise: list[np.ndarray], level: float
) -> tuple[list[ValueBasis], CollocationProblem, np.ndarray]:
    """The same with prior variances and constants that count the room which the law leaves to functions."""
    for _ in range(VOLUME_ROUNDS):
        volume = law_volume(problem, w, noise, level)
        factors = np.sqrt(volume.factors)
        bases = [basis.widened(float(factor)) for basis, factor in zip(bases, factors, strict=True)]
        w = problem.shrunk(w, factors)
        problem = replace(problem.released(factors), tilt=volume.slope)
        w = solve_collocation(problem, w, noise, (level,)).w
    return bases, problem, w


def _interpolated(points: np.ndarray, values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """(n, T) values at other places, from those (m, T) at points (m, D)."""
    if points.shape[1] == 1:
        return np.asarray(CubicSpline(points[:, 0], values)(at[:, 0]))
    return np.asarray(RBFInterpolator(points, values, kernel="cubic")(at))
