"""Maps of outputs that depend on each other along a curve: neither is a multiple of the other."""

from __future__ import annotations

import numpy as np

import sumgp

ROWS, ASKED = 1000, 300
NOISE = np.array([0.05, 0.5])


def test_a_share_and_its_log_odds_are_not_taken_for_multiples() -> None:
    """The evidence favours one latent for both outputs, whose intervals of the log-odds then hold 66 %."""
    generator = np.random.default_rng(3001)
    x = generator.uniform(0, 6, (ROWS + ASKED, 2))
    a = np.sin(x[:, 0] + generator.uniform(0, 6)) * np.cos(x[:, 1] + generator.uniform(0, 6))
    truth = np.column_stack([1 / (1 + np.exp(-3 * a)), 3 * a])
    y = truth + NOISE * generator.standard_normal(truth.shape)
    gp = sumgp.ConstrainedGP(inputs=["u", "v"], outputs=["p", "o"], solver=sumgp.Vecchia()).fit(x[:ROWS], y[:ROWS])
    points = gp.posterior(x[ROWS:])
    lower, upper = points.interval(0.95)
    held = np.mean((lower <= truth[ROWS:]) & (truth[ROWS:] <= upper), axis=0)
    error = np.sqrt(np.mean((points.mean - truth[ROWS:]) ** 2, axis=0)) / NOISE
    assert held[1] > 0.78  # of log-odds: .66 without a floor below latents, .86 with it
    assert error[1] < 0.28  # sds of the noise: .316 without, .245 with
