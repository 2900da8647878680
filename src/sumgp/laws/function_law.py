"""Laws that couple outputs in one term (lengths, products, angles): any function of outputs and inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from sumgp.errors import ConstraintError, counted
from sumgp.laws.law import Constraint, Law, relaxed_rows
from sumgp.laws.sums import noise_array


@dataclass(frozen=True, kw_only=True)
class FunctionLaw(Law):
    """Rows given by any vectorised function of outputs and inputs."""

    residual_function: Callable[[np.ndarray, np.ndarray], np.ndarray]
    jacobian_function: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
    magnitude_function: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
    relax: Callable[[np.ndarray, np.ndarray], FunctionLaw] | None = None  # of sizes and rows, as ``relaxed``
    mentions: np.ndarray | None = field(default=None)  # (C,) columns that occur, None = all
    select: Callable[[Sequence[int]], Law] | None = None  # the law of some of the rows, where more is known of it
    by_point: bool = False  # a point has the same value to the last bit whatever other points are asked for with it

    def residual(self, f: np.ndarray, x: np.ndarray) -> np.ndarray:
        values = np.asarray(self.residual_function(f, x), dtype=float)
        if values.ndim == 1 and self.n_rows == 1:
            values = values[:, None]
        if values.shape != (len(f), self.n_rows):
            raise ConstraintError(
                f"residual: expected an array of shape {(len(f), self.n_rows)} for {len(f)} points, got {values.shape}; "
                "return one row per point and one column per law"
            )
        return values

    def jacobian(self, f: np.ndarray, x: np.ndarray) -> np.ndarray:
        if self.jacobian_function is None:
            return numerical_jacobian(self.residual, f, x, self.n_rows)
        values = np.asarray(self.jacobian_function(f, x), dtype=float)
        if values.ndim == 2 and self.n_rows == 1:
            values = values[:, None, :]
        expected = (len(f), self.n_rows, self.n_columns)
        if values.shape != expected:
            raise ConstraintError(
                f"jacobian: expected an array of shape {expected}, got {values.shape}; "
                "return the derivative of each law (second axis) by each output (third axis)"
            )
        return values

    def magnitude(self, f: np.ndarray, x: np.ndarray) -> np.ndarray:
        if self.magnitude_function is not None:
            return np.asarray(self.magnitude_function(f, x), dtype=float).reshape(len(f), self.n_rows)
        return np.abs(self.jacobian(f, x) * f[:, None, :]).max(axis=2)

    def relaxed(self, scale: np.ndarray, clear: np.ndarray | None = None) -> FunctionLaw:
        if self.relax is None:
            return self
        clear = np.zeros(self.n_rows, dtype=bool) if clear is None else clear
        select = None if self.select is None else partial(relaxed_rows, self.select, scale, clear)
        return replace(self.relax(scale, clear), select=select, **self._facts_of(range(self.n_rows)))

    def rows(self, chosen: Sequence[int]) -> Law:
        kept = list(chosen)
        if self.select is not None:
            return replace(self.select(kept), **self._facts_of(kept))
        return replace(
            self,
            residual_function=lambda f, x: self.residual(f, x)[:, kept],
            jacobian_function=lambda f, x: self.jacobian(f, x)[:, kept],
            magnitude_function=lambda f, x: self.magnitude(f, x)[:, kept],
            relax=None,  # laws that can be relaxed can select their rows
            **self._facts_of(kept),
        )

    def involved(self) -> np.ndarray:
        return np.ones(self.n_columns, dtype=bool) if self.mentions is None else self.mentions

    def kind(self) -> str:
        return f"general function of the outputs, {counted(self.n_rows, 'row')}"

    def explain_row(self, row: int) -> tuple[str, ...]:
        return self.notes[row] if self.notes else ()


def functions_of(view: Any) -> dict[str, Any]:
    """Fields of a FunctionLaw from the methods of an object that computes them."""
    return {
        "residual_function": view.residual,
        "jacobian_function": view.jacobian,
        "magnitude_function": view.magnitude,
        "relax": view.relaxed,
        "select": view.selected,
    }


def numerical_jacobian(
    residual: Callable[[np.ndarray, np.ndarray], np.ndarray], f: np.ndarray, x: np.ndarray, n_rows: int
) -> np.ndarray:
    """Derivative by fourth-order central differences, relative error about 1e-11 for smooth laws.

    The step is eps^(1/5) of each value's own size (not below a tenth of its column's), which balances truncation
    h^4 against round-off eps/h.
    """
    result = np.empty((len(f), n_rows, f.shape[1]))
    floor = np.sqrt(np.mean(f**2, axis=0)) * 0.1
    for column in range(f.shape[1]):
        size = np.maximum(np.abs(f[:, column]), floor[column] if floor[column] > 0 else 1.0)
        step = size * np.finfo(float).eps ** 0.2
        shifted = f.copy()

        def at(multiple: float, shifted: np.ndarray = shifted, column: int = column, step: np.ndarray = step) -> np.ndarray:
            shifted[:, column] = f[:, column] + multiple * step
            return residual(shifted, x)

        difference = 8.0 * (at(1.0) - at(-1.0)) - (at(2.0) - at(-2.0))
        result[:, :, column] = difference / (12.0 * step)[:, None]
    return result


@dataclass(eq=False, repr=False)
class FunctionConstraint(Constraint):
    """Rows ``residual(f, x) = 0`` for f (n, T) in the user's units and x (n, D), giving (n,) or (n, R).

    ``jacobian(f, x)`` gives (n, R, T); without it fourth-order differences are used. ``rows`` is the number of laws R.
    """

    residual: Callable[[np.ndarray, np.ndarray], np.ndarray]
    jacobian: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
    _: KW_ONLY
    rows: int | None = None
    noise: float | Sequence[float] = 0.0
    where: Callable[[np.ndarray], np.ndarray] | None = None
    label: str = ""

    def bind(self, outputs: Sequence[str], inputs: Sequence[str]) -> Law:
        n_rows = self.rows or self._count_rows(len(outputs), len(inputs))
        name = self.label or getattr(self.residual, "__name__", "residual")
        labels = (f"{name}(f, x) = 0",) if n_rows == 1 else tuple(f"{name}(f, x)[{i}] = 0" for i in range(n_rows))
        return FunctionLaw(
            outputs=tuple(outputs),
            labels=labels,
            noise=noise_array(self.noise, n_rows),
            where=(self.where,) * n_rows,
            residual_function=self.residual,
            jacobian_function=self.jacobian,
        )

    def _count_rows(self, n_outputs: int, n_inputs: int) -> int:
        """Call the residual once on ones to learn how many laws it holds."""
        try:
            with np.errstate(all="ignore"):
                values = np.asarray(self.residual(np.ones((2, n_outputs)), np.ones((2, n_inputs))), dtype=float)
        except (IndexError, TypeError, ValueError) as error:
            raise ConstraintError(
                f"residual: a call with f of shape (2, {n_outputs}) and x of shape (2, {n_inputs}) failed: {error}; "
                "write it for whole arrays, e.g. f[:, 0]**2 + f[:, 1]**2 - 1"
            ) from error
        if values.ndim not in (1, 2) or len(values) != 2:
            raise ConstraintError(
                f"residual: expected shape (2,) or (2, laws) for two points, got {values.shape}; "
                "return one row per point and one column per law"
            )
        return 1 if values.ndim == 1 else values.shape[1]
