"""Linear differential laws that can be solved for good: f = G(d) g obeys R(d) f = 0 whatever the functions g are.

A law is a matrix of polynomials in the symbols d_1 ... d_D of differentiation by the inputs: row r reads
sum_tm coefficients[r, t, m] d^exponents[m] f_t = 0. Columns G of polynomials with R G = 0 are found by linear algebra on
the coefficients, the lowest degree first. They are accepted if

1. their multiples are all the solutions of a degree two higher, so that no function is left out, and
2. every row h with h G = 0 is a combination of rows of R, so that no further law is obeyed.

    find_potential(exponents, coefficients)      Potential, or None where there is none of degree 0, 1 or 2
    as_operator(law)                             the polynomials of a law whose rows are all linear and constant
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import TypeGuard

import numpy as np

from sumgp.laws.law import Law, SumLaw

HIGHEST_DEGREE = 2  # of G: second derivatives of the latent functions
FURTHER = 2  # degrees beyond that of G up to which solutions are compared
RANK = 1e-9  # singular values below this share of the largest count as zero


@dataclass(frozen=True)
class Potential:
    """f_t = sum_km coefficients[t, k, m] d^exponents[m] g_k with free functions g_1 ... g_K."""

    exponents: np.ndarray  # (M, D) whole numbers
    coefficients: np.ndarray  # (T, K, M)

    @property
    def degree(self) -> int:
        """The highest order of differentiation."""
        used = np.any(self.coefficients != 0, axis=(0, 1))
        return int(self.exponents[used].sum(axis=1).max(initial=0))

    @property
    def n_latent(self) -> int:
        """Number K of latent functions."""
        return self.coefficients.shape[1]

    def scaled(self, y_scale: np.ndarray, x_scale: np.ndarray) -> Potential:
        """The same for outputs divided by ``y_scale`` (T,) and inputs by ``x_scale`` (D,); of columns of size one."""
        sizes = np.prod(x_scale[None, :] ** self.exponents, axis=1)
        G = self.coefficients / (y_scale[:, None, None] * sizes)
        return Potential(self.exponents, G / np.abs(G).max(axis=(0, 2), keepdims=True))


def find_potential(exponents: np.ndarray, coefficients: np.ndarray) -> Potential | None:
    """G of the law with ``exponents`` (M, D) and ``coefficients`` (R, T, M), None if the law has none."""
    exponents, given = np.asarray(exponents, dtype=int), np.asarray(coefficients, dtype=float)
    live = np.any(given != 0, axis=(0, 1))
    exponents, given = exponents[live], given[np.any(given != 0, axis=(1, 2))][:, :, live]
    if not len(given):
        return None
    R, outputs, inputs = _balanced(exponents, given)
    law = _Polynomials(exponents, R)
    found: list[_Polynomials] = []
    for degree in range(HIGHEST_DEGREE + 1):
        new = _generators(law, found, degree)
        if new is not None:
            found.append(new)
        if found and new is not None and _is_whole(law, found, degree) and _has_no_further_law(law, found, degree):
            G = _joined(found, degree)
            sizes = np.prod(inputs[None, :] ** G.exponents, axis=1)
            unscaled = G.coefficients.transpose(1, 0, 2) * outputs[:, None, None] * sizes
            used = np.any(unscaled != 0, axis=(0, 1))
            return Potential(G.exponents[used], unscaled[:, :, used] / np.abs(unscaled).max(axis=(0, 2))[None, :, None])
    return None


@dataclass(frozen=True)
class _Polynomials:
    """Vectors of polynomials: ``coefficients`` (rows, entries, M) of the monomials ``exponents`` (M, D)."""

    exponents: np.ndarray
    coefficients: np.ndarray

    @property
    def degree(self) -> int:
        return int(self.exponents.sum(axis=1).max(initial=0))


@cache
def _monomials(n_inputs: int, degree: int) -> tuple[tuple[int, ...], ...]:
    """Multi-indices of at most this degree, the lowest first."""
    every = (m for m in product(range(degree + 1), repeat=n_inputs) if sum(m) <= degree)
    return tuple(sorted(every, key=lambda m: (sum(m), tuple(-i for i in m))))


def _products(of: _Polynomials, degree: int) -> np.ndarray:
    """Matrix of v -> of . v for vectors v (entries,) of polynomials of at most ``degree``.

    (rows * monomials of the product, entries * monomials of v).
    """
    D = of.exponents.shape[1]
    inner, outer = _monomials(D, degree), _monomials(D, degree + of.degree)
    place = {m: i for i, m in enumerate(outer)}
    rows, entries, _ = of.coefficients.shape
    result = np.zeros((rows, len(outer), entries, len(inner)))
    for j, v in enumerate(inner):
        for m, exponent in enumerate(of.exponents):
            result[:, place[tuple(np.add(exponent, v).tolist())], :, j] += of.coefficients[:, :, m]
    return result.reshape(rows * len(outer), entries * len(inner))


def _multiples(parts: Sequence[_Polynomials], degree: int) -> np.ndarray:
    """All products of rows with monomials, of at most ``degree``, as rows over entries * monomials."""
    entries, D = parts[0].coefficients.shape[1], parts[0].exponents.shape[1]
    place = {m: i for i, m in enumerate(_monomials(D, degree))}
    result = []
    for part in parts:
        for row in part.coefficients:
            used = np.any(row != 0, axis=0)
            own = int(part.exponents[used].sum(axis=1).max(initial=0))
            for factor in _monomials(D, degree - own) if degree >= own else ():
                vector = np.zeros((entries, len(place)))
                for m in np.flatnonzero(used):
                    vector[:, place[tuple(np.add(part.exponents[m], factor).tolist())]] += row[:, m]
                result.append(vector.ravel())
    return np.array(result).reshape(-1, entries * len(place))


def _null_space(matrix: np.ndarray) -> np.ndarray:
    """Rows that span the null space."""
    # The square of the matrix is small where there are many equations, but has half the digits.
    triangle = np.linalg.qr(matrix, mode="r") if matrix.shape[0] > matrix.shape[1] else matrix
    _, values, V = np.linalg.svd(triangle)
    rank = int(np.sum(values > RANK * values.max(initial=0.0)))
    return V[rank:]


def _rank(rows: np.ndarray) -> int:
    if not rows.size:
        return 0
    values = np.linalg.svd(rows, compute_uv=False)
    return int(np.sum(values > RANK * values.max(initial=0.0)))


def _generators(law: _Polynomials, found: list[_Polynomials], degree: int) -> _Polynomials | None:
    """Solutions of at most this degree that are no combination of multiples of those found, in echelon form."""
    solutions = _null_space(_products(law, degree))
    D, T = law.exponents.shape[1], law.coefficients.shape[1]
    if found and len(solutions):
        known = _multiples(found, degree)
        basis = np.linalg.svd(known, full_matrices=False)[2][: _rank(known)]
        rest = solutions - (solutions @ basis.T) @ basis
        _, values, V = np.linalg.svd(rest)
        # The solutions are orthonormal: what they hold beyond the known ones is of size one or zero.
        solutions = V[: int(np.sum(values > np.sqrt(RANK)))]
    if not len(solutions):
        return None
    return _Polynomials(np.array(_monomials(D, degree)), _echelon(solutions).reshape(len(solutions), T, -1))


def _echelon(rows: np.ndarray) -> np.ndarray:
    """The reduced row echelon form, with entries that are round-off set to zero: few derivatives of each function."""
    rows, used = rows.copy(), 0
    for column in range(rows.shape[1]):
        if used == len(rows):
            break
        pivot = used + int(np.argmax(np.abs(rows[used:, column])))
        if abs(rows[pivot, column]) <= np.sqrt(RANK):
            continue
        rows[[used, pivot]] = rows[[pivot, used]]
        rows[used] /= rows[used, column]
        others = np.arange(len(rows)) != used
        rows[others] -= np.outer(rows[others, column], rows[used])
        used += 1
    return np.where(np.abs(rows) > RANK * np.abs(rows).max(axis=1, keepdims=True), rows, 0.0)


def _is_whole(law: _Polynomials, found: list[_Polynomials], degree: int) -> bool:
    """True if all solutions of a degree two higher are combinations of multiples of those found."""
    further = degree + FURTHER
    return _rank(_multiples(found, further)) == len(_null_space(_products(law, further)))


def _has_no_further_law(law: _Polynomials, found: list[_Polynomials], degree: int) -> bool:
    """True if every row that the found solutions obey follows from the law."""
    highest = max(law.degree, degree)
    obeyed = _null_space(_products(_joined(found, degree), highest))
    D, T = law.exponents.shape[1], law.coefficients.shape[1]
    wider = np.zeros((len(obeyed), T, len(_monomials(D, highest + FURTHER))))
    wider[:, :, : len(_monomials(D, highest))] = obeyed.reshape(len(obeyed), T, -1)
    follows = _multiples([law], highest + FURTHER)
    return _rank(np.vstack([follows, wider.reshape(len(obeyed), follows.shape[1])])) == _rank(follows)


def _joined(found: list[_Polynomials], degree: int) -> _Polynomials:
    """All columns found, over one list of monomials."""
    D = found[0].exponents.shape[1]
    exponents = np.array(_monomials(D, degree))
    parts = []
    for part in found:
        padded = np.zeros((*part.coefficients.shape[:2], len(exponents)))
        padded[:, :, : part.coefficients.shape[2]] = part.coefficients  # lower degrees come first
        parts.append(padded)
    return _Polynomials(exponents, np.concatenate(parts))


def _balanced(exponents: np.ndarray, R: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coefficients of about size one, and the sizes of outputs (T,) and of inputs' reciprocals (D,) that make them so.

    f_t = outputs[t] f'_t and d_i = d'_i / inputs[i]: ranks must not depend on the user's units. Least squares on logarithms.
    """
    r, t, m = np.nonzero(R)
    n_rows, T, _ = R.shape
    D = exponents.shape[1]
    design = np.zeros((len(r), n_rows + T + D))
    design[np.arange(len(r)), r] = 1.0
    design[np.arange(len(r)), n_rows + t] = 1.0
    design[:, n_rows + T :] = -exponents[m]
    logs = np.linalg.lstsq(design, -np.log(np.abs(R[r, t, m])), rcond=None)[0]
    rows, outputs, inputs = np.exp(logs[:n_rows]), np.exp(logs[n_rows : n_rows + T]), np.exp(logs[n_rows + T :])
    sizes = np.prod(inputs[None, :] ** exponents, axis=1)
    return R * rows[:, None, None] * outputs[None, :, None] / sizes, outputs, inputs


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
    rows = [row for row in (law.rows([place]) for place in range(law.n_rows)) if _is_constant(row)]
    if len(rows) < law.n_rows:
        raise ValueError("law: every row must be linear with constant coefficients and total; choose rows first")
    matrix = np.concatenate([row.as_matrix() for row in rows])
    T, D = len(law.outputs), len(law.derivatives[0].orders) if law.derivatives else 1
    exponents = [(0,) * D, *dict.fromkeys(derivative.orders for derivative in law.derivatives)]
    coefficients = np.zeros((law.n_rows, T, len(exponents)))
    coefficients[:, :, 0] = matrix[:, :T]
    for column, derivative in enumerate(law.derivatives, start=T):
        coefficients[:, derivative.output, exponents.index(derivative.orders)] += matrix[:, column]
    return Operator(np.array(exponents), coefficients, np.concatenate([row.S(np.zeros((1, D)))[0] for row in rows]))


def _is_constant(row: Law) -> TypeGuard[SumLaw]:
    if not isinstance(row, SumLaw) or not row.is_linear or not row.has_constant_coefficients or row.noise[0] > 0:
        return False
    return isinstance(row.total, np.ndarray) and not np.any(row.as_matrix()[:, row.unknown_columns])
