"""Kernels of single outputs on a grid: the evidence against the density written out, and what data choose."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import RBF, Matern

from sumgp.hyperparameters import around, pool
from sumgp.priors import KernelFamily
from sumgp.strategies.output_posterior import (
    FINE_ROWS,
    MEAN_VARIANCE,
    RATIOS,
    LawNoise,
    _evidence,
    _pooled,
    output_posterior,
    own_grid,
)

LENGTHS = np.log(np.geomspace(0.02, 2.0, 14))


def families() -> list[KernelFamily]:
    kernels = (RBF(0.5), Matern(0.5, nu=0.5))
    return [KernelFamily(kernel, LENGTHS[:, None], np.zeros(len(LENGTHS))) for kernel in kernels]


def drawn(kernel: RBF, seed: int, noise: float = 0.05, count: int = 60) -> tuple[np.ndarray, np.ndarray]:
    x = np.linspace(0.0, 1.0, count)[:, None]
    generator = np.random.default_rng(seed)
    f = generator.multivariate_normal(np.zeros(count), kernel(x) + 1e-10 * np.eye(count))
    return x, f + noise * generator.standard_normal(count)


@pytest.mark.parametrize(
    ("kernel", "count"),
    [(RBF(0.2), 15), (RBF(0.2), FINE_ROWS + 10), (Matern(0.2, nu=1.5), FINE_ROWS + 10)],
    ids=["by eigenvectors", "by few of them", "by a tridiagonal form"],
)
def test_the_evidence_is_the_density_at_the_best_amplitude(kernel: RBF, count: int) -> None:
    x, y = drawn(RBF(0.2), 0, count=count)
    K = kernel(x)
    grid = _evidence(K, y[:, None], type(kernel) is RBF)
    for place in (52, 77, 102):
        covariance = grid.size[0, place] * (K + MEAN_VARIANCE + RATIOS[place] ** 2 * np.eye(count))
        # At the best amplitude the quadratic form is n.
        scale = 0.5 * count * (1.0 + np.log(2.0 * np.pi))
        density = multivariate_normal(np.zeros(count), covariance).logpdf(y) + scale
        assert grid.log_weight[0, place] == pytest.approx(density, abs=1e-5)
        for factor in (0.9, 1.1):
            assert multivariate_normal(np.zeros(count), factor * covariance).logpdf(y) + scale < density


def test_each_output_has_the_family_and_the_lengthscale_of_its_own() -> None:
    x, smooth = drawn(RBF(0.3), 1)
    _, rough = drawn(Matern(0.3, nu=0.5), 4)
    y = np.stack([smooth, rough], axis=1)
    y[5:9, 1] = np.nan
    for points, kind in zip(own_grid(x, y, families(), [[0], [1]]), (RBF, Matern), strict=True):
        assert sum(p.weight for p in points) == pytest.approx(1.0)
        assert sum(p.weight for p in points if type(p.kernel) is kind) > 0.95
    best = own_grid(x, y, families(), [[0], [1]])[0][0]
    assert 0.15 < best.kernel.length_scale < 0.6
    assert best.ratio * np.sqrt(best.size) == pytest.approx(0.05, rel=0.4)


@pytest.mark.parametrize("noise", [2e-6, 2e-5, 1e-4])
def test_next_to_no_noise_is_found(noise: float) -> None:
    """An output that rises and falls by about one: its noise is told though it is a ten thousandth of that, or less.

    Between 40 rows a smooth curve is known better than one row tells it.
    """
    x = np.linspace(0.0, 1.0, 40)[:, None]
    y = np.sin(6.0 * x) + noise * np.random.default_rng(2).standard_normal((40, 1))
    points = own_grid(x, y, families()[:1], [[0]])[0]
    assert points[0].ratio * np.sqrt(points[0].size) == pytest.approx(noise, rel=0.35)
    mean, variance = output_posterior(x, y[:, 0], points).moments(between := x[:-1] + 0.012)
    sd = np.sqrt(variance)
    assert np.median(sd) < noise
    assert np.sqrt(np.mean(((mean - np.sin(6.0 * between[:, 0])) / sd) ** 2)) < 2.0


def test_outputs_of_a_group_agree_about_their_noise() -> None:
    x, first = drawn(RBF(0.3), 3, noise=0.1, count=14)
    _, second = drawn(RBF(0.3), 4, noise=0.1, count=14)
    y = np.stack([first, second], axis=1)

    def sds(groups: list[list[int]]) -> np.ndarray:
        found = own_grid(x, y, families()[:1], groups)
        return np.array([np.log(sum(p.weight * p.ratio * np.sqrt(p.size) for p in points)) for points in found])

    assert np.ptp(sds([[0, 1]])) < 0.5 * np.ptp(sds([[0], [1]]))


def test_pooled_weights_are_those_of_all_combinations_written_out() -> None:
    """Two outputs, three kernels, two ratios: the posterior of each output's grid point by summing over everything."""
    generator = np.random.default_rng(0)
    L = np.exp(generator.normal(0.0, 2.0, (2, 3, 2)))
    kernels = around(np.array([[0.0], [0.5], [3.0]]), 1.0, np.ones(3), np.array([0, 0, 1]))
    ratios = around(np.array([[0.0], [1.0]]), 0.7, np.array([1.0, 2.0]), np.zeros(2))
    prior, law = generator.normal(size=(3, 2)), generator.normal(size=(3, 2))
    assert kernels.sum(axis=1) == pytest.approx(np.ones(3))
    found = pool(np.log(L), kernels, ratios, prior, law)
    expected = np.zeros((2, 3, 2))
    places = [(k, r) for k in range(3) for r in range(2)]
    for c, d in places:
        common = np.exp(prior[c, d] + law[c, d])
        for j, q in places:
            for k, r in places:
                joint = common * kernels[c, j] * ratios[d, q] * L[0, j, q] * kernels[c, k] * ratios[d, r] * L[1, k, r]
                expected[0, j, q] += joint
                expected[1, k, r] += joint
    for t in range(2):
        assert np.exp(found[t]) / np.exp(found[t]).sum() == pytest.approx(expected[t] / expected[t].sum(), rel=1e-9)


