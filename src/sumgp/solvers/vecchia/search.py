"""Hyperparameters of a large map: kernels compared on some of the rows, the best then fitted to all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel

from sumgp.errors import Status
from sumgp.priors import leaves
from sumgp.solvers.vecchia.blocks import BlockGroup, coarse_to_fine, leaf_order, make_blocks
from sumgp.solvers.vecchia.covariance import LatentKernels
from sumgp.solvers.vecchia.mixing import Found, LengthPrior, MixedObjective, MixedRows, search, search_near, with_curvature
from sumgp.solvers.vecchia.solver import FEW_VALUES, Vecchia

FIRST_SHARE = 0.3  # of half the inputs' range: where lengthscales of maps begin
SHORTER_RANGE = 0.5  # of a term, once another takes the slow part of its work
LONGER = 8.0  # times the range of a term that the next one has at first
COMPARED_ON, MOST_COMPARED_ON = 1024, 2048  # rows that kernels are compared on, with few rows and with many
MANY_ROWS = 6000  # from which on rows are many
LARGER, FEW_STAGES = 6, 4  # times the rows of the search before; this many times as many again need none between
# Steps of a search: from the prior, from beside another maximum, on all rows, and with kernels of each output's own.
FIRST_STEPS, FURTHER_STEPS, LAST_STEPS, OWN_STEPS = 60, 25, 25, 60
FIRST_PRECISION = 1.0  # of the log posterior, before the curvature is known
KEPT_RANGE = 0.5  # of a further term's lengthscales on some rows, at least, on all rows
# Smooth kernels: neighbours and rows of a block, times those that kernels were compared with. A smooth field has few turns,
# and distant rows tell of its lengthscale: with 64 neighbours it came out a fifth too long in some maps and intervals too
# narrow (one map held 80 % then, 96 with this), however many rows there were. Twice as many leave errors 2 to 4 % larger,
# four times gain nothing more. Fields up to Matern 3/2, whose near neighbours hide the far ones, stay as they are.
WIDER, SMOOTH = 3, 2.5  # times as many; nu of a Matern kernel from which on it is smooth
WIDE_ROWS = 8192  # that smooth kernels are searched on at most: more rows are closer together and tell little more
WORTH_REFINING = 12.0  # of Schwarz's criterion behind the best: others cannot come near it by more neighbours
PRECISION = 0.05  # of the log posterior, which hyperparameters within their own uncertainty change by a half


class KernelChoice(NamedTuple):
    """Kernels and the prior of their theta; ``nested``: the same with a further term of longer range, worth a trial."""

    kernels: LatentKernels
    prior: LengthPrior
    nested: KernelChoice | None = None

    def own(self, count: int) -> KernelChoice:
        """The same form for each of ``count`` latents."""
        return KernelChoice(LatentKernels(self.kernels.each * count), self.prior.repeated(count))


class Compared(NamedTuple):
    """Rows that kernels are compared on, with their blocks, the first log signals (q,), whom to tell of progress, and where
    searches for the like have ended before, by the title of the kernels."""

    rows: MixedRows
    blocks: tuple[BlockGroup, ...]
    log_signal: np.ndarray
    progress: Callable[[str], None]
    starts: Mapping[str, np.ndarray]

    def objective(self, choice: KernelChoice) -> MixedObjective:
        """Of these kernels on these rows."""
        title = kernel_title(choice.kernels)
        self.progress(f"hyperparameters: {title} on {len(self.rows.x)} rows")
        return MixedObjective(self.rows, choice.kernels, (self.blocks,) * len(choice.kernels.each), choice.prior)


class Fit(NamedTuple):
    """One set of hyperparameters: kernels, log signals (q,), mixing parameters."""

    kernels: LatentKernels
    log_signal: np.ndarray
    mixing: np.ndarray


class SearchEnd(NamedTuple):
    """Where the search for some kernels ended, and what was searched."""

    objective: MixedObjective
    found: Found

    def fit(self, parameters: np.ndarray) -> Fit:
        """What the parameters stand for."""
        p, q = self.objective.kernels.n_parameters, self.objective.rows.n_latents
        return Fit(self.objective.kernels.at(parameters[:p]), parameters[p : p + q], parameters[p + q :])

    def criterion(self) -> float:
        """Schwarz's: minus the log posterior, and half log N for each parameter of the kernels."""
        return self.found.value + 0.5 * self.objective.kernels.n_parameters * float(np.log(len(self.objective.rows.x)))

    @property
    def log_prior(self) -> float:
        """Log density of lengthscales and signals there."""
        return self.objective.log_prior(self.found.parameters)[0]

    @property
    def status(self) -> str:
        """Of the search, or that lengthscales are spikes at single rows."""
        prior, theta = self.objective.prior, self.found.parameters[: self.objective.kernels.n_parameters]
        return Status.COLLAPSED if np.any((theta < prior.spikes) & prior.is_length) else self.found.status


