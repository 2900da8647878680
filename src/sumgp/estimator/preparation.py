"""From the user's choices to what a fit needs: the law, the strategy, the candidate priors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from sumgp.data import Data, Scaling
from sumgp.errors import ConstraintError, DataError, worded
from sumgp.laws import AllOf, BoundConstraint, Constraint, FormulaConstraint, Law, SumLaw, bind_constraint
from sumgp.paper_method import Transformed
from sumgp.priors import Candidate, Period, default_candidates, given_candidate, leaves, shown_period
from sumgp.strategies import Conditioned, Linearized, Strategy, Unconstrained


def bound_law(
    constraint: Constraint | Law | None, outputs: tuple[str, ...], inputs: tuple[str, ...], extra: tuple[str, ...]
) -> BoundConstraint:
    """The law and the bounds for these outputs, inputs and further columns of the data."""
    both = bind_constraint(constraint, outputs, inputs, extra)
    law = both.law
    if law is not None and law.outputs != outputs:
        raise ConstraintError(
            worded(
                "constraint", f"a law for the outputs {list(outputs)}", f"one for {list(law.outputs)}", "bind it to these"
            )
        )
    return both


def as_constraint(constraint: Any, constants: Mapping[str, Any] | None) -> Constraint | Law | None:
    """A constraint object from whatever the user wrote down."""
    if constraint is None or isinstance(constraint, (Constraint, Law)):
        return constraint
    if isinstance(constraint, str):
        return FormulaConstraint(constraint, constants)
    if isinstance(constraint, Sequence) and len(constraint):
        if all(isinstance(c, str) for c in constraint):
            return FormulaConstraint(list(constraint), constants)
        parts = [as_constraint(c, constants) for c in constraint]
        if all(isinstance(p, Constraint) for p in parts):
            return AllOf(parts)  # type: ignore[arg-type]
    raise ConstraintError(
        worded(
            "constraint",
            "a formula, a list of formulas, a constraint object or None",
            repr(constraint)[:80],
            "e.g. 'a + b = 1'",
        )
    )


def default_strategy(law: Law | None) -> Strategy:
    """Unconstrained without a law, Conditioned for linear ones, Linearized for all others."""
    if law is None:
        return Unconstrained()
    return Conditioned() if isinstance(law, SumLaw) and law.is_linear else Linearized()


def chosen_candidates(
    kernel: Any, half_range: np.ndarray, n_outputs: int, strategy: Any, law: Law | None, period: Period | None
) -> tuple[Candidate, ...]:
    """Candidate priors; linear laws are imposed on the task covariance, which takes a separable prior."""
    if kernel is not None:
        return given_candidate(kernel, half_range)
    linear = strategy is None and isinstance(law, SumLaw) and law.is_linear
    return default_candidates(half_range, n_outputs, linear or isinstance(strategy, Conditioned), period)


def period_of(strategy: Any, data: Data, scaling: Scaling) -> Period | None:
    """Period that the data show; transformed outputs have no use for it, since they need not be waves."""
    return None if isinstance(strategy, Transformed) else shown_period(scaling.inputs(data.x), scaling.outputs(data.y))


def all_stationary(kernel: Any) -> bool:
    """True if no part of the user's kernel knows where zero is."""
    kernels = kernel if isinstance(kernel, Sequence) else [kernel]
    return all(leaf.is_stationary() for k in kernels if isinstance(k, Kernel) for leaf in leaves(k))


def checked_rank(rank: int | None, n_outputs: int) -> int | None:
    """The rank as a number; an error where the outputs are fewer."""
    if rank is None:
        return None
    if not 0 <= int(rank) <= n_outputs:
        raise DataError(
            worded("rank", f"a number from 0 to {n_outputs}", repr(rank), "leave rank=None for a full task covariance")
        )
    return int(rank)