def test_the_imbalance_of_a_law_tells_of_the_noise() -> None:
    """Twelve rows of four outputs whose sum is noise alone: sds come out near the true one, without the law far below."""
    x = np.linspace(0.0, 1.0, 12)[:, None]
    generator = np.random.default_rng(3)
    smooth = np.stack([np.sin((3 + k) * x[:, 0] + k) for k in range(3)], axis=1)
    y = np.column_stack([smooth, -smooth.sum(axis=1)]) + 0.3 * generator.standard_normal((12, 4))
    groups = [[0], [1], [2], [3]]

    def typical_sd(law: LawNoise | None) -> float:
        found = own_grid(x, y, families(), groups, law)
        return float(
            np.exp(np.mean([np.log(sum(p.weight * p.ratio * np.sqrt(p.size) for p in points)) for points in found]))
        )

    told = typical_sd(LawNoise(y.sum(axis=1), np.ones((12, 4))))
    assert abs(np.log(told / 0.3)) < 0.5 * abs(np.log(typical_sd(None) / 0.3))
    assert 0.2 < told < 0.45


def test_with_lengthscales_of_their_own_outputs_are_as_smooth_as_they_are() -> None:
    """One output for which Matern 3/2 is e^2 times as likely, five for which 5/2 is: their number does not decide."""
    shifts = np.array([[0.35, 0.35], [0.0, 0.0], [-0.35, -0.35]])
    each = [KernelFamily(Matern([1.0, 1.0], nu=nu), shifts, np.full(3, -4.0), centres=np.zeros((6, 2))) for nu in (1.5, 2.5)]
    equal = KernelFamily(Matern(1.0, nu=2.5), shifts[:, :1], np.zeros(3))
    likelihoods = np.zeros((6, 9, len(RATIOS)))
    likelihoods[0, 3:6] = 42.0
    likelihoods[1:, 3:6] = 30.0
    likelihoods[:, 6:] = 40.0
    weights = _pooled(likelihoods, np.ones_like(likelihoods), [equal, *each], None)
    shares = [logsumexp(weights[0, rows]) for rows in (slice(3, 6), slice(6, 9))]
    assert shares[0] - shares[1] == pytest.approx(2.0, abs=0.3)
