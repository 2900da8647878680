"""Virtual measurements: where an auxiliary output passes from one branch of h to the next, h(f) is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from sumgp.data import Data
from sumgp.numerics import Bracket, bracketed_roots, standard_normal
from sumgp.transforms import Transform

PIECES = 8  # of each segment between neighbouring inputs that is searched for switches
PRECISE = 1e-12  # of a piece, and of the mean's change along it, up to which a switch is located

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

    ends = np.array([[c.at_start, c.at_end] for c in crossings])
    sign = np.sign(ends[:, 1])
    largest = np.abs(ends).max(axis=1)

    def offset(share: np.ndarray, rows: np.ndarray) -> np.ndarray:
        x = start[rows] + share[:, None] * (end - start)[rows]
        return sign[rows] * (guide(x)[0][each[: len(rows)], output[rows]] - point[rows])

    def close(value: np.ndarray, width: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return (np.abs(value) <= PRECISE * largest[rows]) | (width < PRECISE)

    bracket = Bracket(np.zeros(len(sign)), np.ones(len(sign)), sign * ends[:, 0], sign * ends[:, 1])
    x = start + bracketed_roots(offset, bracket, close)[:, None] * (end - start)
    sds = guide(x)[1][each, output]
    return tuple(
        Switch(c.output, at, float(c.h.value(np.array(c.point))), _spread(c.h, c.point, float(sd)))
        for c, at, sd in zip(crossings, x, sds, strict=True)
    )


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
