"""Before the fit: named choices, checked arguments, the solver, the law and the candidates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern, RationalQuadratic

from sumgp import laws
from sumgp.data import Data, Dates, Scaling, is_frame, is_series, merged_groups, read_columns, seen_by_kernels
from sumgp.errors import ConstraintError, DataError, warn
from sumgp.laws import AllOf, BoundConstraint, Constraint, FormulaConstraint, Law, SplitLaw, SumLaw, split_law, with_bounds
from sumgp.paper_method import Transformed
from sumgp.priors import Candidate, Period, default_candidates, given_candidate, leaves, shown_period
from sumgp.solvers import Automatic, Dense, Kronecker, Markov, Solver, Vecchia
from sumgp.solvers.markov import has_markov_form, markov_terms
from sumgp.strategies import (
    DEFAULT_RESTARTS,
    Asked,
    Collocated,
    Conditioned,
    FitProblem,
    Linearized,
    Projected,
    Strategy,
    Unconstrained,
    choose_map_solver,
)

Groups = Sequence[Sequence[str | int]]
KERNELS: Mapping[str, Callable[[], Any]] = {
    "rbf": RBF,
    "matern12": lambda: Matern(nu=0.5),
    "matern32": lambda: Matern(nu=1.5),
    "matern52": lambda: Matern(nu=2.5),
    "rational-quadratic": lambda: RationalQuadratic(alpha=2.0, alpha_bounds="fixed"),  # as among the kernels tried
}
STRATEGIES: Mapping[str, Callable[[], Any]] = {
    "collocated": Collocated,
    "conditioned": Conditioned,
    "linearized": Linearized,
    "projected": Projected,
    "transformed": Transformed,
    "unconstrained": Unconstrained,
}
SOLVERS: Mapping[str, Callable[[], Any]] = {"dense": Dense, "kronecker": Kronecker, "markov": Markov, "vecchia": Vecchia}


def kernel_named(value: Any, argument: str = "kernel") -> Any:
    """A kernel by its short name; several joined with + are terms with task covariances of their own.

    What is no text is given back as it is, here and below.
    """
    if not isinstance(value, str):
        return value
    made = [_made(part, KERNELS, argument, "join several with +") for part in value.split("+")]
    return made[0] if len(made) == 1 else made


def strategy_named(value: Any, argument: str = "strategy") -> Any:
    """A strategy by its name."""
    return _made(value, STRATEGIES, argument, "leave it out to have it chosen") if isinstance(value, str) else value


def with_named_choices(model: Any) -> Any:
    """An estimator of the same settings with objects in place of names such as "linearized"."""
    solver = model.solver
    if isinstance(solver, str):
        solver = _made(solver, SOLVERS, "solver", "leave it out to have it chosen")
    made = {"kernel": kernel_named(model.kernel), "strategy": strategy_named(model.strategy), "solver": solver}
    return type(model)(**{**model.get_params(deep=False), **made})


def _made(text: str, makers: Mapping[str, Callable[[], Any]], argument: str, remedy: str) -> Any:
    """The object of this name; case, underscores and a pair of brackets at the end do not matter."""
    name = text.strip().lower().replace("_", "-").removesuffix("()")
    if name not in makers:
        raise DataError(argument, f"one of {', '.join(makers)}", repr(text), remedy)
    return makers[name]()


NOT_IN_MARKOV = ("taper", "draws")  # fields of strategies that only the dense algorithms look at


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
    seen = f"{str(left[place])!r} in X and {str(right[place])!r} in Y at position {place}"
    remedy = "use Y.loc[X.index] to pair by label, or reset_index(drop=True) on both to pair by position"
    if left.sort_values().equals(right.sort_values()):
        raise DataError("X, Y", "rows in one order", f"the same row labels in two orders ({seen})", remedy)
    warn(f"X, Y: row labels differ ({seen}); rows were paired by position: {remedy}")


def warn_of_settings_without_effect(solver: Solver, strategy: Strategy | None, restarts: int, rank: int | None) -> None:
    """Name settings that were changed from their defaults and that Markov() and Vecchia() do not look at."""
    changed = [f"restarts={restarts}"] if restarts != DEFAULT_RESTARTS else []
    changed += [f"rank={rank}"] if rank is not None and solver.on_blocks else []
    if strategy is not None:
        known = [f for f in fields(strategy) if f.name in NOT_IN_MARKOV]  # type: ignore[arg-type]
        values = {f.name: getattr(strategy, f.name) for f in known}
        changed += [f"{f.name}={values[f.name]!r}" for f in known if values[f.name] != f.default]
    if changed:
        warn(f"solver: {type(solver).__name__}() ignores {', '.join(changed)}; leave the default, or use Dense()")


LONG_SERIES = 3000  # measured entries of a time series above which the state-space form is chosen
# Measured entries above which blocks with neighbours are chosen. At 9,300 (3,100 rows of three outputs that sum to one)
# dense algebra takes 155 s of CPU and 2.5 GB, blocks 2 s; a third of that is a matter of seconds by dense algebra.
LARGE_MAP = 3000
# The same for two inputs without a curved law, with kernels of our choice. 32 tuning maps of 200 x 3 and 250 x 3, soil among
# them: errors .99 of dense algebra's (.94 to 1.05), 95 % intervals hold 95 % of the values (92 in the worst map) where those
# of dense algebra hold 94 (87), in a third of the time. 550 x 1 and 600 x 1 (10): smooth 1.03 (once 1.11), rough .985 with
# 95 % held where dense algebra holds 90, also in a third. 150 x 3: smooth 1.06. A curved law gains from conditioning on it
# at all points.
PLAIN_MAP = 500
SERIES_SMOOTHNESS = 2.5  # nu of the Matern kernel for long series


def choose_solver(model: Any, data: Data, law: Law | None, split: SplitLaw | None) -> tuple[Solver, Any]:
    """The solver that a ConstrainedGP asks for, or a suitable one, and its kernel; warns of settings that it ignores."""
    n_measured = int(data.measured.sum())
    # The derivatives that are outputs are then as smooth as the outputs of other series.
    nu = SERIES_SMOOTHNESS + (0 if split is None else split.potential.degree)
    # Laws that are imposed at points take neither long series nor large maps: their strategy says how many rows.
    chosen = model.strategy is None and model.solver is None
    at_points = chosen and split is None and law is not None and bool(law.derivatives)
    strategy = Collocated() if at_points else model.strategy
    solver, kernel = series_solver(model.solver, model.kernel, strategy, data.n_inputs, n_measured, nu)
    if split is not None:
        solver = latent_solver(solver)
    elif solver.on_blocks or (n_measured > _largest_dense(model.kernel, data, law) and not at_points):
        solver = choose_map_solver(Asked(solver, kernel, model.strategy, model.noise, model.rank), data, law)
    if solver.on_series or solver.on_blocks:
        warn_of_settings_without_effect(solver, model.strategy, model.restarts, model.rank)
    return solver, kernel


def _largest_dense(kernel: Any, data: Data, law: Law | None) -> int:
    plain = data.n_inputs == 2 and kernel is None and (law is None or (isinstance(law, SumLaw) and law.is_linear))
    return min(PLAIN_MAP, LARGE_MAP) if plain else LARGE_MAP


def series_solver(
    solver: Any, kernel: Any, strategy: Strategy | None, n_inputs: int, n_measured: int, nu: float = SERIES_SMOOTHNESS
) -> tuple[Solver, Any]:
    """Solver and kernel: a time series too long for dense algebra goes to the state-space form, automatically or if asked.

    Without a kernel of the user's it is then a Matern kernel of smoothness ``nu``.
    """
    kernels = [] if kernel is None else list(kernel) if isinstance(kernel, Sequence) else [kernel]
    suited = n_inputs == 1 and all(isinstance(k, Kernel) and has_markov_form(k) for k in kernels)
    asked = isinstance(solver, Markov)
    if asked and n_inputs != 1:
        raise DataError("solver", "one input for Markov()", f"{n_inputs} inputs", "use Dense() or leave solver=None")
    possible = strategy is None or strategy.takes_long_series
    if asked and not possible:
        wrong = f"strategy={type(strategy).__name__}()"
        raise DataError(f"solver: Markov() does not work with {wrong}; use Linearized() or another solver")
    automatic = solver is None and suited and n_measured > LONG_SERIES and possible
    if not (asked or automatic):
        return solver or Automatic(), kernel
    terms = [term for k in kernels for term in markov_terms(k)] or [Matern(nu=nu)]
    return Markov(), terms


def bound_law(
    constraint: Constraint | Law | None, outputs: tuple[str, ...], inputs: tuple[str, ...], extra: tuple[str, ...]
) -> BoundConstraint:
    """The law and the bounds for these outputs, inputs and further columns of the data."""
    law = constraint.bind(outputs, inputs) if isinstance(constraint, Constraint) else constraint
    rows = constraint.bounds(outputs, inputs) if isinstance(constraint, Constraint) else ()
    both = with_bounds(law, rows, extra) if law is not None and rows else BoundConstraint(law, None)
    if law is not None and law.outputs != outputs:
        raise ConstraintError(
            "constraint", f"a law for the outputs {list(outputs)}", f"one for {list(law.outputs)}", "bind it to these"
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
        "constraint", "a formula, a list of formulas, a constraint object or None", repr(constraint)[:80], "e.g. 'a + b = 1'"
    )


def default_strategy(law: Law | None) -> Strategy:
    """Unconstrained without a law, Conditioned for linear ones, Linearized for others, Collocated at points only."""
    if law is None:
        return Unconstrained()
    if law.derivatives:
        return Collocated() if split_law(law) is None else Linearized()
    return Conditioned() if isinstance(law, SumLaw) and law.is_linear else Linearized()


def latent_solver(solver: Solver) -> Solver:
    """Dense() or Markov(), or an error where that is none for outputs that are derivatives of latent functions."""
    if not isinstance(solver, (Automatic, Dense, Markov)):
        got, remedy = f"{type(solver).__name__}()", "leave solver=None"
        raise DataError("solver", "Dense() or Markov() for a law with derivatives", got, remedy)
    return solver if solver.on_series else Dense()


def eliminated(law: Law | None, strategy: Any) -> SplitLaw | None:
    """The law split into rows that a prior over latent functions obeys and the rest; None where there are no such rows."""
    if law is None or not law.derivatives:
        return None
    return split_law(law) if strategy is None or isinstance(strategy, Linearized) else None


def chosen_candidates(
    kernel: Any, half_range: np.ndarray, n_outputs: int, strategy: Any, law: Law | None, period: Period | None
) -> tuple[Candidate, ...]:
    """Candidate priors; linear laws are imposed on the task covariance, which takes a separable prior."""
    if kernel is not None:
        return given_candidate(kernel, half_range)
    linear = isinstance(strategy, Conditioned) or (strategy is None and isinstance(law, SumLaw) and law.is_linear)
    return default_candidates(half_range, n_outputs, linear, period)


def period_of(strategy: Any, data: Data, scaling: Scaling) -> Period | None:
    """Period that the data show; transformed outputs have no use for it, since they need not be waves."""
    return None if isinstance(strategy, Transformed) else shown_period(scaling.inputs(data.x), scaling.outputs(data.y))


def kernel_columns(model: Any, law: Law | None, data: Data) -> int:
    """Number of leading columns of ``data.x`` that kernels see; totals of linear laws enter through the mean instead."""
    own_kernel = model.kernel is not None or model.solver is not None or int(data.measured.sum()) > LONG_SERIES
    if law is None or law.derivatives or own_kernel or isinstance(model.strategy, (Transformed, Unconstrained)):
        return data.n_inputs
    totals_only = isinstance(law, SumLaw) and law.is_linear and law.has_constant_coefficients
    return data.n_inputs if totals_only or not data.extra_columns else seen_by_kernels(data, laws.column_effects(law, data))


def unshifted(scaling: Scaling, kernel: Any) -> Scaling:
    """The scaling, with inputs that are not shifted where a part of the user's kernel knows where zero is."""
    kernels = kernel if isinstance(kernel, Sequence) else [kernel]
    stationary = all(leaf.is_stationary() for k in kernels if isinstance(k, Kernel) for leaf in leaves(k))
    return scaling if stationary else replace(scaling, x_shift=np.zeros_like(scaling.x_shift))


