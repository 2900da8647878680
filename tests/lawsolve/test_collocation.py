"""Laws with derivatives at points: the weights give what conditioning a Gaussian on a linear law gives."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from sumgp import parse_constraint
from sumgp.laws import UnitFreeLaw
from sumgp.lawsolve import CollocationProblem, OutputWeights, data_weights, solve_collocation
from sumgp.priors import derivative_gram
from sumgp.solvers import MEAN_VARIANCE, ValueBasis

KERNEL, VARIANCE, NOISE, LEVEL = RBF(0.5), 1.3, 0.04, 0.05
X = np.array([[0.1], [0.6], [1.0], [1.7]])
Y = np.array([1.0, 0.7, 0.2, 0.25])
Z = np.linspace(0.0, 2.0, 13)[:, None]


def decay(text: str, constants: dict[str, str] | None = None) -> CollocationProblem:
    law = parse_constraint(text, ["u"], ["t"], constants)
    free = UnitFreeLaw(law, np.zeros(law.n_columns), np.ones(law.n_columns), np.ones(1))
    basis = ValueBasis.over(KERNEL, VARIANCE, np.linspace(-0.2, 2.2, 49)[:, None])
    output = OutputWeights((0, 1), tuple(basis.at(Z, [(0,), (1,)])), basis.at(X, [(0,)])[0], Y)
    return CollocationProblem(free, Z, (output,), np.full(len(law.unknowns), 4.0))


def test_a_linear_law_is_conditioned_on() -> None:
    """u' + 2 u = 0 with sd LEVEL at Z, y with noise: one Gaussian, by the kernel's own covariances."""
    problem = decay("d(u, t) = -2*u")
    solution = solve_collocation(problem, np.zeros(problem.n_weights), [np.full(4, NOISE)], [1.0, LEVEL])

    def covariance(first: tuple[np.ndarray, bool], second: tuple[np.ndarray, bool]) -> np.ndarray:
        total = 0.0
        for a, wa in ((0, 1.0),) if not first[1] else ((0, 2.0), (1, 1.0)):
            for b, wb in ((0, 1.0),) if not second[1] else ((0, 2.0), (1, 1.0)):
                part = derivative_gram(KERNEL, first[0], (a,), second[0], (b,))
                total = total + wa * wb * VARIANCE * (part + (MEAN_VARIANCE if a == b == 0 else 0.0))
        return total

    seen = [(X, False), (Z, True)]
    C = np.block([[covariance(a, b) for b in seen] for a in seen])
    C += np.diag([NOISE] * len(X) + [LEVEL**2] * len(Z))
    right = np.concatenate([Y, np.zeros(len(Z))])
    k = np.hstack([covariance((Z, False), b) for b in seen])
    mean = k @ np.linalg.solve(C, right)
    variance = np.diagonal(covariance((Z, False), (Z, False)) - k @ np.linalg.solve(C, k.T))
    found = problem.outputs[0].at_law[0]
    np.testing.assert_allclose(found @ solution.w, mean, atol=1e-4)
    sd = np.sqrt(np.sum(np.linalg.solve(solution.factor, found.T) ** 2, axis=0))
    np.testing.assert_allclose(sd, np.sqrt(variance), rtol=1e-2)
    assert solution.status == "converged"


def test_slopes_are_derivatives_of_the_residual() -> None:
    problem = decay("d(u, t) = -k*u*u + sin(u)", {"k": "unknown"})
    w = 0.3 * np.random.default_rng(0).standard_normal(problem.n_weights)
    A, step = problem.slopes(w), 1e-6
    for i in (0, problem.n_weights - 5, problem.n_weights - 1):
        ahead, behind = w.copy(), w.copy()
        ahead[i] += step
        behind[i] -= step
        numerical = (problem.residual(ahead) - problem.residual(behind)).ravel() / (2 * step)
        np.testing.assert_allclose(A[:, i], numerical, atol=1e-8 * np.abs(A).max())


def test_without_steps_the_data_alone_count() -> None:
    problem = decay("d(u, t) = -k*u", {"k": "unknown"})
    alone = data_weights(problem, [np.full(4, NOISE)])
    features = problem.outputs[0].at_data
    K = features @ features.T
    np.testing.assert_allclose(features @ alone.w[:-1], K @ np.linalg.solve(K + NOISE * np.eye(4), Y), atol=1e-8)
    assert alone.w[-1] == 0.0


def test_an_exhausted_search_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sumgp.lawsolve.collocation.LAST_STEPS", 1)
    problem = decay("d(u, t) = -k*u*u", {"k": "unknown"})
    solution = solve_collocation(problem, np.ones(problem.n_weights), [np.full(4, NOISE)], [0.01])
    assert solution.status == "step limit"
