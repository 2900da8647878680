"""Whether a linear law can be met at all: rows that repeat others, rows that contradict them, values that are no numbers."""

from __future__ import annotations

import numpy as np

from sumgp.data import Data, Scaling
from sumgp.errors import ConstraintError
from sumgp.laws.law import Law, SumLaw

DEPENDENT = 1e-10  # what is left of a row of length one, given the others, before it counts as one of its own
CONTRADICTION = 1e-8


def check_law(law: Law, data: Data, scaling: Scaling) -> None:
    """Raise ConstraintError where no outputs meet a linear law without derivatives at a training row."""
    if not isinstance(law, SumLaw) or not law.is_linear or law.derivatives:
        return
    _check_finite(law, data)
    if law.has_constant_coefficients and not law.unknowns:
        independent_rows(law, data, scaling)
    else:
        _check_each_row(law, data, scaling)


def independent_rows(law: SumLaw, data: Data, scaling: Scaling | None = None) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """F (R', T), noise and positions of rows that are not combinations of earlier ones; with another total: an error.

    Rows are compared in unit-free outputs where ``scaling`` is given, so that units cannot make them look alike.
    """
    F, noise, S = law.as_matrix(), law.noise, law.S(data.x)
    y_shift, y_scale = (scaling.y_shift, scaling.y_scale) if scaling is not None else (np.zeros(F.shape[1]), 1.0)
    scaled = F * y_scale
    size = np.linalg.norm(scaled, axis=1)
    unit = scaled / size[:, None]
    right = (S - F @ y_shift) / size
    # Totals are the sum of large terms where the outputs lie far from zero: round-off there is no contradiction.
    reach = 1.0 + np.abs(S) / size + np.abs(F) @ np.abs(y_shift) / size
    keep: list[int] = []
    for row in range(len(F)):
        exact = [k for k in keep if noise[k] == 0]
        if noise[row] > 0 or not exact:
            keep.append(row)
            continue
        weights, *_ = np.linalg.lstsq(unit[exact].T, unit[row], rcond=None)
        if np.linalg.norm(unit[exact].T @ weights - unit[row]) > DEPENDENT:
            keep.append(row)
            continue
        tolerance = CONTRADICTION * (reach[:, row] + reach[:, exact] @ np.abs(weights))
        if np.any(np.abs(right[:, exact] @ weights - right[:, row]) > tolerance):
            others = ", ".join(repr(law.labels[k]) for k, w in zip(exact, weights, strict=True) if abs(w) > DEPENDENT)
            raise ConstraintError(
                f"constraint: the law {law.labels[row]!r} contradicts {others}: together they cannot be met; "
                "correct a total or remove one"
            )
    return F[keep], noise[keep], keep


def _check_finite(law: SumLaw, data: Data) -> None:
    with np.errstate(all="ignore"):
        F, S = law.F(data.x), law.S(data.x)
    bad = law.active(data.x) & ~(np.isfinite(F).all(axis=2) & np.isfinite(S))
    if bad.any():
        i, row = np.argwhere(bad)[0]
        raise ConstraintError(
            f"constraint: the law {law.labels[row]!r} has a coefficient or total that is not finite at x = "
            f"{data.x[i].tolist()} (row {i}); correct its function of X, or limit the law with where="
        )


def _check_each_row(law: SumLaw, data: Data, scaling: Scaling) -> None:
    """The same where F varies: least squares at every training row, in unit-free outputs."""
    U = len(law.unknowns)
    shift = np.concatenate([scaling.y_shift, np.zeros(U)])
    scale = np.concatenate([scaling.y_scale, np.ones(U)])
    with np.errstate(all="ignore"):
        at_mean = np.tile(shift, (len(data.x), 1))
        F, left = law.jacobian(at_mean, data.x) * scale, -law.residual(at_mean, data.x)
    hard = law.active(data.x) & (law.noise == 0)
    for i in range(len(data.x)):
        rows, right = F[i][hard[i]], left[i][hard[i]]
        size = np.linalg.norm(rows, axis=1)
        if not len(rows):
            continue
        reach = np.abs(F[i][hard[i]]) @ (1.0 + np.abs(shift) / scale) + np.abs(law.S(data.x[i : i + 1])[0][hard[i]])
        unit = rows / np.where(size > 0, size, 1.0)[:, None]
        solution, *_ = np.linalg.lstsq(unit, right / np.where(size > 0, size, 1.0), rcond=None)
        if np.any(np.abs(rows @ solution - right) > CONTRADICTION * reach):
            names = ", ".join(repr(law.labels[r]) for r in np.flatnonzero(hard[i]))
            raise ConstraintError(
                f"constraint: no outputs meet {names} at x = {data.x[i].tolist()} (row {i}); correct F or S there, "
                "or limit the law with where="
            )
