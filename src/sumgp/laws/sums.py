"""Sums of transformed outputs, the paper's sum constraint: sum_i a_i(x) h_i(f_i(x)) = C(x)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from sumgp.errors import ConstraintError
from sumgp.laws.constraint import Constraint, Unknown
from sumgp.laws.law import ArrayFunction, Law, SumLaw
from sumgp.laws.linear import noise_array
from sumgp.transforms import Identity, Transform


@dataclass(frozen=True)
class Term:
    """``coefficient * transform(output)``; the coefficient is a number or a function of X giving (n,)."""

    output: str | int
    coefficient: float | Callable[[np.ndarray], np.ndarray] = 1.0
    transform: Transform = Identity()


class SumConstraint(Constraint):
    """One law: the terms add up to ``total`` (a number, a function of X, or ``Unknown()``)."""

    def __init__(
        self,
        terms: Sequence[Term],
        total: float | Callable[[np.ndarray], np.ndarray] | Unknown = 0.0,
        *,
        noise: float = 0.0,
        where: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> None:
        self.terms = tuple(terms)
        self.total = total
        self.noise = noise
        self.where = where

    def bind(self, outputs: Sequence[str], inputs: Sequence[str]) -> Law:
        if not self.terms:
            raise ConstraintError("terms: expected at least one Term, got none; a law needs an output")
        columns: list[tuple[int, Transform]] = [(_position(t.output, outputs), t.transform) for t in self.terms]
        factors: list[Any] = [t.coefficient for t in self.terms]
        unknowns: tuple[str, ...] = ()
        total: np.ndarray | ArrayFunction = np.zeros(1)
        if isinstance(self.total, Unknown):
            unknowns = (self.total.name,)
            columns.append((len(outputs), Identity()))
            factors.append(-1.0)
        elif callable(self.total):
            total = self.total
        else:
            total = np.array([_finite(self.total, "total")])
        coefficients: np.ndarray | ArrayFunction
        if any(callable(c) for c in factors):
            coefficients = partial(_varying, tuple(factors))
        else:
            coefficients = np.array([[_finite(c, "coefficient") for c in factors]])
            if not np.any(coefficients):
                raise ConstraintError("terms: every coefficient is zero, so the law says nothing; remove it")
        return SumLaw(
            outputs=tuple(outputs),
            unknowns=unknowns,
            labels=(self._label((*outputs, *unknowns), columns, factors),),
            noise=noise_array(self.noise, 1),
            where=(self.where,),
            columns=tuple(columns),
            coefficients=coefficients,
            total=total,
        )

    def _label(self, names: Sequence[str], columns: Sequence[tuple[int, Transform]], factors: Sequence[Any]) -> str:
        parts = [
            f"{'a(x)' if callable(c) else format(c, 'g')}*{transform.label(names[column])}"
            for c, (column, transform) in zip(factors, columns, strict=True)
        ]
        right = "0" if isinstance(self.total, Unknown) else "C(x)" if callable(self.total) else format(self.total, "g")
        return " + ".join(parts) + f" = {right}"


def _varying(factors: tuple[Any, ...], x: np.ndarray) -> np.ndarray:
    """(n, 1, terms) coefficients of which some are functions of X."""
    values = np.empty((len(x), 1, len(factors)))
    for i, factor in enumerate(factors):
        values[:, 0, i] = np.asarray(factor(x), dtype=float).reshape(len(x)) if callable(factor) else factor
    return values


def _position(output: str | int, outputs: Sequence[str]) -> int:
    if isinstance(output, str):
        if output not in outputs:
            raise ConstraintError(f"Term: expected one of the outputs {list(outputs)}, got {output!r}; check the spelling")
        return list(outputs).index(output)
    if output != int(output) or not 0 <= output < len(outputs):
        raise ConstraintError(f"Term: expected an output number from 0 to {len(outputs) - 1}, got {output}; count from 0")
    return int(output)


def _finite(value: Any, argument: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number):
        raise ConstraintError(f"{argument}: expected a finite number, got {value!r}; give its value in the outputs' units")
    return number
