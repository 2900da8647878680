"""Blocks with neighbours against dense Gaussians: values with all points as neighbours, gradients by differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, ExpSineSquared, Kernel, Matern, RationalQuadratic

from sumgp.errors import DataError
from sumgp.solvers.vecchia import (
    MEAN_VARIANCE,
    KnownNoise,
    LatentKernels,
    Latents,
    LengthPrior,
    LinearRows,
    MixedObjective,
    MixedRows,
    ScaledCovariance,
    elementary,
    latent_evidence,
    make_blocks,
    output_rows,
)

KERNELS = [
    Matern([0.3, 0.5], nu=0.5),
    Matern([0.3, 0.5], nu=1.5),
    Matern(0.4, nu=2.5),
    RBF([0.3, 0.5]),
    RationalQuadratic(0.4, 1.3),
    RationalQuadratic(0.4, 1.3, alpha_bounds="fixed"),
    Matern([0.3, 0.5], nu=1.5) + ConstantKernel(0.5) * Matern([0.9, 0.6], nu=0.5),
    ConstantKernel(0.7) * (RationalQuadratic(0.4, 1.3) + RBF(0.8) * ConstantKernel(2.0, "fixed")) + Matern(2.0, "fixed"),
]
N = 90


@pytest.fixture
def points() -> np.ndarray:
    x = np.random.default_rng(0).uniform(size=(N, 2))
    x[7] = x[8]  # duplicates
    x[11] = x[12] + 1e-9
    return x


def latents() -> Latents:
    rng = np.random.default_rng(1)
    return Latents(3.0 * rng.standard_normal((N, 2)), np.array([1.0, 3.0]), rng.uniform(0.5, 2.0, N))


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_value_with_all_points_as_neighbours_is_the_dense_one(kernel: Kernel, points: np.ndarray) -> None:
    w, log_signal, noise = latents()
    found = latent_evidence(make_blocks(points, 16, N), points, ScaledCovariance(kernel), latents(), 4.0)
    K = kernel(points) / kernel.diag(points[:1]) + 4.0
    dense = [multivariate_normal(None, np.exp(s) * K + np.diag(noise)).logpdf(w[:, i]) for i, s in enumerate(log_signal)]
    assert found.value == pytest.approx(sum(dense), abs=1e-8)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_gradient_is_that_of_differences(kernel: Kernel, points: np.ndarray) -> None:
    covariance, given = ScaledCovariance(kernel), latents()
    blocks = make_blocks(points / covariance.lengthscales(2), 16, 24)

    def value(theta: np.ndarray, log_signal: np.ndarray, w: np.ndarray) -> float:
        return latent_evidence(blocks, points, covariance.at(theta), Latents(w, log_signal, given.noise), 4.0).value

    found = latent_evidence(blocks, points, covariance, given, 4.0)
    h, theta = 1e-5, kernel.theta
    for i, e in enumerate(h * np.eye(len(theta))):
        slope = (value(theta + e, given.log_signal, given.w) - value(theta - e, given.log_signal, given.w)) / (2.0 * h)
        assert found.by_kernel[i] == pytest.approx(slope, rel=1e-6, abs=1e-6)
    for i, e in enumerate(h * np.eye(2)):
        slope = (value(theta, given.log_signal + e, given.w) - value(theta, given.log_signal - e, given.w)) / (2.0 * h)
        assert found.by_signal[i] == pytest.approx(slope, rel=1e-6, abs=1e-6)
    for row in (0, 8, N - 1):
        e = np.zeros((N, 2))
        e[row, 1] = h
        slope = (value(theta, given.log_signal, given.w + e) - value(theta, given.log_signal, given.w - e)) / (2.0 * h)
        assert found.by_w[row, 1] == pytest.approx(slope, rel=1e-5, abs=1e-6)


def test_blocks_hold_every_point_once_and_neighbours_are_earlier(points: np.ndarray) -> None:
    groups = make_blocks(points, 16, 24)
    new = np.concatenate([g.members[:, g.members.shape[1] - g.n_new :].ravel() for g in groups])
    assert sorted(new) == list(range(N))
    seen: set[int] = set()
    blocks = {tuple(m[-g.n_new :]): m[: -g.n_new] for g in groups for m in g.members}
    while blocks:  # some order exists in which each block's neighbours came before it
        ready = [block for block, near in blocks.items() if set(near) <= seen]
        assert ready
        for block in ready:
            seen |= set(block)
            del blocks[block]


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_objective_gradient(known: bool, own: bool, points: np.ndarray) -> None:
    rng, kernel = np.random.default_rng(2), Matern([0.3, 0.4], nu=1.5)
    rows = MixedRows(
        points, rng.standard_normal((N, 4)), rng.uniform(0.5, 2.0, N), 10.0 * rng.standard_normal((3, 3)), known
    )
    prior = LengthPrior(np.array([0.0, -2.0]), np.array([True, True]), np.full(2, -9.0))
    kernels, blocks = LatentKernels((ScaledCovariance(kernel),)), (make_blocks(points, 16, 24),)
    theta = kernel.theta
    if own:
        kernels, blocks, prior = LatentKernels(kernels.each * 3), blocks * 3, prior.repeated(3)
        theta = np.tile(theta, 3) + 0.2 * rng.standard_normal(6)
    objective = MixedObjective(rows, kernels, blocks, prior)
    at = np.concatenate([theta, [1.0, 2.0, 0.5], rows.start() + 0.1 * rng.standard_normal(len(rows.start()))])
    value, gradient = objective(at)
    assert objective.value(at) == pytest.approx(value, rel=1e-12)
    h = 1e-5
    slopes = [(objective(at + e)[0] - objective(at - e)[0]) / (2.0 * h) for e in h * np.eye(len(at))]
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("varying", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_rotated_latents_are_the_dense_multitask_gaussian(known: bool, varying: bool, own: bool, points: np.ndarray) -> None:
    """log N(y | S D + base, sum_i K_i (x) lambda_i l_i l_i^T + I (x) R), for what ``model`` tells of l_i and R."""
    rng, kernel, T = np.random.default_rng(3), Matern([0.3, 0.4], nu=1.5), 3
    each = (kernel, Matern([0.1, 0.9], nu=1.5) if own else kernel)
    F = np.array([[0.6, 0.5, 0.7]]) / np.linalg.norm([0.6, 0.5, 0.7])
    totals = 0.4 + varying * rng.standard_normal((N, 1))
    y = rng.standard_normal((N, T))
    noise = KnownNoise(np.array([0.2, 0.3, 0.5])) if known else None
    rows = output_rows(points, y, LinearRows(F, totals), np.ones(N), noise)
    flat = LengthPrior(np.zeros(2), np.array([True, True]), np.full(2, -9.0))
    kernels = LatentKernels(tuple(ScaledCovariance(k) for k in (each if own else each[:1])))
    count = len(kernels.each)
    objective = MixedObjective(rows.mixed, kernels, (make_blocks(points, 16, N),) * count, flat.repeated(count))
    mixing = rows.mixed.start() + 0.1 * rng.standard_normal(len(rows.mixed.start()))
    at = np.concatenate([*(c.kernel.theta for c in kernels.each), [0.3, 1.4], mixing])
    M = rows.mixed.mixing(mixing)
    model = rows.model(M)
    np.testing.assert_allclose(F @ model.loading, 0.0, atol=1e-12)
    np.testing.assert_allclose((totals @ model.D + model.base) @ F.T, totals, atol=1e-12)
    C = np.kron(np.eye(N), model.noise)
    for k, size, loading in zip(each, np.exp([0.3, 1.4]), model.loading.T, strict=True):
        C += np.kron(k(points) + MEAN_VARIANCE, size * np.outer(loading, loading))
    dense = multivariate_normal(None, C).logpdf((y - totals @ model.D - model.base).ravel())
    floor = 0.5 * N * 1e-8 * float(np.sum((M[:, :2] @ rows.mixed.whitening) ** 2))
    value = -N * objective(at)[0] - objective.log_prior(at)[0] + floor + rows.log_constant
    if known:  # what the law says is noise alone has a density of its own
        left = (F @ y.T).ravel() - totals.ravel()
        value += multivariate_normal(None, F @ model.noise @ F.T).logpdf(left).sum()
    assert value == pytest.approx(dense, abs=1e-7)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("count", [1, 3, 30])
def test_matrices_of_a_block_are_those_between_its_points(kernel: Kernel, count: int) -> None:
    covariance, rng = ScaledCovariance(kernel), np.random.default_rng(2)
    points = rng.uniform(size=(4, count, 2))
    whole = covariance.between(points, points)
    found = covariance.within(points)
    np.testing.assert_array_equal(found, found.swapaxes(1, 2))
    np.testing.assert_allclose(found, whole, rtol=1e-14)
    profiles = covariance.profiles(points)
    by_terms = sum(share * profile.k for share, profile in zip(covariance.shares, profiles, strict=True))
    np.testing.assert_allclose(by_terms, whole, rtol=1e-14)
    for profile in profiles:
        np.testing.assert_array_equal(profile.p, profile.p.swapaxes(1, 2))


def test_kernels_that_are_no_functions_of_scaled_distance_are_refused() -> None:
    assert elementary(ConstantKernel(2.0) * RBF(1.0)) == RBF(1.0)
    for kernel in (ExpSineSquared(), RBF(1.0) * Matern(1.0), Matern(1.0, nu=0.7)):
        with pytest.raises(DataError, match="use such a kernel, or solver=Dense"):
            elementary(kernel)
