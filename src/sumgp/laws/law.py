"""A law bound to named outputs and inputs: the one thing inference sees of a constraint.

Shapes: ``f`` (n, C) holds the outputs in the user's units, followed by one column per derivative that the law mentions and
one per unknown constant (see ``columns.py``); ``x`` (n, D) holds the inputs followed by ``extra_columns``; a law has R rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from sumgp.errors import ConstraintError, counted
from sumgp.laws.columns import Derivative
from sumgp.transforms import Transform, WholePower

ArrayFunction = Callable[[np.ndarray], np.ndarray]
FEW_INPUTS = 1000  # values
MOST_ANSWERS = 100  # of a user's function, kept for the last points


@dataclass(frozen=True, kw_only=True)
class Law(ABC):
    """What every bound law has: R rows ``residual(f, x) = 0`` over outputs and unknown constants."""

    outputs: tuple[str, ...]
    derivatives: tuple[Derivative, ...] = ()
    unknowns: tuple[str, ...] = ()
    labels: tuple[str, ...]
    noise: np.ndarray  # (R,) standard deviation up to which a row holds; 0 = exactly
    where: tuple[ArrayFunction | None, ...] = ()  # per row: x -> (n,) bool, None = everywhere
    extra_columns: tuple[str, ...] = ()  # columns of the data that the law needs besides the inputs
    notes: tuple[tuple[str, ...], ...] = ()  # per row: lines that explain it in more detail than the law can
    learnt: tuple[int, ...] = ()  # rows whose error was estimated; its mean is in their totals

    def __str__(self) -> str:
        return self.explain()

    @property
    def n_rows(self) -> int:
        """Number of rows R."""
        return len(self.labels)

    @property
    def n_columns(self) -> int:
        """Number of outputs, derivatives and unknown constants."""
        return len(self.outputs) + len(self.derivatives) + len(self.unknowns)

    @property
    def column_names(self) -> tuple[str, ...]:
        """(C,) names of the columns."""
        return (*self.outputs, *(derivative.name for derivative in self.derivatives), *self.unknowns)

    @property
    def unknown_columns(self) -> slice:
        """Where the unknown constants stand among the columns."""
        return slice(self.n_columns - len(self.unknowns), self.n_columns)

    @abstractmethod
    def rows(self, chosen: Sequence[int]) -> Law:
        """The law of some of the rows, over the same columns."""

    def _facts_of(self, chosen: Sequence[int]) -> dict[str, Any]:
        """What is kept per row, for ``rows``."""
        return {
            "labels": tuple(self.labels[row] for row in chosen),
            "noise": self.noise[list(chosen)],
            "where": tuple(self.where[row] for row in chosen) if self.where else (),
            "notes": tuple(self.notes[row] for row in chosen) if self.notes else (),
            "learnt": tuple(place for place, row in enumerate(chosen) if row in self.learnt),
        }

    def active(self, x: np.ndarray) -> np.ndarray:
        """(n, R) truth of whether a row is imposed at x."""
        mask = np.ones((len(x), self.n_rows), dtype=bool)
        for row, where in enumerate(self.where):
            if where is not None:
                held = np.asarray(where(x), dtype=bool)
                if held.size != len(x):
                    raise ConstraintError(
                        f"where: expected {len(x)} truth values from the function of X, got shape {held.shape}; "
                        "return one per row of X"
                    )
                mask[:, row] = held.reshape(len(x))
        return mask

    @abstractmethod
    def residual(self, f: np.ndarray, x: np.ndarray) -> np.ndarray:
        """(n, R) left side minus right side."""

    @abstractmethod
    def jacobian(self, f: np.ndarray, x: np.ndarray) -> np.ndarray:
        """(n, R, C) derivative of the residual with respect to outputs and unknowns."""

    @abstractmethod
    def magnitude(self, f: np.ndarray, x: np.ndarray) -> np.ndarray:
        """(n, R) size of the largest term of a row: what a violation is measured against."""

    @abstractmethod
    def relaxed(self, scale: np.ndarray, clear: np.ndarray | None = None) -> Law:
        """The same law, continued with matching slope beyond its domain's edge (log of a negative number).

        ``scale`` (C,) is the typical size of each column with its sign. Inside the domain nothing
        changes, but that the rows ``clear`` (R,), None = no row, are multiplied by their denominators.
        """

    @abstractmethod
    def kind(self) -> str:
        """What sort of law it is, in a few words."""

    def explain(self) -> str:
        """Several lines of plain text: kind, terms, outputs outside the law."""
        lines = [f"kind: {self.kind()}"]
        for row, label in enumerate(self.labels):
            words = (*self.explain_row(row), *self.explain_noise(row))
            lines += [f"row {row + 1}: {label}", *(f"  {line}" for line in words)]
        if self.unknowns:
            lines.append("estimated constants: " + ", ".join(self.unknowns))
        return "\n".join([*lines, "outputs outside the law: " + (", ".join(self.outputs_outside()) or "none")])

    def explain_noise(self, row: int) -> tuple[str, ...]:
        """The line about the error of a row that does not hold exactly."""
        if np.isnan(self.noise[row]):
            return ("holds up to an error that is estimated from complete rows",)
        return (f"holds up to a standard deviation of {self.noise[row]:g}",) if self.noise[row] > 0 else ()

    def outputs_outside(self) -> tuple[str, ...]:
        """Outputs that no row mentions."""
        used = self.involved().copy()
        derivatives = used[len(self.outputs) : len(self.outputs) + len(self.derivatives)]
        used[[d.output for d, u in zip(self.derivatives, derivatives, strict=True) if u]] = True
        return tuple(name for name, u in zip(self.outputs, used, strict=False) if not u)

    @abstractmethod
    def explain_row(self, row: int) -> tuple[str, ...]:
        """Lines about one row: its notes, or else what the law knows of its terms."""

    @abstractmethod
    def involved(self) -> np.ndarray:
        """(C,) truth of whether any row depends on a column."""


@dataclass(frozen=True, kw_only=True)
class SumLaw(Law):
    """Rows F(x) h(f) = S(x), the paper's sum constraint (Eq. 5), h acting on single columns.

    ``columns`` lists the (column of f, transform) pairs that F multiplies. ``coefficients`` is the (R, M) array F
    where it is constant, else a function of x giving (n, R, M); ``total`` likewise (R,) or x -> (n, R).
    """

    columns: tuple[tuple[int, Transform], ...]
    coefficients: np.ndarray | ArrayFunction
    total: np.ndarray | ArrayFunction
    select: Callable[[Sequence[int]], Law] | None = field(default=None, compare=False)  # some of the rows, if more is known

    @cached_property
    def _terms(self) -> tuple[tuple[int, int, Transform], ...]:
        """Of each term: the power of its column that it is (0 for other transforms), the column, the transform."""
        return tuple((t.exponent if isinstance(t, WholePower) else 0, c, t) for c, t in self.columns)

    @property
    def is_linear(self) -> bool:
        """True if every transform is the identity."""
        return all(power == 1 or (not power and t.is_identity) for power, _, t in self._terms)

    @property
    def is_periodic(self) -> bool:
        """True if an output enters as an angle."""
        return any(not power and t.branches.period is not None for power, _, t in self._terms)

    @property
    def has_constant_coefficients(self) -> bool:
        """True if F does not depend on x and every row holds everywhere."""
        return isinstance(self.coefficients, np.ndarray) and all(w is None for w in self.where)

    def F(self, x: np.ndarray) -> np.ndarray:
        """(n, R, M) coefficients at x."""
        if isinstance(self.coefficients, np.ndarray):
            return np.broadcast_to(self.coefficients, (len(x), *self.coefficients.shape))
        values = self._asked(self.coefficients, x)
        expected = (len(x), self.n_rows, len(self.columns))
        if values.shape != expected:
            raise ConstraintError(
                f"coefficients: expected an array of shape {expected} from the function of X, got {values.shape}; "
                "return one row per input, one row per law, one column per term"
            )
        return values

    def S(self, x: np.ndarray) -> np.ndarray:
        """(n, R) right side at x."""
        if isinstance(self.total, np.ndarray):
            return self.total[None, :].repeat(len(x), axis=0)
        values = self._asked(self.total, x)
        if values.size != len(x) * self.n_rows:
            raise ConstraintError(
                f"total: expected {len(x)} x {self.n_rows} values from the function of X, got shape {values.shape}; "
                "return one value per input (and per law)"
            )
        return values.reshape(len(x), self.n_rows)

    def _asked(self, function: ArrayFunction, x: np.ndarray) -> np.ndarray:
        """The user's function of the inputs; at few inputs it is remembered, since iterations ask for the same again."""
        if x.size > FEW_INPUTS:
            return np.asarray(function(x), dtype=float)
        key = (function is self.total, x.shape, x.tobytes())
        if key not in self._answers:
            if len(self._answers) >= MOST_ANSWERS:
                self._answers.clear()
            self._answers[key] = np.array(function(x), dtype=float)
        return self._answers[key]

    @cached_property
    def _answers(self) -> dict[tuple[bool, tuple[int, ...], bytes], np.ndarray]:
        return {}

    def transformed(self, f: np.ndarray) -> np.ndarray:
        """(n, M) values h(f) of each term."""
        values = np.empty((len(f), len(self.columns)))
        for term, (power, column, transform) in enumerate(self._terms):
            values[:, term] = f[:, column] ** power if power else transform.value(f[:, column])
        return values

    def residual(self, f: np.ndarray, x: np.ndarray) -> np.ndarray:
        if isinstance(self.coefficients, np.ndarray):
            return self.transformed(f) @ self.coefficients.T - self.S(x)
        return np.einsum("nrm,nm->nr", self.F(x), self.transformed(f)) - self.S(x)

    def jacobian(self, f: np.ndarray, x: np.ndarray) -> np.ndarray:
        coefficients = self.F(x)
        result = np.zeros((len(x), self.n_rows, self.n_columns))
        for term, (power, column, transform) in enumerate(self._terms):
            slope = power * f[:, column] ** (power - 1) if power else transform.derivative(f[:, column])
            result[:, :, column] += coefficients[:, :, term] * slope[:, None]
        return result

    def magnitude(self, f: np.ndarray, x: np.ndarray) -> np.ndarray:
        terms = np.abs(self.F(x) * self.transformed(f)[:, None, :])
        return np.maximum(terms.max(axis=2), np.abs(self.S(x)))

    def relaxed(self, scale: np.ndarray, clear: np.ndarray | None = None) -> SumLaw:
        if self.is_linear:
            return self
        columns = tuple((c, t if power else t.relaxed(abs(float(scale[c])))) for power, c, t in self._terms)
        select = None if self.select is None else partial(relaxed_rows, self.select, scale, clear)
        return replace(self, columns=columns, select=select)

    def involved(self) -> np.ndarray:
        F, used = self.coefficients, np.zeros(self.n_columns, dtype=bool)
        for term, (column, _) in enumerate(self.columns):
            used[column] |= not isinstance(F, np.ndarray) or bool(np.any(F[:, term] != 0))
        return used

    def as_matrix(self) -> np.ndarray:
        """(R, C) coefficients of a linear law with constant F, over outputs and unknowns."""
        assert isinstance(self.coefficients, np.ndarray) and self.is_linear
        matrix = np.zeros((self.n_rows, self.n_columns))
        for term, (column, _) in enumerate(self.columns):
            matrix[:, column] += self.coefficients[:, term]
        return matrix

    def rows(self, chosen: Sequence[int]) -> Law:
        if self.select is not None:
            # Rows with constant coefficients keep them, whatever those of the others are.
            return replace(self.select(list(chosen)), **self._facts_of(chosen))
        kept, F, S = list(chosen), self.coefficients, self.total
        total = S[kept] if isinstance(S, np.ndarray) else lambda x: self.S(x)[:, kept]
        facts = self._facts_of(kept)
        if not isinstance(F, np.ndarray):
            return replace(self, coefficients=lambda x: self.F(x)[:, kept], total=total, **facts)
        # Terms of other rows would make these look less plain than they are.
        terms = np.flatnonzero(np.any(F[kept] != 0, axis=0))
        columns = tuple(self.columns[term] for term in terms)
        return replace(self, columns=columns, coefficients=F[kept][:, terms], total=total, **facts)

    def kind(self) -> str:
        coefficients = "constant" if isinstance(self.coefficients, np.ndarray) else "input-dependent"
        sort = "linear" if self.is_linear else "sum of transformed outputs"
        return f"{sort}, {counted(self.n_rows, 'row')}, {coefficients} coefficients"

    def explain_row(self, row: int) -> tuple[str, ...]:
        if self.notes and self.notes[row]:
            return self.notes[row]
        names, slopes, lines = self.column_names, [derivative.name for derivative in self.derivatives], []
        for term, (column, transform) in enumerate(self.columns):
            factor = f"{self.coefficients[row, term]:g}" if isinstance(self.coefficients, np.ndarray) else "a(x)"
            if factor != "0":
                lines.append(term_note(factor, transform, names[column], slopes, self.unknowns))
        total = f"{self.total[row]:g}" if isinstance(self.total, np.ndarray) else "S(x), varies with the inputs"
        return (*lines, f"total: {total}")


