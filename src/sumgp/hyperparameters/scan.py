"""What each output alone says: lengthscales to start a search from, and noises, in common or their own.

Starts come from a look at every lengthscale that the rows can tell apart, with y ~ N(0, s^2 (K + m 1 1^T + r^2 I)). After
one eigendecomposition of K + m 1 1^T for a lengthscale, the evidence is closed form for any noise ratio r, and highest at
s^2 = y^T (K + m 1 1^T + r^2 I)^-1 y / n. The local maxima over lengthscales are where the search begins; a curve of many
periods has one that no start from the prior leads to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree
from scipy.special import logsumexp
from scipy.stats import qmc
from sklearn.gaussian_process.kernels import Kernel

from sumgp.numerics import LOG_2PI
from sumgp.priors import HyperPrior, KernelOnPoints, MultitaskPrior, lengthscale_mask

RATIOS = np.array([1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0, 3.0])  # noise sd over amplitude
STEP = 0.35  # between logarithms of lengthscales; a maximum is about twice as wide
COARSE_STEP = 0.7  # the same for several inputs, where there are more lines to look along
LONGEST = 0.7  # logarithm of the longest lengthscale over the prior's centre
SHORTEST = -8.0  # the same for the shortest, whatever the rows
NEIGHBOUR = 0.5  # shortest lengthscale in distances between rows: below it each row stands for itself alone
MOST_LINES = 4  # lengthscales of one kernel up to which each is also varied alone
MOST_ROWS = 150  # rows that are looked at
CLUSTERS = 3  # of neighbouring rows, where there are more
MEAN_VARIANCE = MultitaskPrior.mean_variance
FEWEST_VALUES = 3  # of an output, to tell anything about its lengthscale
FAR_BEHIND = 30.0  # log evidence below the best maximum, from which on another is no start
LEAST_INDEPENDENT = 0.05  # smallest eigenvalue of the correlations to start with
SIZES = (1e-2, 30.0)  # amplitudes to start with, in sds of an output


@dataclass(frozen=True)
class Profile:
    """What each output alone says of lengthscales: log evidence (L, T), and amplitude and noise sd there (L, T).

    ``lengths`` (L, m): logarithms of the kernel's lengthscales, line after line; ``line`` (L,) numbers the lines.
    ``correlations`` (L, T, T) of the outputs after whitening by the kernel.
    """

    lengths: np.ndarray
    line: np.ndarray
    value: np.ndarray
    amplitude: np.ndarray
    noise: np.ndarray
    correlations: np.ndarray

    def maxima(self, value: np.ndarray) -> list[int]:
        """Positions of local maxima of ``value`` (L,) along each line, the highest first, without those far behind."""
        found = []
        for line in np.unique(self.line):
            own = np.flatnonzero(self.line == line)
            padded = np.concatenate([[-np.inf], value[own], [-np.inf]])
            found += own[(padded[1:-1] >= padded[:-2]) & (padded[1:-1] > padded[2:])].tolist()
        found.sort(key=lambda i: -value[i])
        return [i for i in found if value[i] > value[found[0]] - FAR_BEHIND]


@dataclass(frozen=True)
class Scan:
    """Starts for priors on the same unit-free data x (N, D), y (N, T)."""

    x: np.ndarray
    y: np.ndarray

    def starts(
        self, prior: MultitaskPrior, count: int, objective: Callable[[np.ndarray], float] | None = None
    ) -> list[np.ndarray]:
        """At most ``count`` starts, the most promising first; none for kernels without free lengthscales.

        ``objective``: of theta, low where outputs that share a term are explained together. With many of them that tells
        more than what each says alone: one that looks like noise may follow another that does not.
        """
        places = [np.flatnonzero(lengthscale_mask(kernel)) for kernel in prior.kernels]
        free = [r for r, place in enumerate(places) if len(place)]
        if not free:
            return []
        profiles = {r: self._profile(prior.kernels[r], prior.kernel_priors[r]) for r in free}
        alone = all(task.speaks_of is not None for task in prior.tasks)
        low, high = np.array(prior.bounds()).T

        def theta(way: dict[int, int]) -> np.ndarray:
            return np.clip(self._theta(prior, profiles, way), low, high)

        # Terms of one output each begin together; of terms that share outputs one is set, the others wait at their start.
        if alone:
            ways = self._for_each_output(prior, profiles)
        elif objective is None:
            ways = self._for_each_term({r: (p, p.value.sum(axis=1)) for r, p in profiles.items()})
        else:
            joint = {r: [-objective(theta({r: i})) for i in range(len(p.lengths))] for r, p in profiles.items()}
            ways = self._for_each_term({r: (p, np.array(joint[r])) for r, p in profiles.items()})
        return [theta(way) for way in ways[:count]]

    def _for_each_output(self, prior: MultitaskPrior, profiles: dict[int, Profile]) -> list[dict[int, int]]:
        maxima = {r: p.maxima(p.value[:, prior.tasks[r].speaks_of]) for r, p in profiles.items()}
        depth = max(len(m) for m in maxima.values())
        return [{r: m[min(i, len(m) - 1)] for r, m in maxima.items()} for i in range(depth)]

    @staticmethod
    def _for_each_term(valued: dict[int, tuple[Profile, np.ndarray]]) -> list[dict[int, int]]:
        ranked = [(-values[i], r, i) for r, (profile, values) in valued.items() for i in profile.maxima(values)]
        return [{r: i} for _, r, i in sorted(ranked)]

    def _theta(self, prior: MultitaskPrior, profiles: dict[int, Profile], way: dict[int, int]) -> np.ndarray:
        """Start with term r at place way[r] of its profile, and amplitudes, correlations and noise that belong there."""
        theta = prior.start()
        sds = np.full(self.y.shape[1], np.nan)
        for r, place in way.items():
            kernel, task = prior.slices[r]
            profile = profiles[r]
            theta[np.arange(kernel.start, kernel.stop)[lengthscale_mask(prior.kernels[r])]] = profile.lengths[place]
            size = np.clip(profile.amplitude[place], *SIZES)
            theta[task] = prior.tasks[r].like(size[:, None] * profile.correlations[place] * size)
            own = prior.tasks[r].speaks_of
            seen = slice(None) if own is None else slice(own, own + 1)
            sds[seen] = profile.noise[place][seen]
        theta[prior.noise_slice] = prior.noise.like(np.where(np.isnan(sds), np.nanmean(sds), sds))
        return theta

    def log_evidence_alone(self, kernel: Kernel, priors: Sequence[HyperPrior]) -> float:
        """Sum over the outputs of the highest log evidence of each alone, at the rows that are looked at."""
        values = self._profile(kernel, priors).value.max(axis=0)
        counts = np.sum(~np.isnan(self.y[self.rows]), axis=0)
        return float(np.sum(np.where(counts >= FEWEST_VALUES, values - 0.5 * counts * LOG_2PI, 0.0)))

    def _profile(self, kernel: Kernel, priors: Sequence[HyperPrior]) -> Profile:
        key = repr((kernel, priors))
        if key not in self._profiles:
            self._profiles[key] = self._looked_at(kernel, priors)
        return self._profiles[key]

    @cached_property
    def _profiles(self) -> dict[str, Profile]:
        return {}

    @cached_property
    def rows(self) -> np.ndarray:
        """Positions of the rows that are looked at."""
        return clustered_rows(self.x, MOST_ROWS, CLUSTERS) if len(self.x) > MOST_ROWS else np.arange(len(self.x))

    def _looked_at(self, kernel: Kernel, priors: Sequence[HyperPrior]) -> Profile:
        mask = lengthscale_mask(kernel)
        centre = np.array([p.centre for p in priors])[mask]
        apart = min(p.spacing - p.centre for p, is_length in zip(priors, mask, strict=True) if is_length)
        shifts, line = _lines(len(centre), max(np.log(NEIGHBOUR) + apart, SHORTEST))
        low, high = np.reshape(kernel.bounds, (-1, 2))[mask].T
        lengths = np.clip(centre + shifts, low, high)
        on_points = KernelOnPoints(kernel, self.x[self.rows])
        y = self.y[self.rows]
        results = []
        for length in lengths:
            theta = kernel.theta.copy()
            theta[mask] = length
            results.append(_outputs_alone(on_points.matrix(theta), y))
        value, amplitude, noise, correlations = (np.stack(part) for part in zip(*results, strict=True))
        free = [p for p, is_length in zip(priors, mask, strict=True) if is_length]
        prior = [sum(p.log_density(float(v)) for p, v in zip(free, row, strict=True)) for row in lengths]
        # The prior counts once, not for each output.
        return Profile(lengths, line, value + np.array(prior)[:, None] / y.shape[1], amplitude, noise, correlations)


def _lines(count: int, shortest: float) -> tuple[np.ndarray, np.ndarray]:
    """Shifts (L, m) of logarithms of lengthscales, all together and then each alone, and the line each belongs to."""
    steps = np.arange(LONGEST, min(shortest, -LONGEST) - 1e-9, -(STEP if count == 1 else COARSE_STEP))
    directions = [np.ones(count), *(np.eye(count) if 1 < count <= MOST_LINES else [])]
    return np.concatenate([steps[:, None] * d for d in directions]), np.repeat(np.arange(len(directions)), len(steps))


class _Alone(NamedTuple):
    """Each output on its own: log evidence, amplitude and noise sd (T,); correlations (T, T) of all."""

    value: np.ndarray
    amplitude: np.ndarray
    noise: np.ndarray
    correlations: np.ndarray


def _outputs_alone(K: np.ndarray, y: np.ndarray) -> _Alone:
    """Log evidence, amplitude and noise sd (T,) of each output at the best noise ratio, and correlations (T, T)."""
    T = y.shape[1]
    value, amplitude, noise, correlations = np.zeros(T), np.ones(T), np.full(T, 0.1), np.eye(T)
    measured = ~np.isnan(y)
    for pattern in np.unique(measured.T, axis=0):
        own = np.flatnonzero([np.array_equal(column, pattern) for column in measured.T])
        n = int(pattern.sum())
        if n < FEWEST_VALUES:
            continue
        spectrum, U = np.linalg.eigh(K[np.ix_(pattern, pattern)] + MEAN_VARIANCE)
        spectrum = np.maximum(spectrum, 0.0)
        z = U.T @ y[np.ix_(pattern, own)]
        size = spectrum[:, None] + RATIOS**2
        squares = np.maximum((z**2).T @ (1.0 / size) / n, np.finfo(float).tiny)  # (own, ratios)
        values = -0.5 * (n * np.log(squares) + np.sum(np.log(size), axis=0) + n)
        best = np.argmax(values, axis=1)
        at = np.arange(len(own)), best
        value[own], amplitude[own] = values[at], np.sqrt(squares[at])
        noise[own] = amplitude[own] * RATIOS[best]
        correlations[np.ix_(own, own)] = _correlations(z / amplitude[own], spectrum, size[:, best])
    return _Alone(value, amplitude, noise, correlations)


def _correlations(z: np.ndarray, spectrum: np.ndarray, size: np.ndarray) -> np.ndarray:
    """(T, T) least-squares estimate from E z_t z_u = C_tu spectrum, with variances ``size`` (n, T) of z, made regular."""
    white, share = z / np.sqrt(size), spectrum[:, None] / np.sqrt(size)
    weight = share[:, :, None] * (1.0 / np.sqrt(size))[:, None, :]
    together = np.einsum("ntu,nt,nu->tu", weight, white, white)
    C = together / np.maximum(np.sum(weight**2, axis=0), np.finfo(float).tiny)
    np.fill_diagonal(C, 1.0)
    values, vectors = np.linalg.eigh(np.clip(C, -1.0, 1.0))
    C = (vectors * np.maximum(values, LEAST_INDEPENDENT)) @ vectors.T
    sd = np.sqrt(np.diagonal(C))
    return C / (sd[:, None] * sd)


def row_spacing(x: np.ndarray) -> float:
    """Median distance of a place to its nearest neighbour, in the units of x (N, D); zero if there is one place only."""
    places = np.unique(x, axis=0)
    if len(places) < 2:
        return 0.0
    return float(np.median(cKDTree(places).query(places, k=2)[0][:, 1]))


PLACES = 256  # within the range of the inputs at which the distance to the rows is looked at
GAPS = 2.0  # times the distance between rows: scattered rows have up to 1.7, lines of 12 and more rows 2.1 and more


def gappy(x: np.ndarray, spacing: float) -> bool:
    """True if most places within the range of x (N, D) lie far from all rows beside the ``spacing`` of these.

    Rows on lines or in clusters do: a lengthscale across the gaps is seen only if it is about as long as these.
    """
    if x.shape[1] == 1:
        return False
    places = x.min(axis=0) + np.ptp(x, axis=0) * qmc.Halton(x.shape[1], scramble=False).random(PLACES)
    return float(np.median(cKDTree(x).query(places)[0])) > GAPS * spacing


def clustered_rows(x: np.ndarray, count: int, clusters: int) -> np.ndarray:
    """Sorted positions of about ``count`` rows in ``clusters`` spread over the inputs, each of nearest neighbours.

    Rows that are chosen one by one lie too far apart to tell of short lengthscales.
    """
    order = np.argsort(x[:, 0], kind="stable")
    middle = order[((np.arange(clusters) + 0.5) / clusters * len(x)).astype(int)]
    size = np.ptp(x, axis=0)
    near = cKDTree(x / np.where(size > 0, size, 1.0))
    _, rows = near.query(near.data[middle], k=max(count // clusters, 1))
    return np.unique(rows)


SAME = 0.15  # of log noise sds that outputs of one group share
NEGLIGIBLE = 1e-6  # weight of a grid point that says nothing
FAINT = 1e-12  # density that other outputs cannot rule out
APART = 1.0  # sd of log noise sds around their mean where they differ: by a factor of three
# Log evidence for noises of their own, 20 to 1: coordinates mostly share one. Of 16 rods of equal noises and one rough axis,
# whose roughness passes for noise, 9 are above 0 and one is above this; a false difference costs more than a missed one.
CLEARLY = 3.0


UNLIKE = 0.1  # share of outputs that have nothing in common with the others


def around(points: np.ndarray, width: float, prior: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """(C, C) probabilities of grid points (C, p) around each of them, of one kind and within ``width``, or of any."""
    distance = np.sum((points[:, None] - points) ** 2, axis=2)
    near = np.exp(-0.5 * distance / width**2) * (kinds[:, None] == kinds) * prior
    return (1.0 - UNLIKE) * near / near.sum(axis=1, keepdims=True) + UNLIKE * prior / prior.sum()


def pool(
    likelihoods: np.ndarray,
    kernels: np.ndarray,
    ratios: np.ndarray,
    prior: np.ndarray,
    law: np.ndarray | None = None,
) -> np.ndarray:
    """Log weights (T, K, R) of grid points from log likelihoods (T, K, R); B is ``kernels`` (K, K) times ``ratios`` (R, R).

    ``prior`` (K, R) log of p(c); ``law`` (K, R) log density of imbalances at c.
    """
    L = np.exp(likelihoods - likelihoods.max(axis=(1, 2), keepdims=True))
    Z = np.maximum(np.einsum("ck,tkr,dr->tcd", kernels, L, ratios, optimize=True), np.finfo(float).tiny)
    common = prior + np.log(Z).sum(axis=0) + (0.0 if law is None else law)
    P = np.exp(common - np.max(common))
    expected = np.einsum("ck,tcd,dr->tkr", kernels, P / P.sum() / Z, ratios, optimize=True)
    with np.errstate(divide="ignore"):
        return np.log(L) + np.log(expected)


def share_noise(weights: np.ndarray, log_sd: np.ndarray, groups: Sequence[Sequence[int]]) -> None:
    """Multiply the weights of an output by what the others of its group say, in place.

    ``weights`` are logarithms (T, K, R), ``log_sd`` those of the noise sds.
    """
    bins = _bins(log_sd)
    for group in groups:
        said = _said(weights, log_sd, group, bins) if len(group) > 1 else {}
        for t in said:
            others = sum(said[u] for u in group if u != t)
            weights[t] += np.interp(log_sd[t], bins, others)


def noises_differ(weights: np.ndarray, log_sd: np.ndarray, group: Sequence[int]) -> bool:
    """Whether noises of their own are clearly a more probable cause of the outputs of a group than a common one.

    With a flat prior on a log sd c: sum_c prod_t L_t(c) for one in common, L_t being the likelihoods, and
    sum_c prod_t sum_s N(s | c, APART^2) L_t(s) for noises around c.
    """
    bins = _bins(log_sd)
    said = np.stack(list(_said(weights, log_sd, group, bins).values()))
    around = np.exp(-0.5 * ((bins[:, None] - bins) / APART) ** 2)
    own = np.log(np.exp(said) @ (around / around.sum(axis=0)))
    return bool(logsumexp(own.sum(axis=0)) - logsumexp(said.sum(axis=0)) > CLEARLY)


def _bins(log_sd: np.ndarray) -> np.ndarray:
    return np.arange(log_sd.min() - 1.0, log_sd.max() + 1.0, 0.5 * SAME)


def _said(weights: np.ndarray, log_sd: np.ndarray, group: Iterable[int], bins: np.ndarray) -> dict[int, np.ndarray]:
    """Log likelihood of noise sds ``bins`` for each output of a group, up to a constant."""
    said = {}
    for t in group:
        w = np.exp(weights[t] - weights[t].max()).ravel()
        heavy = w > NEGLIGIBLE
        z = (bins[:, None] - log_sd[t].ravel()[heavy]) / SAME
        said[t] = np.log(np.exp(-0.5 * z**2) @ w[heavy] / w.sum() + FAINT)
    return said
