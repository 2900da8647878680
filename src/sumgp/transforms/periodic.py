"""Sine, cosine and tangent: endlessly many branches, numbered by multiples of pi."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sumgp.transforms.base import Branches, Interval, Transform


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
