"""Linear laws F f = S, and the paper's sums of transformed outputs sum_i a_i(x) h_i(f_i(x)) = C(x)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np

from sumgp.errors import ConstraintError
from sumgp.laws.law import ArrayFunction, Constraint, Law, SumLaw
from sumgp.transforms import Identity, Transform


@dataclass(frozen=True)
class Unknown:
    """A constant total that is to be estimated together with the outputs.

    ``name`` is how it is called in reports; ``LinearConstraint([1, 1], Unknown("mass"))``.
    """

    name: str = "total"


@dataclass(frozen=True)
class Term:
    """``coefficient * transform(output)``; the coefficient is a number or a function of X giving (n,)."""

    output: str | int
    coefficient: float | Callable[[np.ndarray], np.ndarray] = 1.0
    transform: Transform = Identity()


@dataclass(eq=False, repr=False)
class SumConstraint(Constraint):
    """One law: the terms add up to ``total`` (a number, a function of X, or ``Unknown()``)."""

    terms: Sequence[Term]
    total: float | Callable[[np.ndarray], np.ndarray] | Unknown = 0.0
    _: KW_ONLY
    noise: float = 0.0
    where: Callable[[np.ndarray], np.ndarray] | None = None

    def __post_init__(self) -> None:
        self.terms = tuple(self.terms)

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


@dataclass(eq=False, repr=False)
class LinearConstraint(Constraint):
    """The rows F f(x) = S(x).

    ``F``: (T,) or (R, T) coefficients, one column per output, or a function of X giving (n, R, T).
    ``S``: a number, (R,) numbers, a function of X giving (n,) or (n, R), or ``Unknown()``: the same for all inputs
    and estimated. ``noise``: standard deviation up to which the law holds, 0 = exactly; the error is taken to vary
    with x as smoothly as the outputs do. ``where``: function of X giving the inputs at which the law holds.
    """

    F: Any
    S: Any = 0.0
    _: KW_ONLY
    noise: float | Sequence[float] = 0.0
    where: Callable[[np.ndarray], np.ndarray] | None = None

    def bind(self, outputs: Sequence[str], inputs: Sequence[str]) -> Law:
        n_outputs = len(outputs)
        coefficients: np.ndarray | ArrayFunction
        if callable(self.F):
            coefficients, n_rows = self._varying(n_outputs, len(inputs))
        else:
            coefficients = _coefficient_array(self.F, n_outputs)
            n_rows = len(coefficients)
        unknowns: tuple[str, ...] = ()
        columns = [(i, Identity()) for i in range(n_outputs)]
        total: np.ndarray | ArrayFunction
        if isinstance(self.S, Unknown):
            unknowns = _unknown_names(self.S.name, n_rows)
            columns += [(n_outputs + i, Identity()) for i in range(n_rows)]
            coefficients = _append_columns(coefficients, -np.eye(n_rows))
            total = np.zeros(n_rows)
        elif callable(self.S):
            total = self.S
        else:
            total = _total_array(self.S, n_rows)
        labels = tuple(_label(coefficients, total, row, (*outputs, *unknowns)) for row in range(n_rows))
        return SumLaw(
            outputs=tuple(outputs),
            unknowns=unknowns,
            labels=labels,
            noise=noise_array(self.noise, n_rows),
            where=(self.where,) * n_rows,
            columns=tuple(columns),
            coefficients=coefficients,
            total=total,
        )

    def _varying(self, n_outputs: int, n_inputs: int) -> tuple[ArrayFunction, int]:
        """Wrap F(x) so that (n, T) and (n, R, T) both work, learning R from one probe."""
        coefficients = partial(_checked_coefficients, self.F, n_outputs)
        # The probe is at 0, where a function such as 1/x need not be defined; only its shape counts.
        with np.errstate(all="ignore"):
            return coefficients, coefficients(np.zeros((1, n_inputs))).shape[1]


def _checked_coefficients(F: ArrayFunction, n_outputs: int, x: np.ndarray) -> np.ndarray:
    values = np.asarray(F(x), dtype=float)
    if values.ndim == 2:
        values = values[:, None, :]
    if values.ndim != 3 or values.shape[0] != len(x) or values.shape[2] != n_outputs:
        raise ConstraintError(
            f"F: expected an array of shape ({len(x)}, rows, {n_outputs}) from the function of X, got "
            f"{values.shape}; give one column per output"
        )
    return values


def _coefficient_array(F: Any, n_outputs: int) -> np.ndarray:
    try:
        matrix = np.atleast_2d(np.asarray(F, dtype=float))
    except (TypeError, ValueError) as error:
        raise ConstraintError(f"F: expected numbers, got {type(F).__name__}; give a list of coefficients") from error
    if matrix.ndim != 2 or matrix.shape[1] != n_outputs:
        raise ConstraintError(
            f"F: expected {n_outputs} columns, one per output, got shape {matrix.shape}; "
            "write 0 for an output outside the law"
        )
    if not np.all(np.isfinite(matrix)):
        raise ConstraintError("F: expected finite coefficients, got NaN or infinity; write 0 for an output outside the law")
    empty = np.flatnonzero(~np.any(matrix != 0, axis=1))
    if len(empty):
        raise ConstraintError(f"F: row {empty[0] + 1} has only zeros and says nothing about the outputs; remove that row")
    return matrix


def _total_array(S: Any, n_rows: int) -> np.ndarray:
    try:
        total = np.atleast_1d(np.asarray(S, dtype=float))
    except (TypeError, ValueError) as error:
        raise ConstraintError(f"S: expected numbers, got {S!r}; give the total of each row, or Unknown()") from error
    if total.shape == (1,):
        total = np.repeat(total, n_rows)
    if total.shape != (n_rows,) or not np.all(np.isfinite(total)):
        raise ConstraintError(
            f"S: expected {n_rows} finite number(s), one per row of F, got {S!r}; a total that varies with the inputs "
            "is given as a function of X"
        )
    return total


def noise_array(noise: float | Sequence[float], n_rows: int) -> np.ndarray:
    """(R,) standard deviations of the law's own error."""
    try:
        values = np.broadcast_to(np.asarray(noise, dtype=float), (n_rows,)).copy()
    except (TypeError, ValueError) as error:
        raise ConstraintError(
            f"noise: expected one number or {n_rows}, one per row, got {noise!r}; 0 means exact"
        ) from error
    if np.any(values < 0) or not np.all(np.isfinite(values)):
        raise ConstraintError(f"noise: expected standard deviations of zero or more, got {noise!r}; 0 means an exact law")
    return values


def _unknown_names(name: str, n_rows: int) -> tuple[str, ...]:
    return (name,) if n_rows == 1 else tuple(f"{name}{i + 1}" for i in range(n_rows))


def _append_columns(coefficients: np.ndarray | ArrayFunction, block: np.ndarray) -> np.ndarray | ArrayFunction:
    if isinstance(coefficients, np.ndarray):
        return np.hstack([coefficients, block])
    return partial(_with_columns, coefficients, block)


def _with_columns(coefficients: ArrayFunction, block: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.concatenate([coefficients(x), np.broadcast_to(block, (len(x), *block.shape))], axis=2)


def _label(coefficients: Any, total: Any, row: int, names: Sequence[str]) -> str:
    if not isinstance(coefficients, np.ndarray):
        return f"F(x) f = S(x), row {row + 1}"
    terms = [f"{c:g}*{name}" for c, name in zip(coefficients[row], names, strict=True) if c != 0]
    right = f"{total[row]:g}" if isinstance(total, np.ndarray) else "S(x)"
    return " + ".join(terms) + f" = {right}"
