"""Law kinds and missing patterns that every strategy is tried on; a new one is one more entry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sumgp import FunctionConstraint, LinearConstraint, SumConstraint, Term, Unknown
from sumgp.transforms import Log, Square

X = np.linspace(0.2, 3.0, 9)
ASKED = np.array([-0.3, 0.2, 1.1, 1.15, 2.9, 3.6])


@dataclass(frozen=True)
class LawKind:
    """A law, curves that obey it, and whether it is linear; ``choices`` go to the estimator."""

    constraint: Any
    curves: Callable[[np.ndarray], np.ndarray]
    linear: bool
    determines_last: bool = True  # the last output follows from the others
    choices: dict[str, Any] = field(default_factory=dict)


def waves(x: np.ndarray) -> np.ndarray:
    return np.column_stack([np.sin(x), 1.0 - np.sin(x)])


def circle(x: np.ndarray) -> np.ndarray:
    return np.column_stack([np.cos(0.7 * x), np.sin(0.7 * x)])


def growing(x: np.ndarray) -> np.ndarray:
    return np.column_stack([np.sin(x), 1.0 + x - np.sin(x)])


def weighted(x: np.ndarray) -> np.ndarray:
    return np.column_stack([np.sin(x), 1.0 - (1.0 + x) * np.sin(x)])


def logarithmic(x: np.ndarray) -> np.ndarray:
    return np.column_stack([1.5 + np.sin(x), 1.0 - np.log(1.5 + np.sin(x))])


def three(x: np.ndarray) -> np.ndarray:
    return np.column_stack([np.sin(x), np.cos(x), 1.0 - np.sin(x) - np.cos(x)])


def rod(f: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.sqrt(f[:, 0] ** 2 + f[:, 1] ** 2) - 1.0


LAWS: dict[str, LawKind] = {
    "constant": LawKind(LinearConstraint([1.0, 1.0], 1.0), waves, True),
    "formula": LawKind("p + q = 1", waves, True, choices={"outputs": ["p", "q"]}),
    "varying total": LawKind(LinearConstraint([1.0, 1.0], lambda x: 1.0 + x[:, 0]), growing, True),
    "varying coefficients": LawKind(
        LinearConstraint(lambda x: np.column_stack([1.0 + x[:, 0], np.ones(len(x))]), 1.0), weighted, True
    ),
    "soft": LawKind(LinearConstraint([1.0, 1.0], 1.0, noise=0.05), waves, True),
    "part of the inputs": LawKind(
        LinearConstraint([1.0, 1.0], 1.0, where=lambda x: x[:, 0] < 2.0), waves, True, determines_last=False
    ),
    "unknown total": LawKind(LinearConstraint([1.0, 1.0], Unknown()), waves, True, determines_last=False),
    "an output outside": LawKind(LinearConstraint([1.0, 1.0, 0.0], 1.0), lambda x: np.c_[waves(x), np.cos(x)], True, False),
    "two rows": LawKind(
        [LinearConstraint([1.0, 1.0, 1.0], 1.0), LinearConstraint([1.0, 0.0, 0.0], lambda x: np.sin(x[:, 0]))], three, True
    ),
    "redundant rows": LawKind(LinearConstraint([[1.0, 1.0], [3.0, 3.0]], [1.0, 3.0]), waves, True),
    "squares": LawKind(SumConstraint([Term(0, 0.5, Square()), Term(1, 0.5, Square())], 0.5), circle, False),
    "squares, unknown total": LawKind(
        SumConstraint([Term(0, 1.0, Square()), Term(1, 1.0, Square())], Unknown()), circle, False, False
    ),
    "squares, soft": LawKind(
        SumConstraint([Term(0, 1.0, Square()), Term(1, 1.0, Square())], 1.0, noise=0.05), circle, False
    ),
    "logarithm": LawKind(SumConstraint([Term(0, 1.0, Log()), Term(1, 1.0)], 1.0), logarithmic, False),
    "length": LawKind(FunctionConstraint(rod), circle, False, choices={"groups": [[0, 1]]}),
    "product": LawKind(
        "p * q = 1", lambda x: np.c_[1.5 + np.sin(x), 1.0 / (1.5 + np.sin(x))], False, choices={"outputs": ["p", "q"]}
    ),
}


def complete(y: np.ndarray) -> np.ndarray:
    return y


def scattered(y: np.ndarray) -> np.ndarray:
    return np.where(np.random.default_rng(3).uniform(size=y.shape) < 0.3, np.nan, y)


def half_of_one_output(y: np.ndarray) -> np.ndarray:
    return np.where((np.arange(y.shape[1]) == 0) & (np.arange(len(y))[:, None] > 4), np.nan, y)


def whole_rows(y: np.ndarray) -> np.ndarray:
    return np.where(np.isin(np.arange(len(y)), [0, 4])[:, None], np.nan, y)


def last_never(y: np.ndarray) -> np.ndarray:
    return np.where(np.arange(y.shape[1]) == y.shape[1] - 1, np.nan, y)


PATTERNS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    f.__name__: f for f in (complete, scattered, half_of_one_output, whole_rows, last_never)
}