def checked_rank(rank: int | None, n_outputs: int) -> int | None:
    """The rank as a number; an error where the outputs are fewer."""
    if rank is not None and not 0 <= int(rank) <= n_outputs:
        raise DataError("rank", f"a number from 0 to {n_outputs}", repr(rank), "leave rank=None for a full task covariance")
    return None if rank is None else int(rank)


def check_choices(model: Any) -> None:
    """Refuse arguments of a ConstrainedGP that are none of the choices, before any work is done."""
    if model.uncertainty not in ("integrated", "plug-in"):
        raise DataError("uncertainty", "'integrated' or 'plug-in'", repr(model.uncertainty), "choose one of them")
    if model.strategy is not None and not isinstance(model.strategy, Strategy):
        raise DataError("strategy", "a strategy object or None", repr(model.strategy), "e.g. Linearized()")
    if model.solver is not None and not isinstance(model.solver, Solver):
        raise DataError("solver", "a solver object or None", repr(model.solver)[:60], "e.g. Dense() or Markov()")
    for name in ("rank", "restarts", "random_state"):
        value = getattr(model, name)
        optional = value is None and name != "restarts"
        if not optional and (isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0):
            raise DataError(name, "a whole number of zero or more", repr(value), "correct it or leave the default")


def chosen_groups(
    groups: Groups | None, constraint: Constraint | Law | None, outputs: tuple[str, ...], inputs: tuple[str, ...]
) -> Groups:
    """The user's groups, or the outputs that the law tells to be in one unit."""
    if groups is not None or not isinstance(constraint, Constraint):
        return groups or ()
    return merged_groups(constraint.in_one_unit(outputs, inputs))


