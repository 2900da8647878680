"""Bounds on outputs: linear inequalities that predictions obey besides the law."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from sumgp.errors import ConstraintError
from sumgp.laws.law import ArrayFunction, Constraint, Law, SumLaw
from sumgp.transforms import Identity

BOUNDS_ALONE = "strategy: Unconstrained, because there are only bounds, which predictions are moved into"


class Limits(NamedTuple):
    """Bounds at n points: lower <= f <= upper (n, T), and G f <= h with G (n, Q, T), h (n, Q) for sums of outputs."""

    lower: np.ndarray
    upper: np.ndarray
    G: np.ndarray
    h: np.ndarray

    def excess(self, f: np.ndarray) -> np.ndarray:
        """(n, 2 T + Q) by how much f (n, T) is outside, negative or zero inside."""
        sums = np.einsum("nqt,nt->nq", self.G, f) - self.h
        return np.concatenate([self.lower - f, f - self.upper, sums], axis=1)

    def may_be_left(self, f: np.ndarray, reach: np.ndarray) -> np.ndarray:
        """(n,) truth of whether values within ``reach`` (k, n, T) of f (k, n, T) may be outside, or are.

        The standard deviation of a sum is at most the sum of those of its terms.
        """
        outside = np.any((f - reach < self.lower) | (f + reach > self.upper), axis=(0, 2))
        sums = np.einsum("nqt,knt->knq", self.G, f) + np.einsum("nqt,knt->knq", np.abs(self.G), reach)
        return outside | np.any(sums > self.h, axis=(0, 2))

    def at(self, rows: np.ndarray | slice) -> Limits:
        """Some of the points."""
        return Limits(*(part[rows] for part in self))


class Rows(NamedTuple):
    """Rows F f <= S at n points: F (n, Q, T), S (n, Q)."""

    F: np.ndarray
    S: np.ndarray


@dataclass(frozen=True)
class Inequalities:
    """Linear laws over the outputs, one row each, whose residual is to be zero or less."""

    laws: tuple[SumLaw, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """How each row was written."""
        return tuple(label for law in self.laws for label in law.labels)

    @cached_property
    def single(self) -> np.ndarray:
        """(Q,) the output of a row that bounds one output alone, -1 for rows that bound a sum."""
        return np.array([_only_output(law) for law in self.laws])

    def rows(self, x: np.ndarray) -> Rows:
        """F and S at x (n, ...) in the user's units; ConstraintError where one is not a number."""
        T = len(self.laws[0].outputs)
        zero = np.zeros((len(x), T))
        with np.errstate(all="ignore"):
            F = np.concatenate([law.jacobian(zero, x) for law in self.laws], axis=1)
            S = np.concatenate([law.S(x) for law in self.laws], axis=1)
        bad = ~(np.isfinite(F).all(axis=2) & np.isfinite(S))
        if bad.any():
            i, row = np.argwhere(bad)[0]
            raise ConstraintError(
                f"constraint: the bound {self.labels[row]!r} is not a finite number at x = {x[i].tolist()}; correct its "
                "value there, or leave the bound out"
            )
        return Rows(F, S)

    def limits(self, x: np.ndarray) -> Limits:
        """The bounds at x (n, ...) in the user's units."""
        F, S = self.rows(x)
        n, _, T = F.shape
        lower, upper = np.full((n, T), -np.inf), np.full((n, T), np.inf)
        for row in np.flatnonzero(self.single >= 0):
            t = self.single[row]
            value = S[:, row] / F[:, row, t] + 0.0  # no minus zero
            if F[0, row, t] > 0:
                upper[:, t] = np.minimum(upper[:, t], value)
            else:
                lower[:, t] = np.maximum(lower[:, t], value)
        sums = np.flatnonzero(self.single < 0)
        return Limits(lower, upper, F[:, sums], S[:, sums])

    def explain(self) -> list[str]:
        """One line for each bound."""
        return [f"bound: {label}" for label in dict.fromkeys(self.labels)]


