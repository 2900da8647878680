"""Laws that couple outputs in one term (lengths, products, angles), given as Python functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sumgp.errors import ConstraintError
from sumgp.laws.constraint import Constraint
from sumgp.laws.function_law import FunctionLaw
from sumgp.laws.law import Law
from sumgp.laws.linear import noise_array


class FunctionConstraint(Constraint):
    """Rows ``residual(f, x) = 0`` for f (n, T) in the user's units and x (n, D), giving (n,) or (n, R).

    ``jacobian(f, x)`` gives (n, R, T); without it fourth-order differences are used. ``rows`` is the number of laws R.
    """

    def __init__(
        self,
        residual: Callable[[np.ndarray, np.ndarray], np.ndarray],
        jacobian: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
        *,
        rows: int | None = None,
        noise: float | Sequence[float] = 0.0,
        where: Callable[[np.ndarray], np.ndarray] | None = None,
        label: str = "",
    ) -> None:
        self.residual = residual
        self.jacobian = jacobian
        self.rows = rows
        self.noise = noise
        self.where = where
        self.label = label

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
