"""Transforms with one branch on either side of zero: squares, powers, absolute value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from sumgp.errors import ConstraintError, worded
from sumgp.transforms.base import REAL_LINE, Branches, Interval, Transform

Side = Literal["positive", "negative"]
_SIDES: dict[str, int] = {"negative": -1, "positive": 0}


def _halves(side: Side | None) -> Branches:
    """Branch -1 below zero and branch 0 above, or one of them."""
    if side is not None and side not in _SIDES:
        raise ConstraintError(worded("branch", "None, 'positive' or 'negative'", repr(side), "None keeps both signs"))
    return Branches(cuts=(0.0,), first=-1, only=None if side is None else _SIDES[side])


def _half_line(side: Side | None) -> Interval:
    return REAL_LINE if side is None else (0.0, np.inf) if side == "positive" else (-np.inf, 0.0)


def _sides_phrase(side: Side | None) -> str:
    return "two branches (negative, positive) that meet at 0" if side is None else f"{side} branch only"


def _sign(branch: np.ndarray) -> np.ndarray:
    return np.where(branch < 0, -1.0, 1.0)


@dataclass(frozen=True)
class Square(Transform):
    """h(f) = f^2; branch -1 holds f < 0, branch 0 holds f >= 0; ``branch`` names the sign where it is known."""

    branch: Side | None = None

    def __post_init__(self) -> None:
        _halves(self.branch)

    @property
    def branches(self) -> Branches:
        return _halves(self.branch)

    @property
    def domain(self) -> Interval:
        return _half_line(self.branch)

    @property
    def image(self) -> Interval:
        return 0.0, np.inf

    def value(self, f: np.ndarray) -> np.ndarray:
        return np.square(np.asarray(f, dtype=float))

    def derivative(self, f: np.ndarray) -> np.ndarray:
        return 2.0 * np.asarray(f, dtype=float)

    def second_derivative(self, f: np.ndarray) -> np.ndarray:
        return np.full_like(f, 2.0, dtype=float)

    def label(self, name: str) -> str:
        return f"{name}**2"

    def describe(self) -> str:
        return f"square, {_sides_phrase(self.branch)}"

    def on_branch(self, value: np.ndarray, branch: np.ndarray) -> np.ndarray:
        return _sign(branch) * np.sqrt(value)


@dataclass(frozen=True)
class Power(Transform):
    """h(f) = f^exponent for a whole exponent of 1 or more; branches as for ``Square`` if it is even, else one."""

    exponent: int
    branch: Side | None = None

    def __post_init__(self) -> None:
        if self.exponent != int(self.exponent) or self.exponent < 1:
            raise ConstraintError(
                worded("Power", "a whole exponent of 1 or more", repr(self.exponent), "use CustomTransform for other powers")
            )
        if self.branch is not None and not self._is_even:
            raise ConstraintError(worded("branch", "None, an odd power has one branch", repr(self.branch), "leave it out"))
        _halves(self.branch)

    @property
    def _is_even(self) -> bool:
        return self.exponent % 2 == 0

    @property
    def is_identity(self) -> bool:
        return self.exponent == 1

    @property
    def branches(self) -> Branches:
        return _halves(self.branch) if self._is_even else Branches()

    @property
    def domain(self) -> Interval:
        return _half_line(self.branch)

    @property
    def image(self) -> Interval:
        return (0.0, np.inf) if self._is_even else REAL_LINE

    def value(self, f: np.ndarray) -> np.ndarray:
        return np.asarray(f, dtype=float) ** self.exponent

    def derivative(self, f: np.ndarray) -> np.ndarray:
        return self.exponent * np.asarray(f, dtype=float) ** (self.exponent - 1)

    def second_derivative(self, f: np.ndarray) -> np.ndarray:
        f = np.asarray(f, dtype=float)
        if self.exponent == 1:
            return np.zeros_like(f)
        return self.exponent * (self.exponent - 1) * f ** (self.exponent - 2)

    def label(self, name: str) -> str:
        return f"{name}**{self.exponent}"

    def describe(self) -> str:
        sides = _sides_phrase(self.branch) if self._is_even else "increasing, one branch"
        return f"power {self.exponent}, {sides}"

    def on_branch(self, value: np.ndarray, branch: np.ndarray) -> np.ndarray:
        root = np.cbrt(np.abs(value)) if self.exponent == 3 else np.abs(value) ** (1.0 / self.exponent)
        return _sign(branch) * root if self._is_even else np.sign(value) * root


@dataclass(frozen=True)
class Absolute(Transform):
    """h(f) = |f|; branches as for ``Square``; the derivative at 0 is taken as 0."""

    branch: Side | None = None

    def __post_init__(self) -> None:
        _halves(self.branch)

    @property
    def branches(self) -> Branches:
        return _halves(self.branch)

    @property
    def domain(self) -> Interval:
        return _half_line(self.branch)

    @property
    def image(self) -> Interval:
        return 0.0, np.inf

    def value(self, f: np.ndarray) -> np.ndarray:
        return np.abs(np.asarray(f, dtype=float))

    def derivative(self, f: np.ndarray) -> np.ndarray:
        return np.sign(np.asarray(f, dtype=float))

    def second_derivative(self, f: np.ndarray) -> np.ndarray:
        return np.zeros_like(f, dtype=float)

    def label(self, name: str) -> str:
        return f"abs({name})"

    def describe(self) -> str:
        return f"absolute value, {_sides_phrase(self.branch)}"

    def on_branch(self, value: np.ndarray, branch: np.ndarray) -> np.ndarray:
        return _sign(branch) * value
