"""Arguments that would be misread or have no effect: refused or warned of before any work is done."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from sumgp.data import is_frame, is_series
from sumgp.errors import DataError, SumGPWarning, worded
from sumgp.laws import AllOf, Constraint, FormulaConstraint, Law
from sumgp.solvers import Dense, Kronecker, Markov, Vecchia
from sumgp.strategies import DEFAULT_RESTARTS, Strategy

NOT_IN_MARKOV = ("taper", "draws")  # fields of strategies that only the dense algorithms look at


def check_solver(solver: Any) -> None:
    """Refuse whatever is no solver object."""
    if solver is not None and not isinstance(solver, (Dense, Kronecker, Markov, Vecchia)):
        raise DataError(worded("solver", "a solver object or None", repr(solver)[:60], "e.g. Dense() or Markov()"))


def check_row_labels(X: Any, Y: Any) -> None:
    """Refuse tables whose rows have the same labels in another order, warn where the labels differ.

    Rows are paired by position. Labels that are the same but for their order are nearly surely an error of sorting or
    shuffling one of the tables; other labels may be meant (one table has row numbers, the other dates).
    """
    if not all(is_frame(table) or is_series(table) for table in (X, Y)):
        return
    left, right = X.index, Y.index
    if len(left) != len(right) or left.equals(right):
        return
    place = next((i for i, (a, b) in enumerate(zip(left, right, strict=True)) if a != b), 0)
    seen = f"{left[place]!r} in X and {right[place]!r} in Y at position {place}"
    remedy = "use Y.loc[X.index] to pair by label, or reset_index(drop=True) on both to pair by position"
    if left.sort_values().equals(right.sort_values()):
        raise DataError(worded("X, Y", "rows in one order", f"the same row labels in two orders ({seen})", remedy))
    warnings.warn(f"X, Y: row labels differ ({seen}); rows were paired by position: {remedy}", SumGPWarning, stacklevel=4)


def warn_of_unused_constants(constraint: Constraint | Law | None, constants: Mapping[str, Any] | None) -> None:
    """Name constants that no formula mentions."""
    formulas = _formulas(constraint)
    given = dict.fromkeys([*(constants or {}), *(name for formula in formulas for name in formula.constants)])
    unused = [name for name in given if not any(formula.uses(name) for formula in formulas)]
    if unused:
        names = ", ".join(map(repr, unused))
        warnings.warn(
            f"constants: no formula uses {names}; remove it, or correct the name in the formula", SumGPWarning, stacklevel=4
        )


def _formulas(constraint: Constraint | Law | None) -> Sequence[FormulaConstraint]:
    if isinstance(constraint, AllOf):
        return [formula for part in constraint.constraints for formula in _formulas(part)]
    return [constraint] if isinstance(constraint, FormulaConstraint) else []


def warn_of_settings_without_effect(solver: object, strategy: Strategy | None, restarts: int) -> None:
    """Name settings that were changed from their defaults and that Markov() and Vecchia() do not look at."""
    changed = [f"restarts={restarts}"] if restarts != DEFAULT_RESTARTS else []
    if strategy is not None:
        known = [f for f in fields(strategy) if f.name in NOT_IN_MARKOV]  # type: ignore[arg-type]
        values = {f.name: getattr(strategy, f.name) for f in known}
        changed += [f"{f.name}={values[f.name]!r}" for f in known if values[f.name] != f.default]
    if changed:
        warnings.warn(
            f"solver: {type(solver).__name__}() has no use for {', '.join(changed)}; leave the default, or use Dense()",
            SumGPWarning,
            stacklevel=4,
        )
