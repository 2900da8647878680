"""Hyperparameters of a large map: kernels compared on some of the rows, the best then fitted to all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from sumgp.errors import DataError, Status, worded
from sumgp.numerics import available_bytes
from sumgp.priors import MultitaskPrior, leaves
from sumgp.solvers.dense import Dense, Evidence, Solver
from sumgp.solvers.vecchia.blocks import BlockGroup, coarse_to_fine, leaf_order, make_blocks
from sumgp.solvers.vecchia.covariance import ScaledCovariance
from sumgp.solvers.vecchia.mixing import Found, LengthPrior, MixedObjective, MixedRows, search, search_near, with_curvature

NUMBER = 8  # bytes
WORKSPACE = 60e6  # bytes of blocks that are worked on together, whatever the rows
FIRST_SHARE = 0.3  # of half the inputs' range: where lengthscales of maps begin
SHORTER_RANGE = 0.5  # of a term, once another takes the slow part of its work
LONGER = 8.0  # times the range of a term that the next one has at first
COMPARED_ON, MOST_COMPARED_ON = 1024, 2048  # rows that kernels are compared on, where there are fewer or more than
MANY_ROWS = 6000
FIRST_STEPS, FURTHER_STEPS, LAST_STEPS = 60, 25, 25
FIRST_PRECISION = 1.0  # of the log posterior, before the curvature is known
PRECISION = 0.05  # of the log posterior, which hyperparameters within their own uncertainty change by a half


@dataclass(frozen=True)
class Vecchia(Solver):
    """Blocks of points given their nearest earlier neighbours: many points in several inputs, O(N).

    ``neighbours`` of each block of ``block`` points; predictions rest on ``nodes`` averages over the data, ever larger with
    their distance from the prediction point.
    """

    on_blocks: ClassVar[bool] = True

    neighbours: int = 64
    block: int = 32
    nodes: int = 100

    def __post_init__(self) -> None:
        for name, least in (("neighbours", 1), ("block", 1), ("nodes", 2)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
                raise DataError(worded(name, f"a whole number from {least} on", repr(value), "leave the default"))

    def check(self, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray) -> None:
        check_map_memory(len(x), x.shape[1], y.shape[1], bool(np.isnan(y).any()))

    def evidence(self, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray) -> Evidence:
        """That of a multitask prior, exact; fits of maps have their own parameters, see ``fit_map``."""
        return Dense().evidence(prior, x, y)


def map_bytes(n_rows: int, n_inputs: int, n_outputs: int, gaps: bool) -> float:
    """Upper estimate of what a fit and its predictions need beyond the data: rows and a tree of twice as many nodes.

    With gaps each node has a matrix over the latents. 100,000 rows of three outputs: 122 MB estimated; 40 MB more than
    with 3,000 rows were measured.
    """
    carried = n_outputs * (n_outputs + 1) if gaps else n_outputs
    return NUMBER * n_rows * (2.0 * (n_inputs + carried + 6) + 14.0 * n_outputs + 4.0 * n_inputs + 2.0 * carried) + WORKSPACE


def check_map_memory(n_rows: int, n_inputs: int, n_outputs: int, gaps: bool) -> None:
    """Raise DataError if a fit would need more memory than there is."""
    needed, free = map_bytes(n_rows, n_inputs, n_outputs, gaps), available_bytes()
    if needed > free:
        raise DataError(
            f"memory: {n_rows} rows need about {needed / 1e9:.1f} GB, {free / 1e9:.1f} GB are available; "
            "fit parts of the region one by one"
        )


class KernelChoice(NamedTuple):
    """A kernel and the prior of its theta; ``nested``: the same with a further term of longer range, worth a trial."""

    covariance: ScaledCovariance
    prior: LengthPrior
    nested: KernelChoice | None = None


class Fit(NamedTuple):
    """The chosen kernel at its end, log signals (q,), mixing parameters; log posteriors of all kernels on some rows."""

    covariance: ScaledCovariance
    log_signal: np.ndarray
    mixing: np.ndarray
    log_posterior: float
    log_prior: float
    status: str
    evaluations: int
    compared: tuple[tuple[str, float], ...]
    compared_on: int


def spread_rows(x: np.ndarray, count: int, block: int) -> np.ndarray:
    """Positions of about ``count`` rows: whole leaves spread evenly, so that near and far pairs are among them."""
    leaves = max(count // block, 1)
    order = leaf_order(x, block)
    starts = np.arange(0, len(x), block)[coarse_to_fine(-(-len(x) // block))][:leaves]
    return np.sort(np.concatenate([order[start : start + block] for start in starts]))


def fit_map(
    rows: MixedRows,
    log_signal: np.ndarray,
    candidates: tuple[KernelChoice, ...],
    solver: Vecchia,
    progress: Callable[[str], None],
) -> Fit:
    """The candidate of highest posterior density on some rows, then on all of them.

    ``candidates`` run from rough to smooth; those beside the second are tried after it, then smoother ones while these are
    better.
    """
    half_range = 0.5 * np.ptp(rows.x, axis=0)
    scale = np.where(half_range > 0, half_range, 1.0)
    some, count = rows, COMPARED_ON if len(rows.x) < MANY_ROWS else MOST_COMPARED_ON
    if len(rows.x) > count:
        some = rows.at(spread_rows(rows.x / scale, count, solver.block))
    blocks = make_blocks(some.x / scale, solver.block, solver.neighbours)
    best, chosen, compared = _best_kernel(some, blocks, log_signal, candidates, progress)
    (covariance, prior, _), last = chosen[best], compared[best]
    total = sum(found.evaluations for found in compared.values())
    if len(some.x) < len(rows.x):
        lengths = covariance.at(last.parameters[: covariance.n_parameters]).lengthscales(rows.x.shape[1])
        progress(f"hyperparameters: {kernel_title(covariance)} on all {len(rows.x)} rows")
        blocks = make_blocks(rows.x / lengths, solver.block, solver.neighbours)
        last = search_near(MixedObjective(rows, covariance, blocks, prior), last, LAST_STEPS, PRECISION)
        total += last.evaluations
    p, q = covariance.n_parameters, rows.n_latents
    theta = last.parameters[:p]
    collapsed = np.any((theta < prior.spikes) & prior.is_length)
    return Fit(
        covariance.at(theta),
        last.parameters[p : p + q],
        last.parameters[p + q :],
        -last.value,
        MixedObjective(rows, covariance, blocks, prior).log_prior(last.parameters)[0],
        Status.COLLAPSED if collapsed else last.status,
        total,
        tuple((title, -found.value) for title, found in compared.items()),
        len(some.x),
    )


def _best_kernel(
    rows: MixedRows,
    blocks: tuple[BlockGroup, ...],
    log_signal: np.ndarray,
    candidates: tuple[KernelChoice, ...],
    progress: Callable[[str], None],
) -> tuple[str, dict[str, KernelChoice], dict[str, Found]]:
    """Title of the best kernel and all that were tried, by their titles.

    A further term is worth its parameters where it gains more than Schwarz's criterion asks on these rows.
    """
    ends = _compared(rows, blocks, log_signal, candidates, progress)
    chosen = {kernel_title(candidates[i].covariance): candidates[i] for i in ends}
    compared = {kernel_title(candidates[i].covariance): end for i, end in sorted(ends.items())}
    best = min(compared, key=lambda title: compared[title].value)
    while (nested := chosen[best].nested) is not None:
        title = kernel_title(nested.covariance)
        progress(f"hyperparameters: {title} on {len(rows.x)} rows")
        chosen[title], compared[title] = nested, _with_long_range(rows, blocks, chosen[best], compared[best])
        further = nested.covariance.n_parameters - chosen[best].covariance.n_parameters
        needed = 0.5 * further * float(np.log(len(rows.x)))
        if compared[title].value + needed >= compared[best].value:
            break
        best = title
    return best, chosen, compared


def _compared(
    rows: MixedRows,
    blocks: tuple[BlockGroup, ...],
    log_signal: np.ndarray,
    candidates: tuple[KernelChoice, ...],
    progress: Callable[[str], None],
) -> dict[int, Found]:
    """Ends of the searches for the candidates that were worth one."""
    found: dict[int, Found] = {}

    def tried(number: int, beside: int) -> float:
        if 0 <= number < len(candidates) and number not in found:
            covariance, prior, _ = candidates[number]
            progress(f"hyperparameters: {kernel_title(covariance)} on {len(rows.x)} rows")
            objective = MixedObjective(rows, covariance, blocks, prior)
            if len(covariance.kernel.theta) == len(candidates[beside].covariance.kernel.theta) and beside in found:
                found[number] = search_near(objective, found[beside], FURTHER_STEPS, PRECISION, found[beside].value)
            else:
                start = np.concatenate([_first_theta(candidates[number]), log_signal, rows.start()])
                found[number] = _searched(objective, start)
        return found[number].value if number in found else np.inf

    middle = min(1, len(candidates) - 1)
    for number in (middle, middle + 1, middle - 1):
        tried(number, middle)
    best = min(found, key=lambda number: found[number].value)
    while tried(best + 1, best) < found[best].value:
        best += 1
    return found


def _with_long_range(rows: MixedRows, blocks: tuple[BlockGroup, ...], choice: KernelChoice, near: Found) -> Found:
    """End of the search for the kernel with a further term; what it leaves to the first one has a shorter range."""
    nested, p = choice.nested, choice.covariance.n_parameters
    assert nested is not None
    objective = MixedObjective(rows, nested.covariance, blocks, nested.prior)
    shorter = near.parameters.copy()
    shorter[:p] += np.where(choice.prior.is_length, np.log(SHORTER_RANGE), 0.0)
    start = np.insert(shorter, [p] * (nested.covariance.n_parameters - p), nested.covariance.kernel.theta[p:])
    return _searched(objective, start)


def _searched(objective: MixedObjective, start: np.ndarray) -> Found:
    """From a start far away: roughly first, then with the curvature found there."""
    near = with_curvature(objective, search(objective, start, FIRST_STEPS, FIRST_PRECISION))
    more = search_near(objective, near, FURTHER_STEPS, PRECISION)
    return more._replace(evaluations=near.evaluations + more.evaluations)


def kernel_title(covariance: ScaledCovariance) -> str:
    """Short name of a kernel."""
    return " + ".join(_title(term.kernel) for term in covariance.terms)


def _title(kernel: Kernel) -> str:
    half = {0.5: " 1/2", 1.5: " 3/2", 2.5: " 5/2"}.get(getattr(kernel, "nu", np.inf), "")
    return type(kernel).__name__ + half


def _first_theta(candidate: KernelChoice) -> np.ndarray:
    """Free lengthscales at a share of half the range, those of each further term longer; all else as given."""
    theta, prior = candidate.covariance.kernel.theta.copy(), candidate.prior
    share, start = FIRST_SHARE, 0
    for leaf in leaves(candidate.covariance.kernel):
        part = slice(start, start := start + len(leaf.theta))
        lengths = prior.is_length[part]
        theta[part] = np.where(lengths, prior.centre[part] + np.log(share), theta[part])
        share *= LONGER if lengths.any() else 1.0
    return theta
