"""Kinds of prior side by side, weighed by how well each predicts values that are left out.

The weights w maximise sum log(sum_k w_k p_k(value)) over the measured values, each left out with its row, with a block of
rows, and, where rows are partly measured, with a block of its own output. What is good between rows but bad in gaps does
not win. Hyperparameters are held, so all of it is closed form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sumgp.laws import UnitFreeLaw
from sumgp.strategies.averaging import WIDENING
from sumgp.strategies.left_out import Known, LeftOut, RowNoise, TrainingRows, left_out, mixed
from sumgp.strategies.own_component import OwnComponent
from sumgp.strategies.own_kind import LeftOutValues, moved_left_out, own_component, own_left_out
from sumgp.strategies.problem import FitProblem, Fitted, PosteriorComponent

BLOCKS = 5  # of neighbouring rows that are left out together
SCORED = 4  # heaviest components of a mixture whose left-out densities stand for all
PSEUDO_VALUES = 1.0  # values that speak for each kind alike, whatever the data say
NO_SHARE = 0.02  # weight below which a kind is left out of the prediction
STEPS = 100  # of the search for weights; each goes up


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


def simplex_weights(log_densities: np.ndarray) -> np.ndarray:
    """(K,) weights that maximise sum log(sum_k w_k p_k) for log densities (K, values), by expectation maximisation."""
    K, count = log_densities.shape
    p = np.exp(log_densities - log_densities.max(axis=0))
    w = np.full(K, 1.0 / K)
    for _ in range(STEPS):
        share = w[:, None] * p
        w = ((share / share.sum(axis=0)).sum(axis=1) + PSEUDO_VALUES) / (count + K * PSEUDO_VALUES)
    return w


def own(problem: FitProblem, law: UnitFreeLaw | None, blocks: list[np.ndarray], cells: bool) -> Kind | None:
    """Independent outputs, each point moved onto the law."""
    plain = own_component(problem)
    if plain is None:
        return None
    component: OwnComponent = replace(plain, law=law)
    found = [own_left_out(plain, problem.y, way) for way in (None, blocks)]
    ways = [moved_left_out(component, values, problem.y, problem.data.x) for values in found]
    if cells:
        # Without the others of its row an output of this kind is what it is without its block.
        ways.append(found[1])
    return Kind("own", (component,), np.ones(1), np.stack([values.log_density for values in ways]))


def shared(problem: FitProblem, fitted: Fitted, F: np.ndarray | None, blocks: list[np.ndarray], cells: bool) -> Kind:
    """The mixture of a fit; ``F``: noise of closed data obeys it."""
    rows = TrainingRows(problem.x, problem.data.x, problem.y)
    heavy = np.argsort(-fitted.weights, kind="stable")[:SCORED]
    weights = fitted.weights[heavy] / fitted.weights[heavy].sum()
    parts = [_ways(fitted.components[k], rows, F, blocks, cells) for k in heavy]
    whole = [mixed(same, weights) for same in zip(*parts, strict=True)]
    density = [LeftOutValues(w.residual, w.variance).log_density for w in whole]
    return Kind("shared", fitted.components, fitted.weights, np.stack(density))


def _ways(
    component: PosteriorComponent, rows: TrainingRows, F: np.ndarray | None, blocks: list[np.ndarray], cells: bool
) -> list[LeftOut]:
    """Values left out row by row, block by block and, if asked, block by block of one output."""
    x, x_law, y = rows
    T, C = y.shape[1], component.n_columns
    mean, covariance = component.marginals(x, x_law)
    noise = RowNoise(np.broadcast_to(component.noise, y.shape), F)
    mean = mean[:, :T]
    result = [left_out(y, Known(mean, covariance[:, :T, :T]), noise, np.arange(len(x))[:, None], WIDENING)]
    joint = []
    for block in blocks:
        n = len(block)
        whole = component.joint_covariance(x[block], x_law[block]).reshape(n, C, n, C)
        joint.append(whole[:, :T, :, :T].reshape(n * T, n * T))
    result.append(left_out(y, Known(mean, joint), noise, blocks, WIDENING))
    if cells:
        result.append(_one_output_at_a_time(y, Known(mean, joint), noise, blocks))
    return result


def _one_output_at_a_time(y: np.ndarray, known: Known, noise: RowNoise, blocks: list[np.ndarray]) -> LeftOut:
    """Blocks of one output left out while the others of their rows stay."""
    residual, variance = np.full(y.shape, np.nan), np.full(y.shape, np.nan)
    for t in range(y.shape[1]):
        alone = np.full(y.shape, np.nan)
        alone[:, t] = y[:, t]
        found = left_out(alone, known, noise, blocks, WIDENING)
        residual[:, t], variance[:, t] = found.residual[:, t], found.variance[:, t]
    return LeftOut(residual, variance, np.zeros(len(blocks)))


def stacked(problem: FitProblem, fitted: Fitted, law: UnitFreeLaw | None, F: np.ndarray | None = None) -> Fitted:
    """The fit with independent outputs beside it; ``F`` (R, T): noise of closed data obeys it."""
    given_columns = law is None or law.n_columns == problem.n_outputs
    measured = ~np.isnan(problem.y)
    partly = bool(np.any(measured.any(axis=1) & ~measured.all(axis=1)))
    blocks = blocks_of(problem.x)
    asked = problem.own_kernels and problem.uncertainty == "integrated"
    alone = own(problem, law, blocks, partly) if given_columns and asked else None
    if alone is None:
        return fitted
    return combined(fitted, [shared(problem, fitted, F, blocks, partly), alone])


def combined(fitted: Fitted, kinds: Sequence[Kind]) -> Fitted:
    """One mixture of all kinds, by weights from left-out values."""
    densities = np.stack([kind.log_density for kind in kinds])
    seen = np.isfinite(densities).all(axis=0)
    weights = simplex_weights(densities[:, seen])
    report: dict[str, Any] = dict(fitted.report)
    report["kinds"] = {kind.name: float(w) for kind, w in zip(kinds, weights, strict=True)}
    report["kind_scores"] = {
        kind.name: [float(np.mean(d[s])) for d, s in zip(kind.log_density, seen, strict=True)] for kind in kinds
    }
    weights = np.where(weights < NO_SHARE, 0.0, weights) / weights[weights >= NO_SHARE].sum()
    chosen = [(kind, w) for kind, w in zip(kinds, weights, strict=True) if w > 0]
    return replace(
        fitted,
        components=tuple(c for kind, _ in chosen for c in kind.components),
        weights=np.concatenate([w * kind.weights for kind, w in chosen]),
        report=report,
    )
