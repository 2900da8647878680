"""Predictions from a tree of averages or few global functions, against dense regression."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern

from sumgp.solvers.vecchia import LatentField, SeparateFields
from sumgp.solvers.vecchia import predict as module

C = 4.0


def dense(x: np.ndarray, w: np.ndarray, noise: np.ndarray, kernel: Kernel, signal: float, at: np.ndarray) -> np.ndarray:
    """Means and sds (2, n)."""
    K = signal * (kernel(x) + C) + np.diag(noise)
    near = signal * (kernel(at, x) + C)
    variance = signal * (1.0 + C) - np.einsum("ij,ji->i", near, np.linalg.solve(K, near.T))
    return np.stack([near @ np.linalg.solve(K, w), np.sqrt(variance)])


def drawn(N: int, kernel: Kernel, sd: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points, values with noise of variance one, and points to predict at."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(N + 60, 2))
    f = np.linalg.cholesky(kernel(x) + 1e-9 * np.eye(len(x))) @ rng.standard_normal(len(x)) / sd
    return x[:N], f[:N] + rng.standard_normal(N), x[N:]


@pytest.fixture(autouse=True)
def by_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes are the subject: no more than 77 rows are used as they are."""
    monkeypatch.setattr(module, "EXACT_ROWS", 77)


def test_few_rows_are_used_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Matern(0.3, nu=1.5)
    x, w, at = drawn(300, kernel, 0.5)
    noise = np.linspace(0.5, 2.0, 300)
    monkeypatch.setattr(module, "EXACT_ROWS", 300)
    found = LatentField(x, 1.0 / noise, (w / noise)[:, None], np.array([4.0]), kernel, C, 100).marginals(at)
    mean, sds = dense(x, w, noise, kernel, 4.0, at)
    np.testing.assert_allclose(found.mean[:, 0], mean, atol=1e-8)
    np.testing.assert_allclose(np.sqrt(found.covariance[:, 0, 0]), sds, atol=1e-8)


@pytest.mark.parametrize("by_matrices", [False, True])
@pytest.mark.parametrize("exact_rows", [0, 77])
def test_all_points_as_nodes_is_exact(by_matrices: bool, exact_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EXACT_ROWS", exact_rows)
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(77, 2))
    x[5] = x[6]
    w, noise, signal = 3.0 * rng.standard_normal((77, 2)), rng.uniform(0.5, 2.0, 77), np.array([2.0, 50.0])
    kernel, at = Matern([0.3, 0.5], nu=1.5), rng.uniform(size=(9, 2))
    precision = np.einsum("n,ij->nij", 1.0 / noise, np.eye(2)) if by_matrices else 1.0 / noise
    field = LatentField(x, precision, w / noise[:, None], signal, kernel, C, 128)
    found, (mean, covariance) = field.marginals(at), field.joint(at)
    for i in range(2):
        expected = dense(x, w[:, i], noise, kernel, signal[i], at)
        np.testing.assert_allclose(found.mean[:, i], expected[0], atol=1e-8)
        np.testing.assert_allclose(np.sqrt(found.covariance[:, i, i]), expected[1], atol=1e-8)
        np.testing.assert_allclose(mean[:, i], expected[0], atol=1e-8)
        np.testing.assert_allclose(np.sqrt(np.diagonal(covariance[i, i])), expected[1], atol=1e-8)
    off = field.marginals(at).covariance[:, 0, 1]
    np.testing.assert_allclose(off, 0.0, atol=1e-10)
    assert field.is_small is (exact_rows == 77 and not by_matrices)
    if field.is_small:
        for own, found in zip(field.at_own_rows, field.marginals(x), strict=True):
            np.testing.assert_allclose(own, found, atol=1e-8)


