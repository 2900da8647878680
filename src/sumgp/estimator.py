"""ConstrainedGP: the estimator users meet, with scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import Kernel, Matern

from sumgp.data import Data, Scaling, choose_scaling, is_frame, merged_groups, output_groups, read_inputs, read_outputs
from sumgp.errors import ConstraintError, DataError, worded
from sumgp.laws import AllOf, Constraint, FormulaConstraint, Law, SumLaw, check_law, complete_scaling
from sumgp.numerics import threads_for
from sumgp.paper_method import Transformed
from sumgp.prediction import Posterior
from sumgp.priors import Candidate, default_candidates, given_candidate, leaves, read_noise
from sumgp.solvers import Markov
from sumgp.solvers.markov import markov_terms
from sumgp.strategies import (
    Conditioned,
    FitProblem,
    Fitted,
    Linearized,
    Strategy,
    Unconstrained,
    typical_range,
    warn_if_contradicted,
    warn_if_repeats_contradict,
)

LONG_SERIES = 3000  # measured entries of a time series above which the state-space form is chosen


@dataclass(frozen=True)
class FitReport:
    """What a fit did: readable as attributes, as ``report["key"]``, and by ``print``."""

    status: str
    strategy: str
    kernel: str
    uncertainty: str
    log_evidence: float
    details: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, key: str) -> Any:
        return self.details[key] if key in self.details else getattr(self, key)

    def __str__(self) -> str:
        lines = [
            f"status: {self.status}",
            f"strategy: {self.strategy}",
            f"kernel: {self.kernel}",
            f"uncertainty: {self.uncertainty}",
        ]
        lines.append(f"log evidence: {self.log_evidence:.3f}")
        for key in (
            "effective_sample_size",
            "taper",
            "taper_reason",
            "law",
            "closed_data",
            "dropped_rows",
            "candidate_weights",
            "constants",
        ):
            if key in self.details:
                lines.append(f"{key.replace('_', ' ')}: {self.details[key]}")
        return "\n".join(lines)


class ConstrainedGP(RegressorMixin, BaseEstimator):
    """Gaussian-process regression of several outputs whose predictions obey a law.

    Parameters
    ----------
    constraint
        formula, list of formulas, constraint object, list of them, or None for a plain multitask GP.
    outputs, inputs
        names used in the law and in reports; taken from DataFrames where not given.
    constants
        values of names in the formula: a number, "unknown", a function of X, or the name of a data column.
    kernel
        a scikit-learn kernel, a list of them (a sum of separable terms, each with its own task covariance), or
        None: several are fitted and combined.
    noise
        "per-output", "shared", or known standard deviations (a number, one per output, or an (N, T) array).
    strategy
        None = chosen from the law; Conditioned(), Linearized(), Projected(), Transformed(), Unconstrained().
    solver
        None = chosen from data and kernel; Dense(), Kronecker(), Markov().
    uncertainty
        "integrated" (hyperparameters averaged over) or "plug-in".
    groups
        lists of outputs that share one scale and noise (coordinates); None = those in one norm(...) of a formula,
        and each other output on its own.
    rank
        rank of B in the task covariance B B^T + diag(v); None = full.
    restarts
        further starts of the hyperparameter search.
    random_state
        seed; the same seed gives the same numbers.
    """

    def __init__(
        self,
        constraint: Any = None,
        *,
        outputs: Sequence[str] | None = None,
        inputs: Sequence[str] | None = None,
        constants: Mapping[str, Any] | None = None,
        kernel: Any = None,
        noise: Any = "per-output",
        strategy: Strategy | None = None,
        solver: Any = None,
        uncertainty: str = "integrated",
        groups: Sequence[Sequence[str | int]] | None = None,
        rank: int | None = None,
        restarts: int = 2,
        random_state: int | None = 0,
    ) -> None:
        self.constraint = constraint
        self.outputs = outputs
        self.inputs = inputs
        self.constants = constants
        self.kernel = kernel
        self.noise = noise
        self.strategy = strategy
        self.solver = solver
        self.uncertainty = uncertainty
        self.groups = groups
        self.rank = rank
        self.restarts = restarts
        self.random_state = random_state

    def fit(self, X: Any, Y: Any, progress: Callable[[str], None] | None = None) -> ConstrainedGP:
        """Fit to inputs X (N,) or (N, D) and outputs Y (N, T), NaN = not measured.

        ``progress`` is called with a phrase at each stage.
        """
        problem, law = self._problem(X, Y, progress or (lambda stage: None))
        strategy = self.strategy if self.strategy is not None else default_strategy(law)
        if law is None and not isinstance(strategy, Unconstrained):
            name = type(strategy).__name__
            raise ConstraintError(f"strategy: {name}() needs a law, got constraint=None; give one or use Unconstrained()")
        if law is not None and not isinstance(strategy, Unconstrained):
            check_law(law, problem.data, problem.scaling)
        with threads_for(problem.y.size):
            fitted = strategy.fit(problem.in_order())
        self._keep(problem, law, strategy, fitted)
        warn_if_repeats_contradict(problem)
        if law is not None and not isinstance(strategy, Unconstrained):
            warn_if_contradicted(problem, law, fitted.components[0].noise * problem.scaling.y_scale**2)
        return self

    def _problem(self, X: Any, Y: Any, progress: Callable[[str], None]) -> tuple[FitProblem, Law | None]:
        """Validate everything and bring it into unit-free form."""
        self._check_choices()
        extra = self._extra_columns()
        x, input_names = read_inputs(X, self.inputs, extra)
        y, output_names = read_outputs(Y, self.outputs, len(x))
        if not np.any(~np.isnan(y)):
            raise DataError(worded("Y", "at least one measured value", "only NaN", "check how missing values were read"))
        constraint = as_constraint(self.constraint, self.constants)
        law = _bound(constraint, output_names, input_names)
        data = Data(x, y, input_names, output_names, extra)
        groups = output_groups(self._groups(constraint, output_names, input_names), output_names)
        stationary = self.kernel is None or _all_stationary(self.kernel)
        ordered = data.at(data.order)
        scaling = choose_scaling(ordered, groups, unit_inputs=self.kernel is None)
        if not stationary:
            scaling = Scaling(np.zeros_like(scaling.x_shift), scaling.x_scale, scaling.y_shift, scaling.y_scale)
        scaling = complete_scaling(law, ordered, scaling)
        solver, kernel = choose_solver(self.solver, self.kernel, self.strategy, data.n_inputs, int(data.measured.sum()))
        half_range = typical_range(scaling.inputs(x), isinstance(solver, Markov))
        problem = FitProblem(
            data=data,
            scaling=scaling,
            law=law,
            candidates=_candidates(kernel, half_range, y.shape[1], self.strategy, law),
            rank=_checked_rank(self.rank, y.shape[1]),
            noise=read_noise(self.noise, scaling.y_scale, groups, len(x)),
            uncertainty=self.uncertainty,
            restarts=int(self.restarts),
            random_state=0 if self.random_state is None else int(self.random_state),
            progress=progress,
            solver=solver,
        )
        return problem, law

    def _check_choices(self) -> None:
        """Refuse arguments that are none of the choices, before any work is done."""
        if self.uncertainty not in ("integrated", "plug-in"):
            raise DataError(worded("uncertainty", "'integrated' or 'plug-in'", repr(self.uncertainty), "choose one of them"))
        if self.strategy is not None and not isinstance(self.strategy, Strategy):
            raise DataError(worded("strategy", "a strategy object or None", repr(self.strategy), "e.g. Linearized()"))
        if isinstance(self.solver, (str, type)):
            raise DataError(worded("solver", "a solver object or None", repr(self.solver), "e.g. Dense()"))
        for name, value in (("rank", self.rank), ("restarts", self.restarts), ("random_state", self.random_state)):
            optional = value is None and name != "restarts"
            if not optional and (isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0):
                raise DataError(
                    worded(name, "a whole number of zero or more", repr(value), "correct it or leave the default")
                )

    def _keep(self, problem: FitProblem, law: Law | None, strategy: Strategy, fitted: Fitted) -> None:
        self.law_ = law
        self.data_ = problem.data
        self.scaling_ = problem.scaling
        self.fitted_ = fitted
        self.strategy_ = strategy
        self.n_features_in_ = problem.data.x.shape[1]
        self.n_outputs_ = problem.n_outputs
        report = dict(fitted.report)
        self.fit_report_ = FitReport(
            status=report.pop("status"),
            strategy=type(strategy).__name__,
            kernel=report.pop("kernel"),
            uncertainty=report.pop("uncertainty"),
            log_evidence=float(report.pop("log_evidence")),
            details=report,
        )

    def _extra_columns(self) -> tuple[str, ...]:
        """Names of data columns that the law needs besides the inputs."""
        if isinstance(self.constraint, Law):
            return self.constraint.extra_columns
        named = [v for v in (self.constants or {}).values() if isinstance(v, str) and v != "unknown"]
        return tuple(dict.fromkeys(named))

    def _groups(
        self, constraint: Constraint | Law | None, outputs: tuple[str, ...], inputs: tuple[str, ...]
    ) -> Sequence[Sequence[str | int]]:
        """The user's groups, or the outputs that the law tells to be in one unit."""
        if self.groups is not None or not isinstance(constraint, Constraint):
            return self.groups or ()
        return merged_groups(constraint.in_one_unit(outputs, inputs))

    def posterior(self, X: Any) -> Posterior:
        """Posterior of all outputs at X, given data and law."""
        if not hasattr(self, "fitted_"):
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet; call fit(X, Y) before predicting")
        if is_frame(X) or not self.data_.extra_columns:
            x, _ = read_inputs(X, self.data_.input_names, self.data_.extra_columns)
        else:
            x = self._with_extras(X)
        return Posterior(self.fitted_, self.scaling_, self.law_, self.data_, x)

    def _with_extras(self, X: Any) -> np.ndarray:
        values = np.asarray(X, dtype=float)
        wanted = [*self.data_.input_names, *self.data_.extra_columns]
        if values.ndim != 2 or values.shape[1] != len(wanted):
            raise DataError(
                worded(
                    "X",
                    f"the columns {wanted}",
                    f"shape {values.shape}",
                    f"the law needs {list(self.data_.extra_columns)} at prediction too; add it to X",
                )
            )
        return read_inputs(values, wanted)[0]

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """(n, T) means, on the law; with the standard deviations (n, T) or the joint covariance (nT, nT) if asked.

        Outputs fitted from a one-dimensional Y come back one-dimensional.
        """
        if return_std and return_cov:
            raise DataError("return_std, return_cov: at most one of them can be asked for; choose one")
        posterior = self.posterior(X)
        flat = (lambda a: a[:, 0]) if self.n_outputs_ == 1 else (lambda a: a)
        mean = flat(posterior.mean)
        if return_std:
            return mean, flat(posterior.std)
        if return_cov:
            return mean, posterior.covariance()
        return mean

    def save(self, path: Any) -> None:
        """Write the fitted model to one file (see ``sumgp.load``)."""
        from sumgp import files

        files.save(self, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        tags.regressor_tags.poor_score = True
        tags.input_tags.allow_nan = False
        return tags


def _bound(constraint: Constraint | Law | None, outputs: tuple[str, ...], inputs: tuple[str, ...]) -> Law | None:
    """The law for these outputs and inputs."""
    if constraint is None:
        return None
    law = constraint if isinstance(constraint, Law) else constraint.bind(outputs, inputs)
    if law.outputs != outputs:
        raise ConstraintError(
            worded(
                "constraint", f"a law for the outputs {list(outputs)}", f"one for {list(law.outputs)}", "bind it to these"
            )
        )
    return law


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


def choose_solver(solver: Any, kernel: Any, strategy: Any, n_inputs: int, n_measured: int) -> tuple[Any, Any]:
    """Solver and kernel: a time series too long for dense algebra goes to the state-space form, by itself or if asked.

    Without a kernel of the user's it is then a Matern 5/2.
    """
    kernels = [] if kernel is None else list(kernel) if isinstance(kernel, Sequence) else [kernel]
    suited = n_inputs == 1 and all(isinstance(k, Kernel) and _has_markov_terms(k) for k in kernels)
    asked = isinstance(solver, Markov)
    if asked and n_inputs != 1:
        raise DataError(worded("solver", "one input for Markov()", f"{n_inputs} inputs", "use Dense() or leave solver=None"))
    if asked and isinstance(strategy, Transformed):
        raise DataError("solver: Markov() does not work with strategy=Transformed(); use Linearized() or another solver")
    by_itself = solver is None and suited and n_measured > LONG_SERIES and not isinstance(strategy, Transformed)
    if not (asked or by_itself):
        return solver, kernel
    terms = [term for k in kernels for term in markov_terms(k)] or [Matern(nu=2.5)]
    return Markov(), terms


def _has_markov_terms(kernel: Kernel) -> bool:
    try:
        markov_terms(kernel)
    except DataError:
        return False
    return True


def _candidates(
    kernel: Any, half_range: np.ndarray, n_outputs: int, strategy: Any, law: Law | None
) -> tuple[Candidate, ...]:
    """Candidate priors; linear laws are imposed on the task covariance, which takes a separable prior."""
    if kernel is not None:
        return given_candidate(kernel, half_range)
    linear = strategy is None and isinstance(law, SumLaw) and law.is_linear
    return default_candidates(half_range, n_outputs, separable=linear or isinstance(strategy, Conditioned))


def _all_stationary(kernel: Any) -> bool:
    kernels = kernel if isinstance(kernel, Sequence) else [kernel]
    return all(leaf.is_stationary() for k in kernels if isinstance(k, Kernel) for leaf in leaves(k))


def _checked_rank(rank: int | None, n_outputs: int) -> int | None:
    if rank is None:
        return None
    if not 0 <= int(rank) <= n_outputs:
        raise DataError(
            worded("rank", f"a number from 0 to {n_outputs}", repr(rank), "leave rank=None for a full task covariance")
        )
    return int(rank)