def term_note(factor: str, transform: Transform, name: str, derivatives: Collection[str], unknowns: Collection[str]) -> str:
    """The line that explains one term of a sum."""
    described = "constant to be estimated" if name in unknowns else transform.describe()
    if name in derivatives:
        described = "derivative" if transform.is_identity else f"{described}, of a derivative"
    return f"{factor} * {transform.label(name)}: {described}"


def relaxed_rows(
    select: Callable[[Sequence[int]], Law], scale: np.ndarray, clear: np.ndarray | None, rows: Sequence[int]
) -> Law:
    """Some of the rows of a law that was continued beyond its domain."""
    return select(rows).relaxed(scale, None if clear is None else clear[list(rows)])


# A denominator that varies fivefold over the rows makes slopes vary by its square. With less, errors are 1 % lower with the
# fractions as they are (24 problems of six laws).
STEEP = 25.0


def near_pole(law: Law, f: np.ndarray, scale: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(R,) rows without error whose slope is at some values f (n, C) far steeper than at most, or not defined there.

    An error is one of the row as it is written.
    """
    with np.errstate(all="ignore"):
        slope = np.linalg.norm(law.jacobian(f, x) * scale, axis=2)
    active = law.active(x)
    typical = np.array([np.median(s[a]) if a.any() else 1.0 for s, a in zip(slope.T, active.T, strict=True)])
    return (law.noise == 0) & np.any(active & ~(slope <= STEEP * typical), axis=0)


class Constraint(ABC):
    """A law in the user's words: a formula, a matrix, a sum of terms, or a function."""

    @abstractmethod
    def bind(self, outputs: Sequence[str], inputs: Sequence[str]) -> Law:
        """Return the law for these output and input names, or raise ConstraintError."""

    def bounds(self, outputs: Sequence[str], inputs: Sequence[str]) -> tuple[SumLaw, ...]:
        """Linear laws whose residual is to be zero or less."""
        return ()

    def in_one_unit(self, outputs: Sequence[str], inputs: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """Sets of outputs that the law tells to be in one unit, such as the coordinates of a length; they may overlap."""
        return ()
