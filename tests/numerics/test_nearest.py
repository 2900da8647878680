"""Nearest points of polyhedra against a general solver, on random, degenerate and empty sets."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from sumgp.numerics import Polyhedra, nearest_points


def polyhedra(m, C, R, Q, rng, inside=True):
    """Random sets that hold a known point, or any sets."""
    E, G = rng.normal(size=(m, R, C)), rng.normal(size=(m, Q, C))
    point = rng.normal(size=(m, C))
    lower = np.where(rng.uniform(size=(m, C)) < 0.7, point - rng.exponential(0.5, (m, C)), -np.inf)
    upper = np.where(rng.uniform(size=(m, C)) < 0.4, point + rng.exponential(0.5, (m, C)), np.inf)
    e = np.einsum("mrc,mc->mr", E, point)
    h = np.einsum("mqc,mc->mq", G, point) + rng.exponential(0.3, (m, Q))
    if not inside:
        e = e + rng.normal(0, 3.0, e.shape)
    return Polyhedra(E, e, lower, upper, G, h)


def by_general_solver(start, sds, sets, i):
    """The same by sequential quadratic programming."""
    rules = [
        {"type": "eq", "fun": lambda f: sets.E[i] @ f - sets.e[i], "jac": lambda f: sets.E[i]},
        {"type": "ineq", "fun": lambda f: sets.h[i] - sets.G[i] @ f, "jac": lambda f: -sets.G[i]},
    ]
    found = minimize(
        lambda f: 0.5 * np.sum(((f - start[i]) / sds) ** 2),
        np.clip(start[i], sets.lower[i], sets.upper[i]),
        jac=lambda f: (f - start[i]) / sds**2,
        bounds=list(zip(sets.lower[i], sets.upper[i], strict=True)),
        constraints=[rule for rule in rules if rule["fun"](start[i]).size],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return found.x


@pytest.mark.parametrize(("C", "R", "Q"), [(3, 1, 0), (5, 1, 0), (4, 0, 2), (5, 2, 2), (8, 1, 3), (1, 0, 0), (6, 3, 0)])
def test_equals_a_general_solver(C, R, Q):
    rng = np.random.default_rng(100 * C + 10 * R + Q)
    m = 40
    sets, sds = polyhedra(m, C, R, Q, rng), rng.uniform(0.3, 2.0, C)
    start = rng.normal(0, 2.0, (m, C))
    found = nearest_points(start, sds, sets)
    assert found.met.all()
    assert np.all(found.points >= sets.lower)
    assert np.all(found.points <= sets.upper)
    assert np.abs(np.einsum("mrc,mc->mr", sets.E, found.points) - sets.e).max(initial=0.0) < 1e-12
    # A sum of C terms, added in another order, differs by at most C units in the last place of its terms. A point is a
    # correction of its start, which may be larger than itself and is rounded too.
    terms = np.abs(found.points) + np.abs(start)
    round_off = C * np.finfo(float).eps * np.einsum("mqc,mc->mq", np.abs(sets.G), terms)
    assert np.all(np.einsum("mqc,mc->mq", sets.G, found.points) <= sets.h + round_off)
    distance = np.sqrt(np.sum(((found.points - start) / sds) ** 2, axis=1))
    for i in range(m):
        other = by_general_solver(start, sds, sets, i)
        # The general solver may stop early, but never nearer than the nearest point.
        assert distance[i] <= np.sqrt(np.sum(((other - start[i]) / sds) ** 2)) + 1e-6
        assert np.abs(found.points[i] - other).max() < 1e-3


def test_points_of_the_set_stay_where_they_are():
    rng = np.random.default_rng(1)
    sets = polyhedra(50, 4, 0, 2, rng)
    inside = nearest_points(rng.normal(size=(50, 4)), np.ones(4), sets).points
    again = nearest_points(inside, np.ones(4), sets).points
    assert np.abs(again - inside).max() < 1e-14


def test_shares_that_sum_to_one():
    rng = np.random.default_rng(2)
    m, C = 2000, 8
    start = rng.normal(1 / C, 0.3, (m, C))
    start += (1.0 - start.sum(axis=1, keepdims=True)) / C
    nothing = np.zeros((m, 0, C)), np.zeros((m, 0))
    sets = Polyhedra(np.ones((m, 1, C)), np.ones((m, 1)), np.zeros((m, C)), np.full((m, C), np.inf), *nothing)
    found = nearest_points(start, np.ones(C), sets)
    assert found.met.all()
    assert found.points.min() == 0.0
    assert np.abs(found.points.sum(axis=1) - 1.0).max() < 1e-15 * C
    # The projection onto the simplex is max(start - w, 0) with one w for all parts.
    w = np.where(found.points > 0, start - found.points, np.nan)
    assert np.nanmax(np.nanmax(w, axis=1) - np.nanmin(w, axis=1)) < 1e-12


def test_columns_without_spread_stay():
    sets = Polyhedra(
        np.ones((1, 1, 3)), np.ones((1, 1)), np.zeros((1, 3)), np.ones((1, 3)), np.zeros((1, 0, 3)), np.zeros((1, 0))
    )
    found = nearest_points(np.array([[0.25, -0.5, 2.0]]), np.array([0.0, 1.0, 1.0]), sets)
    assert found.met.all()
    assert found.points[0, 0] == 0.25
    assert np.allclose(found.points, [[0.25, 0.0, 0.75]], atol=1e-15)


def test_degenerate_sets():
    """A set of one point, rows that repeat each other, rows of zeros, bounds that meet."""
    C = 3
    E = np.array([[[1.0, 1.0, 1.0], [2.0, 2.0, 2.0], [0.0, 0.0, 0.0]]])
    e = np.array([[0.0, 0.0, 0.0]])
    none = np.zeros((1, 0, C)), np.zeros((1, 0))
    corner = Polyhedra(E, e, np.zeros((1, C)), np.full((1, C), np.inf), *none)
    found = nearest_points(np.array([[1.0, -2.0, 5.0]]), np.ones(C), corner)
    assert found.met.all()
    assert np.abs(found.points).max() < 1e-15
    G, h = np.array([[[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [-1.0, -1.0, 0.0]]]), np.array([[1.0, 1.0, -1.0]])
    thin = Polyhedra(np.zeros((1, 0, C)), np.zeros((1, 0)), np.full((1, C), -np.inf), np.full((1, C), np.inf), G, h)
    found = nearest_points(np.array([[3.0, 0.0, 7.0]]), np.ones(C), thin)
    assert found.met.all()
    assert np.allclose(found.points, [[2.0, -1.0, 7.0]], atol=1e-12)


@pytest.mark.parametrize(("R", "Q"), [(1, 0), (2, 1), (0, 3)])
def test_empty_sets_are_told_from_others(R, Q):
    rng = np.random.default_rng(7 + R)
    m, C = 60, 4
    sets = polyhedra(m, C, R, Q, rng, inside=False)
    if not R:
        sets = sets._replace(h=sets.h - rng.exponential(3.0, sets.h.shape))
    found = nearest_points(rng.normal(size=(m, C)), np.ones(C), sets)
    for i in range(m):
        programme = linprog(
            np.zeros(C),
            A_ub=sets.G[i] if Q else None,
            b_ub=sets.h[i] if Q else None,
            A_eq=sets.E[i] if R else None,
            b_eq=sets.e[i] if R else None,
            bounds=list(zip(sets.lower[i], sets.upper[i], strict=True)),
        )
        assert found.met[i] == (programme.status == 0)
    assert 0 < found.met.sum() < m
