"""Conditioning on a law at many points: linear laws in closed form, nonlinear ones against a general optimiser."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import RBF, Matern
from support.law_solves import law_evidence, solve_law

from sumgp import FunctionConstraint, LinearConstraint
from sumgp.laws import Constraint
from sumgp.laws.geometry import UnitFreeLaw
from sumgp.lawsolve.solve import law_evidences, solve_laws, solve_linear_law


def bound(constraint: Constraint) -> UnitFreeLaw:
    law = constraint.bind(("a", "b"), ("x",))
    return UnitFreeLaw(law, np.zeros(2), np.ones(2), np.ones(law.n_rows))


def problem(n: int = 5, kernel: object = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points (n, 1), a mean near the unit circle (n, 2), and covariance (2n, 2n)."""
    x = np.linspace(0.0, 1.0, n)[:, None]
    m = 1.2 * np.column_stack([np.cos(2 * x[:, 0]), np.sin(2 * x[:, 0])]) + 0.05
    P = 0.02 * np.kron((kernel or Matern(0.5, nu=0.5))(x), np.array([[1.0, 0.3], [0.3, 0.7]]))
    return x, m, P


def law_matrix(F: Callable[[float], np.ndarray], x: np.ndarray) -> np.ndarray:
    H = np.zeros((len(x), 2 * len(x)))
    for i in range(len(x)):
        H[i, 2 * i : 2 * i + 2] = F(x[i, 0])
    return H


def circle(f: np.ndarray, x: np.ndarray) -> np.ndarray:
    return f[:, 0] ** 2 + f[:, 1] ** 2 - 1.0


VARYING = LinearConstraint(lambda X: np.column_stack([1.0 + X[:, 0], np.cos(3 * X[:, 0])]), lambda X: X[:, 0])


@pytest.mark.parametrize("kernel", [Matern(0.5, nu=0.5), RBF(0.7)], ids=["rough", "smooth"])
def test_linear_solve_equals_the_conditional_mean(kernel: object) -> None:
    x, m, P = problem(kernel=kernel)
    H = law_matrix(lambda t: np.array([1.0 + t, np.cos(3 * t)]), x)
    expected = m.ravel() + P @ H.T @ np.linalg.solve(H @ P @ H.T, x[:, 0] - H @ m.ravel())
    solution = solve_linear_law(bound(VARYING), x, m, P)
    np.testing.assert_allclose(solution.f.ravel(), expected, atol=1e-9)
    np.testing.assert_allclose((m.ravel() + P @ solution.q.ravel()), solution.f.ravel(), atol=1e-12)
    assert solution.status == "converged"
    misfit = (x[:, 0] - H @ m.ravel()) @ np.linalg.solve(H @ P @ H.T, x[:, 0] - H @ m.ravel())
    assert solution.misfit == pytest.approx(misfit, rel=1e-6)


def test_iterated_solve_of_a_linear_law_comes_within_its_law_sd() -> None:
    """The last level leaves each row 1e-3 of its own sd."""
    x, m, P = problem()
    iterated = solve_law(bound(VARYING), x, m, P)
    exact = solve_linear_law(bound(VARYING), x, m, P)
    sd = np.sqrt(np.diagonal(P)).reshape(m.shape)
    assert np.max(np.abs(iterated.f - exact.f) / sd) < 1e-3 * np.sqrt(exact.misfit) * 3


def test_repeated_and_absent_rows_do_not_matter() -> None:
    x, m, P = problem()
    twice = LinearConstraint(
        lambda X: np.stack([np.tile([1.0, 1.0], (len(X), 1)), np.tile([2.0, 2.0], (len(X), 1))], axis=1),
        lambda X: np.column_stack([X[:, 0], 2.0 * X[:, 0]]),
        where=lambda X: X[:, 0] > 0.1,
    )
    once = LinearConstraint([1.0, 1.0], lambda X: X[:, 0], where=lambda X: X[:, 0] > 0.1)
    a, b = solve_linear_law(bound(once), x, m, P), solve_linear_law(bound(twice), x, m, P)
    np.testing.assert_allclose(a.f, b.f, atol=1e-10)
    assert abs(a.f[0].sum()) > 0.1  # the law does not hold at the first point


