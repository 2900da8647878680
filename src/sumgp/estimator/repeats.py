"""Rows at the same input beside the noise that was stated for them."""

from __future__ import annotations

import numpy as np

from sumgp.errors import warn
from sumgp.strategies import FitProblem

STANDARD_ERRORS = 6.0  # stated standard deviations of the noise
ROUND_OFF = 1e-9  # of a value: less than that is how it was written down


def warn_if_repeats_contradict(problem: FitProblem) -> None:
    """Rows at the same input that differ by far more than the noise they are said to have, which is known."""
    data, sd = problem.data, np.sqrt(problem.noise.variances(np.zeros(0))) * problem.scaling.y_scale
    _, place = np.unique(data.x, axis=0, return_inverse=True)
    for t, name in enumerate(data.output_names):
        seen = data.measured[:, t]
        count = np.bincount(place[seen])
        mean = np.bincount(place[seen], data.y[seen, t]) / np.maximum(count, 1)
        gap = np.abs(data.y[seen, t] - mean[place[seen]])
        stated = STANDARD_ERRORS * sd[seen, t] + ROUND_OFF * np.abs(data.y[seen, t])
        if np.any(gap > stated):
            worst = int(np.argmax(gap - stated))
            warn(
                f"noise: rows at the same input differ in {name!r} by {gap[worst]:.3g} from their mean, with a stated "
                f"standard deviation of {sd[seen, t][worst]:.3g}; give a larger one, or leave noise='per-output'"
            )
