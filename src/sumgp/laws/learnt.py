"""Laws that hold up to an error of unknown size: its mean and standard deviation from rows that were measured completely."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from sumgp.data import Data
from sumgp.errors import DataError
from sumgp.laws.function_law import FunctionLaw
from sumgp.laws.law import Law, SumLaw

FEWEST_ROWS = 5  # complete rows


@dataclass(frozen=True)
class LearntError:
    """Left minus right side of one row of a law at ``count`` complete rows: their mean, standard deviation, what is used.

    ``sd`` is that of one more row when mean and standard deviation s are uncertain: s^2 (1 + 1/n) (n - 1) / (n - 3).
    """

    row: int
    label: str
    bias: float
    spread: float
    count: int

    @property
    def sd(self) -> float:
        """Standard deviation up to which the law is taken to hold."""
        n = self.count
        return float(np.sqrt(self.spread**2 * (1.0 + 1.0 / n) * (n - 1.0) / (n - 3.0)))

    def __str__(self) -> str:
        return (
            f"{self.count} complete rows miss the law by {self.bias:.4g} on average (left minus right side) with a standard "
            f"deviation of {self.spread:.4g}; the mean is added to the total, and the law holds up to {self.sd:.4g}"
        )


def learnt_errors(law: Law, data: Data) -> tuple[LearntError, ...]:
    """The errors that are to be estimated (``noise`` NaN); DataError where too few rows are complete."""
    asked = np.flatnonzero(np.isnan(law.noise))
    if not len(asked):
        return ()
    if law.unknowns:
        raise DataError(
            f"constraint: '+- unknown' and unknown constants ({', '.join(law.unknowns)}) cannot be estimated together; give "
            "the size of the error as a number, or the constants"
        )
    # A derivative is measured nowhere.
    measured = np.hstack([data.measured, np.zeros((len(data.y), len(law.derivatives)), dtype=bool)])
    filled = np.where(measured, np.hstack([data.y, np.ones((len(data.y), len(law.derivatives)))]), 1.0)
    with np.errstate(all="ignore"):
        residual = law.residual(filled, data.x)
        # An output that a row does not hold has no slope there, whatever its value.
        needed = law.jacobian(filled, data.x) != 0
    active = law.active(data.x)
    found = []
    for row in asked:
        complete = ~np.any(needed[:, row] & ~measured, axis=1) & active[:, row] & np.isfinite(residual[:, row])
        values = residual[complete, row]
        if len(values) < FEWEST_ROWS:
            raise DataError(
                f"constraint: '+- unknown' in {law.labels[row]!r} needs at least {FEWEST_ROWS} rows with all its outputs "
                f"measured, got {len(values)}; give the size of the error as a number: +- 0.5"
            )
        error = LearntError(int(row), law.labels[row], float(values.mean()), float(values.std(ddof=1)), len(values))
        found.append(error)
    return tuple(found)


def with_errors(law: Law, errors: tuple[LearntError, ...]) -> Law:
    """The law with the means of its errors in the totals, and their standard deviations as its noise."""
    if not errors:
        return law
    noise, bias = law.noise.copy(), np.zeros(law.n_rows)
    notes = [law.explain_row(row) for row in range(law.n_rows)]
    for error in errors:
        noise[error.row], bias[error.row] = error.sd, error.bias
        notes[error.row] = (*notes[error.row], f"error: {error}")
    assert isinstance(law, (SumLaw, FunctionLaw))
    select = None if law.select is None else partial(_selected, law.select, errors)
    law = replace(law, noise=noise, notes=tuple(notes), select=select, learnt=tuple(e.row for e in errors))
    if isinstance(law, SumLaw):
        total = law.total + bias if isinstance(law.total, np.ndarray) else partial(_shifted, law.total, bias)
        return replace(law, total=total)
    assert isinstance(law, FunctionLaw)
    relax = None if law.relax is None else partial(_relaxed, law, bias)
    return replace(law, residual_function=partial(_shifted, law.residual_function, -bias), relax=relax)


def _shifted(function: Callable[..., np.ndarray], by: np.ndarray, *arguments: Any) -> np.ndarray:
    """A function's values (n, R) plus ``by`` (R,)."""
    values = np.asarray(function(*arguments), dtype=float)
    return values.reshape(len(values), len(by)) + by


def _relaxed(exact: FunctionLaw, bias: np.ndarray, scale: np.ndarray, clear: np.ndarray) -> FunctionLaw:
    """The relaxed law, shifted alike."""
    assert exact.relax is not None
    law = exact.relax(scale, clear)
    return replace(law, noise=exact.noise, residual_function=partial(_shifted, law.residual_function, -bias))


def _selected(select: Callable[[Sequence[int]], Law], errors: tuple[LearntError, ...], rows: Sequence[int]) -> Law:
    """Some of the rows with the same errors."""
    place = {row: i for i, row in enumerate(rows)}
    return with_errors(select(rows), tuple(replace(e, row=place[e.row]) for e in errors if e.row in place))
