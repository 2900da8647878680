"""Factors, Schur conditioning and the matrix exponential, each against NumPy or SciPy, and their derivatives."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from equivalence.small_problems import differences
from hypothesis import given, settings
from hypothesis import strategies as st

from sumgp.errors import NumericalError
from sumgp.numerics.linear_algebra import (
    cholesky,
    cholesky_inverse,
    pivoted_cholesky,
    schur_condition,
    solve_cholesky,
    solve_lower,
    symmetric_root,
    triangular_inverse,
)
from sumgp.priors.tasks import symmetric_exponential


def positive_definite(size: int, seed: int = 0) -> np.ndarray:
    B = np.random.default_rng(seed).standard_normal((size, size))
    return B @ B.T + 0.1 * np.eye(size)


@settings(max_examples=30)
@given(size=st.integers(1, 12), seed=st.integers(0, 1000))
def test_factor_inverse_and_solves_agree_with_numpy(size: int, seed: int) -> None:
    M = positive_definite(size, seed)
    right = np.random.default_rng(seed).standard_normal((size, 2))
    L = cholesky(M)
    np.testing.assert_allclose(L, np.linalg.cholesky(M), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(cholesky_inverse(L), np.linalg.inv(M), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(solve_cholesky(L, right), np.linalg.solve(M, right), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(L @ solve_lower(L, right), right, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(L.T @ solve_lower(L, right, transposed=True), right, rtol=1e-9, atol=1e-9)


def test_cholesky_leaves_the_matrix_alone() -> None:
    M = positive_definite(4)
    before = M.copy()
    cholesky(M)
    np.testing.assert_array_equal(M, before)


def test_cholesky_of_a_singular_matrix_uses_a_tiny_jitter() -> None:
    ones = np.ones((5, 5))
    L = cholesky(ones)
    assert np.max(np.abs(L @ L.T - ones)) < 1e-9


def test_cholesky_of_an_indefinite_matrix_names_the_matrix_and_remedies() -> None:
    with pytest.raises(NumericalError, match=r"test matrix of size 2 is not positive definite.*noise"):
        cholesky(np.diag([1.0, -1.0]), "test")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_cholesky_of_nan_says_so(bad: float) -> None:
    with pytest.raises(NumericalError, match="NaN or infinity"):
        cholesky(np.diag([1.0, bad]))


@settings(max_examples=30)
@given(size=st.integers(2, 10), rank=st.integers(1, 5), seed=st.integers(0, 1000))
def test_pivoted_cholesky_reproduces_a_low_rank_matrix(size: int, rank: int, seed: int) -> None:
    B = np.random.default_rng(seed).standard_normal((size, min(rank, size)))
    M = B @ B.T
    pivots, R = pivoted_cholesky(M)
    assert R.shape[1] <= min(rank, size)
    np.testing.assert_allclose(R @ R.T, M, atol=1e-10 * np.max(M))
    np.testing.assert_allclose(R[pivots], np.tril(R[pivots]))


@pytest.mark.parametrize("M", [np.zeros((2, 2)), np.full((2, 2), np.nan)])
def test_pivoted_cholesky_refuses_what_has_no_variance(M: np.ndarray) -> None:
    with pytest.raises(NumericalError, match="no positive variance"):
        pivoted_cholesky(M)


@settings(max_examples=30)
@given(size=st.integers(1, 8), rank=st.integers(0, 8), seed=st.integers(0, 1000))
def test_symmetric_root_squares_to_the_matrix(size: int, rank: int, seed: int) -> None:
    B = np.random.default_rng(seed).standard_normal((size, min(rank, size)))
    W = symmetric_root(B @ B.T)
    assert W.shape[1] <= size
    np.testing.assert_allclose(W @ W.T, B @ B.T, atol=1e-10 * max(1.0, np.max(np.abs(B @ B.T))))


def random_law(seed: int, T: int = 4, R: int = 2) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return positive_definite(T, seed), rng.standard_normal((R, T)), rng.standard_normal(R)


@pytest.mark.parametrize("sd", [0.0, 0.3])
def test_schur_conditioning_equals_conditioning_the_joint_of_outputs_and_totals(sd: float) -> None:
    Sigma, F, S = random_law(3)
    noise = np.full(2, sd)
    joint = np.block([[Sigma, Sigma @ F.T], [F @ Sigma, F @ Sigma @ F.T + np.diag(noise**2)]])
    cross, middle = joint[:4, 4:], joint[4:, 4:]
    result = schur_condition(Sigma, F, noise)
    np.testing.assert_allclose(result.covariance, Sigma - cross @ np.linalg.solve(middle, cross.T), atol=1e-12)
    np.testing.assert_allclose(result.D.T @ S, cross @ np.linalg.solve(middle, S), atol=1e-12)
    np.testing.assert_allclose(result.A, np.eye(4) - result.D.T @ F, atol=1e-12)


@pytest.mark.parametrize("factors", [(1.0, 1.0), (1e-9, 1e9), (1e12, 1e-12)])
def test_schur_conditioning_meets_an_exact_law_whatever_the_size_of_its_rows(factors: tuple[float, float]) -> None:
    Sigma, F, _ = random_law(5)
    scaled = F * np.array(factors)[:, None]
    result = schur_condition(Sigma, scaled, np.zeros(2))
    np.testing.assert_allclose(F @ result.covariance, 0.0, atol=1e-12)
    plain = schur_condition(Sigma, F, np.zeros(2))
    np.testing.assert_allclose(F @ plain.D.T, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(result.D * np.array(factors)[:, None], plain.D, atol=1e-12)
    np.testing.assert_allclose(result.covariance, plain.covariance, atol=1e-12)


@pytest.mark.parametrize("sd", [0.0, 0.3])
def test_schur_pull_back_equals_differences(sd: float) -> None:
    """Any function of Sigma' and of the means D^T S(x_i) has the gradient that pull_back gives."""
    Sigma, F, _ = random_law(7)
    rng = np.random.default_rng(8)
    G, totals, mean_gradient = rng.standard_normal((4, 4)), rng.standard_normal((5, 2)), rng.standard_normal((5, 4))
    G = G + G.T
    noise = np.full(2, sd)

    def value(matrix: np.ndarray) -> float:
        result = schur_condition(0.5 * (matrix + matrix.T), F, noise)
        return float(np.sum(G * result.covariance) + np.sum(mean_gradient * (totals @ result.D)))

    numerical = differences(value, Sigma).reshape(4, 4)
    pulled = schur_condition(Sigma, F, noise).pull_back(G, totals.T @ mean_gradient)
    np.testing.assert_allclose(pulled, numerical, atol=1e-6 * np.max(np.abs(numerical)))


