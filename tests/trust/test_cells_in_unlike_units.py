"""Cells that a law fixes keep their digits beside cells of other units."""

from __future__ import annotations

import numpy as np

import sumgp

T = np.linspace(0.0, 1.0, 10)


def test_a_small_current_beside_a_large_voltage() -> None:
    """It was filled with zero, standard deviation zero: rounded to the decimals of a sum with the voltage."""
    volts, amperes = 1e6 * (3.0 + np.cos(5.0 * T)), 1e-9 * (2.0 + np.sin(8.0 * T))
    Y = np.column_stack([volts, amperes, volts * amperes])
    Y[3, 1] = Y[7, 0] = np.nan
    gp = sumgp.ConstrainedGP(
        "v*i = p", outputs=["v", "i", "p"], inputs=["t"], kernel="rbf", uncertainty="plug-in", restarts=0
    ).fit(T, Y)
    filled = gp.completion(T, Y)
    assert filled.determined[3, 1]
    np.testing.assert_allclose(filled.mean[[3, 7], [1, 0]], [amperes[3], volts[7]], rtol=1e-6)