def test_a_total_too_rough_for_the_prior_is_named() -> None:
    x, m, P = problem(40, RBF(2.0))
    rough = LinearConstraint([1.0, 1.0], lambda X: np.sign(np.sin(40.0 * X[:, 0])))
    assert solve_linear_law(bound(rough), x, m, P).status.startswith("prior does not fit the law near x = ")


def test_nonlinear_solve_is_the_most_probable_point_on_the_law() -> None:
    """Against a general optimiser over angles: every point of the law is (cos, sin)."""
    x, m, P = problem()
    solution = solve_law(bound(FunctionConstraint(circle)), x, m, P)
    assert solution.status == "converged"
    assert np.max(np.abs(circle(solution.f, x))) < 1e-3
    inverse = np.linalg.inv(P)

    def distance(angles: np.ndarray) -> float:
        d = np.column_stack([np.cos(angles), np.sin(angles)]).ravel() - m.ravel()
        return float(d @ inverse @ d)

    best = minimize(distance, np.arctan2(m[:, 1], m[:, 0]), method="BFGS", options={"gtol": 1e-8})
    assert solution.misfit == pytest.approx(best.fun, rel=2e-3)
    angles = np.arctan2(solution.f[:, 1], solution.f[:, 0])
    np.testing.assert_allclose(angles, best.x, atol=1e-3)


def test_a_warm_start_reaches_the_same_point() -> None:
    x, m, P = problem()
    law = bound(FunctionConstraint(circle))
    cold = solve_law(law, x, m, P)
    warm = solve_law(law, x, m, P, start=cold.f + 0.01)
    np.testing.assert_allclose(warm.f, cold.f, atol=1e-5)


def test_an_impossible_law_says_where() -> None:
    x, m, P = problem()
    impossible = FunctionConstraint(lambda f, x: f[:, 0] ** 2 + f[:, 1] ** 2 + np.where(x[:, 0] > 0.9, 1.0, -1.0))
    solution = solve_law(bound(impossible), x, m, P)
    assert solution.status.startswith("law infeasible near x = [1")
    assert np.all(np.isfinite(solution.f))


def test_law_evidence_of_a_linear_law_is_its_log_density() -> None:
    """log N(S | H m, H P H^T + s^2) = -merit - logdet / 2 less the constant log N(0 | 0, s^2)."""
    x, m, P = problem()
    law_sd = np.linspace(0.05, 0.2, 5)
    value, f = law_evidence(bound(VARYING), x, m, P, law_sd)
    H = law_matrix(lambda t: np.array([1.0 + t, np.cos(3 * t)]), x)
    density = multivariate_normal.logpdf(x[:, 0], H @ m.ravel(), H @ P @ H.T + np.diag(law_sd**2))
    constant = np.sum(-np.log(law_sd) - 0.5 * np.log(2.0 * np.pi))
    assert value == pytest.approx(density - constant, rel=1e-8)
    gain = P @ H.T @ np.linalg.inv(H @ P @ H.T + np.diag(law_sd**2))
    np.testing.assert_allclose(f.ravel(), m.ravel() + gain @ (x[:, 0] - H @ m.ravel()), atol=1e-9)


def test_several_gaussians_are_solved_together_as_each_alone() -> None:
    """Different numbers of steps, one of them shortened: a mean far from the law, and one next to its centre."""
    x, m, P = problem()
    law = bound(FunctionConstraint(circle, jacobian=lambda f, x: 2.0 * f[:, None, :]))
    law_sd = np.full(5, 0.02)
    means = np.stack([m, 0.9 * m, 0.02 * m, 8.0 * m])
    covariances = np.stack([P, 4.0 * P, 30.0 * P, P])
    together = solve_laws(law, x, means, covariances, None, 1e-5)
    values, f = law_evidences(law, x, means, covariances, law_sd, [None, m])
    assert len({solution.steps for solution in together}) > 1
    for b in range(len(means)):
        alone = solve_law(law, x, means[b], covariances[b])
        np.testing.assert_allclose(together[b].f, alone.f, rtol=0, atol=1e-12)
        np.testing.assert_allclose(together[b].w, alone.w, rtol=1e-9)
        assert (together[b].steps, together[b].status) == (alone.steps, alone.status)
        value, at = law_evidence(law, x, means[b], covariances[b], law_sd, [None, m])
        assert values[b] == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(f[b], at, rtol=0, atol=1e-12)