@pytest.mark.parametrize("S", [positive_definite(4, 1), np.zeros((3, 3)), np.diag([1.0, 1.0 + 1e-9, 2.0]), -np.ones((2, 2))])
def test_symmetric_exponential_and_its_pull_back(S: np.ndarray) -> None:
    """Against scipy's expm; equal and nearly equal eigenvalues included."""
    result = symmetric_exponential(S)
    np.testing.assert_allclose(result.value, scipy.linalg.expm(S), rtol=1e-10, atol=1e-10)
    G = np.random.default_rng(2).standard_normal(S.shape)
    G = G + G.T
    numerical = differences(lambda M: float(np.sum(G * scipy.linalg.expm(0.5 * (M + M.T)))), S).reshape(S.shape)
    np.testing.assert_allclose(result.pull_back(G), numerical, atol=1e-6 * np.max(np.abs(numerical)))


def test_triangular_inverse() -> None:
    L = cholesky(positive_definite(7))
    np.testing.assert_allclose(triangular_inverse(L) @ L, np.eye(7), atol=1e-10)
    assert triangular_inverse(np.zeros((0, 0))).shape == (0, 0)
    with pytest.raises(NumericalError, match="zero on its diagonal"):
        triangular_inverse(np.diag([1.0, 0.0]))