class MapSearch(NamedTuple):
    """The end for the chosen kernels on all rows; those of all kernels, and the rows they were compared on."""

    best: SearchEnd
    evaluations: int
    compared: dict[str, SearchEnd]
    compared_on: int

    @property
    def few(self) -> bool:
        """True if rows are so few that hyperparameters are averaged over."""
        return _are_few(self.best.objective.rows)


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
    starts: Mapping[str, np.ndarray] = MappingProxyType({}),
) -> MapSearch:
    """The candidate of highest posterior density on some rows, then on all of them.

    ``candidates`` run from rough to smooth; those beside the second, or the first that ``starts`` names, are tried after it,
    then further ones while these are better.
    """
    half_range = 0.5 * np.ptp(rows.x, axis=0)
    scale = np.where(half_range > 0, half_range, 1.0)
    some, count = rows, COMPARED_ON if len(rows.x) < MANY_ROWS else MOST_COMPARED_ON
    if len(rows.x) > count:
        some = rows.at(spread_rows(rows.x / scale, count, solver.block))
    blocks = make_blocks(some.x / scale, solver.block, solver.neighbours)
    best, compared = _best_kernel(Compared(some, blocks, log_signal, progress, starts), candidates)
    if few := _are_few(rows):
        wider = make_blocks(rows.x / scale, WIDER * solver.block, WIDER * solver.neighbours)
        best, compared = _refined(best, compared, wider)
    end, total = compared[best], sum(end.found.evaluations for end in compared.values())
    least, smooth = least_theta(end), _is_smooth(end.objective.kernels)
    for count in [] if smooth else _stages(len(some.x), len(rows.x)):
        part = rows.at(spread_rows(rows.x / scale, count, solver.block))
        progress(f"hyperparameters: {best} on {len(part.x)} rows")
        end = _on_more_rows(end, part, least, solver)
        end = end._replace(found=with_curvature(end.objective, end.found))
        total += end.found.evaluations
    if not few:
        progress(f"hyperparameters: {best} on all {len(rows.x)} rows")
        end = _smooth_on_all(end, rows, least, solver, scale) if smooth else _on_more_rows(end, rows, least, solver)
        total += end.found.evaluations
    return MapSearch(end, total, compared, len(some.x))


def _are_few(rows: MixedRows) -> bool:
    return rows.n_latents * len(rows.x) <= FEW_VALUES


def _refined(best: str, compared: dict[str, SearchEnd], blocks: tuple[BlockGroup, ...]) -> tuple[str, dict[str, SearchEnd]]:
    """The best by Schwarz's criterion and all ends, smooth ones within its reach searched again with other blocks."""
    limit, refined = compared[best].criterion() + WORTH_REFINING, dict(compared)
    for title, end in compared.items():
        if end.criterion() < limit and _is_smooth(end.objective.kernels):
            objective = replace(end.objective, blocks=(blocks,) * len(end.objective.kernels.each))
            found = search_near(objective, end.found, FURTHER_STEPS, PRECISION)
            refined[title] = SearchEnd(objective, found._replace(evaluations=found.evaluations + end.found.evaluations))
    return min(refined, key=lambda title: refined[title].criterion()), refined


def _is_smooth(kernels: LatentKernels) -> bool:
    """True if some term is smooth."""
    return any(getattr(term.kernel, "nu", np.inf) >= SMOOTH for c in kernels.each for term in c.terms)


