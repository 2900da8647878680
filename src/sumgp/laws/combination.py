"""Several laws at once: the most specific law that holds them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sumgp.laws.bounds import BOUNDS_ALONE, Inequalities
from sumgp.laws.formula import explain_law
from sumgp.laws.function_law import FunctionLaw, functions_of
from sumgp.laws.law import Constraint, Law, SumLaw
from sumgp.laws.other_columns import seen_from
from sumgp.transforms import Transform


class AllOf(Constraint):
    """Every one of the given constraints."""

    def __init__(self, constraints: Sequence[Constraint]) -> None:
        self.constraints = tuple(constraints)

    def bind(self, outputs: Sequence[str], inputs: Sequence[str]) -> Law:
        return combine([constraint.bind(outputs, inputs) for constraint in self.constraints])

    def bounds(self, outputs: Sequence[str], inputs: Sequence[str]) -> tuple[SumLaw, ...]:
        return tuple(row for constraint in self.constraints for row in constraint.bounds(outputs, inputs))

    def in_one_unit(self, outputs: Sequence[str], inputs: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        return tuple(alike for constraint in self.constraints for alike in constraint.in_one_unit(outputs, inputs))


class BoundConstraint(NamedTuple):
    """What a constraint says about named outputs: a law, bounds, or both."""

    law: Law | None
    bounds: Inequalities | None

    def explain(self) -> str:
        """Several lines: the law as understood and its strategy, then one line for each bound."""
        words = [BOUNDS_ALONE] if self.law is None else [explain_law(self.law)]
        return "\n".join([*words, *([] if self.bounds is None else self.bounds.explain()), *self.conflicts()])

    def conflicts(self) -> list[str]:
        """What bounds cost a law with derivatives: predictions are moved into bounds one by one, their slopes are not."""
        if self.bounds is None or self.law is None or not self.law.derivatives:
            return []
        return ["where a bound moves a prediction, laws with derivatives do not hold"]


def bind_constraint(
    constraint: Constraint | Law | None, outputs: Sequence[str], inputs: Sequence[str], extras: Sequence[str]
) -> BoundConstraint:
    """Law and bounds for these names; both read x whose last columns are ``extras``."""
    if constraint is None or isinstance(constraint, Law):
        return BoundConstraint(constraint, None)
    law, rows = constraint.bind(outputs, inputs), constraint.bounds(outputs, inputs)
    return with_bounds(law, rows, extras) if rows else BoundConstraint(law, None)


def with_bounds(law: Law, rows: Sequence[SumLaw], extras: Sequence[str]) -> BoundConstraint:
    """A law (without rows where bounds stand alone) and rows that are to be zero or less, over the same columns of x."""
    wide = [seen_from(part, part.derivatives, part.unknowns, tuple(extras)) for part in (law, *rows)]
    bounds = Inequalities(tuple(row for row in wide[1:] if isinstance(row, SumLaw)))
    return BoundConstraint(wide[0] if law.n_rows else None, bounds)


def combine(laws: Sequence[Law]) -> Law:
    """Stack laws; unknown constants of the same name are one constant, extra columns are shared by name.

    Sums stay a sum, anything else becomes a general function.
    """
    # Bounds alone are a law without rows.
    laws = [law for law in laws if law.n_rows] or laws[:1]
    if len(laws) == 1:
        return laws[0]
    unknowns = tuple(dict.fromkeys(name for law in laws for name in law.unknowns))
    extras = tuple(dict.fromkeys(name for law in laws for name in law.extra_columns))
    derivatives = tuple(dict.fromkeys(derivative for law in laws for derivative in law.derivatives))
    laws = [seen_from(law, derivatives, unknowns, extras) for law in laws]
    sums = [law for law in laws if isinstance(law, SumLaw)]
    return _stacked_sums(sums) if len(sums) == len(laws) else _stacked_functions(laws)


def _shared(laws: Sequence[Law]) -> dict:
    return {
        "outputs": laws[0].outputs,
        "derivatives": laws[0].derivatives,
        "unknowns": laws[0].unknowns,
        "extra_columns": laws[0].extra_columns,
        "labels": tuple(label for law in laws for label in law.labels),
        "noise": np.concatenate([law.noise for law in laws]),
        "where": tuple(w for law in laws for w in (law.where or (None,) * law.n_rows)),
    }


@dataclass(frozen=True)
class _StackedSums:
    """F(x) and S(x) of several sums; ``placed`` tells the common column of each of their terms."""

    laws: tuple[SumLaw, ...]
    placed: tuple[tuple[int, ...], ...]
    n_columns: int

    def coefficients(self, x: np.ndarray) -> np.ndarray:
        """(n, rows, columns) coefficients."""
        parts = [np.zeros((len(x), law.n_rows, self.n_columns)) for law in self.laws]
        for part, law, where in zip(parts, self.laws, self.placed, strict=True):
            values = law.F(x)
            for term, column in enumerate(where):
                part[:, :, column] += values[:, :, term]
        return np.concatenate(parts, axis=1)

    def total(self, x: np.ndarray) -> np.ndarray:
        """(n, rows) right sides."""
        return np.concatenate([law.S(x) for law in self.laws], axis=1)


def _stacked_sums(laws: Sequence[SumLaw]) -> SumLaw:
    columns: list[tuple[int, Transform]] = []
    placed: list[list[int]] = []
    for law in laws:
        for column in law.columns:
            if column not in columns:
                columns.append(column)
        placed.append([columns.index(column) for column in law.columns])
    stacked = _StackedSums(tuple(laws), tuple(tuple(where) for where in placed), len(columns))
    probe = np.zeros((1, 1))
    constant_f = all(isinstance(law.coefficients, np.ndarray) for law in laws)
    constant_s = all(isinstance(law.total, np.ndarray) for law in laws)
    return SumLaw(
        columns=tuple(columns),
        coefficients=stacked.coefficients(probe)[0] if constant_f else stacked.coefficients,
        total=stacked.total(probe)[0] if constant_s else stacked.total,
        notes=tuple(note for law in laws for note in (law.notes or ((),) * law.n_rows)),
        select=None if constant_f and constant_s else _StackedFunctions(tuple(laws)).selected,
        **_shared(laws),
    )


@dataclass(frozen=True)
class _StackedFunctions:
    """Rows of several laws, one below the other."""

    laws: tuple[Law, ...]

    def residual(self, f: np.ndarray, x: np.ndarray) -> np.ndarray:
        """(n, rows) residuals."""
        return np.concatenate([law.residual(f, x) for law in self.laws], axis=1)

    def jacobian(self, f: np.ndarray, x: np.ndarray) -> np.ndarray:
        """(n, rows, columns) derivatives."""
        return np.concatenate([law.jacobian(f, x) for law in self.laws], axis=1)

    def magnitude(self, f: np.ndarray, x: np.ndarray) -> np.ndarray:
        """(n, rows) sizes."""
        return np.concatenate([law.magnitude(f, x) for law in self.laws], axis=1)

    def relaxed(self, scale: np.ndarray, clear: np.ndarray) -> FunctionLaw:
        """All of them relaxed."""
        each = np.split(clear, np.cumsum([law.n_rows for law in self.laws])[:-1])
        return _stacked_functions([law.relaxed(scale, rows) for law, rows in zip(self.laws, each, strict=True)])

    def selected(self, rows: Sequence[int]) -> Law:
        """Some of the rows: a sum where these are sums."""
        owners = [(law, row) for law in self.laws for row in range(law.n_rows)]
        return combine([law.rows([row]) for law, row in (owners[row] for row in rows)])


def _stacked_functions(laws: Sequence[Law]) -> FunctionLaw:
    stacked = _StackedFunctions(tuple(laws))
    return FunctionLaw(
        mentions=np.any([law.involved() for law in laws], axis=0),
        notes=tuple(law.explain_row(row) for law in laws for row in range(law.n_rows)),
        **functions_of(stacked),
        **_shared(laws),
    )
