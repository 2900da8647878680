"""What is predicted at a point belongs to that point: it neither depends on other points nor leaves the law."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sumgp
from sumgp_studies import metrics

TOP = np.sqrt(1.6)  # largest speed and amplitude at an energy of 0.8
# On CPUs with AVX-512 sums are made in an order that depends on the number of points; outputs are about one.
ROUND_OFF = 1e-12
PRECISION = 1e-9  # of the ends of intervals, which are searched for, and of sds where a law bends


@pytest.fixture(scope="module")
def oscillator() -> sumgp.ConstrainedGP:
    """The model of the README."""
    data = pd.read_csv(Path(__file__).parents[2] / "examples" / "oscillator.csv")
    constants = {"k": 1.0, "m": 1.0, "E": 0.8}
    gp = sumgp.ConstrainedGP("k/2*z**2 + m/2*v**2 = E", outputs=["z", "v"], inputs=["t"], constants=constants)
    return gp.fit(data[["t"]], data[["z", "v"]])


@pytest.fixture(scope="module")
def circle() -> sumgp.ConstrainedGP:
    """Ten rows of a unit circle, whose posterior far away knows nothing but the circle."""
    t = np.linspace(0.0, 3.0, 10)
    Y = np.stack([np.cos(t), np.sin(t)], axis=1) + 0.05 * np.random.default_rng(1).standard_normal((10, 2))
    return sumgp.ConstrainedGP("a**2 + b**2 = 1", outputs=["a", "b"]).fit(t, Y)


def told(posterior: sumgp.Posterior) -> np.ndarray:
    """Mean, sd and ends, (n, 4 T)."""
    return np.hstack([posterior.mean, posterior.std, *posterior.interval()])


def assert_told(found: np.ndarray, expected: np.ndarray) -> None:
    """The same mean up to round-off, the same sd and ends up to their precision."""
    np.testing.assert_allclose(found[:, :2], expected[:, :2], rtol=0, atol=ROUND_OFF)
    np.testing.assert_allclose(found[:, 2:], expected[:, 2:], rtol=0, atol=PRECISION)


def told_of_values(posterior: sumgp.Posterior) -> np.ndarray:
    """Probabilities and densities, of a new measurement too, (n, 4 T)."""
    value = posterior.mean + 0.3 * posterior.std
    noisy = posterior.observed()
    return np.hstack([f(value) for f in (posterior.cdf, posterior.log_density, noisy.cdf, noisy.log_density)])


def test_other_points_do_not_matter(oscillator: sumgp.ConstrainedGP) -> None:
    many = np.linspace(-1.0, 11.0, 2000)
    reference = told(oscillator.posterior(many))
    shuffled = np.random.default_rng(0).permutation(2000)
    of_values = told_of_values(oscillator.posterior(many[::10]))
    few = told_of_values(oscillator.posterior(many[1600:1700:50]))
    np.testing.assert_allclose(few, of_values[160:170:5], rtol=0, atol=ROUND_OFF)
    for rows in (np.array([167]), np.arange(0, 2000, 400), np.arange(0, 2000, 10), shuffled, np.repeat([160, 167], 3)):
        assert_told(told(oscillator.posterior(many[rows])), reference[rows])


def test_more_points_than_are_kept(oscillator: sumgp.ConstrainedGP, monkeypatch: pytest.MonkeyPatch) -> None:
    t = np.linspace(0.0, 10.0, 50)
    kept = told(oscillator.posterior(t))
    monkeypatch.setattr("sumgp.prediction.posterior.DRAWN_AT_ONCE", 7)
    assert_told(told(oscillator.posterior(t)), kept)


def test_means_alone_are_those_told_with_intervals(oscillator: sumgp.ConstrainedGP) -> None:
    """Of many points only what means need is computed."""
    many = np.linspace(-1.0, 11.0, 3000)
    few = oscillator.posterior(many[::60])
    np.testing.assert_allclose(oscillator.predict(many)[::60], few.mean, rtol=0, atol=ROUND_OFF)
    mean, std = oscillator.predict(many, return_std=True)
    np.testing.assert_allclose(mean, oscillator.predict(many), rtol=0, atol=ROUND_OFF)
    np.testing.assert_allclose(std[::60], few.std, rtol=0, atol=PRECISION)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
def test_intervals_end_where_the_law_ends(oscillator: sumgp.ConstrainedGP, level: float) -> None:
    ends = np.stack(oscillator.posterior(np.linspace(-2.0, 12.0, 400)).interval(level))
    assert np.abs(ends).max() <= TOP + 1e-9


def test_spread_far_from_the_data_is_that_of_samples(circle: sumgp.ConstrainedGP) -> None:
    posterior = circle.posterior(np.array([-20.0, 1.0, 8.0, 60.0]))
    samples = posterior.sample(4000, random_state=3)
    assert posterior.std.max() <= 1.0
    np.testing.assert_allclose(posterior.std, samples.std(axis=0), rtol=0.1)
    for probability in (0.05, 0.3, 0.5, 0.8):
        # 4000 samples: three standard errors of a share are 0.024 at most, and 512 draws are coarser than that.
        share = np.mean(samples <= posterior.quantile(probability), axis=0)
        np.testing.assert_allclose(share, probability, atol=0.04)


def test_quantile_probability_and_density_agree(circle: sumgp.ConstrainedGP) -> None:
    posterior = circle.posterior(np.array([-20.0, 8.0]))
    for p in (0.1, 0.5, 0.9):
        np.testing.assert_allclose(posterior.cdf(posterior.quantile(p)), p, atol=1e-6)
    grid = np.linspace(-3.0, 3.0, 601)
    density = np.stack([np.exp(posterior.log_density(np.full((2, 2), value))) for value in grid])
    np.testing.assert_allclose(np.trapezoid(density, grid, axis=0), 1.0, atol=0.02)
    low, high = (int(np.searchsorted(grid, value)) for value in (-0.4, 0.4))
    between = posterior.cdf(np.full((2, 2), 0.4)) - posterior.cdf(np.full((2, 2), -0.4))
    np.testing.assert_allclose(np.trapezoid(density[low:high], grid[low:high], axis=0), between, atol=0.05)


def test_the_score_of_a_drawn_marginal_is_that_of_its_samples(circle: sumgp.ConstrainedGP) -> None:
    posterior = circle.posterior(np.array([8.0, 60.0]))
    truth = np.array([[0.6, 0.8], [-0.8, 0.6]])
    sampled = metrics.crps_samples(posterior.sample(4000, random_state=1), truth)
    assert metrics.crps(posterior, truth) == pytest.approx(sampled, rel=0.05)
