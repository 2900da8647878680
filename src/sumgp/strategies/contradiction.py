"""Whether the data contradict what a law states: a wrong total does more harm than no law."""

from __future__ import annotations

import warnings

import numpy as np

from sumgp.errors import SumGPWarning
from sumgp.laws import Law, typical_rows
from sumgp.strategies.problem import FitProblem

STANDARD_ERRORS = 6.0  # between a stated total and the data's own before a warning
FEWEST_ROWS = 4
ROUND_OFF = 1e-9  # of a value: less than that is how it was written down


def warn_if_contradicted(problem: FitProblem, law: Law, noise: np.ndarray) -> None:
    """Compare what complete rows as measured say about each total with what the law states.

    ``noise`` (T,) are variances in the user's units; through a law's curvature they cause a residual of their own.
    """
    complete = problem.data.measured[:, law.involved()[: problem.n_outputs]].all(axis=1)
    if law.unknowns or law.derivatives or complete.sum() < FEWEST_ROWS:
        return
    typical = problem.scaling.restore(typical_rows(problem.data, problem.scaling))
    filled = np.where(problem.data.measured, problem.data.y, typical)[complete]
    x = problem.data.x[complete]
    active = law.active(x)
    with np.errstate(all="ignore"):
        residual, magnitude = law.residual(filled, x), law.magnitude(filled, x)
    for row in range(law.n_rows):
        used = np.isfinite(residual[:, row]) & np.isfinite(magnitude[:, row]) & active[:, row]
        values = residual[used, row]
        if len(values) < FEWEST_ROWS:
            continue
        round_off = 1e-12 * float(magnitude[used, row].max())
        error = max(float(values.std(ddof=1)) / np.sqrt(len(values)), round_off)
        offset, bias = float(values.mean()), _noise_bias(law, filled, x, row, noise)
        if abs(offset) > STANDARD_ERRORS * error + 2.0 * abs(bias) + float(law.noise[row]):
            warnings.warn(
                f"the data contradict the law {law.labels[row]!r}: measured rows miss it by {offset:.4g} on average, "
                f"with a standard error of {error:.2g}; check the total, or declare it unknown",
                SumGPWarning,
                stacklevel=3,
            )


def warn_if_repeats_contradict(problem: FitProblem) -> None:
    """Rows at the same input that differ by far more than the noise they are said to have."""
    if problem.noise.known is None:
        return
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
            warnings.warn(
                f"noise: rows at the same input differ in {name!r} by {gap[worst]:.3g} from their mean, with a stated "
                f"standard deviation of {sd[seen, t][worst]:.3g}; give a larger one, or leave noise='per-output'",
                SumGPWarning,
                stacklevel=3,
            )


def _noise_bias(law: Law, f: np.ndarray, x: np.ndarray, row: int, noise: np.ndarray) -> float:
    """Mean residual that noise alone causes through the law's curvature (E[z^2] exceeds the true square)."""
    bias = 0.0
    for t, variance in enumerate(noise):
        step = np.sqrt(variance)
        up, down = f.copy(), f.copy()
        up[:, t] += step
        down[:, t] -= step
        with np.errstate(all="ignore"):
            second = law.residual(up, x)[:, row] + law.residual(down, x)[:, row] - 2.0 * law.residual(f, x)[:, row]
        usable = second[np.isfinite(second)]
        bias += 0.5 * float(usable.mean()) if len(usable) else 0.0
    return bias
