"""Linear differential laws as polynomials in the symbols of differentiation: which rows are such, and their coefficients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sumgp.laws.law import Law, SumLaw

ROUND_OFF = 1e-10  # of the largest total


@dataclass(frozen=True)
class Operator:
    """R(d) f = S: row r reads sum over t, m of coefficients[r, t, m] d^exponents[m] f_t = totals[r], in the user's units."""

    exponents: np.ndarray  # (M, D) whole numbers, each multi-index once; the first is 0
    coefficients: np.ndarray  # (R, T, M)
    totals: np.ndarray  # (R,)

    @property
    def undifferentiated(self) -> np.ndarray:
        """(R, T) coefficients R(0) of the outputs themselves."""
        return self.coefficients[:, :, 0]

    @property
    def has_constant_solution(self) -> bool:
        """True if some outputs that are constant meet the law: subtracted, they leave R(d) f = 0."""
        F = self.undifferentiated
        missed = F @ (np.linalg.pinv(F) @ self.totals) - self.totals
        return bool(np.all(np.abs(missed) <= ROUND_OFF * np.abs(self.totals).max(initial=0.0)))


def constant_rows(law: Law) -> np.ndarray:
    """(R,) truth of whether a row is linear in outputs and derivatives, with constant coefficients and a constant total.

    Rows that hold only in places or up to an error, or that mention an unknown constant, are not.
    """
    return np.array([_is_constant(law.rows([row])) for row in range(law.n_rows)], dtype=bool)


def as_operator(law: Law) -> Operator:
    """The polynomial matrix of a law whose rows are all constant; ``law.rows(...)`` chooses such rows."""
    if not constant_rows(law).all():
        raise ValueError("law: every row must be linear with constant coefficients and total; choose rows first")
    rows = [law.rows([row]) for row in range(law.n_rows)]
    matrix = np.concatenate([_linear(row).as_matrix() for row in rows])
    T, D = len(law.outputs), len(law.derivatives[0].orders) if law.derivatives else 1
    exponents = [(0,) * D, *dict.fromkeys(derivative.orders for derivative in law.derivatives)]
    coefficients = np.zeros((law.n_rows, T, len(exponents)))
    coefficients[:, :, 0] = matrix[:, :T]
    for column, derivative in enumerate(law.derivatives, start=T):
        coefficients[:, derivative.output, exponents.index(derivative.orders)] += matrix[:, column]
    return Operator(np.array(exponents), coefficients, np.concatenate([_linear(row).S(np.zeros((1, D)))[0] for row in rows]))


def _is_constant(row: Law) -> bool:
    if not isinstance(row, SumLaw) or not row.is_linear or not row.has_constant_coefficients or row.noise[0] > 0:
        return False
    return isinstance(row.total, np.ndarray) and not np.any(row.as_matrix()[:, row.unknown_columns])


def _linear(row: Law) -> SumLaw:
    assert isinstance(row, SumLaw)
    return row
