"""Following a law from known points outwards: exact for linear laws, and through turning points where others turn back."""

from __future__ import annotations

import numpy as np
from lawsolve.test_solve import VARYING, bound, law_matrix, problem
from sklearn.gaussian_process.kernels import RBF
from support.law_solves import law_evidence

from sumgp import FunctionConstraint
from sumgp.lawsolve.follow import follow_law


def test_a_linear_law_followed_point_by_point_is_the_law_conditioned_on_at_once() -> None:
    x, m, P = problem(n=7)
    variances = np.full(7, 1e-3)
    H = law_matrix(lambda t: np.array([1.0 + t, np.cos(3 * t)]), x)
    expected = m.ravel() + P @ H.T @ np.linalg.solve(H @ P @ H.T + np.diag(variances), x[:, 0] - H @ m.ravel())
    np.testing.assert_allclose(follow_law(bound(VARYING), x, m, P, variances).ravel(), expected, atol=1e-10)


def crossing() -> tuple[object, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """sin b = sin(b0(x)) with b0 a straight line through pi/2, a posterior that knows b on the left third only."""
    x = np.linspace(0.0, 1.0, 31)[:, None]
    line = 0.6 + 2.2 * x[:, 0]
    law = bound(FunctionConstraint(lambda f, X: np.sin(f[:, 1]) - np.sin(0.6 + 2.2 * X[:, 0])))
    K = RBF(0.5)(x)
    known = x[:, 0] < 0.35
    gain = np.linalg.solve(K[np.ix_(known, known)] + 1e-4 * np.eye(known.sum()), K[known]).T
    b = 0.6 + gain @ (line[known] - 0.6)  # back to 0.6 on the right, below pi/2
    m = np.column_stack([np.zeros(31), b])
    P = np.kron(K - gain @ K[known], np.diag([0.0, 1.0])) + 1e-10 * np.eye(62)
    return law, x, m, P, line


def test_the_followed_branch_passes_the_turning_point_and_fits_better() -> None:
    law, x, m, P, line = crossing()
    sd = np.full(31, 0.05)
    nearest, turned_back = law_evidence(law, x, m, P, sd)
    followed = follow_law(law, x, m, P, sd**2)
    assert turned_back[-1, 1] < np.pi / 2 < followed[-1, 1]
    np.testing.assert_allclose(followed[:, 1], line, atol=0.2)
    best, f = law_evidence(law, x, m, P, sd, [None, followed])
    assert best > nearest + 1.0
    np.testing.assert_allclose(f[:, 1], line, atol=0.1)


def test_a_law_without_a_number_gives_the_mean_back() -> None:
    x, m, P = problem()
    nowhere = bound(FunctionConstraint(lambda f, X: np.where(f[:, 0] > -9.0, np.nan, f[:, 0])))
    np.testing.assert_array_equal(follow_law(nowhere, x, m, P, np.ones(5)), m)
