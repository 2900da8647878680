"""Whether a fit can be believed: the law holds at the data, and noise explains every measured value."""

from __future__ import annotations

import warnings

import numpy as np

from sumgp.data import find_wild_values, warn_of_wild_values
from sumgp.errors import SumGPWarning
from sumgp.laws import Law
from sumgp.prediction import Posterior
from sumgp.strategies import FitProblem

HELD = 1e-6  # residual of the mean, relative to the law's terms, up to which a law holds
MOST_ROWS = 300  # at which a fit is looked at
ROBUST_SD = 1.4826  # of a normal distribution, times the median of absolute deviations
UNEXPLAINED = 10.0  # robust standard deviations of the residuals
UNEXPLAINED_BY_KNOWN = 8.0  # stated standard deviations of the noise
UNEXPLAINED_SIZE = 3.0  # standard deviations of the output
MISFIT = 4.0  # rms distance of the data from the mean, in standard deviations of the noise
MISFIT_SIZE = 0.1  # and in standard deviations of the output: less is of no matter


def looked_at(problem: FitProblem) -> np.ndarray:
    """(n,) rows of the data at which a fit is looked at: all, or evenly chosen ones of many."""
    count = len(problem.data.x)
    return np.unique(np.linspace(0, count - 1, min(count, MOST_ROWS)).round().astype(int))


def checked_status(problem: FitProblem, posterior: Posterior, rows: np.ndarray, law: Law | None) -> str:
    """What a status must say besides "converged", empty where nothing is wrong; warns of it and of unexplained values.

    ``posterior`` is that at these rows of the data.
    """
    wild = find_wild_values(problem.data)
    warn_of_wild_values(wild)
    if not wild:
        warn_of_unexplained_values(problem, posterior, rows)
    failure = "" if law is None else law_failure(posterior, law) or data_misfit(problem, posterior, rows)
    if failure:
        warnings.warn(f"{failure}; check the law and its constants against the data", SumGPWarning, stacklevel=3)
        return failure
    return f"converged, but {wild[0].output!r} has {wild[0].value:g} in row {wild[0].rows[0]}" if wild else ""


def law_failure(posterior: Posterior, law: Law) -> str:
    """How the mean misses the law, in words; empty where it holds at all points.

    A residual is compared with the law's largest term plus what a change of each output by its own scale does.
    """
    residual, f, x = posterior.residual(), posterior.mean, posterior.x
    if residual.shape[1] != law.n_rows:
        return ""
    f = np.concatenate([f, posterior.law_columns()], axis=1)
    with np.errstate(all="ignore"):
        slopes = np.abs(law.jacobian(f, x))[:, :, : posterior.mean.shape[1]] @ posterior.scaling.y_scale
        size = np.nan_to_num(law.magnitude(f, x)) + np.nan_to_num(slopes)
        missed = np.abs(residual) > HELD * size
    hard = law.active(x) & (law.noise == 0)
    undefined = np.isnan(residual) & hard
    bad = (undefined | missed) & hard
    if not bad.any():
        return ""
    first, row = np.argwhere(bad)[0]
    what = "is not defined" if undefined[first, row] else f"is missed by {residual[first, row]:.2g}"
    count = int(bad.any(axis=1).sum())
    return f"law {law.labels[row]!r} {what} at x = {np.round(x[first], 6).tolist()} ({count} of {len(x)} rows)"


def data_misfit(problem: FitProblem, posterior: Posterior, rows: np.ndarray) -> str:
    """How the mean misses the data of an output by far more than the noise it was given, in words; empty where it does not.

    No fit to the data alone does that: a law that they contradict pulls it away.
    """
    y, scale = problem.data.y[rows], problem.scaling.y_scale
    noise = posterior.fitted.weights @ np.array([component.noise for component in posterior.fitted.components])
    variance = np.broadcast_to(noise, y.shape) if problem.noise.known is None else problem.noise.known[rows]
    for t, name in enumerate(problem.data.output_names):
        seen = ~np.isnan(y[:, t])
        if not seen.any():
            continue
        gap = (y[seen, t] - posterior.mean[seen, t]) / scale[t]
        distance, size = np.sqrt(np.mean(gap**2 / variance[seen, t])), np.sqrt(np.mean(gap**2))
        if distance > MISFIT and size > MISFIT_SIZE:
            return f"the law pulls {name!r} away from its data by {distance:.3g} standard deviations of the noise"
    return ""


def warn_of_unexplained_values(problem: FitProblem, posterior: Posterior, rows: np.ndarray) -> None:
    """Name the measured value of each output that the fit's noise explains least, where it cannot.

    It is further from the mean than others by far, and by more than the stated noise or the output's own size allow.
    """
    y, scale = problem.data.y[rows], problem.scaling.y_scale
    gap = np.abs(y - posterior.mean)
    known = problem.noise.known
    for t, name in enumerate(problem.data.output_names):
        seen = ~np.isnan(gap[:, t])
        if seen.sum() < 4:
            continue
        allowed = UNEXPLAINED_SIZE * scale[t] * np.ones(len(rows))
        if known is not None:
            allowed = UNEXPLAINED_BY_KNOWN * np.sqrt(known[rows, t]) * scale[t] + 1e-9 * np.abs(y[:, t])
        allowed = np.maximum(allowed, UNEXPLAINED * ROBUST_SD * np.median(gap[seen, t]))
        excess = np.where(seen, gap[:, t] / np.where(seen, allowed, 1.0), 0.0)
        if excess.max() > 1.0:
            worst = int(np.argmax(excess))
            warnings.warn(
                f"Y: row {rows[worst]}, output {name!r} is {y[worst, t]:.6g} where the fit says "
                f"{posterior.mean[worst, t]:.4g}; no noise of the size seen in the other rows explains that: correct the "
                "value, write NaN if it was not measured, or give it a larger noise= of its own",
                SumGPWarning,
                stacklevel=3,
            )
