"""Outputs never measured, on one side only, or not in a gap, and unknown constants: what a law leaves open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sumgp.errors import doubted
from sumgp.laws import UNKNOWN_VARIANCE, Law
from sumgp.prediction import Posterior, constants_posterior
from sumgp.strategies import Component, FitProblem, Fitted, warn_of_open_constants

REACH = 3.0  # how far another value is looked for, in the largest value of the output
TRIED = 200  # values of the output at each row
OPEN = 0.5  # share of the rows, of an output that was never measured
BEYOND = 0.25  # share of the range that is on other sides of folds than every measurement: half a period of a circle
FOLD = 0.4  # branches nearer to each other than this share of their largest distance may meet: a mean that stays on
# one of two branches keeps off the place itself
UNKNOWN = 3.0  # standard deviations of an output that was never measured, in its size: a potential, whose level no law
# tells, has about 1; a position of which only the acceleration is measured 10 and more
GRID = 120  # points over the range of one input, on which folds are looked for
WIDEST = 20  # gaps between rows that are looked at
WITHIN = 2.0  # standard deviations given the data alone within which an output may lie on either side of a fold


def open_branch(posterior: Posterior, law: Law, measured: np.ndarray, at: Callable[[np.ndarray], Posterior]) -> str:
    """What a status must say where another value of an output meets the law as well, the other outputs being what they
    are, and no measurement decides; empty elsewhere. ``measured`` (n, T) truth at the rows of the posterior; ``at`` gives
    the posterior at other inputs. Warns.
    """
    if law.derivatives or len(posterior.output_names) + posterior.law_columns().shape[1] != law.n_columns:
        return ""
    for t in np.flatnonzero(np.mean(measured, axis=0) < 1.0 - BEYOND):
        name, seen = posterior.output_names[t], measured[:, t]
        found = _values(posterior, law, int(t))
        if not np.any(seen) and np.mean(found.several) > OPEN:
            words = f"the law leaves open on which of its branches {name!r} lies, which was never measured"
            return doubted(words, f"; measure it, or bound it, e.g. '{name} >= 0'")
        # Measured on two branches, an output is known to go from one to the other.
        if np.any(seen) and np.ptp(found.below[seen]) == 0 and np.mean(found.several & ~seen) > BEYOND:
            if _share_beyond_folds(posterior, law, int(t), seen, at) <= BEYOND:
                continue
            words = f"the law leaves open on which of its branches {name!r} lies beyond where it was measured"
            remedy = f"measure it on other sides of the places where branches meet, or bound it, e.g. '{name} >= 0'"
            return doubted(words, f"; {remedy}")
    return ""


def open_turn(problem: FitProblem, fitted: Fitted) -> str:
    """What a status must say of a gap between the rows of one input in which every output of a law may lie on either side of
    its folds, so that the curve may go round the law either way and any number of times; the fit follows one of them. Warns.
    """
    rows = np.unique(problem.data.x[problem.data.measured.any(axis=1)], axis=0)
    parts = [(w, c) for w, c in zip(fitted.weights, fitted.components, strict=True) if isinstance(c, Component) and c.law]
    if rows.shape[1] != 1 or len(rows) < 2 or not parts:
        return ""
    gaps = np.argsort(-np.diff(rows[:, 0]), kind="stable")[:WIDEST]
    x = np.concatenate([rows[gaps], 0.5 * (rows[gaps] + rows[gaps + 1]), rows[gaps + 1]])
    share = sum(w * _undecided(component, problem.scaling.inputs(x), x) for w, component in parts)
    before, middle, after = np.reshape(share, (3, -1)) > OPEN
    found = middle & ~before & ~after  # rows that tell nothing themselves are no matter of gaps
    if not found.any():
        return ""
    widest = gaps[int(np.argmax(found))]
    where = f"between {problem.data.input_names[0]} = {rows[widest, 0]:.4g} and {rows[widest + 1, 0]:.4g}"
    words = f"{where} the law leaves open which way round it is met"
    remedy = "measure in between, or give a kernel with the period if there is one"
    return doubted(words, f"; intervals there hold one way only: {remedy}")


def _undecided(component: Component, x: np.ndarray, x_law: np.ndarray) -> np.ndarray:
    """(n,) truth: data alone leave the sign of a law's slope by each of its outputs open."""
    law = component.law
    assert law is not None
    mean, root = component.posterior.carried(x, x_law)
    turned, named = [], []
    for t in range(component.n_outputs):
        step = np.zeros_like(mean)
        step[:, t] = WITHIN * np.sqrt(np.einsum("nw,nw->n", root[:, t], root[:, t]))
        below, above = law.jacobian(mean - step, x_law)[:, :, t], law.jacobian(mean + step, x_law)[:, :, t]
        turned.append(below * above < 0)
        named.append((below != 0) | (above != 0))
    return np.any(np.all(np.array(turned) | ~np.array(named), axis=0) & np.any(named, axis=0), axis=1)


