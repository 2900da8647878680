"""Transforms with one branch (affine, exp, log), periodic ones, and the continuation beyond a domain's edge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sumgp.errors import ConstraintError
from sumgp.transforms.base import Branches, Interval, Transform

# The smallest normal number: log and exp stay finite there.
_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class Affine(Transform):
    """h(f) = scale f + shift, scale not zero."""

    scale: float
    shift: float = 0.0

    def __post_init__(self) -> None:
        if self.scale == 0 or not np.isfinite([self.scale, self.shift]).all():
            raise ConstraintError(
                "Affine", "a finite shift and a scale other than 0", repr(self), "h must depend on the output"
            )

    @property
    def is_identity(self) -> bool:
        return self.scale == 1 and self.shift == 0

    def value(self, f: np.ndarray) -> np.ndarray:
        return self.scale * np.asarray(f, dtype=float) + self.shift

    def derivative(self, f: np.ndarray) -> np.ndarray:
        return np.full_like(f, self.scale, dtype=float)

    def second_derivative(self, f: np.ndarray) -> np.ndarray:
        return np.zeros_like(f, dtype=float)

    def label(self, name: str) -> str:
        shift = "" if self.shift == 0 else f" {'+' if self.shift > 0 else '-'} {abs(self.shift):g}"
        return f"({self.scale:g}*{name}{shift})" if shift else f"{self.scale:g}*{name}"

    def describe(self) -> str:
        return f"{self.scale:g} times the output plus {self.shift:g}, one branch"

    def on_branch(self, value: np.ndarray, branch: np.ndarray) -> np.ndarray:
        return (value - self.shift) / self.scale


@dataclass(frozen=True)
class Exp(Transform):
    """h(f) = exp(f), image (0, inf)."""

    word: ClassVar[str] = "exp"

    @property
    def image(self) -> Interval:
        return _TINY, np.inf

    def value(self, f: np.ndarray) -> np.ndarray:
        return np.exp(f)

    def derivative(self, f: np.ndarray) -> np.ndarray:
        return np.exp(f)

    def second_derivative(self, f: np.ndarray) -> np.ndarray:
        return np.exp(f)

    def describe(self) -> str:
        return "exponential, increasing, one branch"

    def on_branch(self, value: np.ndarray, branch: np.ndarray) -> np.ndarray:
        return np.log(value)


@dataclass(frozen=True)
class Log(Transform):
    """h(f) = log(f), domain (0, inf); NaN below 0 and minus infinity at 0."""

    word: ClassVar[str] = "log"

    @property
    def domain(self) -> Interval:
        return 0.0, np.inf

    def value(self, f: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(f)

    def derivative(self, f: np.ndarray) -> np.ndarray:
        return 1.0 / self._inside(f)

    def second_derivative(self, f: np.ndarray) -> np.ndarray:
        return -1.0 / self._inside(f) ** 2

    def describe(self) -> str:
        return "natural logarithm of a positive output, increasing, one branch"

    def on_branch(self, value: np.ndarray, branch: np.ndarray) -> np.ndarray:
        return np.exp(value)

    def relaxed(self, scale: float) -> Transform:
        return Relaxed(self, lower=1e-3 * scale)

    @staticmethod
    def _inside(f: np.ndarray) -> np.ndarray:
        f = np.asarray(f, dtype=float)
        return np.where(f > 0, f, np.nan)


@dataclass(frozen=True)
class Relaxed(Transform):
    """``inner`` between ``lower`` and ``upper``, its tangent beyond: once continuously differentiable on the real line."""

    inner: Transform
    lower: float = -np.inf
    upper: float = np.inf

    @property
    def branches(self) -> Branches:
        return self.inner.branches

    @property
    def image(self) -> Interval:
        ends = [*self.inner.image]
        for edge in self._edges():
            ends.append(np.inf if (self.inner.derivative(edge) > 0) == (edge == self.upper) else -np.inf)
        return min(ends), max(ends)

    def value(self, f: np.ndarray) -> np.ndarray:
        f = np.asarray(f, dtype=float)
        inside = np.clip(f, self.lower, self.upper)
        return self.inner.value(inside) + self.inner.derivative(inside) * (f - inside)

    def derivative(self, f: np.ndarray) -> np.ndarray:
        return self.inner.derivative(np.clip(f, self.lower, self.upper))

    def second_derivative(self, f: np.ndarray) -> np.ndarray:
        f = np.asarray(f, dtype=float)
        inside = np.clip(f, self.lower, self.upper)
        return np.where(inside == f, self.inner.second_derivative(inside), 0.0)

    def label(self, name: str) -> str:
        return self.inner.label(name)

    def describe(self) -> str:
        return self.inner.describe() + ", continued by its tangent beyond the domain's edge"

    def on_branch(self, value: np.ndarray, branch: np.ndarray) -> np.ndarray:
        result = self.inner.inverse(value, branch)
        for edge in self._edges():
            start, slope = self.inner.value(edge), self.inner.derivative(edge)
            beyond = edge + (value - start) / slope
            outside = beyond < edge if edge == self.lower else beyond > edge
            result = np.where(outside & (branch == self.branch_of(edge)), beyond, result)
        return result

    def _edges(self) -> list[np.ndarray]:
        return [np.array(edge) for edge in (self.lower, self.upper) if np.isfinite(edge)]


def _alternating(branch: np.ndarray) -> np.ndarray:
    return np.where(branch % 2 == 0, 1.0, -1.0)


@dataclass(frozen=True)
class _Periodic(Transform):
    """Branch k is [start + k pi, start + (k + 1) pi]; ``branch`` is its number where it is known."""

    start: ClassVar[float] = -0.5 * np.pi
    kind: ClassVar[str]
    meeting: ClassVar[str]  # where branches meet, in words

    branch: int | None = None

    @property
    def branches(self) -> Branches:
        return Branches(start=self.start, period=np.pi, only=self.branch)

    def describe(self) -> str:
        if self.branch is None:
            return f"{self.kind}, branches that meet at {self.meeting}"
        lo, hi = self.branches.interval(self.branch)
        return f"{self.kind}, branch between {lo / np.pi:g} pi and {hi / np.pi:g} pi only"


@dataclass(frozen=True)
class Sin(_Periodic):
    """h(f) = sin(f); branch k is [(k - 1/2) pi, (k + 1/2) pi], increasing for even k."""

    word: ClassVar[str] = "sin"
    kind: ClassVar[str] = "sine"
    meeting: ClassVar[str] = "odd multiples of pi/2"
    image: ClassVar[Interval] = (-1.0, 1.0)

    def value(self, f: np.ndarray) -> np.ndarray:
        return np.sin(f)

    def derivative(self, f: np.ndarray) -> np.ndarray:
        return np.cos(f)

    def second_derivative(self, f: np.ndarray) -> np.ndarray:
        return -np.sin(f)

    def on_branch(self, value: np.ndarray, branch: np.ndarray) -> np.ndarray:
        return np.pi * branch + _alternating(branch) * np.arcsin(value)


@dataclass(frozen=True)
class Cos(_Periodic):
    """h(f) = cos(f); branch k is [k pi, (k + 1) pi], decreasing for even k."""

    word: ClassVar[str] = "cos"
    kind: ClassVar[str] = "cosine"
    meeting: ClassVar[str] = "multiples of pi"
    start: ClassVar[float] = 0.0
    image: ClassVar[Interval] = (-1.0, 1.0)

    def value(self, f: np.ndarray) -> np.ndarray:
        return np.cos(f)

    def derivative(self, f: np.ndarray) -> np.ndarray:
        return -np.sin(f)

    def second_derivative(self, f: np.ndarray) -> np.ndarray:
        return -np.cos(f)

    def on_branch(self, value: np.ndarray, branch: np.ndarray) -> np.ndarray:
        return np.pi * branch + np.arccos(_alternating(branch) * value)


@dataclass(frozen=True)
class Tan(_Periodic):
    """h(f) = tan(f); branch k is ((k - 1/2) pi, (k + 1/2) pi), increasing, with a pole at either end."""

    word: ClassVar[str] = "tan"
    kind: ClassVar[str] = "tangent"
    meeting: ClassVar[str] = "its poles, odd multiples of pi/2"

    @property
    def is_continuous(self) -> bool:
        return self.branch is not None

    def value(self, f: np.ndarray) -> np.ndarray:
        return np.tan(f)

    def derivative(self, f: np.ndarray) -> np.ndarray:
        return 1.0 + np.tan(f) ** 2

    def second_derivative(self, f: np.ndarray) -> np.ndarray:
        slope = np.tan(f)
        return 2.0 * slope * (1.0 + slope**2)

    def on_branch(self, value: np.ndarray, branch: np.ndarray) -> np.ndarray:
        return np.pi * branch + np.arctan(value)
