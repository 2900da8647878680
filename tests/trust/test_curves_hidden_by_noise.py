"""Where noise hides the curves, what is known of their level is no better than the noise of the rows allows."""

from __future__ import annotations

import numpy as np
import pytest

import sumgp

T = np.linspace(0.0, 10.0, 30)


@pytest.mark.parametrize("law", [None, "a + b = c"])
def test_level_of_rows_that_are_all_noise(law: str | None) -> None:
    """Constants were as large as the curves' amplitude: with none, intervals were half as wide as a mean's of the rows."""
    level, noise = np.array([3.0, 5.0, 8.0]), np.array([1.0, 0.5, 1.0])
    ratios = []
    for seed in (1000, 1001, 1002):
        Y = level + noise * np.random.default_rng(seed).standard_normal((len(T), 3))
        gp = sumgp.ConstrainedGP(law, outputs=["a", "b", "c"], inputs=["t"], kernel="rbf").fit(T, Y)
        # Of a level that the law ties to those of the others: generalised least squares with the noise given.
        G = np.eye(3) if law is None else np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        least = np.sqrt(np.diagonal(G @ np.linalg.inv(G.T @ (G / noise[:, None] ** 2)) @ G.T) / len(T))
        ratios.append(gp.posterior(T).std.mean(axis=0) / least)
    assert np.mean(ratios) > 0.9
