"""One set of hyperparameters of a fit by collocation, solved."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline

from sumgp.hyperparameters import OutputFit
from sumgp.lawsolve import CollocationProblem, CollocationSolution
from sumgp.numerics import solve_lower
from sumgp.solvers import ValueBasis
from sumgp.strategies.collocation_points import LawPoints, places_between
from sumgp.strategies.collocation_setting import Family, LeftOutScore, Setting

SAME_MEAN, SAME_SD = 0.25, 0.1  # in sds, and as a share: two lengthscales give the same curves and constants


class Candidate(NamedTuple):
    """One set of hyperparameters, solved: score, share, and what a component is made of."""

    family: Family
    fits: tuple[OutputFit | None, ...]  # of each output on its own
    share: float  # of their lengthscales
    score: float
    left_out: LeftOutScore
    determined: bool  # the law leaves only numbers open
    bases: tuple[ValueBasis, ...]
    problem: CollocationProblem
    solution: CollocationSolution
    noise: np.ndarray
    points: LawPoints
    values: np.ndarray  # (n, T) at z

    @property
    def z(self) -> np.ndarray:
        """(n, D) where the law is imposed."""
        return self.points.z

    @property
    def wide(self) -> bool:
        """Whether its functions are made of points around the law's too."""
        return len(self.points.around) > 0

    @property
    def name(self) -> str:
        """How reports call it."""
        return f"{self.family.name} {self.share:.3g}{' wide' if self.wide else ''}"

    def spread(self) -> np.ndarray:
        """(n, T) posterior standard deviations at z."""
        result = np.zeros_like(self.values)
        for t, (output, part) in enumerate(zip(self.problem.outputs, self.problem.slices, strict=False)):
            padded = np.zeros((self.problem.n_weights, len(self.z)))
            padded[part] = output.at_law[0].T
            result[:, t] = np.sqrt(np.sum(solve_lower(self.solution.factor, padded) ** 2, axis=0))
        return result

    def constants(self) -> tuple[np.ndarray, np.ndarray]:
        """(U,) means and standard deviations of the constants, unit-free."""
        where = self.problem.slices[-1]
        padded = np.eye(self.problem.n_weights)[:, where]
        return self.solution.w[where], np.sqrt(np.sum(solve_lower(self.solution.factor, padded) ** 2, axis=0))

    def missed(self, setting: Setting) -> dict[str, float]:
        """Of each law: rms residual of the curves between its points, relative to the rms size of its terms."""
        law = self.problem.law
        middle = setting.collocation(law, self.bases, places_between(self.z), self.problem.unknown)
        f = law.shift + law.scale * middle.values(self.solution.w)[:, : law.law.n_columns]
        residual, terms = law.law.residual(f, middle.x_law), law.law.magnitude(f, middle.x_law)
        size = np.sqrt(np.mean(terms**2, axis=0))
        rms = np.sqrt(np.mean(residual**2, axis=0))
        return {label: float(r / s) for label, r, s in zip(law.law.labels, rms, np.maximum(size, 1e-300), strict=True)}

    def agrees_with(self, coarser: Candidate) -> bool:
        """Whether curves, constants and their standard deviations are the same as those of a longer lengthscale."""
        mean, sd = (CubicSpline(self.z[:, 0], v)(coarser.z[:, 0]) for v in (self.values, self.spread()))
        (own, own_sd), (other, other_sd) = self.constants(), coarser.constants()
        shift = [*np.sqrt(np.mean(((mean - coarser.values) / sd) ** 2, axis=0)), *np.abs((own - other) / own_sd)]
        wider = [*(np.mean(coarser.spread(), axis=0) / np.mean(sd, axis=0)), *(other_sd / own_sd)]
        return bool(np.all(np.array(shift) < SAME_MEAN) and np.all(np.abs(np.log(wider)) < SAME_SD))
