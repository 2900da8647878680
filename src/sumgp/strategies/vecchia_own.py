"""Outputs of a map one by one beside those that vary together, weighed by how well each kind predicts rows left out.

The evidence of outputs that depend on each other along a curve (a share and its log-odds) favours fewer functions than there
are outputs, each a multiple of these: too sure of itself, and less accurate than each output by itself. Left-out rows tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sumgp.laws import UnitFreeLaw
from sumgp.solvers.vecchia import (
    LEAST_NOISE,
    MEAN_VARIANCE,
    KernelChoice,
    LatentField,
    LatentKernels,
    LinearRows,
    MapSearch,
    OutputRows,
    Vecchia,
    fit_map,
    kernel_title,
    output_rows,
    spread_rows,
)
from sumgp.strategies.averaging import WIDENING
from sumgp.strategies.left_out import Known, LeftOut, RowNoise, heaviest, left_out, mixed
from sumgp.strategies.own_outputs import OwnComponent
from sumgp.strategies.problem import FitProblem, Fitted, PosteriorComponent, closed_imbalance
from sumgp.strategies.stacking import Kind, combined, moved_left_out, one_output_at_a_time, shrunk_correlation
from sumgp.strategies.vecchia_average import drawn_fits
from sumgp.strategies.vecchia_component import VecchiaComponent
from sumgp.strategies.vecchia_output import MapOutput

SCORED_ROWS = 1024  # that are left out one by one, spread over the map
OWN_DRAWS = 2  # at most twice as many are kept, of which three are used: an output alone has few hyperparameters
# Log signal / noise variance below which a latent is all but lost. With many rows, searches for single outputs are worth
# their time only there: latents that the rows show clearly have kernels of their own already.
LOST_SIGNAL = float(np.log(3.0))
# Standard errors of the log density of left-out rows by which single outputs may be behind. Further behind they serve, in a
# mixture, as heavier tails of the noise only, and a search for kernels of theirs is not worth its time. Within, maps of a
# share and its log-odds need them: without, intervals of the log-odds held 82 and 84 %, with them 99, and those of the
# shares of a map where they were 1.3 behind 85, with them 92. Of ten real maps three change, errors by 1.002, .995 and .993.
BEHIND = 2.0


class SharedSearch(NamedTuple):
    """The end of the search for outputs that vary together, and the rows that were searched."""

    search: MapSearch
    rows: OutputRows

    def chain(self, candidates: tuple[KernelChoice, ...]) -> list[KernelChoice]:
        """The candidate that led to the chosen kernels and those with further terms up to them, none with more to try."""
        title = kernel_title(LatentKernels(self.search.best.objective.kernels.each[:1]))
        for first in candidates:
            choices: list[KernelChoice] = []
            choice: KernelChoice | None = first
            while choice is not None:
                choices.append(choice._replace(nested=None))
                if kernel_title(choice.kernels) == title:
                    return choices
                choice = choice.nested
        raise AssertionError(title)

    def start(self, choice: KernelChoice, t: int) -> np.ndarray:
        """[theta, log signal, 1 / noise sd] of output ``t`` where the search for kernels that all latents share ended."""
        end = self.search.compared[kernel_title(choice.kernels)]
        fit = end.fit(end.found.parameters)
        model = self.rows.model(self.rows.mixed.mixing(fit.mixing))
        noise = max(float(model.noise[t, t]), LEAST_NOISE**2)
        signal = max(float(model.loading[t] ** 2 @ np.exp(fit.log_signal)), LEAST_NOISE**2)
        return np.array([*fit.kernels.each[0].kernel.theta, np.log(signal / noise), noise**-0.5])


class _Searched(NamedTuple):
    """One output: its inputs and values as they are fitted, and the end of the search for its hyperparameters."""

    rows: OutputRows
    y: np.ndarray  # (n, 1)
    search: MapSearch

    @property
    def end(self) -> np.ndarray:
        """As the starts of ``SharedSearch``."""
        found = self.search.best.found.parameters
        return np.append(found[:-1], found[-1] * abs(self.rows.mixed.whitening[0, 0]))

    def output(self, problem: FitProblem, draws: bool) -> MapOutput:
        """The output by itself: an average over ``draws`` of hyperparameters, or with those at the maximum."""
        solver, x, n = problem.solver, self.rows.mixed.x, len(self.y)
        assert isinstance(solver, Vecchia)
        drawn = drawn_fits(self.search, problem.random_state, OWN_DRAWS) if draws else None
        best = self.search.best.fit(self.search.best.found.parameters)
        fits, weights = ((best,), np.ones(1)) if drawn is None else (drawn.fits, drawn.weights)
        heavy = heaviest(weights)
        fields, scales = [], []
        for fit in (fits[k] for k in heavy):
            scale = float(self.rows.model(self.rows.mixed.mixing(fit.mixing)).loading[0, 0])
            kernel, signal = fit.kernels.each[0].kernel, np.exp(fit.log_signal)
            fields.append(LatentField(x, np.ones(n), self.y / scale, signal, kernel, MEAN_VARIANCE, solver.nodes))
            scales.append(scale)
        return MapOutput(tuple(fields), weights[heavy] / weights[heavy].sum(), np.array(scales))


def with_own_outputs(
    problem: FitProblem,
    fitted: Fitted,
    law: UnitFreeLaw | None,
    searched: SharedSearch,
    candidates: tuple[KernelChoice, ...],
) -> Fitted:
    """The fit of a map, which ended a search, with independent outputs beside it; these are moved onto the ``law``."""
    solver, N, search = problem.solver, len(problem.x), searched.search
    assert isinstance(solver, Vecchia)
    alike = problem.noise.known is None and problem.noise.row_factor is None
    if not (problem.own_kernels and alike and problem.n_outputs > 1):
        return fitted
    found = search.best.fit(search.best.found.parameters)
    all_compared = search.compared_on == len(search.best.objective.rows.x)
    if not all_compared and found.log_signal.min() > LOST_SIGNAL:
        return fitted
    scored = (
        problem if N <= SCORED_ROWS else problem.at(spread_rows(problem.x / problem.half_range, SCORED_ROWS, solver.block))
    )
    measured = ~np.isnan(scored.y)
    # What a law says of one output from the others of its row is not in the closed form.
    cells = law is None and bool(np.any(measured.any(axis=1) & ~measured.all(axis=1)))
    shared = _shared(scored, fitted, cells)
    chain = searched.chain(candidates)
    starts = [{kernel_title(c.kernels): searched.start(c, t) for c in chain} for t in range(problem.n_outputs)]
    if search.few and not cells:
        rough = [_searched(problem, t, (chain[-1],), start) for t, start in enumerate(starts)]
        own = _own(scored, tuple(one.output(problem, draws=False) for one in rough), law, cells)
        if _behind(shared, own) > BEHIND:
            return combined(fitted, [shared])
        starts = [start | {kernel_title(chain[-1].kernels): one.end} for start, one in zip(starts, rough, strict=True)]
    if len(found.kernels.each[0].terms) == 1:  # terms of long range are all outputs' or none's
        candidates = tuple(candidate._replace(nested=None) for candidate in candidates)
    outputs = tuple(_searched(problem, t, candidates, start).output(problem, draws=True) for t, start in enumerate(starts))
    own = _own(scored, outputs, law, cells)
    return combined(fitted, [shared, own] if _behind(shared, own) < BEHIND else [shared])


def _behind(shared: Kind, own: Kind) -> float:
    """Log density of rows left out, in all ways, that single outputs lack, in standard errors of that sum."""
    lack = shared.log_density - own.log_density
    of_rows = np.sum(np.where(np.isfinite(lack), lack, 0.0), axis=(0, 2))
    return float(of_rows.sum() / max(np.sqrt(len(of_rows)) * of_rows.std(), np.finfo(float).tiny))


def _searched(
    problem: FitProblem, t: int, candidates: tuple[KernelChoice, ...], starts: Mapping[str, np.ndarray]
) -> _Searched:
    """Output ``t`` from its own values, with kernels, lengthscales and noise of its own."""
    solver, seen = problem.solver, ~np.isnan(problem.y[:, t])
    assert isinstance(solver, Vecchia)
    x, y, n = problem.x[seen], problem.y[seen][:, [t]], int(seen.sum())
    rows = output_rows(x, y, LinearRows(np.zeros((0, 1)), np.zeros((n, 0))), np.ones(n), None)
    # Starts have the noise sd where the first guess whitened by another.
    near = {title: np.append(p[:-1], p[-1] / abs(rows.mixed.whitening[0, 0])) for title, p in starts.items()}
    return _Searched(rows, y, fit_map(rows.mixed, rows.log_signal, candidates, solver, problem.progress, near))


def _own(scored: FitProblem, outputs: tuple[MapOutput, ...], law: UnitFreeLaw | None, cells: bool) -> Kind:
    """Independent outputs, each point moved onto the law."""
    y = scored.y
    noise = np.array([output.noise for output in outputs])
    residual, variance = np.full(y.shape, np.nan), np.full(y.shape, np.nan)
    for t, output in enumerate(outputs):
        seen = ~np.isnan(y[:, t])
        residual[seen, t], variance[seen, t] = output.without(scored.x[seen], y[seen, t])
    values = LeftOut(residual, noise + WIDENING**2 * np.maximum(variance - noise, 0.0))
    component = OwnComponent(outputs, shrunk_correlation(values), np.zeros(0), noise, len(outputs), law, WIDENING)
    component = replace(component, closed=closed_imbalance(scored) is not None)
    ways = [moved_left_out(component, values, y, scored.data.x, scored.x), *[values] * cells]
    return Kind("own", (component,), np.ones(1), np.stack([way.each_log_density for way in ways]))


def _shared(scored: FitProblem, fitted: Fitted, cells: bool) -> Kind:
    """The outputs that vary together, by the heaviest components."""
    heavy = heaviest(fitted.weights)
    weights = fitted.weights[heavy] / fitted.weights[heavy].sum()
    parts = [_ways(scored, fitted.components[k], cells) for k in heavy]
    each_row = np.arange(len(scored.x))[:, None]
    whole = [mixed(same, weights, list(each_row)) for same in zip(*parts, strict=True)]
    density = np.stack([way.each_log_density for way in whole])
    return Kind("shared", fitted.components, fitted.weights, density)


def _ways(scored: FitProblem, component: PosteriorComponent, cells: bool) -> list[LeftOut]:
    """Rows left out one by one, and if asked single values of them."""
    y, each_row = scored.y, np.arange(len(scored.x))[:, None]
    assert isinstance(component, VecchiaComponent)
    if component.field.is_small:
        exact = component.at_own_rows(scored.data.x)
        known = Known(exact.mean, exact.covariance)
    else:
        known = Known(*component.marginals(scored.x, scored.data.x))
    noise = RowNoise(np.broadcast_to(component.noise, y.shape), between=component.noise_covariance)
    ways = [left_out(y, known, noise, each_row, WIDENING)]
    return [*ways, one_output_at_a_time(y, known, noise, list(each_row))] if cells else ways
