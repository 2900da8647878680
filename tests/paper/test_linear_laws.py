"""What the paper prints about linear laws: the constrained task covariance, the two algorithms, appendix E."""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from sumgp.numerics.linear_algebra import schur_condition, symmetric_root
from sumgp.priors import nullspace_basis

UNCONSTRAINED = np.array([[1.0, 0.0, 0.5, 0.0], [0.0, 1.0, 0.0, 0.0], [0.5, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
PRINTED = np.array([[0.5, -0.5, 0.25, 0.0], [-0.5, 0.5, -0.25, 0.0], [0.25, -0.25, 0.875, 0.0], [0.0, 0.0, 0.0, 1.0]])
F = np.array([[1.0, 1.0, 0.0, 0.0]])


def test_printed_task_covariance() -> None:
    """Appendix E: 0.5 between tasks 1 and 3, the first two constrained; the third keeps its correlation, halved."""
    np.testing.assert_allclose(schur_condition(UNCONSTRAINED, F, np.zeros(1)).covariance, PRINTED, atol=1e-15)


def test_printed_covariance_by_drawing_and_selecting() -> None:
    """A second way: draws moved along Cov(f, F f) until they obey the law have the printed covariance."""
    draws = np.random.default_rng(0).standard_normal((200000, 4)) @ symmetric_root(UNCONSTRAINED).T
    slope = UNCONSTRAINED @ F.T / (F @ UNCONSTRAINED @ F.T)
    moved = draws - (draws @ F.T) @ slope.T
    np.testing.assert_allclose(np.cov(moved.T), PRINTED, atol=0.01)


def test_null_space_covariance_cannot_hold_that_correlation() -> None:
    """Appendix E: with M the identity, tasks 1 and 3 stay uncorrelated."""
    G = nullspace_basis(F)
    covariance = G @ G.T
    assert abs(covariance[0, 2]) < 1e-15
    np.testing.assert_allclose(covariance[:2, :2], PRINTED[:2, :2], atol=1e-15)


def test_conditioning_the_joint_factorises() -> None:
    """Appendix B.6: conditioning K (x) Sigma on F f = S at every point is K (x) Sigma', with mean D^T S(x)."""
    x = np.linspace(0.0, 3.0, 5)[:, None]
    K = RBF(0.5)(x)
    S = np.sin(x)
    H = np.kron(np.eye(5), F)
    joint = np.kron(K, UNCONSTRAINED)
    gain = joint @ H.T @ np.linalg.inv(H @ joint @ H.T)
    short = schur_condition(UNCONSTRAINED, F, np.zeros(1))
    np.testing.assert_allclose(joint - gain @ H @ joint, np.kron(K, short.covariance), atol=1e-10)
    np.testing.assert_allclose((gain @ S.ravel()).reshape(5, 4), S @ short.D, atol=1e-10)


def test_the_transposed_formula_of_the_main_text_is_a_slip() -> None:
    """A^T Sigma A is not the constrained covariance, A Sigma A^T is."""
    result = schur_condition(UNCONSTRAINED, F, np.zeros(1))
    np.testing.assert_allclose(result.A @ UNCONSTRAINED @ result.A.T, PRINTED, atol=1e-15)
    assert np.max(np.abs(result.A.T @ UNCONSTRAINED @ result.A - PRINTED)) > 0.1
