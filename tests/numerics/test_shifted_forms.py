"""Quadratic forms and determinants of a covariance with many shifts, against dense algebra."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from sumgp.numerics.shifted import shifted_forms

X = np.sort(np.random.default_rng(1000).uniform(0.0, 1.0, 300))[:, None]
Y = np.column_stack([np.sin(5.0 * X[:, 0]), np.random.default_rng(1001).standard_normal(300)])


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("kernel", [RBF(0.3), Matern(0.2, nu=0.5)])
def test_they_are_those_of_a_dense_factor(kernel, smooth: bool):
    A, shifts = kernel(X) + 4.0, np.array([1e-4, 1e-2, 1.0])
    squares, logs = shifted_forms(A, Y, shifts, smooth)
    for v, shift in enumerate(shifts):
        C = A + shift * np.eye(len(X))
        assert squares[:, v] == pytest.approx(np.einsum("nt,nt->t", Y, np.linalg.solve(C, Y)), rel=1e-6)
        assert logs[v] == pytest.approx(np.linalg.slogdet(C)[1], rel=1e-8)


def test_shifts_below_round_off_give_numbers():
    """The smallest eigenvalues of a smooth covariance come out below zero: the log of a pivot ended a fit of 365 rows."""
    squares, logs = shifted_forms(RBF(0.3)(X) + 4.0, Y, np.array([1e-13, 1e-12, 1e-6]), False)
    assert np.all(np.isfinite(squares))
    assert np.all(np.isfinite(logs))
