"""Rows and blocks left out in closed form equal refits without them, at held hyperparameters."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
import pytest
from equivalence.held import HeldProblem, fit_held
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import Matern

from sumgp import Conditioned, ConstrainedGP, LinearConstraint, Unconstrained
from sumgp.report.scores import leave_one_out
from sumgp.strategies.left_out import (
    Known,
    LeftOut,
    RowNoise,
    TrainingRows,
    block_covariances,
    component_left_out,
    known_rows,
    left_out,
    mixed,
)
from sumgp.strategies.problem import FitProblem
from sumgp.strategies.weight_component import Component

N, T, TOTAL = 14, 3, 2.0
LENGTH_AND_TASKS = np.array([0.2, 0.1, -0.1, 0.3, 0.4, -0.5, 0.2])
LOG_NOISE = np.log([0.1, 0.2, 0.3])
BLOCKS = [np.array([0, 1, 2]), np.array([5, 9]), np.arange(8, 13)]


@dataclass(frozen=True)
class Case:
    """A law, and how the data and their noise look."""

    law: bool = False
    noise: str = "per-output"  # or "own": one for each measurement; or "closed": noise obeys the law
    missing: float = 0.0

    @property
    def known(self) -> np.ndarray:
        """(N, T) standard deviations between 0.05 and 0.8."""
        return np.exp(np.random.default_rng(5).uniform(np.log(0.05), np.log(0.8), (N, T)))

    def data(self) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(3)
        x = np.sort(rng.uniform(0.0, 5.0, N))
        truth = np.column_stack([np.sin(x), np.cos(x), TOTAL - np.sin(x) - np.cos(x)])
        spread = self.known if self.noise == "own" else np.full((N, T), 0.1)
        errors = spread * rng.standard_normal((N, T))
        if self.noise == "closed":
            errors -= errors.mean(axis=1, keepdims=True)
        y = truth + errors
        y[rng.uniform(size=y.shape) < self.missing] = np.nan
        return x, y

    def estimator(self) -> ConstrainedGP:
        law = LinearConstraint([1.0, 1.0, 1.0], TOTAL) if self.law else None
        noise = self.known if self.noise == "own" else "per-output"
        strategy = Conditioned() if self.law else Unconstrained()
        return ConstrainedGP(law, kernel=Matern(nu=1.5), noise=noise, strategy=strategy, uncertainty="plug-in")

    @property
    def theta(self) -> np.ndarray:
        """Hyperparameters at which they are held."""
        return LENGTH_AND_TASKS if self.noise == "own" else np.concatenate([LENGTH_AND_TASKS, LOG_NOISE])


CASES = {
    "no law": Case(),
    "own noise": Case(noise="own", missing=0.2),
    "law, own noise": Case(law=True, noise="own"),
    "closed": Case(law=True, noise="closed"),
    "closed, gaps": Case(law=True, noise="closed", missing=0.15),
}


class Refits:
    """The same problem conditioned anew without some rows: these stay with nothing measured, so that units are kept."""

    def __init__(self, case: Case, theta: np.ndarray) -> None:
        self.gp = case.estimator()
        whole, _ = self.gp._problem(*case.data(), lambda stage: None)
        self.problem = HeldProblem(**{f.name: getattr(whole, f.name) for f in fields(FitProblem)}, theta=theta)
        known = self.problem.noise.known
        self.variances = np.broadcast_to(np.exp(2.0 * theta[-T:]) + 1e-12 if known is None else known, (N, T))
        self.F = None
        if case.noise == "closed":
            scaled = self.problem.scaling.y_scale[None, :]
            self.F = scaled / np.linalg.norm(scaled)

    def without(self, rows: np.ndarray) -> Component:
        y = self.problem.data.y.copy()
        y[rows] = np.nan
        return self.gp.strategy.fit(replace(self.problem, data=replace(self.problem.data, y=y))).components[0]

    def left_out(self, blocks: list[np.ndarray], widening: float) -> LeftOut:
        """By one refit for each block."""
        y, x, x_law = self.problem.y, self.problem.x, self.problem.data.x
        found = LeftOut(np.full((N, T), np.nan), np.full((N, T), np.nan), np.zeros(len(blocks)))
        for b, rows in enumerate(blocks):
            component = self.without(rows)
            mean, _ = component.marginals(x[rows], x_law[rows])
            V = component.joint_covariance(x[rows], x_law[rows])
            R = np.zeros_like(V)
            for i, row in enumerate(rows):
                own = np.diag(self.variances[row])
                if self.F is not None:
                    inside = np.eye(T) - self.F.T @ self.F
                    own = inside @ own @ inside
                R[i * T : (i + 1) * T, i * T : (i + 1) * T] = own
            residual, seen = (y[rows] - mean).ravel(), ~np.isnan(y[rows]).ravel()
            predicted = widening**2 * V + R
            values, vectors = np.linalg.eigh(R[np.ix_(seen, seen)])
            U = vectors[:, values > 1e-9 * values[-1]]
            found.log_density[b] = multivariate_normal.logpdf(
                U.T @ residual[seen], cov=U.T @ predicted[np.ix_(seen, seen)] @ U
            )
            found.residual[rows] = residual.reshape(-1, T)
            found.variance[rows] = np.where(seen, np.diagonal(predicted), np.nan).reshape(-1, T)
        return found

    def closed_form(self, blocks: list[np.ndarray] | None, widening: float) -> LeftOut:
        component = self.without(np.zeros(0, dtype=int)).widened(widening)
        rows = TrainingRows(self.problem.x, self.problem.data.x, self.problem.y)
        noise = RowNoise(self.variances, self.F)
        if blocks is None:
            return component_left_out(component, rows, noise, widening)
        known = Known(known_rows(component, rows).mean, block_covariances(component, rows, blocks))
        return left_out(rows.y, known, noise, blocks, widening)


def assert_same(found: LeftOut, expected: LeftOut) -> None:
    np.testing.assert_allclose(found.residual, expected.residual, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.variance, expected.variance, rtol=1e-5)
    np.testing.assert_allclose(found.log_density, expected.log_density, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("widening", [1.0, 1.3])
@pytest.mark.parametrize("name", CASES)
def test_rows(name: str, widening: float) -> None:
    refits = Refits(CASES[name], CASES[name].theta)
    expected = refits.left_out([np.array([i]) for i in range(N)], widening)
    assert_same(refits.closed_form(None, widening), expected)


@pytest.mark.parametrize("widening", [1.0, 1.3])
@pytest.mark.parametrize("name", CASES)
def test_blocks(name: str, widening: float) -> None:
    refits = Refits(CASES[name], CASES[name].theta)
    for rows in BLOCKS:  # blocks overlap: one at a time, since a row has one residual
        assert_same(refits.closed_form([rows], widening), refits.left_out([rows], widening))


def test_mixture_of_two() -> None:
    case, weights = CASES["own noise"], np.array([0.3, 0.7])
    both = [Refits(case, theta) for theta in (case.theta, case.theta + 0.3)]
    rows = [np.array([i]) for i in range(N)]
    found = mixed([r.closed_form(None, 1.0) for r in both], weights)
    refitted = [r.left_out(rows, 1.0) for r in both]
    first, second = refitted
    mean = 0.3 * first.residual + 0.7 * second.residual
    within = 0.3 * first.variance + 0.7 * second.variance
    between = 0.3 * 0.7 * (first.residual - second.residual) ** 2
    density = np.log(0.3 * np.exp(first.log_density) + 0.7 * np.exp(second.log_density))
    assert_same(found, LeftOut(mean, within + between, density))


@pytest.mark.parametrize("name", CASES)
def test_the_report_says_what_refits_say(name: str) -> None:
    """Each row counts with its own noise, and closed data with noise that obeys the law."""
    case = CASES[name]
    refits = Refits(case, case.theta)
    expected = refits.left_out([np.array([i]) for i in range(N)], 1.0)
    model = fit_held(case.estimator(), *case.data(), theta=case.theta)
    standardised = leave_one_out(model).standardised
    np.testing.assert_allclose(standardised, expected.residual / np.sqrt(expected.variance), rtol=1e-5, atol=1e-5)
