"""Curves that noise hides from few rows are found where many rows show them."""

from __future__ import annotations

import numpy as np

import sumgp


def test_a_slow_wave_under_four_times_its_noise() -> None:
    """Hyperparameters were looked for on some of the rows, which show nothing: a flat curve, coverage .2, "converged"."""
    t = np.linspace(0.0, 100.0, 700)
    truth = np.column_stack([np.sin(t / 5.0), np.cos(t / 7.0)])
    truth = np.column_stack([truth, truth.sum(axis=1)])
    Y = truth + 4.0 * np.random.default_rng(1000).standard_normal(truth.shape)
    gp = sumgp.ConstrainedGP(
        "a + b = c", outputs=["a", "b", "c"], inputs=["t"], kernel="rbf", uncertainty="plug-in", restarts=0
    ).fit(t, Y)
    posterior = gp.posterior(t[::10])
    lower, upper = posterior.interval(0.95)
    assert np.sqrt(np.mean((posterior.mean - truth[::10]) ** 2)) < 0.6
    assert np.mean((lower <= truth[::10]) & (truth[::10] <= upper)) > 0.8
