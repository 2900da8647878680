"""Kinds of prior side by side, weighed by how well each predicts values that are left out.

The weights w maximise sum log(sum_k w_k p_k(row)) over the measured rows, each left out on its own, with a block of rows,
and, where rows are partly measured, output by output; p_k(row) is the product of the densities of its values. What is good
between rows but bad in gaps does not win. Some rows speak for the first kinds beforehand, so that few rows that speak for
another change little. Hyperparameters are weighed anew without what is left out, all of it in closed form.
Most predictions are asked for between rows: what rows left out one by one say counts twice as much as all other ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit

from sumgp.errors import NumericalError, Status
from sumgp.laws import UnitFreeLaw
from sumgp.priors import MOST_OUTPUTS_ON_THEIR_OWN
from sumgp.strategies.averaging import LOW_EFFECTIVE, WIDENING, Build
from sumgp.strategies.left_out import (
    Known,
    LeftOut,
    RowNoise,
    TrainingRows,
    block_covariances,
    heaviest,
    known_rows,
    left_out,
    left_out_of_sharp,
    mixed,
)
from sumgp.strategies.output_posterior import OutputPosterior, families, law_noise, output_posterior, own_grid
from sumgp.strategies.own_outputs import FEWEST_VALUES, LEAST_EIGENVALUE, MOST_ROWS, OwnComponent, own_priors
from sumgp.strategies.problem import FitProblem, Fitted, PosteriorComponent, closed_imbalance
from sumgp.strategies.weight_component import Component, moved_onto_law, own_points

BLOCKS = 4  # of neighbouring rows that are left out together
SCORED = 8  # heaviest components of the first kind: with few rows three are surer of themselves than all of them
# Rows that speak for the first kinds, whatever the data say. With 3 and 5 for the first, errors on simulated families of 10
# to 20 rows are 1 to 6 % lower in four and 1.5 % higher in one, gaps of real series 3 to 18 % lower, than with it alone.
ROWS_BEFORE = (4.0, 0.0)
# Of closed data: shared covariances look too good there; with 4 and 0 errors of 16 real tables are 1.5 % higher in gaps.
ROWS_BEFORE_CLOSED = (1.0, 1.0)
NO_SHARE = 0.02  # weight below which a kind is left out of the prediction
STEPS = 100  # of the search for weights; each goes up
SHARE_OF_ROWS = 2.0 / 3.0  # of those left out one by one: with equal shares a kind good in gaps alone took most weight
LITTLE_NOISE = 1e-3  # unit-free variance, below which what a row itself says cannot be taken back from the posterior
WIDELY = "own, more widely"
# Times the standard deviations of the first. Log densities of values of 16 real tables gain .036 in gaps and .008 between
# rows (with 3: .050, .007), coverage 1.4 and .6 points; errors are the same, those of simulated families too.
STRAYING = 2.0
JOINTLY = "own, law at all points together"
JOINT_DRAWS = 4  # of the kernels of that kind
LEAST_SHRINKAGE = 0.02  # of correlations, so that closed data leave no direction without variance
LEAST_VARIANCE = 1e-12  # unit-free, of a left-out value beside its noise
MOST_JOINTLY = 600  # measured values: each output has about as many weights as rows, where shared kernels have a few dozen


@dataclass(frozen=True)
class Kind:
    """Components of one kind with weights of sum one, and log densities (ways, N, T) of left-out values."""

    name: str
    components: tuple[PosteriorComponent, ...]
    weights: np.ndarray
    log_density: np.ndarray


def blocks_of(x: np.ndarray) -> list[np.ndarray]:
    """Blocks of neighbouring rows, along the first input."""
    order = np.argsort(x[:, 0], kind="stable")
    return [np.sort(block) for block in np.array_split(order, min(BLOCKS, len(x)))]


def simplex_weights(log_densities: np.ndarray, before: Sequence[float] = ROWS_BEFORE) -> np.ndarray:
    """(K,) weights w that maximise sum_nv s_v log(sum_k w_k p_kvn) + sum_k b_k log w_k for log densities (K, ways, N).

    A concave problem, by expectation maximisation. Shares s_v have sum one: a row counts once. b: rows ``before``.
    """
    K, ways, rows = log_densities.shape
    p = np.exp(log_densities - log_densities.max(axis=0))
    of_ways = np.array([1.0] if ways == 1 else [SHARE_OF_ROWS, *[(1.0 - SHARE_OF_ROWS) / (ways - 1)] * (ways - 1)])
    w = np.full(K, 1.0 / K)
    first = np.array([*before, *np.zeros(K)])[:K]
    for _ in range(STEPS):
        share = w[:, None, None] * p
        w = (np.einsum("kvn,v->k", share / share.sum(axis=0), of_ways) + first) / (rows + first.sum())
    return w


@dataclass(frozen=True)
class Question:
    """What is left out: rows, ``blocks`` of them, and blocks of one output where ``cells``.

    ``blocks_without_law``: with a tapered law, or one at each point alone, the closed form does not take back a block of
    rows; then blocks are scored before it.
    """

    blocks: list[np.ndarray]
    cells: bool
    blocks_without_law: bool


def own(problem: FitProblem, law: UnitFreeLaw | None, asked: Question) -> tuple[Kind, ...]:
    """Independent outputs, each point moved onto the law, and the same more widely; () where they are not defined.

    Real rows stray further, now and then, than any one noise explains: the two together have heavier tails.
    """
    outputs = _each_alone(problem, law)
    if outputs is None:
        return ()
    plain = independent_outputs(outputs, WIDENING)
    rows, blocks = (own_left_out(plain, problem.y, way) for way in (None, asked.blocks))
    closed = closed_imbalance(problem) is not None
    component: OwnComponent = replace(plain, law=law, correlation=shrunk_correlation(rows), closed=closed)
    ways = [moved_left_out(component, rows, problem.y, problem.data.x, problem.x)]
    ways.append(blocks if asked.blocks_without_law else moved_left_out(component, blocks, problem.y, problem.data.x))
    if asked.cells:
        # Without the others of its row an output of this kind is what it is without its block.
        ways.append(blocks)
    return _scaled("own", component, ways, 1.0), _scaled(WIDELY, component, ways, STRAYING)


def _scaled(name: str, component: OwnComponent, ways: Sequence[LeftOut], factor: float) -> Kind:
    """A component and what it says of left-out values with all standard deviations ``factor`` times as large."""
    component = replace(component, widening=factor * component.widening, noise=factor**2 * component.noise)
    densities = [values._replace(variance=factor**2 * values.variance).each_log_density for values in ways]
    return Kind(name, (component,), np.ones(1), np.stack(densities))


def _each_alone(problem: FitProblem, law: UnitFreeLaw | None) -> tuple[OutputPosterior, ...] | None:
    """Outputs, of whose noise the ``law`` tells; None with known noise, many rows, or an output with hardly any values."""
    x, y, measured = problem.x, problem.y, ~np.isnan(problem.y)
    alike = problem.noise.known is None and problem.noise.row_factor is None
    if not alike or len(y) > MOST_ROWS or measured.sum(axis=0).min() < FEWEST_VALUES:
        return None
    grids = own_grid(x, y, families(problem), problem.noise.groups, law_noise(problem, law))
    return tuple(output_posterior(x[seen], y[seen, t], grids[t]) for t, seen in enumerate(measured.T))


def independent_outputs(outputs: tuple[OutputPosterior, ...], widening: float) -> OwnComponent:
    """Outputs without any correlation; hyperparameters are averaged over within each, so that there is no one theta."""
    T = len(outputs)
    return OwnComponent(outputs, np.eye(T), np.zeros(0), np.array([o.noise for o in outputs]), T, widening=widening)


def own_left_out(component: OwnComponent, y: np.ndarray, blocks: Sequence[np.ndarray] | None) -> LeftOut:
    """Values of each output left out, before any law; ``blocks`` of rows in turn, None = each row on its own."""
    residual, variance = np.full(y.shape, np.nan), np.full(y.shape, np.nan)
    for t, output in enumerate(component.outputs):
        assert isinstance(output, OutputPosterior)
        rows = np.flatnonzero(~np.isnan(y[:, t]))
        own = None if blocks is None else [found for block in blocks if len(found := np.flatnonzero(np.isin(rows, block)))]
        residual[rows, t], variance[rows, t] = output.left_out(own)
    return LeftOut(residual, component.noise + component.widening**2 * np.maximum(variance - component.noise, 0.0))


def moved_left_out(
    component: OwnComponent, values: LeftOut, y: np.ndarray, x_law: np.ndarray, x: np.ndarray | None = None
) -> LeftOut:
    """The same with rows moved onto the component's law, as predictions are: complete rows, and if ``x`` is given all.

    Cells that were not measured are then what the fit says at x, which is right where no other row is left out.
    """
    if component.law is None:
        return values
    noise = component.noise
    mean, variance = y - values.residual, np.maximum(values.variance - noise, LEAST_VARIANCE)
    for t, output in enumerate(component.outputs if x is not None else ()):
        lost = np.flatnonzero(np.isnan(y[:, t]))
        if len(lost):
            mean[lost, t], free = output.moments(x[lost])  # type: ignore[index]
            variance[lost, t] = component.widening**2 * free
    known = ~np.isnan(mean).any(axis=1)
    sd = np.sqrt(variance[known])
    covariance = sd[:, :, None] * component.correlation * sd[:, None, :]
    moved = moved_onto_law(component.law, own_points(component.law, mean[known], covariance), x_law[known])
    residual, whole = values.residual.copy(), values.variance.copy()
    T = y.shape[1]
    residual[known] = y[known] - moved.mean[:, :T]
    whole[known] = np.einsum("ncc->nc", moved.covariance)[:, :T] + noise
    return LeftOut(residual, np.where(np.isnan(y), np.nan, whole))


def shrunk_correlation(values: LeftOut) -> np.ndarray:
    """(T, T) correlation of standardised residuals, shrunk to none by its own standard errors.

    Share of the shrinkage: sum (1 - r^2)^2 / (n - 1) over sum r^2 of the pairs, the variance of r over its square.
    """
    z = values.residual / np.sqrt(values.variance)
    seen = ~np.isnan(z)
    z = np.where(seen, z, 0.0)
    count = np.maximum(seen.T.astype(float) @ seen, 1.0)
    together = z.T @ z / count
    sd = np.sqrt(np.diagonal(together))
    R = np.clip(together / np.maximum(np.outer(sd, sd), np.finfo(float).tiny), -1.0, 1.0)
    np.fill_diagonal(R, 1.0)
    off = ~np.eye(len(R), dtype=bool)
    error = np.sum(((1.0 - R**2) ** 2 / np.maximum(count - 1.0, 1.0))[off])
    share = float(np.clip(error / max(float(np.sum(R[off] ** 2)), 1e-12), LEAST_SHRINKAGE, 1.0))
    eigenvalues, vectors = np.linalg.eigh((1.0 - share) * R + share * np.eye(len(R)))
    R = (vectors * np.maximum(eigenvalues, LEAST_EIGENVALUE)) @ vectors.T
    sd = np.sqrt(np.diagonal(R))
    return R / np.outer(sd, sd)


def shared(problem: FitProblem, fitted: Fitted, F: np.ndarray | None, asked: Question) -> Kind:
    """The mixture of a fit; ``F``: noise of closed data obeys it."""
    rows = TrainingRows(problem.x, problem.data.x, problem.y)
    heavy = heaviest(fitted.weights, SCORED)
    weights = fitted.weights[heavy] / fitted.weights[heavy].sum()
    noises = [RowNoise.learnt(problem.noise, fitted.components[k].noise, len(rows.x), F) for k in heavy]
    parts = [_ways(fitted.components[k], rows, noise, asked) for k, noise in zip(heavy, noises, strict=True)]
    each_row = [np.array([row]) for row in range(len(rows.x))]
    # A block would change weights that stand for the law's evidence and for roughness by far more than a few draws can tell.
    whole = [mixed(same, weights, None if way else each_row) for way, same in enumerate(zip(*parts, strict=True))]
    return Kind("shared", fitted.components, fitted.weights, np.stack([way.each_log_density for way in whole]))


def _ways(component: PosteriorComponent, rows: TrainingRows, noise: RowNoise, asked: Question) -> list[LeftOut]:
    """Values left out row by row, block by block and, if asked, block by block of one output."""
    if isinstance(component, Component) and _is_sharp(component, rows, noise, asked):
        return [left_out_of_sharp(component, rows, noise, blocks, WIDENING) for blocks in (None, asked.blocks)]
    each = known_rows(component, rows)
    result = [left_out(rows.y, each, noise, np.arange(len(rows.x))[:, None], WIDENING)]
    if asked.blocks_without_law and isinstance(component, Component):
        component = replace(component, law=None, conditioning=None)
        each = known_rows(component, rows)
    known = Known(each.mean, block_covariances(component, rows, asked.blocks))
    result.append(left_out(rows.y, known, noise, asked.blocks, WIDENING))
    if asked.cells:
        result.append(one_output_at_a_time(rows.y, known, noise, asked.blocks))
    return result


def _is_sharp(component: Component, rows: TrainingRows, noise: RowNoise, asked: Question) -> bool:
    """True if some output has hardly any noise, and values can be left out without the law at other points."""
    simple = component.conditioning is None and component.n_columns == rows.y.shape[1] and noise.F is None
    return simple and not asked.cells and rows.y.size <= MOST_JOINTLY and bool(np.min(noise.variances) < LITTLE_NOISE)


def one_output_at_a_time(y: np.ndarray, known: Known, noise: RowNoise, blocks: list[np.ndarray]) -> LeftOut:
    """Blocks of one output left out while the others of their rows stay."""
    residual, variance = np.full(y.shape, np.nan), np.full(y.shape, np.nan)
    for t in range(y.shape[1]):
        alone = np.full(y.shape, np.nan)
        alone[:, t] = y[:, t]
        found = left_out(alone, known, noise, blocks, WIDENING)
        residual[:, t], variance[:, t] = found.residual[:, t], found.variance[:, t]
    return LeftOut(residual, variance, np.zeros(len(blocks)))


def stacked(
    problem: FitProblem, fitted: Fitted, law: UnitFreeLaw | None, F: np.ndarray | None = None, jointly: Build | None = None
) -> Fitted:
    """The fit with independent outputs beside it; ``F`` (R, T): noise of closed data obeys it.

    ``jointly`` imposes the law on a prior at all points together: a third kind, of independent outputs too.
    """
    integrated = problem.own_kernels and problem.uncertainty == "integrated"
    # Independent outputs would not be derivatives of each other, and know nothing of a law's constants.
    if not integrated or problem.split is not None or (law is not None and law.law.n_columns != problem.n_outputs):
        return fitted
    measured = ~np.isnan(problem.y)
    # What the law says of one output from the others of its row is not in the closed form.
    partly = law is None and bool(np.any(measured.any(axis=1) & ~measured.all(axis=1)))
    by_point = any(_speaks_by_point(fitted.components[k]) for k in heaviest(fitted.weights, SCORED))
    asked = Question(blocks_of(problem.x), partly, by_point)
    alone = own(problem, law, asked)
    if not alone:
        return fitted
    kinds = [shared(problem, fitted, F, asked), *alone]
    # Two or three outputs have lengthscales of their own in the first kind already.
    if jointly is not None and problem.n_outputs > MOST_OUTPUTS_ON_THEIR_OWN and measured.sum() <= MOST_JOINTLY:
        kinds += _own_jointly(problem, fitted, asked, jointly, alone[0])
    return combined(fitted, kinds, ROWS_BEFORE if closed_imbalance(problem) is None else ROWS_BEFORE_CLOSED)


def _own_jointly(problem: FitProblem, fitted: Fitted, asked: Question, jointly: Build, alone: Kind) -> list[Kind]:
    """Independent outputs with the law at all points together; none where that fails."""
    component = alone.components[0]
    assert isinstance(component, OwnComponent)
    try:
        drawn = [c.widened(WIDENING) for c in jointly(list(own_priors(problem, component, JOINT_DRAWS)))]
    except NumericalError:
        return []
    met = [c for c in drawn if c.conditioning is not None and c.conditioning.solution.status == Status.CONVERGED]
    if not met:
        return []
    together = replace(fitted, components=tuple(met), weights=np.full(len(met), 1.0 / len(met)))
    return [replace(shared(problem, together, None, asked), name=JOINTLY)]


def _speaks_by_point(component: PosteriorComponent) -> bool:
    """True if the law at one point was not let speak of all others."""
    joint = isinstance(component, Component) and component.conditioning is not None and component.conditioning.taper is None
    return component.law is not None and not joint


def combined(fitted: Fitted, kinds: Sequence[Kind], before: Sequence[float] = ROWS_BEFORE) -> Fitted:
    """One mixture of all kinds, by weights from left-out values and from the rows ``before`` them."""
    values = np.stack([kind.log_density for kind in kinds])
    seen = np.isfinite(values).all(axis=0)
    densities = np.where(seen, values, 0.0).sum(axis=3)
    weights = simplex_weights(densities[:, :, seen.any(axis=(0, 2))], before)
    report: dict[str, Any] = dict(fitted.report)
    report["kinds"] = {kind.name: float(w) for kind, w in zip(kinds, weights, strict=True)}
    report["kind_scores"] = {
        kind.name: [float(np.mean(d[s])) for d, s in zip(kind.log_density, seen, strict=True)] for kind in kinds
    }
    mixture = np.logaddexp.reduce(densities + np.log(np.maximum(weights, 1e-300))[:, None, None], axis=0)
    gain = float(np.sum(mixture - densities[0])) / len(seen)
    report["kinds_reason"] = f"together they add {gain:.1f} to the log density of left-out rows under {kinds[0].name} alone"
    weights = np.where(weights < NO_SHARE, 0.0, weights) / weights[weights >= NO_SHARE].sum()
    chosen = [(kind, w) for kind, w in zip(kinds, weights, strict=True) if w > 0]
    return replace(
        fitted,
        components=tuple(c for kind, _ in chosen for c in kind.components),
        weights=np.concatenate([w * kind.weights for kind, w in chosen]),
        report=report,
    )


FURTHEST = 1.0  # squared distance of means over variance: what stands further apart is a branch, not an error of few draws


def as_draws_disagree(problem: FitProblem, fitted: Fitted) -> Fitted:
    """An average under a curved law, its bands as much wider as its draws disagree, in place of ``WIDENING``.

    Values have variance V within components and B between their means. B and the mean are known from m effective draws only:
    V + g B, with g = (m + 1) / (m - 1) (t / z)^2 by the 97.5 % quantiles of Student's distribution with m - 1 degrees of
    freedom and of a Gaussian. All values get one factor, of the mean of B / V over the training rows.
    """
    effective, law = fitted.report.get("effective_sample_size"), fitted.law
    if effective is None or law is None or law.is_linear or problem.split is not None:
        return fitted
    parts, T = fitted.local_posteriors(problem.x, problem.data.x), problem.n_outputs
    means = np.stack([part.mean[:, :T] for part in parts])
    away = means - np.einsum("k,knt->nt", fitted.weights, means)
    between = np.einsum("k,knt->n", fitted.weights, away**2)
    within = sum(w * np.einsum("ntt->n", p.covariance[:, :T, :T]) for w, p in zip(fitted.weights, parts, strict=True))
    ratio = float(np.mean(np.minimum(FURTHEST, between * WIDENING**2 / np.maximum(within, LEAST_VARIANCE))))
    m = max(effective, LOW_EFFECTIVE)
    g = (m + 1.0) / (m - 1.0) * (stdtrit(m - 1.0, 0.975) / ndtri(0.975)) ** 2
    factor = float(np.sqrt(1.0 + (g - 1.0) * ratio))
    components = tuple(component.widened(factor / WIDENING) for component in fitted.components)
    return replace(fitted, components=components, report=fitted.report | {"widening": factor})
