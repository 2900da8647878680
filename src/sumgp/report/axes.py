"""Axes of a figure: which values are shown, where they lie, and which of them are written beside the axis."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
ABOUT = 5  # parts that ticks cut an axis into, at most
MOST_DECADES = 6


@dataclass(frozen=True)
class Axis:
    """Values ``low`` to ``high`` drawn from place ``start`` to ``end``; logarithmic axes have positive values."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def places(self, values: np.ndarray) -> np.ndarray:
        """start + (v - low) / (high - low) (end - start), of the logarithms on a logarithmic axis."""
        low, high = (math.log10(self.low), math.log10(self.high)) if self.logarithmic else (self.low, self.high)
        v = np.asarray(values, dtype=float)
        with np.errstate(all="ignore"):
            v = np.log10(v) if self.logarithmic else v
            return self.start + (v / (high - low) - low / (high - low)) * (self.end - self.start)

    def ticks(self) -> list[tuple[float, str]]:
        """Places of the ticks and what is written there."""
        values = _decades(self.low, self.high) if self.logarithmic else round_values(self.low, self.high)
        texts = [f"{value:.0e}" for value in values] if self.logarithmic else written(values)
        return [(float(place), text) for place, text in zip(self.places(values), texts, strict=True)]


def axis_over(values: Iterable[np.ndarray], margin: float, start: float, end: float, logarithmic: bool = False) -> Axis:
    """The axis that shows all finite values, with ``margin`` of their range left free at both ends."""
    found = np.concatenate([np.zeros(0), *(np.ravel(np.asarray(v, dtype=float)) for v in values)])
    found = found[np.isfinite(found) & ((found > 0) | (not logarithmic))]
    if not len(found):
        return Axis(0.1 if logarithmic else 0.0, 1.0, start, end, logarithmic)
    low, high = float(found.min()), float(found.max())
    if logarithmic:
        free = margin * max(math.log10(high) - math.log10(low), 1.0)
        return Axis(max(low * 10.0**-free, 1e-307), min(high * 10.0**free, 1e307), start, end, True)
    # Values that differ by rounding alone are one value.
    if high / 2 - low / 2 <= 1e-12 * max(abs(low), abs(high)):
        room = 0.5 * max(abs(low), abs(high)) or 0.5
    else:
        room = margin * (high / 2 - low / 2) * 2
    return Axis(low - room, high + room, start, end)


def round_values(low: float, high: float) -> np.ndarray:
    """Multiples of 1, 2, 2.5 or 5 times a power of ten between low and high, at most six of them."""
    rough = high / ABOUT - low / ABOUT
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in STEPS if s * power >= rough * (1 - 1e-9))
    return step * np.arange(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)


def written(values: np.ndarray) -> list[str]:
    """The values with as many digits as tell them apart, alike for all."""
    largest = float(np.max(np.abs(values), initial=0.0))
    step = float(np.min(np.diff(values), initial=max(largest, 1e-300)))
    if step >= 1e-4 and largest < 1e6:
        digits = next(d for d in range(9) if d == 8 or np.all(np.abs(np.round(values, d) - values) < 1e-6 * step))
        return [f"{value:.{digits}f}".replace("-", "\u2212") for value in np.round(values, digits) + 0.0]
    digits = min(max(2, math.ceil(math.log10(max(largest / step, 1.0))) + 2), 15)
    return [f"{value:.{digits}g}".replace("-", "\u2212") for value in values]


def _decades(low: float, high: float) -> np.ndarray:
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last < first:
        return np.array([math.sqrt(low) * math.sqrt(high)])
    every = -(-(last - first + 1) // MOST_DECADES)
    return 10.0 ** np.arange(first, last + 1, every)
