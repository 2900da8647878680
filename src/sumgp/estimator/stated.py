"""Whether what was stated besides the law agrees with the data: bounds, and the size of the noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sumgp.errors import warn
from sumgp.estimator.soundness import law_failure, noise_variances
from sumgp.laws import Law
from sumgp.prediction import Posterior
from sumgp.strategies import FitProblem

OUTSIDE = 5.0  # standard deviations of the noise by which a measured value is outside a bound, no longer by chance
OUTSIDE_SIZE = 0.01  # and standard deviations of the output: less does not matter
STANDARD_ERRORS = 6.0  # between repeated rows, in those of the stated noise, before a warning
ROUND_OFF = 1e-9  # of a value: less than that is how it was written down


def bounds_status(problem: FitProblem, posterior: Posterior, rows: np.ndarray, law: Law | None) -> str:
    """What a status must say of bounds besides "converged", empty where nothing is wrong; warns where the data contradict.

    ``posterior`` is that at these rows of the data, ``law`` as it was stated.
    """
    if posterior.ends is None:
        return ""
    beyond = data_beyond(problem, posterior, rows)
    if beyond:
        warn(f"{beyond}; check the bounds against the data")
        return beyond
    if law is None or not law.derivatives:
        return ""
    # One point has no slope: where an output moves, what a law says of its derivatives is no longer met.
    moved = np.abs(posterior.mean - replace(posterior, bounding=None).mean) > ROUND_OFF * problem.scaling.y_scale
    failure = law_failure(replace(posterior, law=law), law) if moved.any() else ""
    return f"converged, but bounds move points off a law with derivatives: {failure}" if failure else ""


def data_beyond(problem: FitProblem, posterior: Posterior, rows: np.ndarray) -> str:
    """Which output has two or more measured values outside its bounds by more than noise explains, in words; else empty."""
    assert posterior.ends is not None
    far = posterior.ends.distances(problem.data.y[rows]) / problem.scaling.y_scale
    in_noise = far / np.sqrt(noise_variances(problem, posterior, rows))
    count = np.sum((in_noise > OUTSIDE) & (far > OUTSIDE_SIZE), axis=0)
    t = int(count.argmax())
    words = f"{count[t]} of {len(rows)} measured values of {problem.data.output_names[t]!r} lie outside its bounds "
    return "" if count[t] < 2 else f"{words}by more than noise explains, by up to {in_noise[:, t].max():.3g} of its sds"


def warn_if_repeats_contradict(problem: FitProblem) -> None:
    """Rows at the same input that differ by far more than the noise they are said to have."""
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
                f"noise: rows at the same input differ from their mean in {name!r} by {gap[worst]:.3g}, although the stated "
                f"standard deviation is {sd[seen, t][worst]:.3g}; give a larger one, or leave noise='per-output'"
            )
