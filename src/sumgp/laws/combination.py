"""Several laws at once: the most specific law that holds them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sumgp.laws.constraint import Constraint
from sumgp.laws.law import FunctionLaw, Law, SumLaw
from sumgp.transforms import Transform


class AllOf(Constraint):
    """Every one of the given constraints."""

    def __init__(self, constraints: Sequence[Constraint]) -> None:
        self.constraints = tuple(constraints)

    def bind(self, outputs: Sequence[str], inputs: Sequence[str]) -> Law:
        return combine([constraint.bind(outputs, inputs) for constraint in self.constraints])

    def in_one_unit(self, outputs: Sequence[str], inputs: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        return tuple(alike for constraint in self.constraints for alike in constraint.in_one_unit(outputs, inputs))


def combine(laws: Sequence[Law]) -> Law:
    """Stack laws; unknown constants of the same name are one constant, extra columns are shared by name.

    Sums stay a sum, anything else becomes a general function.
    """
    if len(laws) == 1:
        return laws[0]
    unknowns = tuple(dict.fromkeys(name for law in laws for name in law.unknowns))
    extras = tuple(dict.fromkeys(name for law in laws for name in law.extra_columns))
    laws = [_widened(law, unknowns, extras) for law in laws]
    sums = [law for law in laws if isinstance(law, SumLaw)]
    return _stacked_sums(sums) if len(sums) == len(laws) else _stacked_functions(laws)


def _shared(laws: Sequence[Law]) -> dict:
    return {
        "outputs": laws[0].outputs,
        "unknowns": laws[0].unknowns,
        "extra_columns": laws[0].extra_columns,
        "labels": tuple(label for law in laws for label in law.labels),
        "noise": np.concatenate([law.noise for law in laws]),
        "where": tuple(w for law in laws for w in (law.where or (None,) * law.n_rows)),
    }


def _stacked_sums(laws: Sequence[SumLaw]) -> SumLaw:
    columns: list[tuple[int, Transform]] = []
    placed: list[list[int]] = []
    for law in laws:
        for column in law.columns:
            if column not in columns:
                columns.append(column)
        placed.append([columns.index(column) for column in law.columns])
    starts = np.cumsum([0] + [law.n_rows for law in laws])

    def coefficients(x: np.ndarray) -> np.ndarray:
        result = np.zeros((len(x), starts[-1], len(columns)))
        for law, where, start in zip(laws, placed, starts, strict=False):
            values = law.F(x)
            for term, column in enumerate(where):
                result[:, start : start + law.n_rows, column] += values[:, :, term]
        return result

    def total(x: np.ndarray) -> np.ndarray:
        return np.concatenate([law.S(x) for law in laws], axis=1)

    probe = np.zeros((1, 1))
    constant_f = all(isinstance(law.coefficients, np.ndarray) for law in laws)
    constant_s = all(isinstance(law.total, np.ndarray) for law in laws)
    return SumLaw(
        columns=tuple(columns),
        coefficients=coefficients(probe)[0] if constant_f else coefficients,
        total=total(probe)[0] if constant_s else total,
        notes=tuple(note for law in laws for note in (law.notes or ((),) * law.n_rows)),
        **_shared(laws),
    )


def _stacked_functions(laws: Sequence[Law]) -> FunctionLaw:
    return FunctionLaw(
        residual_function=lambda f, x: np.concatenate([law.residual(f, x) for law in laws], axis=1),
        jacobian_function=lambda f, x: np.concatenate([law.jacobian(f, x) for law in laws], axis=1),
        magnitude_function=lambda f, x: np.concatenate([law.magnitude(f, x) for law in laws], axis=1),
        relax=lambda scale: _stacked_functions([law.relaxed(scale) for law in laws]),
        mentions=np.any([law.involved() for law in laws], axis=0),
        notes=tuple(law.explain_row(row) for law in laws for row in range(law.n_rows)),
        **_shared(laws),
    )


def _widened(law: Law, unknowns: tuple[str, ...], extras: tuple[str, ...]) -> Law:
    """The same law over a longer list of unknown constants and extra columns."""
    if law.unknowns == unknowns and law.extra_columns == extras:
        return law
    n_outputs = len(law.outputs)
    old = [*range(n_outputs), *(n_outputs + unknowns.index(name) for name in law.unknowns)]
    if isinstance(law, SumLaw) and law.extra_columns == extras:
        return replace(law, unknowns=unknowns, columns=tuple((old[c], t) for c, t in law.columns))
    n_columns = n_outputs + len(unknowns)
    taken = [extras.index(name) for name in law.extra_columns]

    def narrow(x: np.ndarray) -> np.ndarray:
        base = x.shape[1] - len(extras)
        return x[:, [*range(base), *(base + i for i in taken)]]

    wheres = tuple(None if w is None else (lambda x, w=w: w(narrow(x))) for w in law.where)
    if isinstance(law, SumLaw):
        return replace(
            law,
            unknowns=unknowns,
            extra_columns=extras,
            where=wheres,
            columns=tuple((old[c], t) for c, t in law.columns),
            coefficients=law.coefficients if isinstance(law.coefficients, np.ndarray) else (lambda x: law.F(narrow(x))),
            total=law.total if isinstance(law.total, np.ndarray) else (lambda x: law.S(narrow(x))),
        )

    def jacobian(f: np.ndarray, x: np.ndarray) -> np.ndarray:
        result = np.zeros((len(f), law.n_rows, n_columns))
        result[:, :, old] = law.jacobian(f[:, old], narrow(x))
        return result

    mentions = np.zeros(n_columns, dtype=bool)
    mentions[old] = law.involved()
    return FunctionLaw(
        outputs=law.outputs,
        unknowns=unknowns,
        labels=law.labels,
        noise=law.noise,
        where=wheres,
        notes=law.notes,
        extra_columns=extras,
        residual_function=lambda f, x: law.residual(f[:, old], narrow(x)),
        jacobian_function=jacobian,
        magnitude_function=lambda f, x: law.magnitude(f[:, old], narrow(x)),
        relax=lambda scale: _widened(law.relaxed(scale[old]), unknowns, extras),  # type: ignore[arg-type, return-value]
        mentions=mentions,
    )
