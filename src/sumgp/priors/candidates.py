"""Priors that are tried: kernels, a period that the data show, tasks within a law, and outputs in canonical order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, ExpSineSquared, Kernel, Matern, Product, RationalQuadratic

from sumgp.errors import DataError
from sumgp.priors.growth import Growth
from sumgp.priors.kernels import hyper_priors, prepare_kernel
from sumgp.priors.multitask import MultitaskPrior, NoiseModel
from sumgp.priors.tasks import FullTask, LowRankTask, OneOutputTask, ReorderedTask, TaskCovariance

FEWEST_PERIODS = 4.0  # within the range of the inputs: fewer look like any other smooth curve
FINENESS = 0.125  # step of the frequencies in cycles over the range: the phase at the ends is right to a sixteenth of one
SHOWN = 0.4  # share of an output's variance in its sine, from which on the evidence is asked about a period
SHOWN_BESIDE = 0.7  # the same of what a slow curve leaves: noise of 16 degrees of freedom has it once in a hundred times
LEAST_LEFT = 1e-5  # of an output's variance by a slow curve: less is what its form is missed by
FEWEST_ROWS, MOST_ROWS = 16, 1000  # fewer always fit some sine, more take long: a second at 1,000 rows of three outputs
SLOW_WAVES = 7  # half waves over the range in a slow curve, at most: fewer than in the slowest period looked for


@dataclass(frozen=True)
class Period:
    """A period along the input: which outputs show it, and which do on top of a slow curve, ``size`` times whose variance
    it has there."""

    length: float
    shown_by: tuple[bool, ...]
    beside: tuple[bool, ...]
    size: float = 1.0


def shown_period(x: np.ndarray, y: np.ndarray) -> Period | None:
    """Period along one input x (N, 1) that outputs y (N, T, NaN = not measured) share, or None if there is none.

    That of the frequency at which a + b sin + c cos explains most, summed over the outputs in units of their variances; or,
    where that is little for each of them, most of what slow curves leave.
    """
    places = len(np.unique(x))
    if x.shape[1] != 1 or len(x) > MOST_ROWS or places < FEWEST_ROWS:
        return None
    span = float(np.ptp(x))
    cycles = np.arange(FEWEST_PERIODS, 0.5 * (places - 1), FINENESS)
    u = (x[:, 0] - x[:, 0].min()) / span
    slow = np.column_stack([np.cos(np.pi * np.arange(SLOW_WAVES + 1) * u[:, None]), u, u * u])
    shares = np.array([_shares(u, cycles, slow[:, :1], column)[0] for column in y.T])
    rest = [_shares(u, cycles, slow, column) for column in y.T]
    best = int(np.argmax(shares.sum(axis=0)))
    shown = shares[:, best] > SHOWN
    if not shown.any():
        best = int(np.argmax(np.sum([share for share, _ in rest], axis=0)))
    beside = ~shown & np.array([share[best] > SHOWN_BESIDE and left > LEAST_LEFT for share, left in rest])
    if not (shown | beside).any():
        return None
    size = float(np.mean([left for _, left in rest], where=beside)) if beside.any() else 1.0
    return Period(span / float(cycles[best]), tuple(shown.tolist()), tuple(beside.tolist()), size)


def _shares(u: np.ndarray, cycles: np.ndarray, slow: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, float]:
    """(F,) share of what slow curves (N, P) leave of values (N,) that sines explain, and how much of all that is."""
    seen = ~np.isnan(values)
    if seen.sum() < FEWEST_ROWS + slow.shape[1] - 1 or np.ptp(values[seen]) == 0:
        return np.zeros(len(cycles)), 0.0
    basis, _ = np.linalg.qr(slow[seen])
    rest = values[seen] - basis @ (basis.T @ values[seen])
    variance = float(rest @ rest)
    angle = 2.0 * np.pi * cycles[:, None] * u[seen]
    S, C = (wave - (wave @ basis) @ basis.T for wave in (np.sin(angle), np.cos(angle)))
    ss, cc, sc = np.sum(S * S, axis=1), np.sum(C * C, axis=1), np.sum(S * C, axis=1)
    s, c = S @ rest, C @ rest
    determinant = ss * cc - sc * sc
    # At a frequency that the rows cannot tell from another, sine and cosine are one.
    regular = determinant > 1e-6 * len(rest) ** 2
    explained = (cc * s * s - 2.0 * sc * s * c + ss * c * c) / np.where(regular, determinant, 1.0)
    shares = np.where(regular, explained, 0.0) / max(variance, np.finfo(float).tiny)
    return shares, variance / float(np.sum((values[seen] - values[seen].mean()) ** 2))


PERIOD_FACTOR = 1.3  # within which a period is looked for around the one that the data show
WAVE_SIZES = (1e-5, 1e2)  # variance of a wave over that of the slow curve beside it
WAVE_BOUNDS = (0.1, 10.0)  # of w, from sharp peaks to a wave too weak to be seen
TREND_BOUNDS = (1e-3, 1e3)  # variance of a trend over that of what varies over short distances
MOST_OUTPUTS_ON_THEIR_OWN = 3  # with more, what outputs have in common tells more than how they differ

LENGTH_STEP = 0.35  # between logarithms of lengthscales of an output alone; a maximum is about twice as wide
LONGEST = 1.4  # logarithm of the longest lengthscale over half the range
NEIGHBOUR = 0.5  # shortest lengthscale in distances between rows
WAVES = (0.5, 1.0, 2.0)  # of w in exp(-2 sin^2 / w^2): from peaked to nearly a sine
SHORTEST_DECAY = 2.0  # periods over which a wave keeps its shape, at least
SHOWN_BY = 0.5  # share of the outputs that show a period, from which on few rows will do: they always fit some sine
ROWS_FOR_ONE = 30  # rows from which on a single output may show one


@dataclass(frozen=True)
class Candidate:
    """A sum of separable terms, each of one kernel. ``own``: a term for each output alone, with its own lengthscale."""

    kernels: tuple[Kernel, ...]
    own: bool = False

    @property
    def is_separable(self) -> bool:
        """True for a single term."""
        return len(self.kernels) == 1

    def tasks(self, n_outputs: int, rank: int | None) -> tuple[TaskCovariance, ...]:
        """The task covariance of each term."""
        if self.own:
            return tuple(OneOutputTask(n_outputs, t) for t in range(n_outputs))
        if rank is not None:
            return (LowRankTask(n_outputs, rank),) * len(self.kernels)
        return (FullTask(n_outputs, amplitude=1.0 / np.sqrt(len(self.kernels))),) * len(self.kernels)


def given_candidate(kernel: Any, half_range: np.ndarray) -> tuple[Candidate, ...]:
    """The user's kernel, or sum of kernels if several are given in a list."""
    kernels = list(kernel) if isinstance(kernel, Sequence) else [kernel]
    if not kernels:
        raise DataError("kernel", "at least one kernel", "an empty list", "leave kernel=None")
    return (Candidate(tuple(prepare_kernel(k, half_range) for k in kernels)),)


