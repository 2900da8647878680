"""Curves of many periods are found, not smoothed away, with and without a law; see tools/many_periods.py for the table."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared

import sumgp
from sumgp.hyperparameters.optimise import Objective
from sumgp.hyperparameters.scan import Scan, clustered_rows, row_spacing
from sumgp.priors import Candidate, default_candidates, shown_period
from sumgp.priors.kernels import KernelOnPoints, hyper_priors, local_lengthscales
from sumgp.priors.multitask import MultitaskPrior, NoiseModel
from sumgp.priors.tasks import FLOOR, LEAST_OWN, FullTask, LowRankTask
from sumgp.solvers.dense import DenseEvidence

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import many_periods

HALF = np.array([0.5])


@pytest.mark.parametrize(
    ("periods", "rows", "n_outputs", "law"),
    [(10, 10, 1, None), (25, 4, 2, None), (5, 4, 2, many_periods.ENERGY), (10, 8, 2, many_periods.ENERGY)],
)
def test_table(periods: int, rows: int, n_outputs: int, law: str | None) -> None:
    score = many_periods.score(many_periods.Case(periods, rows, n_outputs, law), seed=0)
    assert score.informed < many_periods.REACHED
    assert score.error < many_periods.BAR
    assert score.coverage >= many_periods.COVERED


@pytest.mark.parametrize("rows", [900, 2000])
def test_the_chirp_of_a_large_table(rows: int) -> None:
    """No one period, 60 turns: thinned rows (two outputs of 900) and a long series."""
    t = np.linspace(0.0, 1.0, rows)
    angle = 2.0 * np.pi * 40.0 * (t + 0.25 * t**2)
    truth = np.column_stack([np.sin(angle), np.cos(angle)])
    Y = truth + 0.05 * np.random.default_rng(0).standard_normal(truth.shape)
    gp = sumgp.ConstrainedGP(outputs=["a", "b"], restarts=0, uncertainty="plug-in").fit(t, Y)
    assert np.sqrt(np.mean((gp.predict(t) - truth) ** 2)) < 0.1


def one_output_prior(x: np.ndarray) -> MultitaskPrior:
    candidate = default_candidates(HALF)[0]
    priors = tuple(tuple(hyper_priors(k, HALF, row_spacing(x / HALF))) for k in candidate.kernels)
    return MultitaskPrior(
        candidate.kernels, priors, (FullTask(1),), NoiseModel(((0,),), np.ones(1)), 1, mean_shape="identity"
    )


@pytest.mark.parametrize("periods", [3, 12, 30])
def test_the_first_start_is_near_the_best_that_a_grid_finds(periods: int) -> None:
    x = np.linspace(-0.5, 0.5, 150)[:, None]
    y = np.sin(2.0 * np.pi * periods * x) / np.sqrt(0.5) + 0.1 * np.random.default_rng(0).standard_normal(x.shape)
    prior = one_output_prior(x)
    objective = Objective(prior, DenseEvidence(prior, x, y))
    start = Scan(x, y).starts(prior, 1)[0]
    grid = [
        np.array([length, size, noise])
        for length in np.linspace(np.log(0.002), 0.0, 25)
        for size in (-0.5, 0.5, 1.5)
        for noise in (-4.0, -2.3, -1.0, 0.0)
    ]
    best = min(objective.value(theta) for theta in grid)
    assert objective.value(start) < best + 15.0
    # From the prior's own start the search of a curve of many periods ends far above.
    assert objective.value(prior.start()) > best + 15.0


def test_a_short_lengthscale_is_no_collapse_where_rows_are_close() -> None:
    few, many = (hyper_priors(RBF(0.5), HALF, row_spacing(np.linspace(-1.0, 1.0, n)[:, None]))[0] for n in (20, 2000))
    assert few.spikes == pytest.approx(np.log(0.005))
    assert many.spikes == pytest.approx(np.log(0.2 * 0.5 * 2.0 / 1999))


def test_the_prior_of_short_lengthscales_has_a_straight_tail() -> None:
    prior = one_output_prior(np.linspace(-0.5, 0.5, 50)[:, None])
    theta = prior.start()
    values, slopes = [], []
    for length in (0.5, 0.2, 0.02, 0.002):
        theta[0] = np.log(length)
        value, gradient = prior.log_prior(theta)
        values.append(value)
        slopes.append(gradient[0])
    assert slopes[2] == pytest.approx(slopes[3]) == pytest.approx(1.5)
    assert values[2] - values[3] == pytest.approx(1.5 * np.log(10.0))
    assert values[0] - values[1] == pytest.approx(0.5 * np.log(2.5) ** 2)


@pytest.mark.parametrize(("task", "own"), [(FullTask(3), 0.0), (LowRankTask(3, 3), LEAST_OWN)])
def test_parameters_like_a_covariance_give_it_back(task: FullTask | LowRankTask, own: float) -> None:
    """Up to the floor, and the share of its own that each output keeps."""
    root = np.random.default_rng(0).standard_normal((3, 3))
    Sigma = root @ root.T + 0.5 * np.eye(3)
    expected = Sigma + np.diag(own * np.diagonal(Sigma) + FLOOR)
    np.testing.assert_allclose(task.covariance(task.like(Sigma)), expected, rtol=1e-3, atol=1e-4)


def test_a_period_is_seen_where_there_is_one() -> None:
    t = np.linspace(0.0, 3.0, 60)[:, None]
    noise = np.random.default_rng(0).standard_normal((60, 3))
    wave = np.column_stack([np.sin(2 * np.pi * t[:, 0] / 0.31), t[:, 0] ** 2, np.cos(2 * np.pi * t[:, 0] / 0.31)])
    found = shown_period(t, wave + 0.1 * noise)
    assert found is not None
    assert found.length == pytest.approx(0.31, rel=0.02)
    assert found.shown_by == (True, False, True)
    assert shown_period(t, noise) is None
    assert shown_period(t, np.column_stack([t, np.sin(t), np.exp(t)])) is None


def test_a_period_of_many_rows_is_found() -> None:
    """It was looked for up to 600 rows only: 700 rows of 3.9 a period held 41 % in their intervals, "converged"."""
    t = np.arange(700.0)[:, None]
    noise = np.random.default_rng(1000).standard_normal((700, 2))
    found = shown_period(t, np.column_stack([np.sin(2 * np.pi * t / 3.9), np.cos(2 * np.pi * t / 3.9)]) + 0.1 * noise)
    assert found is not None
    assert found.length == pytest.approx(3.9, rel=1e-3)


def day_on_a_trend(t: np.ndarray) -> np.ndarray:
    """(n, 3) a daily wave on a trend, a slow wave, and their sum."""
    a, b = t + np.sin(2.0 * np.pi * t + 0.7), 2.0 * np.cos(0.5 * t)
    return np.column_stack([a, b, a + b])


def test_a_period_on_top_of_a_trend_is_seen() -> None:
    t = np.arange(0.0, 10.0, 0.25)
    noise = 0.1 * np.random.default_rng(1000).standard_normal((40, 3))
    found = shown_period(t[:, None], day_on_a_trend(t) + noise)
    assert found is not None
    assert found.length == pytest.approx(1.0, rel=0.02)
    assert (found.shown_by, found.beside) == ((False,) * 3, (True, False, True))
    own = [c for c in default_candidates(HALF, 3, separable=False, period=found) if c.own]
    assert [type(k).__name__ for k in own[-1].kernels] == ["Sum", "RBF", "Sum"]
    slow = np.column_stack([np.exp(0.2 * t), np.cos(0.5 * t), t**3])
    assert shown_period(t[:, None], slow) is None
    assert shown_period(t[:, None], slow + noise) is None


def test_a_period_that_one_output_shows_is_sought_on_top_of_the_trend_of_another() -> None:
    t = np.arange(0.0, 10.0, 0.25)
    found = shown_period(t[:, None], np.column_stack([np.sin(2.0 * np.pi * t), t**2 + np.cos(2.0 * np.pi * t)]))
    assert found is not None
    assert (found.shown_by, found.beside) == ((True, False), (False, True))


@pytest.mark.parametrize("law", [None, "a + b = c"])
def test_a_daily_wave_on_a_trend_is_followed(law: str | None) -> None:
    """Four rows a day: the wave was taken for noise, with errors of seven of its standard deviations and "converged"."""
    t, new = np.arange(0.0, 10.0, 0.25), np.linspace(0.0, 9.75, 100)
    Y = day_on_a_trend(t) + 0.1 * np.random.default_rng(1000).standard_normal((40, 3))
    columns = slice(None) if law else slice(1)
    gp = sumgp.ConstrainedGP(law, outputs=["a", "b", "c"][columns], inputs=["t"], uncertainty="plug-in")
    posterior = gp.fit(t, Y[:, columns]).posterior(new)
    truth = day_on_a_trend(new)[:, columns]
    lower, upper = posterior.interval()
    assert np.sqrt(np.mean((posterior.mean - truth) ** 2)) < 0.1
    assert np.mean((lower <= truth) & (truth <= upper)) > 0.85


def test_quasi_periodic_kernel_in_closed_form() -> None:
    kernel = ExpSineSquared(1.3, 0.4) * RBF(0.7)
    x = np.random.default_rng(0).uniform(0.0, 2.0, (7, 1))
    K, gradient = KernelOnPoints(kernel, x).matrix_and_gradient(kernel.theta)
    expected, slopes = kernel(x, eval_gradient=True)
    np.testing.assert_allclose(K, expected, rtol=1e-12)
    np.testing.assert_allclose(gradient, np.moveaxis(slopes, 2, 0), atol=1e-12)
    assert local_lengthscales(kernel, kernel.theta) == pytest.approx([1.3 * 0.4 / (2 * np.pi)])


def test_clusters_hold_neighbours_from_the_whole_range() -> None:
    x = np.linspace(0.0, 1.0, 1000)[:, None]
    rows = clustered_rows(x, 90, 3)
    assert len(rows) == 90
    assert np.sum(np.diff(rows) == 1) == 87
    assert np.ptp(rows) > 600


def test_each_output_chooses_between_smooth_and_repeating() -> None:
    t = np.linspace(0.0, 1.0, 40)[:, None]
    found = shown_period(t, np.column_stack([np.sin(50 * t), t]))
    own = [c for c in default_candidates(HALF, 2, separable=False, period=found) if c.own]
    assert [type(k).__name__ for k in own[-1].kernels] == ["Product", "RBF"]
    assert isinstance(own[-1], Candidate)


def long_wave(periods: float, rows: int) -> tuple[np.ndarray, np.ndarray]:
    t = np.linspace(0.0, 2.0 * np.pi * periods, rows)
    return t, np.column_stack([np.sin(t), np.cos(t)]) + 0.05 * np.random.default_rng(0).standard_normal((rows, 2))


def test_waves_that_a_long_series_does_not_follow_are_named() -> None:
    """2.2 rows a period: nothing but a periodic curve can follow; a flat one must not be called converged."""
    t, Y = long_wave(900.0, 2000)
    gp = sumgp.ConstrainedGP(None, outputs=["z", "v"], inputs=["t"])
    with pytest.warns(sumgp.SumGPWarning, match=r"period of about 6\.28"):
        gp.fit(t, Y)
    assert "do not follow" in gp.fit_report_.status


@pytest.mark.parametrize(("rows", "told"), [(2000, True), (3500, False)])
def test_noise_that_passes_for_a_rough_curve_under_a_law_with_derivatives(rows: int, told: bool) -> None:
    """Four rows a period: the bands are too narrow, and the status says so; seven: they are right."""
    t, Y = long_wave(500.0, rows)
    gp = sumgp.ConstrainedGP("d(z, t) = v", outputs=["z", "v"], inputs=["t"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sumgp.SumGPWarning)
        gp.fit(t, Y)
    assert ("told from noise" in gp.fit_report_.status) == told
    new = np.random.default_rng(1).uniform(0.0, t[-1], 500)
    truth = np.column_stack([np.sin(new), np.cos(new)])
    lower, upper = gp.posterior(new).interval(0.95)
    assert (np.mean((lower <= truth) & (truth <= upper)) < 0.85) == told
