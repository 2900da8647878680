"""A law in unit-free columns with rows of comparable size: what the solvers for nonlinear laws work on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sumgp.laws.law import Law, SumLaw


@dataclass(frozen=True)
class UnitFreeLaw:
    """``law`` seen from unit-free columns u: outputs, unknown constants, then one error column per soft row.

    f = shift + scale * u; each row is divided by its ``row_scale``; a soft row reads g(f) / row_scale + error = 0.
    Rows that do not hold at x are zero there.
    """

    law: Law
    shift: np.ndarray  # (T + U,)
    scale: np.ndarray  # (T + U,)
    row_scale: np.ndarray  # (R,)

    @cached_property
    def _everywhere(self) -> bool:
        return all(where is None for where in self.law.where)

    @cached_property
    def soft_rows(self) -> np.ndarray:
        """Rows that hold only up to an error."""
        return np.flatnonzero(self.law.noise > 0)

    @property
    def n_rows(self) -> int:
        """Number of rows R."""
        return self.law.n_rows

    @cached_property
    def n_columns(self) -> int:
        """Outputs, unknowns and soft errors."""
        return self.law.n_columns + len(self.soft_rows)

    @property
    def is_linear(self) -> bool:
        """True if no row bends."""
        return isinstance(self.law, SumLaw) and self.law.is_linear

    @property
    def soft_variances(self) -> np.ndarray:
        """Variances of the soft rows' errors, in units of their rows."""
        return (self.law.noise / self.row_scale)[self.soft_rows] ** 2

    def residual(self, u: np.ndarray, x: np.ndarray) -> np.ndarray:
        """(n, R) scaled residual, zero where a row does not hold."""
        n_columns = self.law.n_columns
        with np.errstate(all="ignore"):
            values = self.law.residual(self.shift + self.scale * u[:, :n_columns], x) / self.row_scale
        if self.n_columns > n_columns:
            values[:, self.soft_rows] += u[:, n_columns:]
        return values if self._everywhere else np.where(self.law.active(x), values, 0.0)

    def jacobian(self, u: np.ndarray, x: np.ndarray) -> np.ndarray:
        """(n, R, columns) derivative of the scaled residual."""
        n_columns = self.law.n_columns
        result = np.zeros((len(u), self.n_rows, self.n_columns))
        with np.errstate(all="ignore"):
            inner = self.law.jacobian(self.shift + self.scale * u[:, :n_columns], x)
        result[:, :, :n_columns] = inner * self.scale / self.row_scale[:, None]
        for position, row in enumerate(self.soft_rows):
            result[:, row, n_columns + position] = 1.0
        return result if self._everywhere else np.where(self.law.active(x)[:, :, None], result, 0.0)


def make_unit_free(law: Law, shift: np.ndarray, scale: np.ndarray, u: np.ndarray, x: np.ndarray) -> UnitFreeLaw:
    """Relax the law beyond its domain and choose the rows' sizes from their slopes at typical values u (n, T + U)."""
    size = np.maximum(np.abs(shift), scale)
    relaxed = law.relaxed(size)
    f = shift + scale * u
    active = relaxed.active(x)
    with np.errstate(all="ignore"):
        squares = np.sum((relaxed.jacobian(f, x) * scale) ** 2, axis=2)
        magnitude = relaxed.magnitude(f, x)
    # Only inputs at which a row holds say how large it is.
    count = np.maximum(active.sum(axis=0), 1)
    slope = np.sqrt(np.sum(np.where(active, squares, 0.0), axis=0) / count)
    fallback = np.max(np.where(active, magnitude, 0.0), axis=0, initial=0.0)
    usable = np.isfinite(slope) & (slope > 0)
    row_scale = np.where(usable, slope, np.where(np.isfinite(fallback) & (fallback > 0), fallback, 1.0))
    return UnitFreeLaw(relaxed, shift, scale, row_scale)