def test_latents_with_kernels_of_their_own() -> None:
    rng = np.random.default_rng(0)
    x, at = rng.uniform(size=(77, 2)), rng.uniform(size=(9, 2))
    w, noise, kernels = 3.0 * rng.standard_normal((77, 2)), rng.uniform(0.5, 2.0, 77), (Matern(0.1, nu=1.5), RBF(0.6))
    each = [LatentField(x, 1 / noise, (w[:, [i]].T / noise).T, np.array([9.0]), kernels[i], C, 128) for i in range(2)]
    fields = SeparateFields(tuple(each))
    found, (mean, covariance) = fields.marginals(at), fields.joint(at)
    np.testing.assert_array_equal(found.covariance[:, 0, 1], 0.0)
    np.testing.assert_allclose(fields.at_own_rows.mean, fields.marginals(x).mean, atol=1e-8)
    for i in range(2):
        expected = dense(x, w[:, i], noise, kernels[i], 9.0, at)
        np.testing.assert_allclose(found.mean[:, i], expected[0], atol=1e-8)
        np.testing.assert_allclose(np.sqrt(found.covariance[:, i, i]), expected[1], atol=1e-8)
        np.testing.assert_allclose(mean[:, i], expected[0], atol=1e-8)
        np.testing.assert_allclose(np.sqrt(np.diagonal(covariance[i, i])), expected[1], atol=1e-8)
    assert [float(lengths[0]) for lengths in fields.lengthscales()] == [0.1, 0.6]


@pytest.mark.parametrize("sd", [0.5, 0.02])
@pytest.mark.parametrize("kernel", [Matern(0.3, nu=0.5), Matern(0.3, nu=1.5), Matern(0.3, nu=2.5), RBF(0.3)], ids=str)
def test_means_and_sds_near_dense(kernel: Kernel, sd: float) -> None:
    """Root mean square error of the means in sds; 100 nearest neighbours alone have up to 0.7."""
    x, w, at = drawn(600, kernel, sd)
    field = LatentField(x, np.ones(600), w[:, None], np.array([sd**-2.0]), kernel, C, 100)
    mean, sds = dense(x, w, np.ones(600), kernel, sd**-2.0, at)
    found = field.marginals(at)
    error = np.sqrt(np.mean(((found.mean[:, 0] - mean) / sds) ** 2))
    assert error < (0.1 if sd == 0.5 else 0.05)
    np.testing.assert_allclose(np.sqrt(found.covariance[:, 0, 0]), sds, rtol=0.03)


@pytest.mark.parametrize("share", [2, 10])
@pytest.mark.parametrize("apart", [2.0, 1000.0])
def test_parts_of_the_region_far_from_each_other(apart: float, share: int) -> None:
    """Nodes hold rows of both parts; one ``share``-th of the rows is ``apart`` widths away from the others."""
    rng, kernel, N = np.random.default_rng(0), Matern(0.2, nu=1.5), 600
    x = rng.uniform(size=(N + 60, 2))
    x[::share] += [apart, 0.3 * apart]
    f = np.linalg.cholesky(kernel(x) + 1e-9 * np.eye(len(x))) @ rng.standard_normal(len(x)) / 0.1
    x, w, at = x[:N], f[:N] + rng.standard_normal(N), x[N:]
    mean, sds = dense(x, w, np.ones(N), kernel, 100.0, at)
    found = LatentField(x, np.ones(N), w[:, None], np.array([100.0]), kernel, C, 100).marginals(at)
    assert np.sqrt(np.mean(((found.mean[:, 0] - mean) / sds) ** 2)) < 0.05
    np.testing.assert_allclose(np.sqrt(found.covariance[:, 0, 0]), sds, rtol=0.03)


def test_smooth_fields_need_the_global_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = RBF(0.3)
    x, w, at = drawn(600, kernel, 0.1)
    mean, sds = dense(x, w, np.ones(600), kernel, 100.0, at)

    def error() -> float:
        field = LatentField(x, np.ones(600), w[:, None], np.array([100.0]), kernel, C, 100)
        return float(np.sqrt(np.mean(((field.marginals(at).mean[:, 0] - mean) / sds) ** 2)))

    assert error() < 0.05
    monkeypatch.setattr(module, "global_weights", lambda *_: None)
    assert error() > 0.15


