"""Whether bounds can be met, together with a linear law: a linear programme at the training rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linprog

from sumgp.errors import ConstraintError
from sumgp.laws.bounds import Inequalities
from sumgp.laws.law import Law, SumLaw

MOST_ROWS = 50  # of the data at which bounds that vary are checked: rows of extreme bounds are among them
SLACK = 1e-9  # relative to the largest term of a row: bounds that meet at a point may miss each other by round-off


def check_bounds(bounds: Inequalities, law: Law | None, x: np.ndarray) -> None:
    """Raise ConstraintError, naming what conflicts, where no outputs meet the bounds and a linear law at inputs x (n, D)."""
    linear = law if isinstance(law, SumLaw) and law.is_linear else None
    programmes = _Programmes(bounds, linear, x)
    for i in _looked_at(programmes):
        if programmes.can_be_met(i, programmes.all_rows):
            continue
        names = [repr(name) for name in dict.fromkeys(programmes.labels[row] for row in programmes.conflicting(i))]
        together = " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
        place = f" at x = {x[i].tolist()} (row {i})" if x.shape[1] else ""
        raise ConstraintError(
            f"constraint: no outputs meet {together} together{place}; correct a number or leave one of them out"
        )


class _Programmes:
    """Rows A f <= b at each input: bounds, and each row of the law as two of them."""

    def __init__(self, bounds: Inequalities, law: SumLaw | None, x: np.ndarray) -> None:
        self.A, self.b = bounds.rows(x)
        self.labels = list(bounds.labels)
        self.n_bounds = len(self.labels)
        self.hard = np.ones((len(x), self.n_bounds), dtype=bool)
        if law is not None:
            zero = np.zeros((len(x), law.n_columns))
            with np.errstate(all="ignore"):
                F, S = law.jacobian(zero, x), -law.residual(zero, x)
            more = law.n_columns - self.A.shape[2]  # unknown constants
            self.A = np.concatenate([np.pad(self.A, ((0, 0), (0, 0), (0, more))), F], axis=1)
            self.b = np.concatenate([self.b, S], axis=1)
            self.hard = np.concatenate([self.hard, law.active(x) & (law.noise == 0) & np.isfinite(F).all(axis=2)], axis=1)
            self.labels += list(law.labels)

    @property
    def all_rows(self) -> list[int]:
        """Positions of all bounds and laws."""
        return list(range(len(self.labels)))

    def can_be_met(self, i: int, rows: Sequence[int]) -> bool:
        """True if some outputs meet these rows at input i."""
        kept = [row for row in rows if self.hard[i, row]]
        # Columns and rows of comparable size: units must not decide.
        size = np.abs(self.A[i, kept]).max(axis=0, initial=0.0)
        A = self.A[i, kept] / np.where(size > 0, size, 1.0)
        length = np.abs(A).max(axis=1, initial=0.0)
        A, b = A / np.where(length > 0, length, 1.0)[:, None], self.b[i, kept] / np.where(length > 0, length, 1.0)
        reach = np.abs(b).max(initial=0.0)
        b = b / (reach if reach > 0 else 1.0)
        upper = np.array([row < self.n_bounds for row in kept], dtype=bool)
        found = linprog(
            np.zeros(A.shape[1]),
            A_ub=A[upper] if upper.any() else None,
            b_ub=b[upper] + SLACK if upper.any() else None,
            A_eq=A[~upper] if (~upper).any() else None,
            b_eq=b[~upper] if (~upper).any() else None,
            bounds=(None, None),
            method="highs",
        )
        return found.status != 2

    def conflicting(self, i: int) -> list[int]:
        """Rows of which none can be left out without the others being met (a deletion filter)."""
        rows = self.all_rows
        for row in self.all_rows:
            others = [r for r in rows if r != row]
            if not self.can_be_met(i, others):
                rows = others
        return rows


def _looked_at(programmes: _Programmes) -> np.ndarray:
    """Inputs whose rows differ: one where nothing varies, else those of the tightest bounds and others evenly chosen."""
    flat = np.concatenate([programmes.A.reshape(len(programmes.b), -1), programmes.b, programmes.hard], axis=1)
    _, first = np.unique(flat, axis=0, return_index=True)
    if len(first) <= MOST_ROWS:
        return np.sort(first)
    extreme = np.unique([*programmes.b[first].argmin(axis=0), *programmes.b[first].argmax(axis=0)])
    even = np.linspace(0, len(first) - 1, MOST_ROWS).round().astype(int)
    return np.sort(first[np.unique([*extreme, *even])])
