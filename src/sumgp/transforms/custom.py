"""A transform given by Python functions, inverted numerically where no inverse is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sumgp.numerics import bisected
from sumgp.transforms.base import REAL_LINE, Branches, Interval, Transform
from sumgp.transforms.elementary import Relaxed

ALL_HALVINGS = 2200  # more than there are between the largest and the smallest doubles

ArrayFunction = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class CustomTransform(Transform):
    """h and h' as vectorised functions; ``cuts`` are the sorted points at which h turns round.

    ``inverse_function(value, branch)`` gives the f on branch 0 ... len(cuts), counted upwards; without it each branch
    is inverted by bracketing and bisection. ``curvature`` is h'', by default from differences of ``slope``.
    """

    function: ArrayFunction
    slope: ArrayFunction
    cuts: tuple[float, ...] = ()
    domain: Interval = REAL_LINE
    image: Interval = REAL_LINE
    inverse_function: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
    curvature: ArrayFunction | None = None
    name: str = "h"

    @property
    def branches(self) -> Branches:
        return Branches(cuts=tuple(self.cuts))

    def value(self, f: np.ndarray) -> np.ndarray:
        return self._within(self.function, f)

    def derivative(self, f: np.ndarray) -> np.ndarray:
        return self._within(self.slope, f)

    def second_derivative(self, f: np.ndarray) -> np.ndarray:
        if self.curvature is not None:
            return self._within(self.curvature, f)
        f = np.asarray(f, dtype=float)
        # eps^(1/3) balances the truncation error of a central difference against its round-off.
        step = np.finfo(float).eps ** (1 / 3) * np.maximum(np.abs(f), 1.0)
        return (self.derivative(f + step) - self.derivative(f - step)) / (2.0 * step)

    def label(self, name: str) -> str:
        return f"{self.name}({name})"

    def describe(self) -> str:
        if not self.cuts:
            return f"user's function {self.name}, one branch"
        cuts = ", ".join(f"{cut:g}" for cut in self.cuts)
        return f"user's function {self.name}, {len(self.cuts) + 1} branches that meet at {cuts}"

    def relaxed(self, scale: float) -> Transform:
        lo, hi = self.domain
        if np.isinf(lo) and np.isinf(hi):
            return self
        margin = 1e-3 * scale
        return Relaxed(self, lower=lo + margin, upper=hi - margin)

    def branch_interval(self, branch: int) -> Interval:
        lo, hi = self.branches.interval(branch)
        return max(lo, self.domain[0]), min(hi, self.domain[1])

    def on_branch(self, value: np.ndarray, branch: np.ndarray) -> np.ndarray:
        if self.inverse_function is not None:
            return np.asarray(self.inverse_function(value, branch), dtype=float)
        result = np.empty(np.shape(value))
        for number in np.unique(branch):
            chosen = branch == number
            result[chosen] = self._bisected(np.asarray(value)[chosen], self.branch_interval(int(number)))
        return result

    def _bisected(self, target: np.ndarray, interval: Interval) -> np.ndarray:
        """Root of h(f) = target on one branch; the nearer end of the branch where h does not reach the target."""
        anchor, inner = _anchors(interval)
        with np.errstate(all="ignore"):
            rising = float(self.slope(np.array([inner]))[0]) > 0

            def below(f: np.ndarray) -> np.ndarray:
                return (self.function(f) < target) == rising

            hi = np.full(target.shape, interval[1]) if np.isfinite(interval[1]) else _reach(anchor, 1.0, below)
            lo = (
                np.full(target.shape, interval[0]) if np.isfinite(interval[0]) else _reach(anchor, -1.0, lambda f: ~below(f))
            )
            lo, hi = bisected(lambda f: ~below(f), lo, hi, ALL_HALVINGS)
            return 0.5 * (lo + hi)

    def _within(self, function: ArrayFunction, f: np.ndarray) -> np.ndarray:
        f = np.asarray(f, dtype=float)
        inside = (f >= self.domain[0]) & (f <= self.domain[1])
        with np.errstate(all="ignore"):
            return np.where(inside, function(f), np.nan)


def _anchors(interval: Interval) -> tuple[float, float]:
    """A finite point of the closed interval to search from, and one in its interior."""
    lo, hi = interval
    if np.isfinite(lo) and np.isfinite(hi):
        return lo, 0.5 * (lo + hi)
    return (lo, lo + 1.0) if np.isfinite(lo) else (hi, hi - 1.0) if np.isfinite(hi) else (0.0, 0.0)


def _reach(anchor: float, direction: float, short: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """A point per target on the far side of its root; 4^60 where there is none."""
    distance = np.ones(np.shape(short(np.array(anchor))))
    for _ in range(60):
        unreached = short(anchor + direction * distance)
        if not np.any(unreached):
            break
        distance = np.where(unreached, 4.0 * distance, distance)
    return anchor + direction * distance
