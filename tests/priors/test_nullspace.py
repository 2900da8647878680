"""The null-space construction against conditioning."""

from __future__ import annotations

import numpy as np
import pytest

from sumgp.numerics.linear_algebra import schur_condition
from sumgp.priors import nullspace_basis

LAWS = [
    np.ones((1, 3)),
    np.array([[1.0, 1.0, 0.0, 0.0]]),
    np.array([[1.0, 2.0, -1.0, 0.5], [0.0, 1.0, 1e-3, 4.0]]),
    np.eye(3)[:2],
]


@pytest.mark.parametrize("F", LAWS, ids=lambda F: str(F.shape))
def test_null_space_covariance_equals_the_conditioned_identity(F: np.ndarray) -> None:
    G = nullspace_basis(F)
    conditioned = schur_condition(np.eye(F.shape[1]), F, np.zeros(len(F)))
    np.testing.assert_allclose(G @ G.T, conditioned.covariance, atol=1e-12)


def test_basis_is_orthonormal_and_unseen_by_the_law() -> None:
    F = np.array([[1.0, 2.0, -1.0, 0.5], [2.0, 4.0, -2.0, 1.0]])
    G = nullspace_basis(F)
    assert G.shape == (4, 3)
    np.testing.assert_allclose(G.T @ G, np.eye(3), atol=1e-14)
    np.testing.assert_allclose(F @ G, 0.0, atol=1e-14)