def resting_on_prior(posterior: Posterior, measured: np.ndarray) -> str:
    """What a status must say of an output that was never measured and that law and data hardly determine: its standard
    deviation is far above the size of its mean, so that both come from the prior. Empty elsewhere. Warns.
    """
    for t in np.flatnonzero(~np.any(measured, axis=0)):
        size, sd = np.sqrt(np.mean(posterior.mean[:, t] ** 2)), np.median(posterior.std[:, t])
        if sd > UNKNOWN * size:
            words = f"law and data hardly determine {posterior.output_names[t]!r}, which was never measured"
            found = f"it is about {size:.2g} with a standard deviation of {sd:.2g}"
            return doubted(words, f": {found}; measure it at a few rows")
    return ""


def open_constants(posterior: Posterior) -> dict[str, Any]:
    """Warnings of the unknown constants of a law without derivatives that law and data leave open, for the report. Warns."""
    fitted, x = posterior.fitted, posterior.x[:1]
    found = constants_posterior(fitted, posterior.scaling.inputs(x), x)
    if fitted.law is None or not found.names:
        return {}
    prior_sd = np.sqrt(UNKNOWN_VARIANCE) * fitted.law.scale[fitted.law.constants]
    return warn_of_open_constants(found.names, found.mean(), found.covariance(), prior_sd)


@dataclass(frozen=True)
class _Values:
    """(n,) of one output: whether two values of it or more meet the law, how many of them are below the mean, and how far
    the next one is from the mean (0 where two have met)."""

    several: np.ndarray
    below: np.ndarray
    distance: np.ndarray


def _values(posterior: Posterior, law: Law, t: int) -> _Values:
    """Values of output t that meet the one law that holds it."""
    f = np.concatenate([posterior.mean, posterior.law_columns()], axis=1)
    with np.errstate(all="ignore"):
        rows = np.flatnonzero(np.any(law.jacobian(f, posterior.x)[:, :, t] != 0, axis=0))
        if len(rows) != 1:
            return _Values(np.zeros(len(f), dtype=bool), np.zeros(len(f)), np.full(len(f), np.inf))
        reach = REACH * np.abs(f[:, t]).max()
        values = np.linspace(-reach, reach, TRIED)
        tried = np.repeat(f[:, None, :], TRIED, axis=1)
        tried[:, :, t] = values
        x = np.repeat(posterior.x, TRIED, axis=0)
        residual = law.residual(tried.reshape(-1, f.shape[1]), x)[:, rows[0]].reshape(len(f), TRIED)
    allowed = np.isfinite(residual)
    if posterior.ends is not None:
        limits = posterior.ends.limits
        allowed &= (values >= limits.lower[:, t : t + 1]) & (values <= limits.upper[:, t : t + 1])
    crossed = (np.sign(residual[:, 1:]) != np.sign(residual[:, :-1])) & allowed[:, 1:] & allowed[:, :-1]
    # A pole changes sign without a value that meets the law.
    small = np.minimum(np.abs(residual[:, 1:]), np.abs(residual[:, :-1])) < np.median(np.abs(residual), axis=1)[:, None]
    crossed &= small
    count = np.sum(crossed, axis=1)
    away = np.where(crossed, 0.5 * (values[1:] + values[:-1]) - f[:, t : t + 1], np.inf)
    step = values[1] - values[0]
    next_one = np.sort(np.abs(away), axis=1)[:, 1]
    return _Values(count > 1, np.sum(away < -step, axis=1), np.where(count == 0, 0.0, next_one))


def _share_beyond_folds(
    posterior: Posterior, law: Law, t: int, seen: np.ndarray, at: Callable[[np.ndarray], Posterior]
) -> float:
    """Share of the range of one input that folds part from every measurement of output t and every only value."""
    if posterior.x.shape[1] != 1:
        return 0.0
    x = posterior.x[:, 0]
    grid = np.linspace(x.min(), x.max(), GRID)
    found = _values(at(grid[:, None]), law, t)
    largest = np.max(found.distance, where=np.isfinite(found.distance), initial=0.0)
    fold = found.distance < FOLD * largest
    side = np.cumsum(np.diff(fold.astype(int), prepend=0) != 0)
    decided = np.isin(side, side[np.searchsorted(grid, x[seen]).clip(max=GRID - 1)])
    decided |= np.isin(side, side[~found.several & ~fold])
    return float(np.mean(~fold & ~decided))