def _stages(first: int, last: int) -> list[int]:
    """Numbers of rows that are searched between the first and all of them: few enough to cost little beside the next."""
    counts: list[int] = []
    while last > FEW_STAGES * LARGER * first:
        last //= LARGER
        counts.insert(0, last)
    return counts


def _smooth_on_all(end: SearchEnd, rows: MixedRows, least: np.ndarray, solver: Vecchia, scale: np.ndarray) -> SearchEnd:
    """Smooth kernels searched with more neighbours, on a part of many rows; then as they are on all of them."""
    wide = replace(solver, block=WIDER * solver.block, neighbours=WIDER * solver.neighbours)
    if len(rows.x) <= WIDE_ROWS:
        return _on_more_rows(end, rows, least, wide)
    part = rows.at(spread_rows(rows.x / scale, WIDE_ROWS, wide.block))
    found = _on_more_rows(end, part, least, wide).found
    there = _on_more_rows(end._replace(found=found), rows, least, solver, steps=0)
    return there._replace(found=there.found._replace(status=found.status, evaluations=found.evaluations + 1))


def _on_more_rows(end: SearchEnd, rows: MixedRows, least: np.ndarray, solver: Vecchia, steps: int = LAST_STEPS) -> SearchEnd:
    """The same kernels searched on ``rows`` from where the search on fewer ended."""
    lengths = [c.lengthscales(rows.x.shape[1]) for c in end.fit(end.found.parameters).kernels.each]
    blocks = tuple(make_blocks(rows.x / each, solver.block, solver.neighbours) for each in lengths)
    objective = replace(end.objective, rows=rows, blocks=blocks, least=least)
    return SearchEnd(objective, search_near(objective, end.found, steps, PRECISION))


def least_theta(end: SearchEnd) -> np.ndarray:
    """(p,) below which no search on all rows goes: further terms keep a share of the range that they have on spread rows.

    All rows together say most about short distances; a term that leaves for these is missed in gaps.
    """
    kernels, found = end.objective.kernels, end.found.parameters
    least: list[np.ndarray] = []
    for covariance in kernels.each:
        further = False
        for leaf in leaves(covariance.kernel):
            is_length = np.array([not isinstance(leaf, ConstantKernel)] * len(leaf.theta), dtype=bool)
            least.append(np.where(is_length & further, np.log(KEPT_RANGE), -np.inf))
            further = further or bool(is_length.any())
    return found[: kernels.n_parameters] + np.concatenate(least)


def _best_kernel(on: Compared, candidates: tuple[KernelChoice, ...]) -> tuple[str, dict[str, SearchEnd]]:
    """Title of the best kernels and the ends of all that were tried, by their titles.

    Further terms, and kernels of their own for the latents, are worth their parameters where they gain more than Schwarz's
    criterion asks on these rows.
    """
    ends = _compared(on, candidates)
    chosen = {kernel_title(candidates[i].kernels): candidates[i] for i in sorted(ends)}
    compared = {kernel_title(candidates[i].kernels): end for i, end in sorted(ends.items())}
    best = min(compared, key=lambda title: compared[title].found.value)

    def cost(choice: KernelChoice) -> float:
        return 0.5 * choice.kernels.n_parameters * float(np.log(len(on.rows.x)))

    def criterion(title: str) -> float:
        return compared[title].criterion()

    def tried(larger: KernelChoice, search: Callable[[MixedObjective], Found]) -> str:
        title, objective = kernel_title(larger.kernels), on.objective(larger)
        chosen[title], compared[title] = larger, SearchEnd(objective, search(objective))
        return title

    def with_own() -> str:
        own = chosen[best].own(on.rows.n_latents)
        return tried(own, partial(_with_own_kernels, near=compared[best], limit=criterion(best) - cost(own)))

    may_be_own = on.rows.own_kernels and on.rows.n_latents > 1
    own = [with_own()] if may_be_own else []
    while (nested := chosen[best].nested) is not None:
        title = tried(nested, partial(_with_long_range, near=compared[best], starts=on.starts))
        if criterion(title) >= min(map(criterion, [best, *own])):
            break
        best = title
        own += [with_own()] if may_be_own else []
    return min([best, *own], key=criterion), compared


