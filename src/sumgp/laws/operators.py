"""Linear differential laws as polynomials in the symbols of differentiation: which rows are such, and their coefficients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sumgp.laws.law import Law, SumLaw


@dataclass(frozen=True)
class Operator:
    """R(d) f = 0: row r reads sum over t, m of coefficients[r, t, m] d^exponents[m] f_t = 0, in the user's units."""

    exponents: np.ndarray  # (M, D) whole numbers, each multi-index once
    coefficients: np.ndarray  # (R, T, M)


def homogeneous_rows(law: Law) -> np.ndarray:
    """(R,) truth of whether a row is linear in outputs and derivatives, with constant coefficients and right side zero.

    Rows that hold only in places or up to an error, or that mention an unknown constant, are not.
    """
    return np.array([_is_homogeneous(law.rows([row])) for row in range(law.n_rows)], dtype=bool)


def as_operator(law: Law) -> Operator:
    """The polynomial matrix of a law whose rows are all homogeneous; ``law.rows(...)`` chooses such rows."""
    if not homogeneous_rows(law).all():
        raise ValueError("law: every row must be linear and homogeneous with constant coefficients; choose rows first")
    matrix = np.concatenate([_matrix(law.rows([row])) for row in range(law.n_rows)])
    T, D = len(law.outputs), len(law.derivatives[0].orders) if law.derivatives else 1
    exponents = [(0,) * D, *dict.fromkeys(derivative.orders for derivative in law.derivatives)]
    coefficients = np.zeros((law.n_rows, T, len(exponents)))
    coefficients[:, :, 0] = matrix[:, :T]
    for column, derivative in enumerate(law.derivatives, start=T):
        coefficients[:, derivative.output, exponents.index(derivative.orders)] += matrix[:, column]
    return Operator(np.array(exponents), coefficients)


def _is_homogeneous(row: Law) -> bool:
    if not isinstance(row, SumLaw) or not row.is_linear or not row.has_constant_coefficients or row.noise[0] > 0:
        return False
    constant_total = isinstance(row.total, np.ndarray) and not np.any(row.total)
    return constant_total and not np.any(_matrix(row)[:, row.unknown_columns])


def _matrix(row: Law) -> np.ndarray:
    assert isinstance(row, SumLaw)
    return row.as_matrix()
