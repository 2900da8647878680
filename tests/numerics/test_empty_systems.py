"""Matrices without rows, which a law that fixes every output leaves."""

from __future__ import annotations

import numpy as np

from sumgp.numerics.linear_algebra import cholesky, cholesky_inverse, solve_cholesky, solve_lower

NONE = np.zeros((0, 0))


def test_factor_and_inverse_of_nothing() -> None:
    assert cholesky(NONE).shape == (0, 0)
    assert cholesky_inverse(NONE).shape == (0, 0)


def test_solutions_of_nothing() -> None:
    assert solve_cholesky(NONE, np.zeros(0)).shape == (0,)
    assert solve_cholesky(NONE, np.zeros((0, 3))).shape == (0, 3)
    assert solve_lower(NONE, np.zeros((0, 0)), transposed=True).shape == (0, 0)
    assert solve_lower(np.eye(2), np.zeros((2, 0))).shape == (2, 0)
