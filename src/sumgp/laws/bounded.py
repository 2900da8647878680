"""Bounds together with the law: whether they can be met, and the nearest points that do, in sds of the noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from sumgp.errors import ConstraintError
from sumgp.laws.bounds import Inequalities, Limits
from sumgp.laws.law import Law, SumLaw
from sumgp.numerics import Nearest, Polyhedra, nearest_points

NEAREST_STEPS = 4  # of a nonlinear law, towards the nearest point; then plain Newton steps down to round-off
STEPS = 40  # where a bound touches the law each step only halves the distance
HALVINGS = 8  # of a step that does not come closer to the law
MET = 1e-9  # residual of a law, in its largest term and what outputs of their own size change, up to which it holds
NEAR = 0.1  # the same, from where Newton steps lead back
ROUND_OFF = 1e-14  # the same, below which steps stop


class _Walk(NamedTuple):
    """Points on their way, changed in place: where they are (m, C), how they miss the law (m,), inputs and step sizes."""

    now: np.ndarray
    miss: np.ndarray
    x: np.ndarray
    sds: np.ndarray


@dataclass(frozen=True)
class BoundedLaw:
    """Bounds and the law that holds with them (None: no law). Columns are outputs, then the law's unknown constants."""

    bounds: Inequalities
    law: Law | None = None

    @property
    def is_linear(self) -> bool:
        """True if no row of the law bends."""
        return self.law is None or (isinstance(self.law, SumLaw) and self.law.is_linear)

    def moved(
        self, f: np.ndarray, x: np.ndarray, limits: Limits, sds: np.ndarray, refuge: np.ndarray | None = None
    ) -> Nearest:
        """The nearest points to f (m, C) that obey law and bounds at x, in units of ``sds`` (C,) or (m, C), 0 = fixed.

        Where the law bends, a point that does not reach it starts again from ``refuge`` (m, C), which does, then from
        its mirror image in the bounds it violates.
        """
        if sds.ndim == 2:
            every = Nearest(f.copy(), np.ones(len(f), dtype=bool))
            kinds, kind = np.unique(sds, axis=0, return_inverse=True)
            for k, alike in enumerate(kinds):
                rows = np.flatnonzero(kind.reshape(-1) == k)
                instead = None if refuge is None else refuge[rows]
                every.points[rows], every.met[rows] = self.moved(f[rows], x[rows], limits.at(rows), alike, instead)
            return every
        if self.is_linear:
            return nearest_points(f, sds, self._polyhedra(f, x, limits))
        starts = [f, *([] if refuge is None else [refuge]), _mirrored(f, limits), _clipped(f, limits, 1.0, sds)]
        points, met = f.copy(), np.zeros(len(f), dtype=bool)
        for start in starts:
            left = np.flatnonzero(~met)
            if not len(left):
                break
            found = self._curved(f[left], start[left], x[left], limits.at(left), sds)
            # Of starts that all fail, the first one's end is kept.
            better = found.met | (start is f)
            points[left[better]], met[left] = found.points[better], found.met
        return Nearest(points, met)

    def _curved(self, f: np.ndarray, start: np.ndarray, x: np.ndarray, limits: Limits, sds: np.ndarray) -> Nearest:
        """Steps of sequential quadratic programming: each solves the problem with the law's tangent in its place."""
        assert self.law is not None
        now = _clipped(start, limits, 0.0, sds)
        miss = self.misses(now, x, sds)
        walk = _Walk(now, miss, x, sds)
        live = np.arange(len(f))
        for step in range(STEPS):
            part = limits.at(live)
            aim = nearest_points(
                f[live] if step < NEAREST_STEPS else now[live], sds, self._polyhedra(now[live], x[live], part)
            )
            # On the way to the nearest point the law may be left by a little: Newton steps lead back.
            gained = self._shortened(walk, live, aim, NEAR if step < NEAREST_STEPS else ROUND_OFF)
            live = live[aim.met] if step < NEAREST_STEPS else live[gained & (miss[live] > ROUND_OFF)]
            if not len(live):
                break
        T = limits.lower.shape[1]
        sums = np.einsum("mqt,mt->mq", limits.G, now[:, :T]) - limits.h
        size = np.abs(limits.G * now[:, None, :T]).sum(axis=2) + np.abs(limits.h)
        return Nearest(now, (miss <= MET) & np.all(sums <= ROUND_OFF * size, axis=1))

    def _shortened(self, walk: _Walk, live: np.ndarray, aim: Nearest, enough: float) -> np.ndarray:
        """Steps of the live points towards their aims, halved until they come closer to the law, in place; which did.

        A miss of ``enough`` will always do.
        """
        now, miss, x, sds = walk
        gained, length = np.zeros(len(live), dtype=bool), 1.0
        pending = np.flatnonzero(np.isfinite(aim.points).all(axis=1))
        for _ in range(HALVINGS):
            rows = live[pending]
            trial = now[rows] + length * (aim.points[pending] - now[rows]) if length < 1.0 else aim.points[pending]
            value = self.misses(trial, x[rows], sds)
            better = (value < miss[rows]) | (value <= enough)
            now[rows[better]], miss[rows[better]] = trial[better], value[better]
            gained[pending[better]] = True
            pending, length = pending[~better], 0.5 * length
            if not len(pending):
                break
        return gained

    def misses(self, f: np.ndarray, x: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """(m,) residual of the hard rows, in the largest term and what a change of ``sizes`` (C,) does; infinite if none."""
        assert self.law is not None
        with np.errstate(all="ignore"):
            size = self.law.magnitude(f, x) + np.abs(self.law.jacobian(f, x)) @ sizes
            value = np.abs(self.law.residual(f, x)) / np.where(size > 0, size, 1.0)
        value = np.where(self._hard(x), np.where(np.isfinite(value), value, np.inf), 0.0)
        return value.max(axis=1, initial=0.0)

    def _hard(self, x: np.ndarray) -> np.ndarray:
        assert self.law is not None
        return self.law.active(x) & (self.law.noise == 0)

    def _polyhedra(self, f: np.ndarray, x: np.ndarray, limits: Limits) -> Polyhedra:
        """The bounds with the law's tangent at f; soft rows are left to the law itself."""
        m, C = f.shape
        lower, upper, G, h = limits
        more = C - lower.shape[1]
        if more:
            lower = np.pad(lower, ((0, 0), (0, more)), constant_values=-np.inf)
            upper = np.pad(upper, ((0, 0), (0, more)), constant_values=np.inf)
            G = np.pad(G, ((0, 0), (0, 0), (0, more)))
        if self.law is None:
            return Polyhedra(np.zeros((m, 0, C)), np.zeros((m, 0)), lower, upper, G, h)
        if isinstance(self.law, SumLaw) and self.is_linear and self.law.has_constant_coefficients:
            hard = self.law.noise == 0
            return Polyhedra(np.tile(self.law.as_matrix()[hard], (m, 1, 1)), self.law.S(x)[:, hard], lower, upper, G, h)
        # A linear law's right side is taken at zero, where it has no round-off.
        at = np.zeros_like(f) if self.is_linear else f
        with np.errstate(all="ignore"):
            E, g = self.law.jacobian(at, x), self.law.residual(at, x)
        usable = self._hard(x) & np.isfinite(E).all(axis=2) & np.isfinite(g)
        E, g = np.where(usable[:, :, None], E, 0.0), np.where(usable, g, 0.0)
        return Polyhedra(E, np.einsum("mrc,mc->mr", E, at) - g, lower, upper, G, h)


def _clipped(f: np.ndarray, limits: Limits, inwards: float, sds: np.ndarray) -> np.ndarray:
    """f (m, C) with outputs outside their own bounds moved to them, and ``inwards`` standard deviations further."""
    T = limits.lower.shape[1]
    lower, upper = limits.lower, np.maximum(limits.lower, limits.upper)
    outputs = np.where(f[:, :T] < lower, lower + inwards * sds[:T], f[:, :T])
    outputs = np.where(f[:, :T] > upper, upper - inwards * sds[:T], outputs)
    return np.concatenate([np.clip(outputs, lower, upper), f[:, T:]], axis=1)


def _mirrored(f: np.ndarray, limits: Limits) -> np.ndarray:
    """f (m, C) with outputs outside their own bounds as far inside: laws with squares have a branch there."""
    T = limits.lower.shape[1]
    outputs = np.where(f[:, :T] < limits.lower, 2.0 * limits.lower - f[:, :T], f[:, :T])
    outputs = np.where(f[:, :T] > limits.upper, 2.0 * limits.upper - f[:, :T], outputs)
    return np.concatenate([outputs, f[:, T:]], axis=1)


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
