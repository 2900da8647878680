"""Predictions within bounds: means and draws moved into them within the law, point by point."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtr, ndtri

from sumgp.data import Data, Scaling
from sumgp.errors import ConstraintError, warn
from sumgp.laws import BoundedLaw, Inequalities, Law, Limits, SumLaw, check_bounds, split_law
from sumgp.numerics import Nearest
from sumgp.prediction.marginals import GaussianMixture
from sumgp.strategies import Fitted

NEAR = float(ndtri(1.0 - 1e-4))  # standard deviations: a component this far from a bound is outside with less than 1e-4
NARROWEST = 1e-4  # noise of an output, in that of the noisiest: what was measured well may still be moved
ROUND_OFF = 1e-12  # of a measured sum, in its terms
SMALLEST = 1e-6  # the same, in the output's own scale
# Of a difference between noises, on the log: with all of it the mean of a share near zero may lose by its neighbour's bound
# (errors up to 1.008 times), with none a trace pays for the bulk.
KEPT = 0.5


@dataclass(frozen=True, eq=False)
class Pooling:
    """Outputs of one linear law in a common unit: ``group``, log ``units`` and ``count`` of measured values, (T,) each."""

    group: np.ndarray
    units: np.ndarray
    count: np.ndarray

    @classmethod
    def of(cls, law: Law | None, data: Data) -> Pooling:
        """Units in which the coefficients of each row are as equal as can be, by least squares on the log."""
        T = len(data.output_names)
        group, units = np.arange(T), np.zeros(T)
        if isinstance(law, SumLaw) and law.is_linear:
            with np.errstate(all="ignore"):
                sizes = np.abs(law.jacobian(np.zeros((len(data.x), law.n_columns)), data.x))[:, :, :T]
            sizes = np.where(np.isfinite(sizes), sizes, 0.0).mean(axis=0)[law.noise == 0]
            row, output = np.nonzero(sizes)
            entry, R = np.arange(len(row)), len(sizes)
            known = np.zeros((len(row), R + T))
            known[entry, row], known[entry, R + output] = 1.0, -1.0
            units = np.linalg.lstsq(known, np.log(sizes[row, output]), rcond=None)[0][R:]
            group = connected_components((sizes > 0).T @ (sizes > 0), directed=False)[1]
        return cls(group, units, data.measured.sum(axis=0))

    def pooled(self, sds: np.ndarray) -> np.ndarray:
        """Noises (T,) brought nearer to each other within each group: wholly where they differ as estimates would anyway.

        The log of a standard deviation found from N values, half of which the curve takes, has variance 1 / N.
        """
        result = np.log(sds) - self.units
        for group in np.unique(self.group):
            own = self.group == group
            values = result[own]
            chance = np.mean(1.0 / np.maximum(self.count[own], 1))
            real = max(values.var(ddof=1) - chance, 0.0) if own.sum() > 1 else 0.0
            result[own] = values.mean() + KEPT * real / (real + chance) * (values - values.mean())
        return np.exp(result + self.units)


@dataclass(frozen=True)
class Bounding:
    """Bounds of a fitted model, and the law that its predictions obey (None: none)."""

    bounds: Inequalities
    law: Law | None
    pooling: Pooling
    measured: bool  # every measured value obeys the bounds, so that new measurements do too

    @classmethod
    def of(cls, bounds: Inequalities | None, law: Law | None, data: Data) -> Bounding | None:
        """Bounds checked for being possible at the data's inputs, together with a linear law; None without bounds.

        Of a law with derivatives only the rows without any are kept where a bound moves a point: one point has no slope.
        """
        if bounds is None:
            return None
        if law is not None and law.derivatives:
            split = split_law(law)
            law = None if split is None or split.rest is None or split.rest.derivatives else split.rest
        check_bounds(bounds, law, data.x)
        return cls(bounds, law, Pooling.of(law, data), not _outside(bounds, data).any())

    def report(self, data: Data) -> dict[str, Any]:
        """What the report of a fit says of bounds."""
        outside = _outside(self.bounds, data).sum(axis=0)
        found: dict[str, Any] = {"bounds": "; ".join(dict.fromkeys(self.bounds.labels))}
        if outside.any():
            counts = dict(zip(data.output_names, outside.tolist(), strict=True))
            found["measured_outside_bounds"] = {name: count for name, count in counts.items() if count}
        return found

    def near(self, scaling: Scaling, noise: np.ndarray, mixture: GaussianMixture, x: np.ndarray) -> np.ndarray:
        """(n,) truth of whether a component of the unit-free mixture may leave the bounds, or has its mean outside.

        ``noise`` (T,): variances that a measurement has besides, zero for true values.
        """
        reach = NEAR * np.sqrt(mixture.sds**2 + noise) * scaling.y_scale
        return self.bounds.limits(x).may_be_left(scaling.restore(mixture.means), reach)

    def at(self, fitted: Fitted, scaling: Scaling, x: np.ndarray) -> BoundedPoints:
        """The same at points x (n, ...) in the user's units."""
        T = len(scaling.y_scale)
        noise = np.sqrt(fitted.weights @ np.stack([np.diagonal(c.noise_covariance) for c in fitted.components]))
        noise = np.maximum(noise, np.maximum(NARROWEST * noise.max(), SMALLEST))
        shift, scale, law = scaling.y_shift, scaling.y_scale, self.law
        if fitted.law is not None and law is not None:
            # The law continued beyond its domain, and with the scales of unknown constants, which stay where they are.
            U = len(law.unknowns)
            shift, scale, law = fitted.law.shift[: T + U], fitted.law.scale[: T + U], fitted.law.law
        sds = np.concatenate([self.pooling.pooled(noise * scaling.y_scale), np.zeros(len(scale) - T)])
        return BoundedPoints(BoundedLaw(self.bounds, law), self.bounds.limits(x), x, sds, shift, scale)