def shares_noise_by_law(gp: Any, groups: Sequence[Sequence[int]]) -> bool:
    """Whether outputs have one noise because a law tells them to be in one unit, and the user said nothing of it."""
    silent = gp.groups is None and isinstance(gp.noise, str) and gp.noise == "per-output"
    return silent and any(len(group) > 1 for group in groups)


class FitTables(NamedTuple):
    """X and Y as arrays or DataFrames of numbers, and the inputs that were dates."""

    X: Any
    Y: Any
    calendar: dict[str, Dates]


def read_fit_tables(model: Any, X: Any, Y: Any, extra: Sequence[str], constraint: Constraint | Law | None) -> FitTables:
    """The columns to fit, and ``extra`` ones that the law needs; a name of the law that only the data have is an error."""
    x = read_columns(X, None if model.inputs is None else [*model.inputs, *extra], "X")
    y = read_columns(Y, model.outputs, "Y")
    if y.calendar:
        got = f"dates in {next(iter(y.calendar))!r}"
        raise DataError("Y", "numbers", got, "convert them, e.g. to seconds since the first")
    if isinstance(constraint, FormulaConstraint):
        inputs = model.inputs if model.inputs is not None else [name for name in x.names if name not in extra]
        constraint.check_columns(model.outputs or y.names, inputs, {*x.names, *y.names})
    return FitTables(x.table, y.table, x.calendar)


