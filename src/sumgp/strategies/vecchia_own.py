"""Outputs of a map one by one beside those that vary together, weighed by how well each kind predicts rows left out.

The evidence of outputs that depend on each other along a curve (a share and its log-odds) favours fewer functions than there
are outputs, each a multiple of these: too sure of itself, and less accurate than each output by itself. Left-out rows tell.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sumgp.laws import UnitFreeLaw
from sumgp.solvers.vecchia import (
    MEAN_VARIANCE,
    KernelChoice,
    LatentField,
    LinearRows,
    MapSearch,
    Vecchia,
    fit_map,
    output_rows,
    spread_rows,
)
from sumgp.strategies.averaging import WIDENING
from sumgp.strategies.left_out import Known, LeftOut, RowNoise, heaviest, left_out, mixed
from sumgp.strategies.own_outputs import LeftOutValues, OwnComponent, moved_left_out, shrunk_correlation
from sumgp.strategies.problem import FitProblem, Fitted, PosteriorComponent, closed_imbalance
from sumgp.strategies.stacking import Kind, combined, one_output_at_a_time
from sumgp.strategies.vecchia_average import drawn_fits
from sumgp.strategies.vecchia_output import MapOutput

SCORED_ROWS = 1024  # that are left out one by one, spread over the map
# Log signal / noise variance below which a latent is all but lost. With many rows, searches for single outputs are worth
# their time only there: latents that the rows show clearly have kernels of their own already.
LOST_SIGNAL = float(np.log(3.0))
# Log density of left-out rows, twenty to one, by which single outputs may be behind. Further behind, in a mixture they
# serve as heavier tails of the noise only, and predicted the gap of a real map worse.
BEHIND = 3.0


def with_own_outputs(
    problem: FitProblem,
    fitted: Fitted,
    law: UnitFreeLaw | None,
    search: MapSearch,
    candidates: tuple[KernelChoice, ...],
) -> Fitted:
    """The fit of a map, which ended a ``search``, with independent outputs beside it; these are moved onto the ``law``."""
    solver, N = problem.solver, len(problem.x)
    assert isinstance(solver, Vecchia)
    alike = problem.noise.known is None and problem.noise.row_factor is None
    if not (problem.own_kernels and alike and problem.n_outputs > 1):
        return fitted
    found = search.best.fit(search.best.found.parameters)
    if search.compared_on < len(search.best.objective.rows.x) and found.log_signal.min() > LOST_SIGNAL:
        return fitted
    if len(found.kernels.each[0].terms) == 1:  # terms of long range are all outputs' or none's
        candidates = tuple(candidate._replace(nested=None) for candidate in candidates)
    outputs = tuple(_output(problem, t, candidates) for t in range(problem.n_outputs))
    scored = (
        problem if N <= SCORED_ROWS else problem.at(spread_rows(problem.x / problem.half_range, SCORED_ROWS, solver.block))
    )
    measured = ~np.isnan(scored.y)
    # What a law says of one output from the others of its row is not in the closed form.
    cells = law is None and bool(np.any(measured.any(axis=1) & ~measured.all(axis=1)))
    kinds = [_shared(scored, fitted, cells), _own(scored, outputs, law, cells)]
    gain = kinds[1].log_density[0] - kinds[0].log_density[0]
    return combined(fitted, kinds if np.sum(gain[np.isfinite(gain)]) > -BEHIND else kinds[:1])


def _output(problem: FitProblem, t: int, candidates: tuple[KernelChoice, ...]) -> MapOutput:
    """Output ``t`` from its own values, with kernels, lengthscales and noise of its own."""
    solver, seen = problem.solver, ~np.isnan(problem.y[:, t])
    assert isinstance(solver, Vecchia)
    x, y, n = problem.x[seen], problem.y[seen][:, [t]], int(seen.sum())
    rows = output_rows(x, y, LinearRows(np.zeros((0, 1)), np.zeros((n, 0))), np.ones(n), None)
    search = fit_map(rows.mixed, rows.log_signal, candidates, solver, problem.progress)
    drawn = drawn_fits(search, problem.random_state)
    best = search.best.fit(search.best.found.parameters)
    fits, weights = ((best,), np.ones(1)) if drawn is None else (drawn.fits, drawn.weights)
    heavy = heaviest(weights)
    fields, scales = [], []
    for fit in (fits[k] for k in heavy):
        scale = float(rows.model(rows.mixed.mixing(fit.mixing)).loading[0, 0])
        kernel, signal = fit.kernels.each[0].kernel, np.exp(fit.log_signal)
        fields.append(LatentField(x, np.ones(n), y / scale, signal, kernel, MEAN_VARIANCE, solver.nodes))
        scales.append(scale)
    return MapOutput(tuple(fields), weights[heavy] / weights[heavy].sum(), np.array(scales))


def _own(scored: FitProblem, outputs: tuple[MapOutput, ...], law: UnitFreeLaw | None, cells: bool) -> Kind:
    """Independent outputs, each point moved onto the law."""
    y = scored.y
    noise = np.array([output.noise for output in outputs])
    residual, variance = np.full(y.shape, np.nan), np.full(y.shape, np.nan)
    for t, output in enumerate(outputs):
        seen = ~np.isnan(y[:, t])
        residual[seen, t], variance[seen, t] = output.without(scored.x[seen])
    values = LeftOutValues(residual, noise + WIDENING**2 * np.maximum(variance - noise, 0.0))
    component = OwnComponent(outputs, shrunk_correlation(values), np.zeros(0), noise, len(outputs), law, WIDENING)
    component = replace(component, closed=closed_imbalance(scored) is not None)
    ways = [moved_left_out(component, values, y, scored.data.x, scored.x), *[values] * cells]
    return Kind("own", (component,), np.ones(1), np.stack([way.log_density for way in ways]))


def _shared(scored: FitProblem, fitted: Fitted, cells: bool) -> Kind:
    """The outputs that vary together, by the heaviest components."""
    heavy = heaviest(fitted.weights)
    weights = fitted.weights[heavy] / fitted.weights[heavy].sum()
    parts = [_ways(scored, fitted.components[k], cells) for k in heavy]
    each_row = np.arange(len(scored.x))[:, None]
    whole = [mixed(same, weights, list(each_row)) for same in zip(*parts, strict=True)]
    density = np.stack([LeftOutValues(way.residual, way.variance).log_density for way in whole])
    return Kind("shared", fitted.components, fitted.weights, density)


def _ways(scored: FitProblem, component: PosteriorComponent, cells: bool) -> list[LeftOut]:
    """Rows left out one by one, and if asked single values of them."""
    y, each_row = scored.y, np.arange(len(scored.x))[:, None]
    known = Known(*component.marginals(scored.x, scored.data.x))
    noise = RowNoise(np.broadcast_to(component.noise, y.shape), between=component.noise_covariance)
    ways = [left_out(y, known, noise, each_row, WIDENING)]
    return [*ways, one_output_at_a_time(y, known, noise, list(each_row))] if cells else ways
