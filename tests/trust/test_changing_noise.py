"""Noise that is far larger in some rows than in others: bands are too narrow there, and the status says so."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import sumgp

T = np.linspace(0.0, 6.0, 60)
CIRCLE = np.column_stack([np.sin(T), np.cos(T)])


def fitted(y: np.ndarray, law: str | None = "a**2 + b**2 = 1", **options: object) -> sumgp.ConstrainedGP:
    return sumgp.ConstrainedGP(law, outputs=["a", "b"], inputs=["t"], uncertainty="plug-in", restarts=0, **options).fit(T, y)


def noisy(sd: np.ndarray, truth: np.ndarray = CIRCLE, seed: int = 1000) -> np.ndarray:
    return truth + sd * np.random.default_rng(seed).standard_normal(truth.shape)


@pytest.mark.parametrize("law", ["a**2 + b**2 = 1", None])
def test_noise_that_grows_is_named(law: str | None) -> None:
    """The 95 % bands of the last third held 47 % of the true values, called converged."""
    with pytest.warns(sumgp.SumGPWarning, match=r"the noise of 'a' changes \d+-fold along 't'.*give noise="):
        gp = fitted(noisy(np.geomspace(0.005, 0.25, 60)[:, None]), law)
    assert gp.fit_report_.status.startswith("converged, but the noise of 'a' changes")


def test_noise_that_grows_with_the_values_is_named() -> None:
    x = np.tile([0.02, 0.2, 1.0, 5.0], 15) + 0.001 * np.arange(60)
    truth = np.column_stack([x, 2.0 * x])
    y = truth * (1.0 + 0.1 * np.random.default_rng(1001).standard_normal(truth.shape))
    with pytest.warns(sumgp.SumGPWarning, match="noise of 'a' changes"):
        sumgp.ConstrainedGP(None, outputs=["a", "b"], uncertainty="plug-in", restarts=0).fit(x, y)


@pytest.mark.parametrize("seed", [1000, 1001, 1002])
def test_one_noise_raises_no_alarm(seed: int) -> None:
    rng = np.random.default_rng(seed)
    heavy = CIRCLE + 0.05 * rng.standard_t(3, CIRCLE.shape)
    growing = np.column_stack([np.exp(T), 1.0 + np.exp(T)])
    with warnings.catch_warnings():
        warnings.simplefilter("error", sumgp.SumGPWarning)
        assert fitted(noisy(np.full((60, 1), 0.05), seed=seed)).fit_report_.status == "converged"
        assert fitted(heavy).fit_report_.status == "converged"
        assert fitted(noisy(np.full((60, 1), 1.0), growing, seed), "b = a + 1").fit_report_.status == "converged"


def test_noise_that_was_given_and_values_that_do_not_vary_raise_no_alarm() -> None:
    sd = np.geomspace(0.005, 0.25, 60)[:, None]
    counts = np.round(np.exp(T - 2.0) + 0.3 * np.random.default_rng(1000).standard_normal(60))  # at first all are zero
    with warnings.catch_warnings():
        warnings.simplefilter("error", sumgp.SumGPWarning)
        assert fitted(noisy(sd), noise=np.tile(sd, (1, 2))).fit_report_.status == "converged"
        assert fitted(np.column_stack([counts, counts + 1.0]), None).fit_report_.status == "converged"


def fitted_map(sd: np.ndarray | float, weight: np.ndarray | None = None, **options: object) -> sumgp.ConstrainedGP:
    kernel = RBF([0.3, 0.3])
    gp = sumgp.ConstrainedGP(outputs=["a"], solver=sumgp.Vecchia(), kernel=kernel, uncertainty="plug-in", **options)
    return gp.fit(PLACES, MAP + sd * NORMAL, sample_weight=weight)


PLACES = np.random.default_rng(1000).uniform(0.0, 1.0, (600, 2))
MAP = np.sin(6.0 * PLACES[:, :1]) * np.cos(5.0 * PLACES[:, 1:])
NORMAL = np.random.default_rng(1001).standard_normal(MAP.shape)
HALVES = np.where(PLACES[:, :1] > 0.5, 0.3, 0.1)


def test_noise_of_a_map_that_differs_by_region_is_named() -> None:
    """The 95 % intervals of the noisy half held 87 % of new measurements (six other maps), called converged."""
    with pytest.warns(sumgp.SumGPWarning, match=r"noise or roughness of 'a' differs .*-fold between regions.*give noise="):
        gp = fitted_map(HALVES)
    assert gp.fit_report_.status.startswith("converged, but the noise or roughness of 'a' differs")


def test_one_noise_of_a_map_or_one_that_was_given_raises_no_alarm() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", sumgp.SumGPWarning)
        assert fitted_map(0.2).fit_report_.status == "converged"
        assert fitted_map(HALVES, noise=HALVES).fit_report_.status == "converged"
        assert fitted_map(HALVES, 1.0 / HALVES[:, 0] ** 2).fit_report_.status == "converged"
