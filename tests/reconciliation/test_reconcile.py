"""Forecasts of other tools moved onto a law: by hand, against minimum-trace reconciliation, by draws, in tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import sumgp
from sumgp.reconciliation import shrunk_covariance

NAMES = ["total", "a", "b", "c"]
SUMMING = pd.DataFrame([[1, 1, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]], index=NAMES, columns=NAMES[1:])


def random_covariance(rng: np.random.Generator, T: int) -> np.ndarray:
    A = rng.standard_normal((T, T + 2))
    return A @ A.T


def test_the_less_certain_output_moves_more():
    # a + b = 1 with a = 1 +- 1 and b = 1 +- 2: the imbalance of 1 is shared 1 : 4.
    moved = sumgp.reconcile([[1.0, 1.0]], "a + b = 1", outputs=["a", "b"], covariance=np.diag([1.0, 4.0]))
    np.testing.assert_allclose(moved.mean, [[0.8, 0.2]], atol=1e-12)
    # Both are now known up to the same error, of variance 1 * 4 / 5.
    np.testing.assert_allclose(moved.std**2, [[0.8, 0.8]], rtol=1e-12)


def test_hierarchy_equals_minimum_trace_reconciliation():
    rng = np.random.default_rng(0)
    V = random_covariance(rng, 4)
    forecasts = pd.DataFrame(rng.standard_normal((5, 4)) * 3 + 10, columns=NAMES)
    moved = sumgp.reconcile(forecasts, SUMMING, covariance=V)
    # The textbook form: S (S' V^-1 S)^-1 S' V^-1 y.
    S, inverse = SUMMING.to_numpy(dtype=float), np.linalg.inv(V)
    P = np.linalg.solve(S.T @ inverse @ S, S.T @ inverse)
    np.testing.assert_allclose(moved.mean, forecasts.to_numpy() @ (S @ P).T, rtol=1e-10)
    np.testing.assert_allclose(moved.covariance[2], S @ P @ V @ P.T @ S.T, rtol=1e-8, atol=1e-10)
    assert np.max(np.abs(moved.residual())) < 1e-12 * 40


def test_each_row_in_its_own_covariance():
    rng = np.random.default_rng(1)
    V = np.stack([random_covariance(rng, 3) for _ in range(4)])
    y = rng.standard_normal((4, 3))
    together = sumgp.reconcile(y, "a + b = c", outputs=["a", "b", "c"], covariance=V)
    for row in range(4):
        alone = sumgp.reconcile(y[row : row + 1], "a + b = c", outputs=["a", "b", "c"], covariance=V[row])
        np.testing.assert_allclose(together.mean[row], alone.mean[0], atol=1e-12)


def test_curved_law_by_a_search_along_it():
    # Nearest point in the metric, and draws all on the law; compare the mean with a fine search along the circle.
    V = np.array([[0.04, 0.01], [0.01, 0.02]])
    m = np.array([[0.9, 0.7]])
    moved = sumgp.reconcile(m, "a**2 + b**2 = 1", outputs=["a", "b"], covariance=V)
    angle = np.linspace(0, 2 * np.pi, 200_001)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    distance = np.einsum("ni,ij,nj->n", circle - m, np.linalg.inv(V), circle - m)
    np.testing.assert_allclose(moved.mean[0], circle[np.argmin(distance)], atol=1e-4)
    for draws in (moved.draws, moved.sample(50, random_state=0)):
        assert np.max(np.abs(np.sum(draws**2, axis=2) - 1.0)) < 1e-9
    lower, upper = moved.interval(0.9)
    assert np.all(lower < moved.mean)
    assert np.all(moved.mean < upper)
    assert np.all(upper <= 1.0)


def test_past_errors_decide_who_moves_and_a_covariance_is_the_spread():
    rng = np.random.default_rng(5)
    errors = rng.standard_normal((60, 4)) @ np.diag([4.0, 1.0, 2.0, 3.0])
    spread = random_covariance(rng, 4)
    forecasts = pd.DataFrame(rng.standard_normal((2, 4)) * 3 + 10, columns=NAMES)
    moved = sumgp.reconcile(forecasts, SUMMING, errors=errors, covariance=spread)
    # The projection of minimum-trace reconciliation from the errors, applied to mean and spread.
    S, inverse = SUMMING.to_numpy(dtype=float), np.linalg.inv(shrunk_covariance(errors))
    P = S @ np.linalg.solve(S.T @ inverse @ S, S.T @ inverse)
    np.testing.assert_allclose(moved.mean, forecasts.to_numpy() @ P.T, rtol=1e-10)
    np.testing.assert_allclose(moved.covariance[1], P @ spread @ P.T, rtol=1e-8, atol=1e-10)
    # The same by draws, which bounds far away do not touch.
    bounded = sumgp.reconcile(forecasts, [SUMMING, "all >= -1000"], errors=errors, covariance=spread)
    np.testing.assert_allclose(bounded.std, moved.std, rtol=0.05)


def test_draws_keep_their_shape():
    rng = np.random.default_rng(2)
    draws = rng.gamma(2.0, 1.0, (400, 3, 2))  # skewed
    table = np.concatenate([draws, draws.sum(axis=2, keepdims=True) + rng.normal(0, 0.5, (400, 3, 1))], axis=2)
    moved = sumgp.reconcile(table, "a + b = c", outputs=["a", "b", "c"])
    assert moved.draws.shape == table.shape
    assert np.max(np.abs(moved.draws[..., 0] + moved.draws[..., 1] - moved.draws[..., 2])) < 1e-10
    skewness = np.mean(((moved.draws - moved.draws.mean(0)) / moved.draws.std(0)) ** 3, axis=0)
    assert np.all(skewness[:, :2] > 0.8)


def test_soft_law_is_met_halfway():
    law = sumgp.LinearConstraint([1.0, 1.0], 0.0, noise=1.0)
    moved = sumgp.reconcile([[1.0, 1.0]], law, covariance=np.eye(2) * 0.5)
    # Imbalance 2 with variance 1 from the outputs and 1 from the law: half of it is taken by the outputs.
    np.testing.assert_allclose(moved.mean, [[0.5, 0.5]], atol=1e-12)


def test_law_with_an_input_and_a_constant():
    table = pd.DataFrame({"p": [2.0, 3.0], "V": [5.0, 5.0], "T": [300.0, 310.0]}, index=["mon", "tue"])
    moved = sumgp.reconcile(table, "p*V = n*R*T", outputs=["p", "V"], constants={"n": 1.0, "R": 0.05}, covariance=np.eye(2))
    np.testing.assert_allclose(moved.mean.prod(axis=1), 0.05 * table["T"], rtol=1e-9)
    frame = moved.to_frame()
    assert list(frame.index) == ["mon", "tue"]
    assert list(frame.columns) == ["p", "p_sd", "p_lower", "p_upper", "V", "V_sd", "V_lower", "V_upper"]


def test_means_alone_have_no_intervals():
    moved = sumgp.reconcile([[3.0, 5.0]], "a + b = 7", outputs=["a", "b"])
    np.testing.assert_allclose(moved.mean, [[2.5, 4.5]])
    assert list(moved.to_frame().columns) == ["a", "b"]
    with pytest.raises(sumgp.DataError, match="covariance=, past errors="):
        moved.interval()


def test_intervals_from_past_errors_are_calibrated():
    rng = np.random.default_rng(3)
    V = random_covariance(rng, 3)
    S = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    truth = rng.normal(0, 5, (4000, 2)) @ S.T
    errors = rng.multivariate_normal(np.zeros(3), V, 4200)
    moved = sumgp.reconcile(truth + errors[:4000], "t = a + b", outputs=["t", "a", "b"], errors=errors[4000:])
    lower, upper = moved.interval(0.95)
    coverage = np.mean((lower <= truth) & (truth <= upper))
    assert 0.93 < coverage < 0.97
    assert np.mean((moved.mean - truth) ** 2) < 0.8 * np.mean(errors[:4000] ** 2)


def test_shrinkage_by_formula_and_with_more_series_than_rows():
    rng = np.random.default_rng(4)
    errors = rng.standard_normal((12, 30)) @ np.diag(np.linspace(1, 50, 30))
    V = shrunk_covariance(errors)
    assert np.linalg.eigvalsh(V).min() > 0
    np.testing.assert_allclose(np.diag(V), np.var(errors, axis=0, ddof=1))
    # With many rows nothing is shrunk.
    many = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 2]], 200_000)
    np.testing.assert_allclose(shrunk_covariance(many), many.T @ many / len(many), rtol=1e-3)
    # What all rows share is no spread.
    np.testing.assert_allclose(shrunk_covariance(errors + np.linspace(-30, 20, 30)), V, rtol=1e-9, atol=1e-9)
    # The share by its definition, in loops.
    z = (errors - errors.mean(axis=0)) / errors.std(axis=0)
    r = z.T @ z / 12
    pairs = [(i, j) for i in range(30) for j in range(30) if i != j]
    variance = sum(np.sum((z[:, i] * z[:, j] - r[i, j]) ** 2) / (12 * 11) for i, j in pairs)
    share = min(1.0, variance / sum(r[i, j] ** 2 for i, j in pairs))
    sd = np.sqrt(np.diag(V))
    np.testing.assert_allclose(V[0, 1], (1 - share) * r[0, 1] * sd[0] * sd[1], rtol=1e-10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"forecasts": [[1.0, np.nan]]}, "row 0 of 'b'"),
        ({"forecasts": [1.0, 2.0]}, "means or"),
        ({"outputs": ["a"]}, "2 names"),
        ({"law": None}, "a law to move the forecasts onto"),
        ({"law": "a + b = S", "constants": {"S": "unknown"}}, "add it as an output"),
        ({"covariance": np.eye(3)}, "shape"),
        ({"covariance": [[1.0, 2.0], [2.0, 1.0]]}, "negative eigenvalue"),
        ({"covariance": [[1.0, 2.0], [0.0, 1.0]]}, "symmetric"),
        ({"errors": np.ones((2, 2))}, "three rows"),
        ({"errors": np.full((7, 2), 0.1)}, "vary in every series"),
        ({"law": "a**2 + b**2 = -1", "covariance": np.eye(2)}, "-1|law"),
        ({"forecasts": [["x", "y"]]}, "numbers"),
        ({"forecasts": pd.DataFrame({"a": [1.0]})}, "none called 'b'"),
        ({"law": pd.DataFrame([[1.0]], index=["a"], columns=["c"])}, "'c'"),
        ({"law": pd.DataFrame(np.eye(2), index=["a", "b"], columns=["a", "b"])}, "a sum of others"),
        ({"law": "a + b = S", "constants": {"S": "total"}}, "total"),
        ({"errors": np.ones((5, 3))}, "2 columns"),
    ],
)
def test_refusals_name_the_remedy(arguments, message):
    usual = {"forecasts": [[1.0, 2.0]], "law": "a + b = 1", "outputs": ["a", "b"]}
    with pytest.raises(sumgp.SumGPError, match=message):
        sumgp.reconcile(**(usual | arguments))


def test_short_representations():
    moved = sumgp.reconcile([[3.0, 5.0]], "a + b = 7", outputs=["a", "b"])
    assert len(repr(moved)) < 200
    assert "largest residual" in repr(moved)
    assert moved._repr_html_().startswith("<table>")
