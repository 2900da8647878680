"""ConstrainedGP: the estimator users meet, with scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from sumgp.data import (
    Calendar,
    Data,
    choose_scaling,
    is_frame,
    noise_reach,
    output_groups,
    read_columns,
    read_inputs,
    read_outputs,
)
from sumgp.errors import DataError, Status
from sumgp.estimator import preparation, soundness
from sumgp.estimator.fit_report import FitReport, estimator_table, r_squared, soft_law_report
from sumgp.estimator.stated import bounds_status, warn_if_repeats_contradict
from sumgp.estimator.unmeasured import open_branch, open_constants, open_turn, resting_on_prior
from sumgp.estimator.wrapped import wrapped_angle
from sumgp.laws import Law, SumLaw, check_law, complete_scaling, learnt_errors, with_errors
from sumgp.numerics import threads_for
from sumgp.paper_method import Transformed
from sumgp.prediction import Bounding, Completion, Posterior, RowPosterior, complete_rows, given_rows
from sumgp.priors import map_candidates, read_noise, read_weights, rougher_candidates
from sumgp.strategies import FitProblem, Fitted, Strategy, Unconstrained, fit_if_rough, typical_range, with_own_noises

if TYPE_CHECKING:
    import pandas as pd

SMOOTH_ONLY = 600  # rows from which dense algebra compares smooth kernels only
WIDE_GAP = 2.0  # times the mean distance between rows: even rows have 1 and leave no gap


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
        a scikit-learn kernel, a list of them (a sum of separable terms, each with its own task covariance), a name
        ("rbf", "matern12", "matern32", "matern52", "rational-quadratic", several joined with +), or None: several
        are fitted and combined.
    noise
        "per-output", "shared", or known standard deviations (a number, one per output, or an (N, T) array).
    strategy
        None = chosen from the law; Conditioned(), Linearized(), Projected(), Transformed(), Unconstrained(), or
        such a name in lower case: "linearized".
    solver
        None = chosen from data and kernel; Dense(), Kronecker(), Markov(), Vecchia(), or
        such a name in lower case: "vecchia".
    uncertainty
        "integrated" (hyperparameters averaged over) or "plug-in". With more than 1500 measurements and under Markov()
        hyperparameters are plugged in, with bands 7 % wider, as averages under linear laws have them.
    groups
        lists of outputs that share one scale and noise (coordinates); None = those in one norm(...) of a formula
        share a scale, and a noise unless the data show that it differs, and each other output is on its own.
    rank
        rank of B in the task covariance B B^T + diag(v); None = full.
    restarts
        further starts of the hyperparameter search; the default is one fewer where there are more than 25
        hyperparameters, and Markov() has its own.
    random_state
        seed; the same seed gives the same numbers.
    """

    fit_report_: FitReport

    def __init__(
        self,
        constraint: Any = None,
        *,
        outputs: Sequence[str] | None = None,
        inputs: Sequence[str] | None = None,
        constants: Mapping[str, Any] | None = None,
        kernel: Any = None,
        noise: Any = "per-output",
        strategy: Any = None,
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

    def fit(
        self, X: Any, Y: Any, progress: Callable[[str], None] | None = None, *, sample_weight: Any = None
    ) -> ConstrainedGP:
        """Fit to inputs X (N,) or (N, D) and outputs Y (N, T), NaN = not measured.

        Tables of pandas, polars, pyarrow, xarray and others will do; inputs may be dates. ``progress`` is called with a
        phrase at each stage. ``sample_weight`` (N,): the noise variance of a row is that of weight one divided by its
        weight; rows of weight zero are left out.
        """
        chosen = preparation.with_named_choices(self)
        extra, constraint = self._extra_columns(), preparation.as_constraint(self.constraint, self.constants)
        tables = preparation.read_fit_tables(self, X, Y, extra, constraint)
        problem, law = chosen._problem(tables.X, tables.Y, progress or (lambda stage: None), sample_weight)
        problem = with_own_noises(problem) if preparation.shares_noise_by_law(self, problem.noise.groups) else problem
        strategy = chosen.strategy if chosen.strategy is not None else preparation.default_strategy(law)
        preparation.check_strategy(strategy, law, problem)
        imposed = None if isinstance(strategy, Unconstrained) else problem.law
        if imposed is not None:
            check_law(imposed, problem.data, problem.scaling)
        stated = None if isinstance(strategy, Unconstrained) else law
        bounding = None if problem.bounds is None else Bounding.of(problem.bounds, stated, problem.data)
        in_parts = problem.solver.on_series or problem.solver.on_blocks  # whose matrices are small, however many there are
        with threads_for(0 if in_parts else problem.y.size):
            ordered = problem.in_order()
            rough = fit_if_rough(strategy, ordered) if len(ordered.x) > SMOOTH_ONLY else None
            fitted = rough or strategy.fit(ordered)
        self._keep(problem, law, strategy, fitted)
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        self.fit_report_.details.update({} if weights is None else {"sample_weight": weights})
        self.bounding_: Bounding | None = bounding
        self.fit_report_.details.update(soft_law_report(law) if law is not None and law.learnt else {})
        self.fit_report_.details["closed_data"] = not isinstance(strategy, Unconstrained) and soundness.check_closed(problem)
        self.calendar_: Calendar = tables.calendar
        self.fit_report_.details.update({} if bounding is None else bounding.report(problem.data))
        dates = {name: str(dates) for name, dates in tables.calendar.items()}
        self.fit_report_.details.update({"dates": dates} if dates else {})
        found, ended = self._checked_status(problem, imposed, stated), self.fit_report_.status
        if found and ended == Status.STEP_LIMIT:  # whether a search settles may hang on the CPU: what was found does not
            found = f"{ended}, and {found.removeprefix('converged, but ')}"
        if found and ended in (Status.CONVERGED, Status.STEP_LIMIT):
            self.fit_report_ = replace(self.fit_report_, status=found)
        return self

    def _checked_status(self, problem: FitProblem, imposed: Law | None, stated: Law | None) -> str:
        """What the status must say besides "converged", empty where nothing is wrong with fit, data and law. Warns."""
        rows, fitted = soundness.rows_to_check(problem), self.fitted_

        def predict(x: np.ndarray) -> Posterior:
            return replace(self.posterior(x), law=problem.law)

        posterior = predict(problem.data.x[rows])
        status = soundness.checked_status(problem, posterior, rows, imposed)
        if not status and self.bounding_ is not None:
            status = bounds_status(problem, posterior, rows, stated)
        if not status and not problem.data.measured.any(axis=0).all():
            status = resting_on_prior(posterior, problem.data.measured)
        if imposed is not None:
            measured = problem.data.measured[rows]
            status = status or soundness.law_failure_between(problem, imposed, predict)
            if problem.split is not None:  # such an output cannot change branches by itself
                measured = measured | problem.split.tied(measured.any(axis=0))
            if not status and not measured.all():
                status = open_branch(posterior, imposed, measured, predict)
            places = np.unique(problem.x[:, 0])
            widest = np.max(np.diff(places), initial=0.0) * (len(places) - 1)
            if not status and not imposed.derivatives and widest > WIDE_GAP * np.ptp(places):
                status = open_turn(problem, fitted)
            doubt = soundness.doubts(problem, imposed, fitted.components[0].noise * problem.scaling.y_scale**2)
            status = status or doubt
            if not isinstance(imposed, SumLaw) or imposed.is_periodic:
                status = status or wrapped_angle(problem, imposed)
            if imposed.unknowns and not imposed.derivatives:
                self.fit_report_.details.update(open_constants(posterior))
            status = status or soundness.alike_residuals(problem, posterior, rows)
        if problem.noise.known is not None:
            warn_if_repeats_contradict(problem)
        return status

    def _problem(
        self, X: Any, Y: Any, progress: Callable[[str], None], sample_weight: Any = None
    ) -> tuple[FitProblem, Law | None]:
        """Validate everything and bring it into unit-free form."""
        preparation.check_choices(self)
        extra = self._extra_columns()
        x, input_names = read_inputs(X, self.inputs, extra)
        y, output_names = read_outputs(Y, self.outputs, len(x))
        preparation.check_row_labels(X, Y)
        weights = read_weights(sample_weight, len(x))
        if sample_weight is not None and isinstance(self.strategy, Transformed):
            raise DataError("sample_weight: Transformed() takes no weights; use Linearized(), or a noise= for every row")
        x, y, n_given = x[weights > 0], y[weights > 0], len(x)
        if np.isnan(y).all():
            raise DataError("Y", "at least one measured value", "only NaN", "check how missing values were read")
        constraint = preparation.as_constraint(self.constraint, self.constants)
        preparation.warn_of_unused_constants(constraint, self.constants)
        law, bounds = preparation.bound_law(constraint, output_names, input_names, extra)
        data = Data(x, y, input_names, output_names, extra)
        law = law if law is None or np.all(law.noise >= 0) else with_errors(law, learnt_errors(law, data))
        groups = output_groups(preparation.chosen_groups(self.groups, constraint, output_names, input_names), output_names)
        ordered = data.at(data.order)
        scaling = choose_scaling(ordered, groups, self.kernel is None, preparation.kernel_columns(self, law, ordered))
        scaling = preparation.unshifted(scaling, self.kernel)
        split = preparation.eliminated(law, self.strategy)
        imposed = law if split is None else split.rest
        scaling = complete_scaling(law, ordered, scaling) if split is None else split.completed(ordered, scaling)
        solver, kernel = preparation.choose_solver(self, data, law, split)
        half_range = typical_range(scaling.inputs(x), solver.on_series)
        noise = read_noise(self.noise, scaling.y_scale, groups, n_given).weighted(weights)
        period = preparation.period_of(self.strategy, ordered, scaling)
        candidates = preparation.chosen_candidates(kernel, half_range, y.shape[1], self.strategy, imposed, period)
        candidates = map_candidates(half_range) if solver.on_blocks and kernel is None else candidates
        return FitProblem(
            data=data,
            scaling=scaling,
            law=imposed,
            split=split,
            candidates=candidates,
            rank=preparation.checked_rank(self.rank, y.shape[1]),
            noise=noise.reaching(noise_reach(data, scaling, groups)),
            uncertainty=self.uncertainty,
            restarts=int(self.restarts),
            random_state=0 if self.random_state is None else int(self.random_state),
            progress=progress,
            solver=solver,
            bounds=bounds,
            rougher=rougher_candidates(half_range, solver.on_series) if self.kernel is None else (),
            default_kernels=kernel is None,
        ), law

    def _keep(self, problem: FitProblem, law: Law | None, strategy: Strategy, fitted: Fitted) -> None:
        self.law_ = law
        self.data_ = problem.data
        self.scaling_ = problem.scaling
        self.fitted_ = fitted
        self.strategy_ = strategy
        self.n_features_in_ = problem.data.x.shape[1]
        self.n_outputs_ = problem.n_outputs
        self.bounding_, self.calendar_ = None, {}
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
        if not isinstance(self.constants or {}, Mapping):
            raise DataError("constants", "a dictionary", repr(self.constants)[:60], 'e.g. constants={"E": 0.8}')
        named = [v for v in (self.constants or {}).values() if isinstance(v, str) and v != "unknown"]
        return tuple(dict.fromkeys(named))

    @overload
    def posterior(self, X: Any) -> Posterior: ...

    @overload
    def posterior(self, X: Any, given: Any) -> RowPosterior: ...

    def posterior(self, X: Any, given: Any = None) -> Posterior | RowPosterior:
        """Posterior of all outputs at X, given data and law, and given the cells ``given`` (n, T) measured there."""
        return self._points(X) if given is None else given_rows(*self._table(X, given))

    def complete(self, X: Any, Y: Any, *, level: float = 0.95, smooth_measured: bool = False) -> pd.DataFrame:
        """The table X, Y (NaN = gap) with every gap filled from the fit, the cells measured in the same row, and the law.

        Of each output: value, ``_sd``, ``_lower``, ``_upper``, ``_determined`` (by the law, from the row's own cells) and
        ``_source``. A gap is filled with the measurement that is expected there, so that the interval includes the noise.
        Measured cells stay; ``smooth_measured`` puts estimated true values in their place. Rows may be new ones.
        """
        frame = self.completion(X, Y, level=level, smooth_measured=smooth_measured).to_frame()
        return frame.set_axis(Y.index) if is_frame(Y) else frame

    def completion(self, X: Any, Y: Any, *, level: float = 0.95, smooth_measured: bool = False) -> Completion:
        """What ``complete`` gives, as arrays (n, T)."""
        return complete_rows(*self._table(X, Y), level, smooth_measured)

    def _table(self, X: Any, Y: Any) -> tuple[Posterior, np.ndarray]:
        """The posterior at the rows of a table, with the law only if it was imposed, and their cells (n, T)."""
        points = self._points(X)
        cells, _ = read_outputs(Y, self.data_.output_names, len(points.x))
        preparation.check_row_labels(X, Y)
        return points if self.fit_report_.strategy != "Unconstrained" else replace(points, law=None), cells

    def _points(self, X: Any) -> Posterior:
        check_is_fitted(self, "fitted_", msg="This %(name)s instance is not fitted yet; call fit(X, Y) before predicting")
        X = read_columns(X, [*self.data_.input_names, *self.data_.extra_columns], "X", self.calendar_).table
        x, _ = read_inputs(X, self.data_.input_names, self.data_.extra_columns)
        closed = bool(self.fit_report_.details.get("closed_data", False))
        points = Posterior(self.fitted_, self.scaling_, self.law_, self.data_, x, calendar=self.calendar_, closed=closed)
        return replace(points, bounding=self.bounding_)

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """(n, T) means, on the law; with the standard deviations (n, T) or the joint covariance (nT, nT) if asked.

        Outputs fitted from a one-dimensional Y come back one-dimensional.
        """
        if return_std and return_cov:
            raise DataError("return_std, return_cov: at most one of them can be asked for; choose one")
        posterior = self.posterior(X)
        flat = (lambda a: a[:, 0]) if self.n_outputs_ == 1 else (lambda a: a)
        if return_cov:
            return flat(posterior.mean), posterior.covariance()
        std = flat(posterior.std) if return_std else None  # first: means come with it
        return flat(posterior.mean) if std is None else (flat(posterior.mean), std)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Coefficient of determination R^2 of the mean, averaged over the outputs; entries that are NaN do not count."""
        mean = self.posterior(X).mean
        truth, _ = read_outputs(y, self.data_.output_names, len(mean))
        preparation.check_row_labels(X, y)
        return r_squared(mean, truth, sample_weight)

    def save(self, path: Any) -> None:
        """Write the fitted model to one file (see ``sumgp.load``)."""
        from sumgp import files

        files.save(self, path)

    def _repr_html_inner(self) -> str:
        return estimator_table(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": estimator_table(self)}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        tags.regressor_tags.poor_score = True
        tags.input_tags.allow_nan = False
        return tags