@dataclass(frozen=True, eq=False)
class BoundedPoints:
    """n points: their bounds, and how columns (outputs, unknown constants) are moved there.

    Constants stay where they are; they have their ``shift`` where columns are given without them.
    """

    region: BoundedLaw
    limits: Limits
    x: np.ndarray
    sds: np.ndarray  # (T + U,) or (n, T + U), in the user's units: how far columns move beside each other; 0 = not at all
    shift: np.ndarray  # (T + U,)
    scale: np.ndarray

    @property
    def n_outputs(self) -> int:
        """T."""
        return self.limits.lower.shape[1]

    def mean(self, centre: np.ndarray) -> np.ndarray:
        """(n, T) outputs in the user's units, nearest to the unit-free ``centre`` (n, C) that lies on the law."""
        found = self.moved(centre)
        if not found.met.all():
            self._complain(self.x[~found.met])
        return found.points

    def moved(self, columns: np.ndarray) -> Nearest:
        """Outputs (n, T) in the user's units that are nearest to unit-free ``columns`` (n, C), and which were found."""
        f, T = self._restored(columns), self.n_outputs
        out, met = np.flatnonzero(np.any(self.limits.excess(f[:, :T]) > 0, axis=1)), np.ones(len(f), dtype=bool)
        f[out], met[out] = self.region.moved(f[out], self.x[out], self.limits.at(out), self._sds(out))
        return Nearest(f[:, :T], met)

    def draws(self, draws: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """(M, n, T) outputs in the user's units of unit-free draws (M, n, C), those outside the bounds moved into them.

        ``mean`` (n, T) is within the bounds: a draw from which the law cannot be reached within them becomes the mean.
        """
        M, n, C = draws.shape
        T = self.n_outputs
        f = self._restored(draws.reshape(M * n, C))
        outputs = f[:, :T].reshape(M, n, T)
        outside = np.any((outputs < self.limits.lower) | (outputs > self.limits.upper), axis=2)
        outside |= np.any(np.einsum("nqt,knt->knq", self.limits.G, outputs) > self.limits.h, axis=2)
        out = np.flatnonzero(outside)
        at = out % n
        refuge = np.concatenate([mean[at], f[out, T:]], axis=1)
        found = self.region.moved(f[out], self.x[at], self.limits.at(at), self._sds(at), refuge)
        f[out] = np.where(found.met[:, None], found.points, refuge)
        return f[:, :T].reshape(M, n, T)

    def at(self, rows: np.ndarray | slice) -> BoundedPoints:
        """Some of the points."""
        return replace(self, limits=self.limits.at(rows), x=self.x[rows], sds=self._sds(rows))

    def _sds(self, rows: np.ndarray | slice) -> np.ndarray:
        return self.sds if self.sds.ndim == 1 else self.sds[rows]

    def clipped(self, values: np.ndarray) -> np.ndarray:
        """Outputs (..., n, T) in the user's units within the bounds of each output alone."""
        return np.clip(values, self.limits.lower, np.maximum(self.limits.lower, self.limits.upper))

    def distances(self, values: np.ndarray) -> np.ndarray:
        """(n, T) by how much values in the user's units lie outside each output's own bounds; 0 inside and for NaN."""
        return np.nan_to_num(np.maximum(np.maximum(self.limits.lower - values, values - self.limits.upper), 0.0))

    def shown(self, t: int, values: np.ndarray) -> list[np.ndarray]:
        """Lower and upper bound (n,) of output t, those that lie within or near the range of ``values`` to be drawn."""
        low, high = np.nanmin(values), np.nanmax(values)
        ends = (self.limits.lower[:, t], self.limits.upper[:, t])
        return [end for end in ends if np.all((end >= 1.5 * low - 0.5 * high) & (end <= 1.5 * high - 0.5 * low))]

    def closed(self, values: np.ndarray) -> np.ndarray:
        """Outputs (..., n, T) in the user's units, moved into the bounds alone; what is inside stays."""
        values = self.clipped(values)
        if not self.limits.G.shape[1]:
            return values
        n, T = values.shape[-2:]
        flat = values.reshape(-1, T)
        at = np.tile(np.arange(n), len(flat) // n)
        out = np.flatnonzero(np.any(np.einsum("nqt,nt->nq", self.limits.G[at], flat) > self.limits.h[at], axis=1))
        alone = BoundedLaw(self.region.bounds)
        rows = at[out]
        flat[out] = alone.moved(flat[out], self.x[rows], self.limits.at(rows), self.sds[:T]).points
        return flat.reshape(values.shape)

    def _restored(self, columns: np.ndarray) -> np.ndarray:
        count = min(columns.shape[1], len(self.scale))
        f = np.tile(self.shift, (len(columns), 1))
        f[:, :count] += self.scale[:count] * columns[:, :count]
        return f

    def _complain(self, x: np.ndarray) -> None:
        labels = ", ".join(repr(label) for label in dict.fromkeys(self.region.bounds.labels))
        law = "" if self.region.law is None else f" meet the law {'; '.join(self.region.law.labels)!r} and"
        words = f"{law} lie within the bounds {labels} at x = {x[0].tolist()} ({len(x)} points)"
        if self.region.is_linear:
            raise ConstraintError(f"constraint: no outputs{words}; correct a bound or the law there")
        warn(f"found no outputs that{words}; check the bounds against the law")


def _outside(bounds: Inequalities, data: Data) -> np.ndarray:
    """(N, T) truth of whether a measured value lies outside its bounds; of a sum, all its values."""
    limits = bounds.limits(data.x)
    with np.errstate(invalid="ignore"):
        own = (data.y < limits.lower) | (data.y > limits.upper)
        sums = np.einsum("nqt,nt->nq", limits.G, np.where(data.measured, data.y, 0.0))
    involved = limits.G != 0
    complete = np.all(data.measured[:, None, :] | ~involved, axis=2)
    size = np.einsum("nqt,nt->nq", np.abs(limits.G), np.abs(np.where(data.measured, data.y, 0.0)))
    over = complete & (sums > limits.h + ROUND_OFF * size)
    return own | np.any(over[:, :, None] & involved, axis=1)


def clipped_std(mixture: GaussianMixture, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """(n, T) standard deviations of a mixture whose values outside [lower, upper] (n, T) are moved to the nearest end."""
    m, s = mixture.means, mixture.sds
    a, b = (lower - m) / s, (upper - m) / s
    below, above = ndtr(a), ndtr(-b)
    density_a, density_b = np.exp(-0.5 * a**2) / np.sqrt(2 * np.pi), np.exp(-0.5 * b**2) / np.sqrt(2 * np.pi)
    with np.errstate(invalid="ignore"):
        edge_a, edge_b = np.where(np.isfinite(a), a, 0.0), np.where(np.isfinite(b), b, 0.0)
    first = edge_a * below + edge_b * above + density_a - density_b
    inside = 1.0 - below - above
    second = edge_a**2 * below + edge_b**2 * above + inside + edge_a * density_a - edge_b * density_b
    centre = np.einsum("k,knt->nt", mixture.weights, m + s * first)
    square = np.einsum("k,knt->nt", mixture.weights, (m - centre) ** 2 + 2 * (m - centre) * s * first + s**2 * second)
    return np.sqrt(np.maximum(square, 0.0))
