"""Virtual measurements: where an auxiliary output passes from one branch of h to the next, h(f) is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from sumgp.data import Data
from sumgp.numerics import standard_normal
from sumgp.transforms import Transform

PIECES = 8  # of each segment between neighbouring inputs that is searched for switches
PRECISE = 1e-12  # share of a piece up to which a switch is located
MOST_ROUNDS = 60  # bisections of an interval down to round-off

# (n, D + E) inputs in the user's units -> means and standard deviations (n, T) of the outputs in the user's units
Guide = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Switch:
    """h(f) of one output at one input: ``value`` up to ``sd``, in the user's units."""

    output: int
    x: np.ndarray  # (D + E,)
    value: float
    sd: float


def find_switches(guide: Guide, data: Data, terms: list[tuple[int, Transform]]) -> tuple[Switch, ...]:
    """Switches of the guide's mean along the segments between neighbouring inputs, located by root finding.

    A mean that crosses several critical points between two inputs gives one switch for each, in either direction.
    """
    branched = [(output, h) for output, h in terms if not h.monotone and h.is_continuous]
    starts, ends = segments(data)
    if not branched or not len(starts):
        return ()
    share = np.linspace(0.0, 1.0, PIECES + 1)
    grid = starts[:, None, :] + share[None, :, None] * (ends - starts)[:, None, :]
    means = guide(grid.reshape(-1, grid.shape[2]))[0].reshape(len(starts), PIECES + 1, -1)
    crossings = []
    for output, h in branched:
        for segment in range(len(starts)):
            for piece in range(PIECES):
                low, high = means[segment, piece, output], means[segment, piece + 1, output]
                for point in h.critical_points(min(low, high), max(low, high)):
                    # A mean that touches the critical point at the end of a piece is counted with the next piece.
                    if point != high:
                        ends_here = grid[segment, piece], grid[segment, piece + 1]
                        crossings.append(_Crossing(output, h, point, *ends_here, low - point, high - point))
    return _located(guide, crossings) if crossings else ()


@dataclass(frozen=True)
class _Crossing:
    """A piece between ``start`` and ``end``, with the mean minus the critical point there: of different signs."""

    output: int
    h: Transform
    point: float
    start: np.ndarray
    end: np.ndarray
    at_start: float
    at_end: float


def _located(guide: Guide, crossings: list[_Crossing]) -> tuple[Switch, ...]:
    """All switches at once: the guide costs the same for many points as for one."""
    start, end = np.stack([c.start for c in crossings]), np.stack([c.end for c in crossings])
    each, output = np.arange(len(crossings)), np.array([c.output for c in crossings])
    point = np.array([c.point for c in crossings])

    def inputs(share: np.ndarray) -> np.ndarray:
        return start + share[:, None] * (end - start)

    def offset(share: np.ndarray) -> np.ndarray:
        return guide(inputs(share))[0][each, output] - point

    x = inputs(_roots(offset, np.array([c.at_start for c in crossings]), np.array([c.at_end for c in crossings])))
    sds = guide(x)[1][each, output]
    return tuple(
        Switch(c.output, at, float(c.h.value(np.array(c.point))), _spread(c.h, c.point, float(sd)))
        for c, at, sd in zip(crossings, x, sds, strict=True)
    )


def _roots(function: Callable[[np.ndarray], np.ndarray], at_zero: np.ndarray, at_one: np.ndarray) -> np.ndarray:
    """Zeros between 0 and 1 of many functions at once, by regula falsi with halved ends (Illinois).

    ``at_zero`` and ``at_one`` are the functions' values there, of different signs.
    """
    other, best = np.zeros(len(at_zero)), np.ones(len(at_zero))
    f_other, f_best = at_zero.astype(float), at_one.astype(float)
    for _ in range(MOST_ROUNDS):
        going = f_best != 0
        step = np.where(going, f_best * (best - other) / np.where(going, f_best - f_other, 1.0), 0.0)
        trial = best - step
        f_trial = np.where(going, function(trial), 0.0)
        crossed = f_trial * f_best <= 0
        other = np.where(going & crossed, best, other)
        f_other = np.where(going, np.where(crossed, f_best, 0.5 * f_other), f_other)
        best, f_best = trial, f_trial
        if np.all(np.abs(step) < PRECISE):
            break
    return best


def _spread(h: Transform, point: float, sd: float) -> float:
    """E |h(c + e) - h(c)|, e ~ N(0, sd^2): sd^2 for the square, whose value at the switch is known that well."""
    z, weights = standard_normal(24)
    values = h.relaxed(max(abs(point), sd)).value(point + sd * z)
    return float(weights @ np.abs(values - h.value(np.array(point))))


def segments(data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Ends (k, D + E) of the segments searched for switches.

    One input: between consecutive inputs, and one median gap beyond either end. Several: to the nearest neighbours.
    """
    x = np.unique(data.x, axis=0)
    if len(x) < 2:
        return np.empty((0, x.shape[1])), np.empty((0, x.shape[1]))
    if data.n_inputs > 1:
        scale = np.ptp(x[:, : data.n_inputs], axis=0)
        scaled = x[:, : data.n_inputs] / np.where(scale > 0, scale, 1.0)
        _, near = cKDTree(scaled).query(scaled, k=min(data.n_inputs + 2, len(x)))
        pairs = np.unique(np.sort([(i, j) for i, row in enumerate(near) for j in row if j != i], axis=1), axis=0)
        return x[pairs[:, 0]], x[pairs[:, 1]]
    starts, ends = x[:-1], x[1:]
    distinct = ends[:, 0] > starts[:, 0]
    starts, ends = starts[distinct], ends[distinct]
    if data.extra_columns or not len(starts):
        return starts, ends
    gap = np.median(ends - starts, axis=0)
    return np.vstack([x[:1] - gap, starts, x[-1:]]), np.vstack([x[:1], ends, x[-1:] + gap])