def default_candidates(
    half_range: np.ndarray, n_outputs: int = 1, separable: bool = True, period: Period | None = None
) -> tuple[Candidate, ...]:
    """A very smooth kernel and one with heavier tails, shared by all outputs.

    Unless the prior must be ``separable``, two or three outputs may have lengthscales of their own: that is tried with both
    kernels, and replaces the shared one with heavier tails. Several inputs: the smooth kernel with a lengthscale for each.
    Where the data show a ``period``, curves that nearly repeat themselves are tried too.
    """
    size: Any = 1.0 if len(half_range) == 1 else np.ones(len(half_range))
    smooth = prepare_kernel(RBF(size), half_range)
    if len(half_range) > 1:
        return (Candidate((smooth,)),)
    rational = prepare_kernel(RationalQuadratic(alpha=2.0, alpha_bounds="fixed"), half_range)
    repeating, beside = (smooth, smooth) if period is None else repeating_kernels(smooth, period)
    if separable or not 2 <= n_outputs <= MOST_OUTPUTS_ON_THEIR_OWN:
        waves = () if period is None else (beside if sum(period.beside) > sum(period.shown_by) else repeating,)
        kernels = (smooth, rational, *waves)
        return tuple(Candidate((kernel,)) for kernel in kernels)
    own = [Candidate((kernel,) * n_outputs, own=True) for kernel in (smooth, rational)]
    if period is not None:
        each = zip(period.shown_by, period.beside, strict=True)
        own.append(Candidate(tuple(repeating if shown else beside if slow else smooth for shown, slow in each), own=True))
    return Candidate((smooth,)), *own


def map_candidates(half_range: np.ndarray) -> tuple[Candidate, ...]:
    """Kernels for many points, from rough to smooth; several inputs have a lengthscale each."""
    size: Any = 1.0 if len(half_range) == 1 else np.ones(len(half_range))
    kernels = (Matern(size, nu=0.5), Matern(size, nu=1.5), Matern(size, nu=2.5), RBF(size))
    return tuple(Candidate((prepare_kernel(kernel, half_range),)) for kernel in kernels)


