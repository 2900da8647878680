"""The room that a law leaves to functions: slopes and factors against the evidence p(y | law) of a small linear problem."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sumgp import Collocated, ConstrainedGP
from sumgp.lawsolve import CollocationProblem, law_volume, solve_collocation
from sumgp.strategies.collocation_setting import LawPoints, Setting, kernel_families
from sumgp.strategies.problem import FitProblem, Fitted

LEVEL = 0.05


class CaughtError(Exception):
    """Holds what a fit was asked."""


class Kept(Collocated):
    """Stops a fit where it begins."""

    def fit_rows(self, problem: FitProblem) -> Fitted:
        raise CaughtError(problem)

    @staticmethod
    def of(gp: ConstrainedGP, X: np.ndarray, Y: np.ndarray) -> FitProblem:
        with pytest.raises(CaughtError) as caught:
            gp.set_params(strategy=Kept()).fit(X, Y)
        problem: FitProblem = caught.value.args[0]
        return problem


def small_problem() -> tuple[CollocationProblem, list[np.ndarray]]:
    """d(u, t) = k d(u, x, 2) on a grid of 25 points, 12 measurements, k a constant of prior variance 100."""
    generator = np.random.default_rng(0)
    X = generator.uniform(size=(12, 2))
    gp = ConstrainedGP("d(u, t) = k*d(u, x, 2)", outputs=["u"], inputs=["t", "x"], constants={"k": "unknown"})
    problem = Kept.of(gp, X, np.sin(3 * X[:, :1] + 2 * X[:, 1:]))
    assert problem.law is not None
    setting = Setting(problem, problem.law)
    z = np.stack(np.meshgrid(*[np.linspace(a, b, 5) for a, b in zip(setting.x.min(0), setting.x.max(0), strict=True)]), -1)
    family = kernel_families(setting.problem, 2)[0]
    bases = setting.bases(family, np.array([[0.6, 0.6]]), np.ones(1), LawPoints(z.reshape(-1, 2), 1.0, np.zeros((0, 2))))
    law = setting.scaled_law(np.array([0.1]), np.array([0.1]), np.ones(1))
    return setting.collocation(law, bases, z.reshape(-1, 2), np.full(1, 100.0)), [np.full(12, 0.01)]


def minus_log_density(problem: CollocationProblem, constant: float, noise: float) -> float:
    """-log p(y | law, constant) from dense Gaussians over measurements and the law's rows."""
    w = np.zeros(problem.n_weights)
    w[-1] = constant
    A, B = problem.slopes(w)[:, :-1], problem.outputs[0].at_data
    g, y = problem.residual(w).ravel(), problem.outputs[0].y
    rows = np.vstack([B, A])
    C = rows @ rows.T + np.diag([*np.full(len(B), noise), *np.full(len(A), LEVEL**2)])

    def density(C: np.ndarray, values: np.ndarray) -> float:
        return 0.5 * float(values @ np.linalg.solve(C, values) + np.linalg.slogdet(C)[1])

    n = len(B)
    return density(C, np.concatenate([y, -g])) - density(C[n:, n:], -g)


def test_constants_are_tilted_by_the_slope_of_the_evidence() -> None:
    problem, noise = small_problem()
    step = 1e-3

    def merit(constant: float) -> float:
        """The least merit over the weights alone."""
        w = np.zeros(problem.n_weights)
        w[-1] = constant
        A, B = problem.slopes(w)[:, :-1] / LEVEL, problem.outputs[0].at_data / np.sqrt(noise[0])[:, None]
        targets = np.concatenate([-problem.residual(w).ravel() / LEVEL, problem.outputs[0].y / np.sqrt(noise[0])])
        M = np.vstack([A, B, np.eye(A.shape[1])])
        targets = np.concatenate([targets, np.zeros(A.shape[1])])
        best = np.linalg.lstsq(M, targets, rcond=None)[0]
        return 0.5 * float(np.sum((M @ best - targets) ** 2))

    w = np.zeros(problem.n_weights)
    w[-1] = 0.3

    def room(constant: float) -> float:
        return minus_log_density(problem, constant, 0.01) - merit(constant)

    expected = (room(0.3 + step) - room(0.3 - step)) / (2 * step)
    np.testing.assert_allclose(law_volume(problem, w, noise, LEVEL).slope, expected, rtol=1e-4)


def test_repeated_factors_lead_to_the_most_probable_variance() -> None:
    problem, noise = small_problem()
    fixed = replace(problem, unknown=np.full(1, 1e-12))
    for _ in range(200):
        w = solve_collocation(fixed, np.zeros(fixed.n_weights), noise, (LEVEL,)).w
        fixed = fixed.released(np.sqrt(law_volume(fixed, w, noise, LEVEL).factors))
    at = [minus_log_density(fixed.released(np.array([f])), 0.0, 0.01) for f in (0.95, 1.0, 1.05)]
    assert at[1] < min(at[0], at[2])
