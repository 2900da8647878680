"""A law seen from other columns: longer lists of derivatives and constants, or none of its derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from sumgp.laws.columns import Derivative
from sumgp.laws.function_law import FunctionLaw, functions_of
from sumgp.laws.law import Law, SumLaw


@dataclass(frozen=True)
class _SeenFrom:
    """A law from other lists of derivatives, unknown constants and extra columns; derivatives that these lack are zero."""

    law: Law
    derivatives: tuple[Derivative, ...]
    unknowns: tuple[str, ...]
    extras: tuple[str, ...]

    @cached_property
    def places(self) -> np.ndarray:
        """Positions of the law's own columns among the others, -1 for what these lack."""
        T, D = len(self.law.outputs), len(self.derivatives)
        there = {derivative: T + place for place, derivative in enumerate(self.derivatives)}
        constants = (T + D + self.unknowns.index(name) for name in self.law.unknowns)
        return np.array([*range(T), *(there.get(d, -1) for d in self.law.derivatives), *constants])

    @property
    def n_columns(self) -> int:
        """Outputs, all derivatives and all unknown constants."""
        return len(self.law.outputs) + len(self.derivatives) + len(self.unknowns)

    def own(self, values: np.ndarray, lacking: float = 0.0) -> np.ndarray:
        """(..., C) values of the law's own columns from those of the others."""
        return np.where(self.places < 0, lacking, values[..., self.places])

    def spread(self, values: np.ndarray) -> np.ndarray:
        """(..., columns) from (..., C) of the law's own, zero for all others."""
        result = np.zeros((*values.shape[:-1], self.n_columns), dtype=values.dtype)
        result[..., self.places[self.places >= 0]] = values[..., self.places >= 0]
        return result

    def narrow(self, x: np.ndarray) -> np.ndarray:
        """The inputs and the extra columns that the law itself needs."""
        base = x.shape[1] - len(self.extras)
        return x[:, [*range(base), *(base + self.extras.index(name) for name in self.law.extra_columns)]]

    def where(self, inner: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
        """Where a row holds, of which the law itself tells by ``inner``."""
        return inner(self.narrow(x))

    def residual(self, f: np.ndarray, x: np.ndarray) -> np.ndarray:
        """(n, R) residuals."""
        return self.law.residual(self.own(f), self.narrow(x))

    def jacobian(self, f: np.ndarray, x: np.ndarray) -> np.ndarray:
        """(n, R, columns) derivatives, zero by constants of other laws."""
        return self.spread(self.law.jacobian(self.own(f), self.narrow(x)))

    def magnitude(self, f: np.ndarray, x: np.ndarray) -> np.ndarray:
        """(n, R) sizes."""
        return self.law.magnitude(self.own(f), self.narrow(x))

    @cached_property
    def terms(self) -> list[int]:
        """Terms of a sum over columns that are not lacking."""
        assert isinstance(self.law, SumLaw)
        return [term for term, (column, _) in enumerate(self.law.columns) if self.places[column] >= 0]

    def coefficients(self, x: np.ndarray) -> np.ndarray:
        """F(x) of a sum."""
        assert isinstance(self.law, SumLaw)
        return self.law.F(self.narrow(x))[:, :, self.terms]

    def total(self, x: np.ndarray) -> np.ndarray:
        """S(x) of a sum."""
        assert isinstance(self.law, SumLaw)
        return self.law.S(self.narrow(x))

    def relaxed(self, scale: np.ndarray, clear: np.ndarray) -> Law:
        """The relaxed law, seen alike."""
        return seen_from(self.law.relaxed(self.own(scale, 1.0), clear), self.derivatives, self.unknowns, self.extras)

    def selected(self, rows: Sequence[int]) -> Law:
        """Some of the rows, seen alike."""
        return seen_from(self.law.rows(rows), self.derivatives, self.unknowns, self.extras)


def seen_from(law: Law, derivatives: tuple[Derivative, ...], unknowns: tuple[str, ...], extras: tuple[str, ...]) -> Law:
    """The same law over other lists of derivatives, unknown constants and extra columns.

    It mentions no derivative that these lack.
    """
    if (law.derivatives, law.unknowns, law.extra_columns) == (derivatives, unknowns, extras):
        return law
    seen = _SeenFrom(law, derivatives, unknowns, extras)
    same = law.extra_columns == extras
    facts: dict[str, Any] = {"derivatives": derivatives, "unknowns": unknowns, "extra_columns": extras}
    facts["where"] = tuple(where if same or where is None else partial(seen.where, where) for where in law.where)
    if isinstance(law, SumLaw):
        F, S = law.coefficients, law.total
        return replace(
            law,
            select=None if law.select is None else seen.selected,
            columns=tuple((int(seen.places[c]), t) for c, t in (law.columns[term] for term in seen.terms)),
            coefficients=F[:, seen.terms] if isinstance(F, np.ndarray) else seen.coefficients,
            total=S if same or isinstance(S, np.ndarray) else seen.total,
            **facts,
        )
    assert isinstance(law, FunctionLaw)
    return replace(law, mentions=seen.spread(law.involved()), **functions_of(seen), **facts)