@pytest.mark.parametrize("kernel", [RBF(0.4), Matern(0.2, nu=1.5)], ids=str)
def test_rows_that_measure_different_combinations(kernel: Kernel) -> None:
    """Each row measures one combination of two latents, unlike the next: a dense Gaussian over both says the same."""
    rng, N, signal = np.random.default_rng(0), 100, np.array([4.0, 30.0])
    x, at = rng.uniform(size=(N, 2)), rng.uniform(size=(6, 2))
    seen, y = rng.standard_normal((N, 2)), 2.0 * rng.standard_normal(N)
    nodes = 64 if isinstance(kernel, RBF) and not isinstance(kernel, Matern) else 128  # fewer than rows: global functions
    field = LatentField(x, seen[:, :, None] * seen[:, None, :], seen * y[:, None], signal, kernel, C, nodes)
    K, near = kernel(x) + C, kernel(at, x) + C
    B = np.einsum("ni,i,mi,nm->nm", seen, signal, seen, K) + np.eye(N)
    cross = np.einsum("pn,i,ni->pin", near, signal, seen)
    mean = cross @ np.linalg.solve(B, y)
    covariance = (1.0 + C) * np.diag(signal) - np.einsum("pin,nm,pjm->pij", cross, np.linalg.inv(B), cross)
    assert field.weights is not None or isinstance(kernel, Matern)
    found, (joint_mean, joint) = field.marginals(at), field.joint(at)
    sd = np.sqrt(np.einsum("pii->pi", covariance))
    np.testing.assert_allclose(found.mean / sd, mean / sd, atol=0.02)
    np.testing.assert_allclose(found.covariance, covariance, atol=0.02 * sd.max() ** 2)
    np.testing.assert_allclose(joint_mean / sd, mean / sd, atol=0.02)
    np.testing.assert_allclose(np.einsum("ijpp->pij", joint), covariance, atol=0.02 * sd.max() ** 2)


def test_far_from_the_data_the_prior_is_left() -> None:
    """Outside the region of the pivots their functions say nothing: the tree is asked there."""
    kernel = RBF(0.3)
    x, w, _ = drawn(600, kernel, 0.1)
    at = np.array([[3.0, 3.0], [-5.0, 0.5]])
    field = LatentField(x, np.ones(600), w[:, None], np.array([100.0]), kernel, C, 100)
    mean, sds = dense(x, w, np.ones(600), kernel, 100.0, at)
    found = field.marginals(at)
    np.testing.assert_allclose(np.sqrt(found.covariance[:, 0, 0]), sds, rtol=0.1)
    assert np.all(np.abs(found.mean[:, 0] - mean) < 0.3 * sds)


def test_points_do_not_depend_on_each_other() -> None:
    kernel = Matern(0.2, nu=1.5)
    x, w, at = drawn(500, kernel, 0.1)
    field = LatentField(x, np.ones(500), w[:, None], np.array([100.0]), kernel, C, 60)
    all_at_once = field.marginals(at)
    one_by_one = [field.marginals(at[i : i + 1]) for i in range(10)]
    np.testing.assert_allclose(all_at_once.mean[:10], np.concatenate([p.mean for p in one_by_one]), rtol=1e-12)
    np.testing.assert_allclose(all_at_once.covariance[:10], np.concatenate([p.covariance for p in one_by_one]), rtol=1e-9)


def test_repeated_places_and_few_points() -> None:
    rng = np.random.default_rng(0)
    place = rng.uniform(size=(5, 2))
    x = np.repeat(place, 40, axis=0)
    w = rng.standard_normal(200)
    kernel = Matern(0.3, nu=1.5)
    field = LatentField(x, np.ones(200), w[:, None], np.array([4.0]), kernel, C, 20)
    found = field.marginals(place + 0.01)
    mean, sds = dense(x, w, np.ones(200), kernel, 4.0, place + 0.01)
    np.testing.assert_allclose(found.mean[:, 0], mean, atol=1e-8)
    np.testing.assert_allclose(np.sqrt(found.covariance[:, 0, 0]), sds, atol=1e-8)
