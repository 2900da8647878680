"""The interface of a transform h, its branches, and squares, powers and absolute values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from sumgp.errors import ConstraintError

Interval = tuple[float, float]
REAL_LINE: Interval = (-np.inf, np.inf)


@dataclass(frozen=True)
class Branches:
    """Intervals on which h is strictly monotone, numbered so that branch k - 1 ends where branch k begins.

    ``cuts`` are the sorted points between finitely many branches, the lowest of which has the number ``first``.
    With ``period`` set, branch k is [start + k period, start + (k + 1) period]. ``only`` restricts to one number.
    """

    cuts: tuple[float, ...] = ()
    first: int = 0
    start: float = 0.0
    period: float | None = None
    only: int | None = None

    @property
    def single(self) -> bool:
        """True if there is only one branch, so that the inverse needs no further information."""
        return self.only is not None or (self.period is None and not self.cuts)

    def number(self, f: np.ndarray) -> np.ndarray:
        """Branch number of each f; a point between two branches belongs to the upper one, NaN to the first."""
        f = np.asarray(f, dtype=float)
        if self.single:
            return np.full(f.shape, self.first if self.only is None else self.only, dtype=int)
        if self.period is None:
            return self.first + np.searchsorted(np.array(self.cuts), np.nan_to_num(f, nan=-np.inf), side="right")
        return np.floor((np.nan_to_num(f) - self.start) / self.period).astype(int)

    def interval(self, branch: int) -> Interval:
        """(lo, hi) ends of a branch."""
        if self.period is not None:
            return self.start + branch * self.period, self.start + (branch + 1) * self.period
        edges = (-np.inf, *self.cuts, np.inf)
        position = branch - self.first
        if not 0 <= position < len(edges) - 1:
            last = self.first + len(edges) - 2
            raise ConstraintError("branch", f"{self.first} to {last}", str(branch), "use a number from branch_of")
        return edges[position], edges[position + 1]

    def points(self, lo: float, hi: float) -> np.ndarray:
        """Points between branches within [lo, hi], ascending."""
        if self.single:
            return np.empty(0)
        if self.period is None:
            cuts = np.array(self.cuts)
            return cuts[(cuts >= lo) & (cuts <= hi)]
        first, last = np.ceil((lo - self.start) / self.period), np.floor((hi - self.start) / self.period)
        return self.start + self.period * np.arange(first, last + 1)


class Transform(ABC):
    """h of the paper's sum constraint: maps an output f to f' = h(f), elementwise on arrays of any shape."""

    word: ClassVar[str] = "h"  # its name in a formula

    @abstractmethod
    def value(self, f: np.ndarray) -> np.ndarray:
        """h(f); NaN or an infinity outside the domain."""

    @abstractmethod
    def derivative(self, f: np.ndarray) -> np.ndarray:
        """h'(f)."""

    @abstractmethod
    def second_derivative(self, f: np.ndarray) -> np.ndarray:
        """h''(f)."""

    def label(self, name: str) -> str:
        """The transform written as a formula, e.g. ``z**2`` for the output z, or its ``word`` with brackets."""
        return f"{self.word}({name})"

    @abstractmethod
    def describe(self) -> str:
        """One phrase: what it does, and its branches."""

    @abstractmethod
    def on_branch(self, value: np.ndarray, branch: np.ndarray) -> np.ndarray:
        """The inverse for values inside the image and given branch numbers; ``inverse`` is the guarded form."""

    @property
    def branches(self) -> Branches:
        """The monotone pieces; one piece unless a transform says otherwise."""
        return Branches()

    @property
    def domain(self) -> Interval:
        """(lo, hi) of the f for which h is used: all, or the one branch that was chosen."""
        only = self.branches.only
        return REAL_LINE if only is None else self.branches.interval(only)

    @property
    def image(self) -> Interval:
        """(lo, hi) of the values h takes."""
        return REAL_LINE

    @property
    def is_identity(self) -> bool:
        """True if h(f) = f."""
        return False

    @property
    def is_continuous(self) -> bool:
        """True unless h jumps between branches (tan), so that h has a value at its critical points."""
        return True

    @property
    def monotone(self) -> bool:
        """True if one inverse serves every value: a single branch, or a restriction to one."""
        return self.branches.single

    def relaxed(self, scale: float) -> Transform:
        """h continued with matching slope beyond its domain's edge, from 1e-3 ``scale`` inside it.

        A transform that is defined everywhere is its own relaxation.
        """
        return self

    def critical_points(self, lo: float, hi: float) -> np.ndarray:
        """(k,) points between branches within [lo, hi], ascending."""
        return self.branches.points(lo, hi)

    def branch_of(self, f: np.ndarray) -> np.ndarray:
        """Branch number of each f, integers of the same shape."""
        return self.branches.number(f)

    def branch_interval(self, branch: int) -> Interval:
        """(lo, hi) of the f on a branch."""
        return self.branches.interval(branch)

    def inverse(self, value: np.ndarray, branch: np.ndarray | int | None = None) -> np.ndarray:
        """The f on the given branch with h(f) = value, the value first clipped to the image.

        ``branch`` is one number or an array that broadcasts with ``value``; it may be left out, and is ignored, where
        the transform has only one branch or is restricted to one.
        """
        clipped = np.clip(np.asarray(value, dtype=float), *self.image)
        if self.monotone:
            return self.on_branch(clipped, self.branch_of(clipped))
        if branch is None:
            raise ConstraintError(
                "branch", "a branch number for each value", "None", f"{self.label('f')} has several inverses"
            )
        clipped, numbers = np.broadcast_arrays(clipped, np.asarray(branch, dtype=int))
        return self.on_branch(clipped, numbers)


