"""Roots in brackets: smooth functions, jumps, many at once, arrays and numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

from sumgp.numerics import Bracket, bisected, bracketed_roots


def test_roots_of_many_functions_are_those_found_one_by_one() -> None:
    shift = np.linspace(-2.0, 2.0, 40).reshape(20, 2)
    asked: list[int] = []

    def values(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        asked.append(len(rows))
        return x**3 + x - shift[rows]

    low, high = np.full(shift.shape, -3.0), np.full(shift.shape, 3.0)
    bracket = Bracket(low, high, values(low, np.arange(20)), values(high, np.arange(20)))
    found = bracketed_roots(values, bracket, lambda value, width, rows: np.abs(value) < 1e-12)
    expected = [brentq(lambda x, s=s: x**3 + x - s, -3.0, 3.0, xtol=1e-14) for s in shift.ravel()]
    assert found.ravel() == pytest.approx(expected, abs=1e-12)
    assert len(asked) < 20
    assert asked[-1] < 20  # rows that are done are set aside


def test_a_jump_is_closed_in_on_by_halving() -> None:
    place = np.array([0.1, 0.7, 0.3])

    def values(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.where(x < place[rows], -1.0, 1e-3)

    bracket = Bracket(np.zeros(3), np.ones(3), np.full(3, -1.0), np.full(3, 1e-3))
    found = bracketed_roots(values, bracket, lambda value, width, rows: width < 1e-5)
    assert found == pytest.approx(place, abs=2e-5)


def test_bisection_of_arrays_ends_at_neighbouring_numbers() -> None:
    squares = np.array([2.0, 9.0, 1e-300, 1e300])
    low, high = bisected(lambda x: x * x > squares, np.zeros(4), np.full(4, 1e152), 2200)
    assert np.all((np.nextafter(low, np.inf) == high) | (low == high))
    assert low == pytest.approx(np.sqrt(squares), rel=1e-15)


def test_bisection_of_numbers_stops_where_told() -> None:
    low, high = bisected(lambda x: x > 0.3, 0.0, 1.0, 3)
    assert (float(low), float(high)) == (0.25, 0.375)
