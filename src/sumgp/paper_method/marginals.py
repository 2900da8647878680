"""Distribution of an output f whose transform f' = h(f) is Gaussian (appendix B.7), with its branch as uncertain as it is.

f' ~ N(m, s^2) is folded back into the image of h where it leaves it; the branch is that of the auxiliary output
f_aux ~ N(a, r^2). Where the branch is certain, the ends of an interval are the back-transformed ends of that of f';
where f' leaves the image at a branch point of a square and either sign is possible, the interval is
[-sqrt(hi), sqrt(hi)].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from sumgp.numerics import normal_rule
from sumgp.transforms import Transform

NEGLIGIBLE = 1e-10  # probability of a branch at every point that is not worth its time
MOMENTS = ("mean", "sd", "aux_mean", "aux_sd")
NODES = 24  # of quadrature over f', for each piece between the ends of the image


@dataclass(frozen=True)
class Piece:
    """One branch of h per point: its number, interval [lo, hi], probability and direction of h, each (n,)."""

    number: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    share: np.ndarray
    rising: np.ndarray


@dataclass(frozen=True, eq=False)
class OutputMarginal:
    """Marginals of one output at n points, in its own units. Without branches ``aux_mean`` and ``aux_sd`` are not used."""

    transform: Transform
    mean: np.ndarray  # (n,) of f'
    sd: np.ndarray
    aux_mean: np.ndarray
    aux_sd: np.ndarray

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The branch of the auxiliary mean and its neighbours."""
        h = self.transform
        if h.monotone:
            start, stop = h.domain
            number = h.branch_of(np.full(len(self.mean), 0.5 * (max(start, -1e3) + min(stop, 1e3))))
            ends = np.full(len(self.mean), start), np.full(len(self.mean), stop)
            return (self._piece(number, *ends, np.ones(len(self.mean))),)
        number = h.branch_of(self.aux_mean)
        lo, hi = self._intervals(number)
        shares, intervals = [], []
        for step in (-1, 0, 1):
            exists = np.isfinite(lo) & (lo > h.domain[0]) if step < 0 else np.isfinite(hi) & (hi < h.domain[1])
            exists = exists | (step == 0)
            low, high = self._intervals(np.where(exists, number + step, number))
            share = ndtr((high - self.aux_mean) / self.aux_sd) - ndtr((low - self.aux_mean) / self.aux_sd)
            shares.append(np.where(exists, share, 0.0))
            intervals.append((np.where(exists, number + step, number), low, high))
        total = np.sum([share for share in shares if np.max(share) > NEGLIGIBLE], axis=0)
        parts = zip(intervals, shares, strict=True)
        return tuple(self._piece(*part, share / total) for part, share in parts if np.max(share) > NEGLIGIBLE)

    def _intervals(self, number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        lo, hi = np.empty(len(number)), np.empty(len(number))
        for value in np.unique(number):
            lo[number == value], hi[number == value] = self.transform.branch_interval(int(value))
        return lo, hi

    def _piece(self, number: np.ndarray, lo: np.ndarray, hi: np.ndarray, share: np.ndarray) -> Piece:
        left, right = _inner_points(lo, hi)
        return Piece(number, lo, hi, share, self.transform.value(right) > self.transform.value(left))

    def central(self, value: np.ndarray) -> np.ndarray:
        """The output on the branch of the auxiliary mean whose transform is ``value`` (..., n)."""
        return self.transform.inverse(value, self.transform.branch_of(self.aux_mean))

    def cdf(self, f: np.ndarray) -> np.ndarray:
        """P(output < f), f (..., n)."""
        if self.transform.is_identity:
            return self._phi(f)
        with np.errstate(all="ignore"):
            below = self._folded_cdf(self.transform.value(f))
        # Quantiles ask for this thousands of times: all pieces at once, (..., pieces, n).
        lo, hi, share, rising = self._stacked_pieces
        f, below = f[..., None, :], below[..., None, :]
        part = np.where(rising, below, 1.0 - below)
        return (share * np.where(f <= lo, 0.0, np.where(f >= hi, 1.0, part))).sum(axis=-2)

    @cached_property
    def _stacked_pieces(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        lo, hi = np.stack([p.lo for p in self.pieces]), np.stack([p.hi for p in self.pieces])
        return lo, hi, np.stack([p.share for p in self.pieces]), np.stack([p.rising for p in self.pieces])

    def density(self, f: np.ndarray) -> np.ndarray:
        """Density at f (..., n): the derivative of ``cdf``."""
        with np.errstate(all="ignore"):
            value, slope = self.transform.value(f), np.abs(self.transform.derivative(f))
            within = slope * self._folded_density(value)
        total = np.zeros(np.shape(f))
        for piece in self.pieces:
            total = total + np.where((f > piece.lo) & (f < piece.hi), piece.share * within, 0.0)
        return total

    def _mirrors(self, value: np.ndarray) -> list[np.ndarray]:
        return [2.0 * edge - value for edge in self.transform.image if np.isfinite(edge)]

    def _phi(self, value: np.ndarray | float) -> np.ndarray:
        return ndtr((value - self.mean) / self.sd)

    def _raw_cdf(self, value: np.ndarray | float) -> np.ndarray:
        lo, hi = self.transform.image
        result = self._phi(value)
        if np.isfinite(lo):
            result = result - self._phi(2.0 * lo - value)
        if np.isfinite(hi):
            result = result + 1.0 - self._phi(2.0 * hi - value)
        return result

    @cached_property
    def _raw_ends(self) -> tuple[np.ndarray, np.ndarray]:
        """The folded distribution function at the ends of the image, before it is normalised."""
        lo, hi = self.transform.image
        bottom = self._raw_cdf(lo) if np.isfinite(lo) else np.zeros(len(self.mean))
        top = self._raw_cdf(hi) if np.isfinite(hi) else np.ones(len(self.mean))
        return bottom, top

    def _folded_cdf(self, value: np.ndarray) -> np.ndarray:
        bottom, top = self._raw_ends
        lo, hi = self.transform.image
        # Round-off may leave the image; the plain functions, since np.clip takes longer than the rest.
        value = np.maximum(value, lo) if np.isfinite(lo) else value
        value = np.minimum(value, hi) if np.isfinite(hi) else value
        return np.minimum(np.maximum((self._raw_cdf(value) - bottom) / (top - bottom), 0.0), 1.0)

    def _folded_density(self, value: np.ndarray) -> np.ndarray:
        bottom, top = self._raw_ends
        total = sum(np.exp(-0.5 * ((v - self.mean) / self.sd) ** 2) for v in [value, *self._mirrors(value)])
        return total / (self.sd * np.sqrt(2.0 * np.pi) * (top - bottom))

    def spread(self, centre: np.ndarray) -> np.ndarray:
        """(n,) root mean square distance of the output from ``centre`` (n,)."""
        lo, hi = self.transform.image
        edges = np.array([edge for edge in (lo, hi) if np.isfinite(edge)])
        value, log_weights = normal_rule(self.mean, self.sd, np.tile(edges, (len(self.mean), 1)), NODES)
        if np.isfinite(lo):
            value = lo + np.abs(value - lo)
        if np.isfinite(hi):
            value = hi - np.abs(hi - value)
        total = np.zeros(len(self.mean))
        for piece in self.pieces:
            squares = (self.transform.inverse(value, piece.number[:, None]) - centre[:, None]) ** 2
            total = total + piece.share * np.sum(np.exp(log_weights) * squares, axis=1)
        return np.sqrt(total)


def _inner_points(lo: np.ndarray, hi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two points inside each interval, in ascending order."""
    left = np.where(np.isfinite(lo), lo, np.where(np.isfinite(hi), hi - 3.0, -1.0))
    right = np.where(np.isfinite(hi), hi, left + 3.0)
    return left + (right - left) / 3.0, left + (right - left) / 1.5


@dataclass(frozen=True, eq=False)
class SkewedMarginals:
    """Marginals of all T outputs at n points, in unit-free outputs: (f - shift) / scale."""

    outputs: tuple[OutputMarginal, ...]
    shift: np.ndarray  # (T,)
    scale: np.ndarray  # (T,)

    def cdf(self, values: np.ndarray) -> np.ndarray:
        """Probabilities (..., n, T) of outputs below ``values``."""
        return self._each(lambda marginal, f: marginal.cdf(f), self.shift + self.scale * values)

    def density(self, values: np.ndarray) -> np.ndarray:
        """Densities (..., n, T) at ``values``."""
        return self.scale * self._each(lambda marginal, f: marginal.density(f), self.shift + self.scale * values)

    def spread(self, centre: np.ndarray) -> np.ndarray:
        """(n, T) root mean square distances from ``centre`` (n, T), both in the user's units."""
        return self._each(lambda marginal, f: marginal.spread(f), centre)

    def at(self, rows: np.ndarray) -> SkewedMarginals:
        """Some of the points."""
        outputs = (OutputMarginal(m.transform, *(getattr(m, name)[rows] for name in MOMENTS)) for m in self.outputs)
        return SkewedMarginals(tuple(outputs), self.shift, self.scale)

    def followed_by(self, others: Sequence[SkewedMarginals]) -> SkewedMarginals:
        """The points of this one and then those of the others, as points of one."""
        parts = [self, *others]
        outputs = tuple(
            OutputMarginal(
                marginal.transform, *(np.concatenate([getattr(part.outputs[t], name) for part in parts]) for name in MOMENTS)
            )
            for t, marginal in enumerate(self.outputs)
        )
        return SkewedMarginals(outputs, self.shift, self.scale)

    @cached_property
    def _alike(self) -> tuple[tuple[list[int], OutputMarginal], ...]:
        """Outputs with the same transform, and their marginals in turn at each point as those of one output."""
        groups: dict[Transform, list[int]] = {}
        for t, marginal in enumerate(self.outputs):
            groups.setdefault(marginal.transform, []).append(t)
        return tuple((members, _joined([self.outputs[t] for t in members])) for members in groups.values())

    def _each(self, function: Callable[[OutputMarginal, np.ndarray], np.ndarray], f: np.ndarray) -> np.ndarray:
        """``function`` of each output's marginal and values (..., n, T); of those alike in one call, which costs least."""
        result = np.empty(f.shape)
        for members, marginal in self._alike:
            own = f[..., members]  # (..., n, k)
            result[..., members] = function(marginal, own.reshape(*own.shape[:-2], -1)).reshape(own.shape)
        return result


def _joined(marginals: list[OutputMarginal]) -> OutputMarginal:
    if len(marginals) == 1:
        return marginals[0]
    arrays = (np.stack([getattr(m, name) for m in marginals], axis=1).ravel() for name in MOMENTS)
    return OutputMarginal(marginals[0].transform, *arrays)
