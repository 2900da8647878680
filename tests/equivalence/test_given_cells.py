"""Rows given their own cells: by hand, as one large normal distribution, and as a refit with the cells among the data."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from equivalence.held import HeldProblem
from equivalence.test_joint_and_short_cut import ROUGH, data
from equivalence.test_leave_one_out import CASES, THETA

from sumgp import ConstrainedGP
from sumgp.laws import Imbalance, LinearConstraint
from sumgp.prediction.row_balance import Balance, balanced
from sumgp.prediction.row_cells import Rows, given_cells
from sumgp.strategies.problem import FitProblem


@pytest.mark.parametrize("name", CASES)
def test_new_cells_equal_a_fit_that_has_them(name: str) -> None:
    law, strategy = CASES[name]
    x, Y = data(0.2)
    cells = np.array([0.3, np.nan, 0.9])
    Y[4] = cells
    gp = ConstrainedGP(law, kernel=ROUGH, noise=[0.05, 0.1, 0.2], uncertainty="plug-in", restarts=0)
    whole, _ = gp._problem(x, Y, lambda stage: None)
    problem = HeldProblem(**{f.name: getattr(whole, f.name) for f in fields(FitProblem)}, theta=THETA)
    emptied = np.where(np.arange(len(Y))[:, None] == 4, np.nan, Y)
    without = strategy.fit(replace(problem, data=replace(problem.data, y=emptied)))
    with_them = strategy.fit(problem)
    place = slice(4, 5)
    unit_free = problem.scaling.outputs(cells[None])
    new = Rows(problem.x[place], problem.data.x[place], unit_free, np.zeros((1, 3), dtype=bool))
    old = new._replace(used=~np.isnan(cells)[None])
    a, b = given_cells(without, new), given_cells(with_them, old)
    assert a.f == pytest.approx(b.f, abs=1e-9)
    assert a.f_covariance == pytest.approx(b.f_covariance, abs=1e-9)
    assert a.y == pytest.approx(b.y, abs=1e-9)
    assert a.y_covariance == pytest.approx(b.y_covariance, abs=1e-9)
    mean, covariance = with_them.components[0].marginals(problem.x[place], problem.data.x[place])
    assert b.f == pytest.approx(mean, abs=1e-12)
    assert a.y_covariance[0, 1, 1] == pytest.approx(covariance[0, 1, 1] + problem.noise.known[4, 1], abs=1e-9)


def sum_of(law: LinearConstraint, T: int, sd: float) -> Balance:
    """A sum law over unit-free outputs whose complete rows miss it by ``sd`` (in units of the law's slope)."""
    from sumgp.data import Scaling

    bound = law.bind([f"y{t}" for t in range(T)], ["x"])
    scaling = Scaling(np.zeros(1), np.ones(1), np.zeros(T), np.ones(T))
    R = bound.n_rows
    seen = Imbalance(np.zeros(R), np.full(R, sd), np.full(R, 10**9), np.ones(R, dtype=bool))
    return Balance(bound, scaling, seen, np.zeros(0), np.zeros(0))


def test_two_outputs_by_hand() -> None:
    """y1 = 3 measured, y2 = N(5, 4), y1 + y2 = 10 +- 0.5, where independent noise of variance 1 would give +- sqrt(2)."""
    balance = sum_of(LinearConstraint([1.0, 1.0], 10.0), 2, 0.5 / np.sqrt(2.0))
    found = balanced(balance, np.array([[3.0, 5.0]]), np.diag([0.0, 1.9])[None], np.ones((1, 2)), np.zeros((1, 1)))
    # Precisions in y2: 1 / 1.9 at 5, what independent noise says of the sum, 1 / 2 at 7, taken back, 1 / .25 at 7 put in.
    precision = 1.0 / 1.9 - 1.0 / 2.0 + 4.0
    assert found.covariance[0, 1, 1] == pytest.approx(1.0 / precision, rel=1e-6)
    assert found.y[0, 1] == pytest.approx((5.0 / 1.9 - 7.0 / 2.0 + 7.0 * 4.0) / precision, rel=1e-6)
    assert found.y[0, 0] == 3.0
    assert found.determined.tolist() == [[False, True]]


def test_two_laws_for_one_missing_cell_count_by_what_was_seen_of_them() -> None:
    """y1 = 3 measured: y2 is 7 by a law that rows meet, and 9 by one that they miss by 0.5."""
    balance = sum_of(LinearConstraint([[1.0, 1.0], [1.0, 1.0]], [10.0, 12.0]), 2, 0.0)
    balance = replace(balance, seen=replace(balance.seen, sd=np.array([0.0, 0.5])))
    found = balanced(balance, np.array([[3.0, 5.0]]), np.diag([0.0, 1.9])[None], np.ones((1, 2)), np.zeros((1, 1)))
    assert found.y[0, 1] == pytest.approx(7.0, abs=1e-9)
    assert found.covariance[0, 1, 1] < 1e-20


def test_two_laws_equal_the_dense_normal_distribution(rng: np.random.Generator) -> None:
    """Closed rows: f ~ N(m, V) on the law, independent noise given that it obeys the law too; two laws, two gaps left."""
    F, S, T = np.array([[1.0, 1.0, 1.0, 0, 0], [0, 0, 1.0, -2.0, 1.0]]), np.array([2.0, 0.5]), 5
    N = np.linalg.svd(F)[2][2:].T
    B = N @ rng.standard_normal((3, 3))
    V, R = B @ B.T, np.diag([0.3, 0.5, 0.2, 0.4, 0.6])
    m = np.linalg.lstsq(F, S, rcond=None)[0] + N @ rng.standard_normal(3)
    P = V + R
    onto = P @ F.T @ np.linalg.inv(F @ P @ F.T)
    mean, closed = m + onto @ (S - F @ m), P - onto @ F @ P
    y = mean + np.linalg.cholesky(N.T @ closed @ N)[0] @ np.ones(3) * N.sum(axis=1)
    y = y + np.linalg.lstsq(F, S - F @ y, rcond=None)[0]
    seen, gaps = [0, 4], [1, 2, 3]
    gain = closed[np.ix_(gaps, seen)] @ np.linalg.inv(closed[np.ix_(seen, seen)])
    expected = mean[gaps] + gain @ (y[seen] - mean[seen])
    spread = closed[np.ix_(gaps, gaps)] - gain @ closed[np.ix_(seen, gaps)]
    # The row given its cells as independent noise has it, then the law.
    P_seen = P[np.ix_(seen, seen)]
    cross = P[:, seen] @ np.linalg.inv(P_seen)
    start, left = m + cross @ (y[seen] - m[seen]), P - cross @ P[seen]
    start[seen], left[seen], left[:, seen] = y[seen], 0.0, 0.0
    balance = sum_of(LinearConstraint(F, S), T, 0.0)
    found = balanced(balance, start[None], left[None], np.diag(R)[None], np.zeros((1, 1)))
    assert found.y[0, gaps] == pytest.approx(expected, abs=1e-8)
    assert found.covariance[0][np.ix_(gaps, gaps)] == pytest.approx(spread, abs=1e-8)
    assert not found.determined.any()


def test_a_rounded_law_beside_an_exact_one_in_a_row_without_cells() -> None:
    """The first law is met within 0.2, far better than noise explains, the second to the last digit: by hand."""
    F, sd = np.array([[1.0, 1.0, 1.0, 0.0], [-1.0, 1.0, 0.0, 1.0]]), np.array([0.2, 5e-16])
    Q, y = np.diag([1.06, 1.16, 1.36, 0.86]) - 0.1, np.array([0.3, -0.2, 0.5, 0.1])
    J = F / np.linalg.norm(F, axis=1)[:, None]
    gain = Q @ J.T @ np.linalg.inv(J @ Q @ J.T)
    # The fit says less of the imbalance than noise alone: all that is known of it is what was seen.
    after = np.diag(sd**2)
    imbalance = after @ np.linalg.solve(J @ Q @ J.T, J @ y)
    balance = sum_of(LinearConstraint(F, [0.0, 0.0]), 4, 0.0)
    balance = replace(balance, seen=replace(balance.seen, sd=sd))
    found = balanced(balance, y[None], Q[None], np.full((1, 4), 0.16), np.zeros((1, 1)))
    assert found.y[0] == pytest.approx(y + gain @ (imbalance - J @ y), abs=1e-9)
    assert found.covariance[0] == pytest.approx(Q + gain @ (after - J @ Q @ J.T) @ gain.T, abs=1e-9)