def _compared(on: Compared, candidates: tuple[KernelChoice, ...]) -> dict[int, SearchEnd]:
    """Ends of the searches for the candidates that were worth one."""
    found: dict[int, Found] = {}
    objectives: dict[int, MixedObjective] = {}

    def tried(number: int, beside: int) -> float:
        if 0 <= number < len(candidates) and number not in found:
            objective = objectives[number] = on.objective(candidates[number])
            if candidates[number].kernels.n_parameters == candidates[beside].kernels.n_parameters and beside in found:
                found[number] = search_near(objective, found[beside], FURTHER_STEPS, PRECISION, found[beside].value)
            else:
                start = np.concatenate([_first_theta(candidates[number]), on.log_signal, on.rows.start()])
                found[number] = _searched(objective, start, on.starts)
        return found[number].value if number in found else np.inf

    named = [number for number, choice in enumerate(candidates) if kernel_title(choice.kernels) in on.starts]
    middle = named[0] if named else min(1, len(candidates) - 1)
    for number in (middle, middle + 1, middle - 1):
        tried(number, middle)
    best = min(found, key=lambda number: found[number].value)
    for step in (1, -1):
        while tried(best + step, best) < found[best].value:
            best += step
    return {number: SearchEnd(objectives[number], end) for number, end in found.items()}


def _with_long_range(objective: MixedObjective, near: SearchEnd, starts: Mapping[str, np.ndarray]) -> Found:
    """End of the search for the kernel with a further term; what it leaves to the first one has a shorter range."""
    prior, p = near.objective.prior, near.objective.kernels.n_parameters
    shorter = near.found.parameters.copy()
    shorter[:p] += np.where(prior.is_length, np.log(SHORTER_RANGE), 0.0)
    theta = objective.kernels.each[0].kernel.theta[p:]
    return _searched(objective, np.insert(shorter, [p] * len(theta), theta), starts)


def _with_own_kernels(objective: MixedObjective, near: SearchEnd, limit: float) -> Found:
    """End of the search for kernels of the same form with parameters of their own, from the shared ones.

    Each has about an equal share of the curvature that the shared one had.
    """
    p, q, shared = near.objective.kernels.n_parameters, objective.rows.n_latents, near.found
    start = np.concatenate([np.tile(shared.parameters[:p], q), shared.parameters[p:]])
    metric = block_diag(*[q * shared.metric[:p, :p]] * q, shared.metric[p:, p:])
    return search_near(objective, shared._replace(parameters=start, metric=metric), OWN_STEPS, PRECISION, limit)


def _searched(objective: MixedObjective, start: np.ndarray, starts: Mapping[str, np.ndarray]) -> Found:
    """From a start far away: roughly first, then with the curvature found there; at once with that of ``starts``."""
    near = Found(starts.get(kernel_title(objective.kernels), start), np.inf, Status.STEP_LIMIT, 0, np.eye(len(start)))
    if near.parameters is start:
        near = search(objective, start, FIRST_STEPS, FIRST_PRECISION)
    near = with_curvature(objective, near)
    more = search_near(objective, near, FURTHER_STEPS, PRECISION)
    return more._replace(evaluations=near.evaluations + more.evaluations)


def kernel_title(kernels: LatentKernels) -> str:
    """Short name of the kernels."""
    title = " + ".join(_title(term.kernel) for term in kernels.each[0].terms)
    return title if kernels.shared else f"{title}, for each latent its own"


def _title(kernel: Kernel) -> str:
    half = {0.5: " 1/2", 1.5: " 3/2", 2.5: " 5/2"}.get(getattr(kernel, "nu", np.inf), "")
    return type(kernel).__name__ + half


def _first_theta(candidate: KernelChoice) -> np.ndarray:
    """Free lengthscales at a share of half the range, those of each further term longer; all else as given."""
    kernel, prior = candidate.kernels.each[0].kernel, candidate.prior
    theta, share, start = kernel.theta.copy(), FIRST_SHARE, 0
    for leaf in leaves(kernel):
        part = slice(start, start := start + len(leaf.theta))
        lengths = prior.is_length[part]
        theta[part] = np.where(lengths, prior.centre[part] + np.log(share), theta[part])
        share *= LONGER if lengths.any() else 1.0
    return theta
