"""Candidates with their maxima: what is kept of them belongs to the maximum it was computed at."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sumgp.errors import Status
from sumgp.hyperparameters import MapEstimate
from sumgp.strategies import Candidates


def fourth_power(theta: np.ndarray) -> tuple[float, np.ndarray]:
    return float(np.sum(theta**4)), 4.0 * theta**3


def at(theta: float) -> MapEstimate:
    return MapEstimate(np.array([theta]), theta**4, Status.CONVERGED, ())


def test_a_curvature_is_that_at_the_present_maximum() -> None:
    prior: Any = None
    objective: Any = fourth_power
    found = Candidates((prior,), (objective,), (at(1.0),))
    moved = replace(found, maxima=(at(2.0),))
    for candidates, expected in ((found, 12.0), (moved, 48.0), (found.only([0]), 12.0)):
        np.testing.assert_allclose(candidates.curvature(0), [[expected]], rtol=1e-3)
