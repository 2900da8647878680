"""Sine, cosine and tangent: endlessly many branches, numbered by multiples of pi."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sumgp.transforms.base import Branches, Interval, Transform


def _alternating(branch: np.ndarray) -> np.ndarray:
    return np.where(branch % 2 == 0, 1.0, -1.0)


def _phrase(branches: Branches, where: str) -> str:
    if branches.only is None:
        return f"branches that meet at {where}"
    lo, hi = branches.interval(branches.only)
    return f"branch between {lo / np.pi:g} pi and {hi / np.pi:g} pi only"


@dataclass(frozen=True)
class Sin(Transform):
    """h(f) = sin(f); branch k is [(k - 1/2) pi, (k + 1/2) pi], increasing for even k."""

    branch: int | None = None

    @property
    def branches(self) -> Branches:
        return Branches(start=-0.5 * np.pi, period=np.pi, only=self.branch)

    @property
    def image(self) -> Interval:
        return -1.0, 1.0

    def value(self, f: np.ndarray) -> np.ndarray:
        return np.sin(f)

    def derivative(self, f: np.ndarray) -> np.ndarray:
        return np.cos(f)

    def second_derivative(self, f: np.ndarray) -> np.ndarray:
        return -np.sin(f)

    def label(self, name: str) -> str:
        return f"sin({name})"

    def describe(self) -> str:
        return "sine, " + _phrase(self.branches, "odd multiples of pi/2")

    def on_branch(self, value: np.ndarray, branch: np.ndarray) -> np.ndarray:
        return np.pi * branch + _alternating(branch) * np.arcsin(value)


@dataclass(frozen=True)
class Cos(Transform):
    """h(f) = cos(f); branch k is [k pi, (k + 1) pi], decreasing for even k."""

    branch: int | None = None

    @property
    def branches(self) -> Branches:
        return Branches(period=np.pi, only=self.branch)

    @property
    def image(self) -> Interval:
        return -1.0, 1.0

    def value(self, f: np.ndarray) -> np.ndarray:
        return np.cos(f)

    def derivative(self, f: np.ndarray) -> np.ndarray:
        return -np.sin(f)

    def second_derivative(self, f: np.ndarray) -> np.ndarray:
        return -np.cos(f)

    def label(self, name: str) -> str:
        return f"cos({name})"

    def describe(self) -> str:
        return "cosine, " + _phrase(self.branches, "multiples of pi")

    def on_branch(self, value: np.ndarray, branch: np.ndarray) -> np.ndarray:
        return np.pi * branch + np.arccos(_alternating(branch) * value)


@dataclass(frozen=True)
class Tan(Transform):
    """h(f) = tan(f); branch k is ((k - 1/2) pi, (k + 1/2) pi), increasing, with a pole at either end."""

    branch: int | None = None

    @property
    def branches(self) -> Branches:
        return Branches(start=-0.5 * np.pi, period=np.pi, only=self.branch)

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

    def label(self, name: str) -> str:
        return f"tan({name})"

    def describe(self) -> str:
        return "tangent, " + _phrase(self.branches, "its poles, odd multiples of pi/2")

    def on_branch(self, value: np.ndarray, branch: np.ndarray) -> np.ndarray:
        return np.pi * branch + np.arctan(value)