def _only_output(law: SumLaw) -> int:
    if not isinstance(law.coefficients, np.ndarray):
        return -1
    used = np.flatnonzero(law.as_matrix()[0])
    return int(used[0]) if len(used) == 1 else -1


def no_law(outputs: Sequence[str]) -> SumLaw:
    """A law without rows, which says nothing."""
    return SumLaw(
        outputs=tuple(outputs), labels=(), noise=np.zeros(0), columns=(), coefficients=np.zeros((0, 0)), total=np.zeros(0)
    )


ALL = "all"  # stands for every output, unless one of them has that name
Bound = float | Callable[[np.ndarray], np.ndarray]


class Bounds(Constraint):
    """Outputs between ``lower`` and ``upper``: ``Bounds(lower=0)``, ``Bounds({"a": 0}, {"a": 1, "b": capacity})``.

    Each is a number for all outputs, or a mapping from outputs to numbers or functions of X giving (n,). A bound is closed:
    the value itself is allowed. It is given in a list together with the law, ``["a + b = 1", Bounds(lower=0)]``, or alone.
    Bounds on sums of outputs are written as formulas: ``"a + b <= 1"``.
    """

    def __init__(self, lower: float | Mapping[str, Bound] | None = None, upper: float | Mapping[str, Bound] | None = None):
        self.lower = _checked("lower", lower)
        self.upper = _checked("upper", upper)
        if lower is None and upper is None:
            raise ConstraintError("Bounds", "lower=, upper= or both", "neither", "e.g. Bounds(lower=0)")

    def bind(self, outputs: Sequence[str], inputs: Sequence[str]) -> Law:
        return no_law(outputs)

    def bounds(self, outputs: Sequence[str], inputs: Sequence[str]) -> tuple[SumLaw, ...]:
        return (*self._rows(self.lower, -1.0, outputs), *self._rows(self.upper, 1.0, outputs))

    def __repr__(self) -> str:
        return f"Bounds(lower={self.lower!r}, upper={self.upper!r})"

    def _rows(self, given: Mapping[str, Any], sign: float, outputs: Sequence[str]) -> list[SumLaw]:
        values = dict.fromkeys(outputs, given[ALL]) if ALL in given and ALL not in outputs else dict(given)
        strange = [name for name in values if name not in outputs]
        if strange:
            raise ConstraintError("Bounds", f"outputs among {list(outputs)}", repr(strange[0]), "check the spelling")
        return [_single(outputs, name, sign, value) for name, value in values.items()]


def _signed(value: ArrayFunction, sign: float, x: np.ndarray) -> np.ndarray:
    """sign * value(x), (n, 1)."""
    values = np.asarray(value(x), dtype=float)
    if values.size != len(x):
        raise ConstraintError(
            f"Bounds: expected {len(x)} values from the function of X, got shape {values.shape}; return one per row of X"
        )
    return sign * values.reshape(len(x), 1)


def _single(outputs: Sequence[str], name: str, sign: float, value: Any) -> SumLaw:
    """sign * output <= sign * value."""
    shown = "b(x)" if callable(value) else f"{value:g}"
    return SumLaw(
        outputs=tuple(outputs),
        labels=(f"{name} {'<=' if sign > 0 else '>='} {shown}",),
        noise=np.zeros(1),
        columns=((list(outputs).index(name), Identity()),),
        coefficients=np.array([[sign]]),
        total=partial(_signed, value, sign) if callable(value) else np.array([sign * value]),
    )


def _checked(argument: str, given: Any) -> dict[str, Bound]:
    """Numbers as floats, one number for all outputs under the name ``all``; infinity is no bound."""
    named = given if isinstance(given, Mapping) else {} if given is None else {ALL: given}
    values = {name: value if callable(value) else _number(argument, value) for name, value in named.items()}
    return {str(name): value for name, value in values.items() if callable(value) or np.isfinite(value)}


def _number(argument: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if np.isnan(number):
        remedy = 'give a mapping such as {"a": 0} for single outputs'
        raise ConstraintError(f"Bounds({argument}=)", "numbers or functions of X", repr(value)[:60], remedy)
    return number