def check_strategy(strategy: Strategy, law: Law | None, problem: FitProblem) -> None:
    """Refuse a strategy that has nothing to impose, or that takes no bounds or derivatives."""
    name, rest = f"{type(strategy).__name__}()", problem.law
    if isinstance(strategy, Unconstrained):
        return
    if law is None:
        raise ConstraintError(f"strategy: {name} needs a law, got constraint=None; give one or use Unconstrained()")
    if problem.bounds is not None and isinstance(strategy, Transformed):
        raise ConstraintError("strategy: Transformed() takes no bounds; use Linearized(), or leave strategy=None")
    if rest is not None and rest.derivatives and not strategy.takes_derivatives:
        got, remedy = f"{name} for {rest.derivatives[0].name}", "leave strategy=None to have it chosen"
        raise ConstraintError("strategy", "one that takes laws with derivatives", got, remedy)


def warn_of_unused_constants(constraint: Constraint | Law | None, constants: Mapping[str, Any] | None) -> None:
    """Name constants that no formula mentions."""
    formulas = _formulas(constraint)
    given = dict.fromkeys([*(constants or {}), *(name for formula in formulas for name in formula.constants)])
    unused = [name for name in given if not any(formula.uses(name) for formula in formulas)]
    if unused:
        warn(f"constants: no formula uses {', '.join(map(repr, unused))}; remove it, or correct the name in the formula")


def _formulas(constraint: Constraint | Law | None) -> Sequence[FormulaConstraint]:
    if isinstance(constraint, AllOf):
        return [formula for part in constraint.constraints for formula in _formulas(part)]
    return [constraint] if isinstance(constraint, FormulaConstraint) else []