Side = Literal["positive", "negative"]
_SIDES: dict[str, int] = {"negative": -1, "positive": 0}  # number of the branch


def _halves(side: Side | None) -> Branches:
    """Branch -1 below zero and branch 0 above, or one of them."""
    if side is not None and side not in _SIDES:
        raise ConstraintError("branch", "None, 'positive' or 'negative'", repr(side), "None keeps both signs")
    return Branches(cuts=(0.0,), first=-1, only=None if side is None else _SIDES[side])


def _sides_phrase(side: Side | None) -> str:
    return "two branches (negative, positive) that meet at 0" if side is None else f"{side} branch only"


def _sign(branch: np.ndarray) -> np.ndarray:
    return np.where(branch < 0, -1.0, 1.0)


class WholePower(Transform):
    """h(f) = f^exponent for a whole exponent of 1 or more, with one branch if it is odd.

    If it is even, branch -1 holds f < 0, branch 0 holds f >= 0; ``branch`` names the sign where it is known.
    """

    exponent: int
    branch: Side | None

    def __post_init__(self) -> None:
        if self.exponent != int(self.exponent) or self.exponent < 1:
            raise ConstraintError(
                "Power", "a whole exponent of 1 or more", repr(self.exponent), "use CustomTransform for other powers"
            )
        if self.branch is not None and not self._is_even:
            raise ConstraintError("branch", "None, an odd power has one branch", repr(self.branch), "leave it out")
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
        return f"{'square' if self.exponent == 2 else f'power {self.exponent}'}, {sides}"

    def on_branch(self, value: np.ndarray, branch: np.ndarray) -> np.ndarray:
        size, roots = np.abs(value), {1: np.positive, 2: np.sqrt, 3: np.cbrt}
        root = roots[self.exponent](size) if self.exponent in roots else size ** (1.0 / self.exponent)
        return _sign(branch) * root if self._is_even else np.sign(value) * root


@dataclass(frozen=True)
class Power(WholePower):
    """Any whole power."""

    exponent: int
    branch: Side | None = None


@dataclass(frozen=True)
class Identity(WholePower):
    """h(f) = f."""

    exponent: ClassVar[int] = 1  # type: ignore[misc]
    branch: ClassVar[None] = None  # type: ignore[misc]

    def label(self, name: str) -> str:
        return name

    def describe(self) -> str:
        return "the output itself"


@dataclass(frozen=True)
class Square(WholePower):
    """h(f) = f^2; ``branch`` names the sign of f where it is known."""

    exponent: ClassVar[int] = 2  # type: ignore[misc]
    branch: Side | None = None


NAMED_POWERS: Mapping[int, WholePower] = {1: Identity(), 2: Square()}


@dataclass(frozen=True)
class Absolute(Transform):
    """h(f) = |f|, with the branches of ``Square``; the derivative at 0 is taken as 0."""

    word: ClassVar[str] = "abs"

    branch: Side | None = None

    def __post_init__(self) -> None:
        _halves(self.branch)

    @property
    def branches(self) -> Branches:
        return _halves(self.branch)

    @property
    def image(self) -> Interval:
        return 0.0, np.inf

    def value(self, f: np.ndarray) -> np.ndarray:
        return np.abs(np.asarray(f, dtype=float))

    def derivative(self, f: np.ndarray) -> np.ndarray:
        return np.sign(np.asarray(f, dtype=float))

    def second_derivative(self, f: np.ndarray) -> np.ndarray:
        return np.zeros_like(f, dtype=float)

    def describe(self) -> str:
        return f"absolute value, {_sides_phrase(self.branch)}"

    def on_branch(self, value: np.ndarray, branch: np.ndarray) -> np.ndarray:
        return _sign(branch) * value