def potential_candidates(half_range: np.ndarray, degree: int) -> tuple[Candidate, ...]:
    """Kernels of functions over several inputs whose derivatives up to ``degree`` are the outputs.

    Smooth and rough ones, with one lengthscale and with one for each input: few points of a field cannot tell directions
    apart, and real fields are rough. (Matern 5/2 has two derivatives.) Last, smooth ones that are larger near their sources.
    """
    sizes = (np.ones(len(half_range)), 1.0)
    kernels = [RBF(size) for size in sizes] + [Matern(size, nu=2.5) for size in sizes if degree <= 2]
    kernels.append(Growth(np.ones(len(half_range))) * RBF(1.0))
    return tuple(Candidate((prepare_kernel(kernel, half_range),)) for kernel in kernels)


def is_growing(kernel: Kernel) -> bool:
    """Whether its functions are those of another kernel times a size that grows or decays along the inputs."""
    return isinstance(kernel, Product) and isinstance(kernel.k1, Growth)


def with_long_range(kernel: Kernel, half_range: np.ndarray) -> Kernel:
    """The kernel plus a Matern 3/2 of long range: maps often vary over short distances on top of a slow trend."""
    size: Any = 1.0 if len(half_range) == 1 else np.ones(len(half_range))
    return kernel + ConstantKernel(1.0, TREND_BOUNDS) * prepare_kernel(Matern(size, nu=1.5), half_range)


def rougher_candidates(half_range: np.ndarray, on_series: bool) -> tuple[Candidate, ...]:
    """Curves with two derivatives only, for one input, shared by all outputs; for a long series with one or none."""
    kernels = [Matern(nu=nu) for nu in ((1.5, 0.5) if on_series else (2.5,))] if len(half_range) == 1 else []
    return tuple(Candidate((prepare_kernel(kernel, half_range),)) for kernel in kernels)


def quasi_periodic(smooth: Kernel, period: float) -> Kernel:
    """exp(-2 sin^2(pi r / period) / w^2) times a smooth kernel: a wave whose shape changes slowly."""
    near = (period / PERIOD_FACTOR, period * PERIOD_FACTOR)
    return ExpSineSquared(1.0, period, length_scale_bounds=WAVE_BOUNDS, periodicity_bounds=near) * smooth


def repeating_kernels(smooth: Kernel, period: Period) -> tuple[Kernel, Kernel]:
    """A wave whose shape changes slowly, alone and beside a smooth curve."""
    wave = quasi_periodic(smooth, period.length)
    return wave, smooth + ConstantKernel(period.size, WAVE_SIZES) * wave


@dataclass(frozen=True)
class KernelFamily:
    """A kernel with the values of theta that are tried, (L, p), and their log prior (L,); ``of`` (T,): for which outputs.

    ``centres`` (T, p): thetas of an output are around its own; None = around zero.
    """

    kernel: Kernel
    thetas: np.ndarray
    log_prior: np.ndarray
    of: tuple[bool, ...] | None = None
    centres: np.ndarray | None = None

    def thetas_of(self, output: int) -> np.ndarray:
        """(L, p) values of theta that are tried for an output."""
        return self.thetas if self.centres is None else self.centres[output] + self.thetas


def output_families(x: np.ndarray, y: np.ndarray, half_range: np.ndarray, spacing: float) -> list[KernelFamily]:
    """For each output y (N, T) alone: RBF, RationalQuadratic and Matern kernels, and waves where the data show a period.

    Lengthscales go from neighbouring rows, ``spacing`` half ranges apart, to beyond the range.
    """
    size = float(np.sqrt(np.mean(half_range**2)))
    logs = np.log(size) + np.arange(LONGEST, min(np.log(NEIGHBOUR * spacing), -1.0) - 1e-9, -LENGTH_STEP)
    kernels: list[Kernel] = [RBF(size), RationalQuadratic(size, alpha=2.0, alpha_bounds="fixed")]
    kernels += [Matern(size, nu=nu) for nu in (0.5, 1.5, 2.5)]
    result = []
    for kernel in kernels:
        prior = hyper_priors(kernel, half_range, spacing)[0]
        result.append(KernelFamily(kernel, logs[:, None], np.array([prior.log_density(v) for v in logs])))
    period = shown_period(x, y)
    enough = len(x) >= ROWS_FOR_ONE
    if period is not None and any(period.shown_by) and (enough or np.mean(period.shown_by) >= SHOWN_BY):
        decays = np.arange(np.log(4.0 * size), np.log(SHORTEST_DECAY * period.length), -2.0 * LENGTH_STEP)
        thetas = np.array([[np.log(w), np.log(period.length), d] for w in WAVES for d in decays])
        if len(thetas):
            kernel = quasi_periodic(RBF(size), period.length)
            result.append(KernelFamily(kernel, thetas, np.full(len(thetas), np.log(2.0 / len(WAVES))), period.shown_by))
    return result


