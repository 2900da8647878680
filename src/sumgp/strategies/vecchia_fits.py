"""Fits of many points in several inputs: the same strategies on blocks of points with neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from sumgp.data import Data
from sumgp.errors import ConstraintError, DataError, Status, doubted, warn
from sumgp.hyperparameters import gappy
from sumgp.laws import Law, RightSides, SumLaw, UnitFreeLaw, task_rows, unit_free_law
from sumgp.priors import hyper_priors, lengthscale_mask, several_lengths, with_long_range
from sumgp.solvers import Automatic, Solver
from sumgp.solvers.vecchia import (
    MEAN_VARIANCE,
    Fit,
    KernelChoice,
    KnownNoise,
    LatentField,
    LatentKernels,
    LengthPrior,
    LinearRows,
    MapSearch,
    OutputModel,
    OutputRows,
    RowInformation,
    ScaledCovariance,
    SeparateFields,
    Vecchia,
    check_map_memory,
    elementary,
    fit_map,
    has_elementary_form,
    incomplete_information,
    kernel_title,
    known_information,
    output_rows,
)
from sumgp.strategies.averaging import WIDENING
from sumgp.strategies.problem import FitProblem, Fitted, Strategy
from sumgp.strategies.vecchia_average import drawn_fits
from sumgp.strategies.vecchia_component import LinearOffset, VecchiaComponent
from sumgp.strategies.vecchia_own import SharedSearch, with_own_outputs
from sumgp.strategies.vecchia_regions import unlike_regions

LEAST_COMPLETE = 0.2  # share of the rows in which every output is measured, for an automatic choice
SLOW_ROWS = 3000  # of dense algebra: the eigenvalues of one kernel matrix take half a minute then
FEWEST_FOR_CHOICE = 200  # rows in which every output is measured, for the same
FEWEST_COMPLETE = 50  # rows in which every output is measured
FURTHER_TERMS = 2  # of longer range, added to a kernel of our choice: fields over short, middle and long distances
ALL_NOISE = 0.95  # share of an output's variance that is noise, from which on its map shows nothing
ALIKE = 1e-9  # log: known noises of rows that differ by a factor only
# Hyperparameters are searched with rows that differ by a factor only, which predictions do not need. Beyond this factor of
# a variance, noise would be taken for signal.
MOST_UNLIKE = 2.0


class _Law(NamedTuple):
    """A linear law of constant coefficients, unit-free, and its totals anywhere."""

    rows: LinearRows
    right_sides: RightSides | None


class _Noise(NamedTuple):
    """Factors of rows (N,), and variances (T,) where they are known; ``own`` (N, T) where rows differ otherwise."""

    factor: np.ndarray
    known: KnownNoise | None
    own: np.ndarray | None = None


def fit_many_points(problem: FitProblem, law: Law | None) -> Fitted:
    """Fit by blocks with neighbours; the ``law`` holds for the predictions.

    Linear laws of constant coefficients are built into the outputs, all others are met by moving each point.
    """
    solver = problem.solver
    assert isinstance(solver, Vecchia)
    built_in = isinstance(law, SumLaw) and law.is_linear and law.has_constant_coefficients
    _check_law(law)
    linear = _linear(problem, law if built_in else None)  # type: ignore[arg-type]
    y, noise = problem.y, _noise(problem)
    complete = ~np.isnan(y).any(axis=1)
    _check_complete(problem, complete)
    check_map_memory(len(y), problem.x.shape[1], problem.n_outputs, not complete.all())
    rows = output_rows(
        problem.x[complete],
        y[complete],
        LinearRows(linear.rows.F, linear.rows.totals[complete]),
        noise.factor[complete],
        noise.known,
    )
    if not rows.mixed.n_latents:
        raise ConstraintError("solver: the law alone determines every output; use Dense(), which needs no search then")
    own = bool(complete.all()) and noise.own is None and len(problem.candidates) > 1
    rows = replace(rows, mixed=replace(rows.mixed, own_kernels=own))
    kernels = _kernels(problem)
    search = fit_map(rows.mixed, rows.log_signal, kernels, solver, problem.progress)
    everywhere = None if law is None else unit_free_law(law, problem.data, problem.scaling)
    unit_free = None if built_in else everywhere
    told = _Told(rows, linear, noise, complete, unit_free)
    report = _report(problem, search, rows.log_constant)
    report["law"] = "none" if law is None else "on the outputs' covariance" if built_in else "point by point"
    best = _component(problem, told, search.best.fit(search.best.found.parameters))
    report |= {"complete_rows": int(complete.sum()), "noise_covariance": best.noise_covariance, "theta": best.theta}
    report["status"] = _flat(problem, float(np.median(noise.factor)) * best.noise) or report["status"]
    if report["status"] == Status.CONVERGED:
        report["status"] = unlike_regions(problem, search.best, best.loading, complete) or Status.CONVERGED
    if problem.uncertainty != "integrated":
        return Fitted((best,), np.ones(1), unit_free, report)
    fitted = _averaged(problem, told, search, Fitted((best.widened(WIDENING),), np.ones(1), unit_free, report))
    return with_own_outputs(problem, fitted, everywhere, SharedSearch(search, rows), kernels)


def _averaged(problem: FitProblem, told: _Told, search: MapSearch, best: Fitted) -> Fitted:
    """The average over draws of the hyperparameters, or the ``best`` where many rows leave little doubt of them."""
    drawn, report = drawn_fits(search, problem.random_state), best.report | {"widening": WIDENING}
    if drawn is None:
        return replace(best, report=report)
    report |= {"uncertainty": "integrated", "draws": len(drawn.weights), "effective_sample_size": drawn.effective}
    components = tuple(_component(problem, told, fit).widened(WIDENING) for fit in drawn.fits)
    return replace(best, components=components, weights=drawn.weights, report=report)


def _flat(problem: FitProblem, noise: np.ndarray) -> str:
    """A status for outputs whose variance is all but taken for noise (T,), also warned of; empty where there are none.

    A field that changes within the distance between rows looks like that too, and intervals of it are then too narrow.
    """
    flat = noise > ALL_NOISE * np.nanvar(problem.y, axis=0)
    if not flat.any():
        return ""
    names = ", ".join(repr(name) for name, is_flat in zip(problem.data.output_names, flat, strict=True) if is_flat)
    text = f"the variation of {names} is taken for noise: it does not depend on the inputs, or changes between rows"
    return doubted(text, "; measure more densely, or use posterior(...).observed() for intervals of new measurements")


class _Told(NamedTuple):
    """Complete rows, law, noise, which rows are complete (N,), and the law that points are moved onto."""

    rows: OutputRows
    linear: _Law
    noise: _Noise
    complete: np.ndarray
    moved_onto: UnitFreeLaw | None


def _component(problem: FitProblem, told: _Told, fit: Fit) -> VecchiaComponent:
    """The posterior for one set of hyperparameters."""
    solver = problem.solver
    assert isinstance(solver, Vecchia)
    model = told.rows.model(told.rows.mixed.mixing(fit.mixing))
    information = _information(problem, told, fit, model)
    seen = ~np.isnan(problem.y).all(axis=1)
    field = _field(problem.x[seen], RowInformation(*(part[seen] for part in information)), fit, solver.nodes)
    right_sides = told.linear.right_sides
    offset = None if right_sides is None else LinearOffset(right_sides, model.D, model.base)
    theta = np.concatenate([*(c.kernel.theta for c in fit.kernels.each), fit.log_signal, fit.mixing])
    variances = np.diagonal(model.noise).copy()
    component = VecchiaComponent(field, model.loading, variances, theta, problem.n_outputs, offset, told.moved_onto)
    return replace(component, noise_between=model.noise)


def _field(x: np.ndarray, told: RowInformation, fit: Fit, nodes: int) -> LatentField | SeparateFields:
    """The latents given the rows; one field each where they have kernels of their own."""
    parts = []
    for number, covariance in enumerate(fit.kernels.each):
        which = fit.kernels.latents(number)
        signal, pulled = np.exp(fit.log_signal[which]), np.ascontiguousarray(told.pulled[:, which])
        parts.append(LatentField(x, told.precision, pulled, signal, covariance.kernel, MEAN_VARIANCE, nodes))
    return parts[0] if fit.kernels.shared else SeparateFields(tuple(parts))


def _check_law(law: Law | None) -> None:
    if law is None:
        return
    if law.derivatives:
        raise ConstraintError(
            f"solver: Vecchia() takes no laws with derivatives such as {law.derivatives[0].name}; use solver=Dense() with "
            "fewer rows"
        )
    if law.unknowns:
        raise ConstraintError(
            f"solver: Vecchia() cannot estimate the constant {law.unknowns[0]!r}; give its value, or use solver=Dense() on "
            "fewer rows to learn it"
        )
    if np.any(law.noise > 0):
        raise ConstraintError(
            "solver: Vecchia() takes laws that hold exactly, not soft ones; leave out the law's noise, or use "
            "solver=Dense() with fewer rows"
        )


def _check_complete(problem: FitProblem, complete: np.ndarray) -> None:
    never = np.flatnonzero(~problem.data.measured.any(axis=0))
    if len(never):
        name = problem.data.output_names[never[0]]
        raise DataError(
            f"solver: Vecchia() needs rows in which every output is measured, and {name!r} never is; leave it out and "
            "compute it from the law, or use solver=Dense() with fewer rows"
        )
    wanted = max(FEWEST_COMPLETE, 4 * problem.n_outputs)
    if complete.sum() < wanted:
        raise DataError(
            "Y",
            f"at least {wanted} complete rows for solver=Vecchia(), which learns how outputs vary together from them",
            f"{int(complete.sum())}",
            "use solver=Dense() with fewer rows, or fit the outputs one by one",
        )


def _linear(problem: FitProblem, law: SumLaw | None) -> _Law:
    """F and totals of the law in the outputs' own order."""
    T = problem.n_outputs
    if law is None:
        return _Law(LinearRows(np.zeros((0, T)), np.zeros((len(problem.x), 0))), None)
    rows = task_rows(law, problem.data, problem.scaling)
    return _Law(LinearRows(rows.F, rows.right_sides(problem.data.x)), rows.right_sides)