def kernel_name(prior: MultitaskPrior) -> str:
    """Short name of a candidate, for reports; isotropic: one lengthscale for several inputs of a latent function."""
    several = prior.latent is not None and len(prior.latent.centre) > 1
    names = []
    for kernel in prior.kernels:
        main = kernel.k2 if is_growing(kernel) else kernel
        one = "isotropic " if several and not getattr(main, "anisotropic", True) else ""
        names.append(one + ("growing " if is_growing(kernel) else "") + str(main).split("(")[0])
    return " + ".join(names)


def start_at_rest(prior: MultitaskPrior, others: Iterable[tuple[MultitaskPrior, np.ndarray]]) -> list[np.ndarray]:
    """Where to begin with kernels that grow: at theta of the prior among ``others`` with the same ones that do not."""
    if not all(is_growing(kernel) for kernel in prior.kernels):
        return []
    still = [repr(kernel.k2) for kernel in prior.kernels]
    for other, theta in others:
        if [repr(kernel) for kernel in other.kernels] == still:
            start = prior.start()
            for (kernel, task), (own, own_task) in zip(prior.slices, other.slices, strict=True):
                start[kernel.stop - (own.stop - own.start) : kernel.stop] = theta[own]
                start[task] = theta[own_task]
            start[prior.noise_slice] = theta[other.noise_slice]
            return [start]
    return []


@dataclass(frozen=True)
class Reordered:
    """``prior`` over the outputs in another order; entry i of its theta is entry ``index[i]`` of the given one's."""

    prior: MultitaskPrior
    index: np.ndarray

    def there(self, theta: np.ndarray) -> np.ndarray:
        """The reordered prior's theta from the given one's."""
        return theta[self.index]

    def back(self, theta: np.ndarray) -> np.ndarray:
        """The given prior's theta from the reordered one's."""
        result = np.empty_like(theta)
        result[self.index] = theta
        return result


def reordered(prior: MultitaskPrior, order: np.ndarray) -> Reordered:
    """The same prior over the outputs ``order`` (T,), which lists their positions in the given one.

    Terms of one output each are sorted as the outputs are.
    """
    if prior.latent is None:
        turned = [task.reordered(order) for task in prior.tasks]
    else:
        turned = [ReorderedTask(task, np.arange(task.n_parameters)) for task in prior.tasks]
    places = [-1 if t.task.speaks_of is None else t.task.speaks_of for t in turned]
    terms = sorted(range(len(turned)), key=places.__getitem__)
    index: list[np.ndarray] = []
    for r in terms:
        kernel, task = prior.slices[r]
        index += [np.arange(kernel.start, kernel.stop), task.start + turned[r].places]
    noise, groups = _noise(prior.noise, order)
    if noise.known is None:
        index.append(prior.noise_slice.start + groups)
    result = replace(
        prior,
        kernels=tuple(prior.kernels[r] for r in terms),
        kernel_priors=tuple(prior.kernel_priors[r] for r in terms),
        tasks=tuple(turned[r].task for r in terms),
        noise=noise,
        latent=None if prior.latent is None else prior.latent.reordered(order),
        law=None if prior.law is None else replace(prior.law, F=prior.law.F[:, order]),
        within=None if prior.within is None else prior.within[:, order],
    )
    return Reordered(result, np.concatenate(index).astype(int))


def _noise(noise: NoiseModel, order: np.ndarray) -> tuple[NoiseModel, np.ndarray]:
    """The noise of the outputs in that order, and the groups' former positions."""
    place = np.argsort(order)
    groups = [tuple(sorted(place[list(group)].tolist())) for group in noise.groups]
    sequence = sorted(range(len(groups)), key=lambda g: groups[g])
    known = None if noise.known is None else noise.known[:, order]
    moved = replace(noise, groups=tuple(groups[g] for g in sequence), reference=noise.reference[order], known=known)
    return moved, np.array(sequence, dtype=int)


def canonical_order(y: np.ndarray, names: tuple[str, ...], ties: np.ndarray | None = None) -> np.ndarray:
    """(T,) positions of the outputs in an order that does not depend on the given one: by their values, then by name.

    ``y`` (N, T) unit-free with rows in an order of their own; values count to six digits. ``ties`` (T,): numbers that tell
    outputs of equal values apart (all of them never measured, say) before their names do.
    """
    decided = np.zeros(y.shape[1]) if ties is None else np.round(ties, 6)
    rounded = np.round(np.where(np.isnan(y), np.inf, y), 6)
    keys = [
        (np.sort(column).tolist(), column.tolist(), tie, name)
        for column, tie, name in zip(rounded.T, decided, names, strict=True)
    ]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=int)