def _alike(variances: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """A factor for each row (N,), typical variances (T,), and how far, as a logarithm, their products are off at most."""
    typical = np.exp(np.mean(np.log(variances), axis=0))
    rows = np.exp(np.mean(np.log(variances / typical), axis=1))
    return rows, typical, float(np.max(np.abs(np.log(variances / (rows[:, None] * typical)))))


def _noise(problem: FitProblem) -> _Noise:
    """Noise as the search takes it: rows alike up to a factor each."""
    model, N = problem.noise, len(problem.x)
    factor = np.ones(N) if model.row_factor is None else model.row_factor
    if model.known is None:
        return _Noise(factor, None)
    variances = model.known * factor[:, None]
    rows, typical, apart = _alike(variances)
    alike = apart < ALIKE
    if apart > np.log(MOST_UNLIKE):
        raise DataError(
            "noise",
            "known noises of rows that differ by about one factor for all outputs, for solver=Vecchia()",
            f"variances up to {np.exp(apart):.3g} times off that",
            "give one noise for each output with sample_weight= for the rows, or use solver=Dense() with fewer rows",
        )
    return _Noise(rows, KnownNoise(typical), None if alike else variances)


def _kernels(problem: FitProblem) -> tuple[KernelChoice, ...]:
    """The candidates' kernels with the prior of their parameters."""
    several, alike = len(problem.candidates) > 1, gappy(problem.x / problem.half_range, problem.spacing)
    result = []
    for candidate in problem.candidates:
        if len(candidate.kernels) > 1:
            remedy = "add them up, as in RBF() + Matern(), or use Dense() or Markov()"
            raise DataError("kernel", "one kernel for solver=Vecchia()", "a list of several", remedy)
        result.append(_kernel_choice(problem, elementary(candidate.kernels[0]), FURTHER_TERMS if several else 0, alike))
    return tuple(result)


def _kernel_choice(problem: FitProblem, kernel: Kernel, further: int, alike: bool) -> KernelChoice:
    """The kernel, and in turn the same with up to so many ``further`` terms; ``alike``: lengthscales of its inputs are."""
    priors = hyper_priors(kernel, problem.half_range, problem.spacing)
    centre, spikes = np.array([p.centre for p in priors]), np.array([p.spikes for p in priors])
    longer = with_long_range(kernel, problem.half_range) if further else None
    nested = None if longer is None else _kernel_choice(problem, longer, further - 1, alike)
    prior = LengthPrior(centre, lengthscale_mask(kernel), spikes, tuple(several_lengths(kernel) if alike else ()))
    return KernelChoice(LatentKernels((ScaledCovariance(kernel),)), prior, nested)


def _information(problem: FitProblem, told: _Told, fit: Fit, model: OutputModel) -> RowInformation:
    """What each row says about the latents, in all its measured entries."""
    rows, linear, noise, complete, _ = told
    offset = linear.rows.totals @ model.D + model.base
    if noise.own is not None:
        return known_information(problem.y, offset, model, noise.own)
    w = rows.mixed.Z @ rows.mixed.mixing(fit.mixing).T
    if complete.all():
        return RowInformation(1.0 / noise.factor, w / noise.factor[:, None])
    found = incomplete_information(problem.y, offset, model, noise.factor)
    q = w.shape[1]
    found.precision[complete] = np.eye(q) / noise.factor[complete, None, None]
    found.pulled[complete] = w / noise.factor[complete, None]
    return found


def _report(problem: FitProblem, search: MapSearch, constant: float) -> dict[str, Any]:
    solver, end = problem.solver, search.best
    assert isinstance(solver, Vecchia)
    kernels = end.fit(end.found.parameters).kernels
    lengths = [c.lengthscales(problem.x.shape[1]) for c in kernels.each]
    return {
        "status": end.status,
        "hyperparameter_status": end.status,
        "kernel": kernel_title(kernels),
        "candidates": [{"kernel": name, "objective": other.found.value} for name, other in search.compared.items()],
        "log_evidence": -end.found.value - end.log_prior + constant,
        "log_posterior": -end.found.value,
        "restarts": 0,
        "evaluations": search.evaluations,
        "kernels_compared_on": search.compared_on,
        "lengthscales": lengths[0] if kernels.shared else np.stack(lengths),
        "solver": f"Vecchia: blocks of {solver.block} rows given {solver.neighbours} neighbours, {solver.nodes} nodes",
        "uncertainty": "plug-in (Vecchia solver)",
    }


class Asked(NamedTuple):
    """What the user asked for, in the estimator's own arguments."""

    solver: Solver
    kernel: Any = None
    strategy: Strategy | None = None
    noise: Any = "per-output"
    rank: int | None = None


def choose_map_solver(asked: Asked, data: Data, law: Law | None) -> Solver:
    """The solver asked for, or Vecchia() where none is and all that is asked can be had from it."""
    solver, kernel, strategy = asked.solver, asked.kernel, asked.strategy
    possible = strategy is None or strategy.takes_long_series
    if isinstance(solver, Vecchia) and not possible:
        name = type(strategy).__name__
        raise DataError(f"solver: Vecchia() does not work with strategy={name}(); use Linearized(), or another solver")
    if not isinstance(solver, Automatic) or not possible:
        return solver
    if data.n_inputs == 1 and kernel is None:
        return solver
    kernels = [] if kernel is None else list(kernel) if isinstance(kernel, Sequence) else [kernel]
    suited = len(kernels) < 2 and all(isinstance(k, Kernel) and has_elementary_form(k) for k in kernels)
    if not suited and len(data.x) > SLOW_ROWS:
        forms = "use Matern, RBF or RationalQuadratic, or a sum of them"
        warn(f"kernel: dense algebra over {len(data.x)} rows, as this kernel asks for, takes minutes to hours; {forms}")
    simple = asked.rank is None and (np.ndim(asked.noise) < 2 or data.y.shape[1] == 1 or _noise_suits(asked.noise))
    lawful = law is None or not (law.unknowns or law.derivatives or np.any(law.noise > 0))
    complete = int(data.measured.all(axis=1).sum())
    enough = complete >= max(FEWEST_FOR_CHOICE, LEAST_COMPLETE * len(data.x))
    return Vecchia() if suited and simple and lawful and enough else solver


def _noise_suits(noise: Any) -> bool:
    """True for known standard deviations (N, T) of rows that differ by about one factor for all outputs."""
    sd = np.asarray(noise, dtype=float)
    return bool(np.all(sd > 0)) and 2.0 * _alike(sd)[2] <= np.log(MOST_UNLIKE)
