"""What a law says of measurements: rows whose imbalance is known to be smaller than independent noise would make it.

Independent noise gives the imbalance c = g(y) of a complete row the variance C = J R J^T. Complete rows of the data show
c = bias +- sd instead. A row of which some cells are missing then has the density of the fit times
N(c; bias, sd^2) / N(c; 0, C): what the fit says of c is taken back, and what was seen is put in its place. With sd = 0
the missing cells are those that meet the law.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

from sumgp.data import Scaling
from sumgp.laws import Imbalance, Law

STEPS = 50  # of Newton's method on a curved law
NEAR = 1e-10  # last step, in standard deviations of the outputs
LONGEST_STEP = 1.0  # of one step, in the same unit: further away a tangent says little
TRACE = 1e-12  # of a row's slope: imbalance below this is round-off
FORESEEN = 1e-4  # probability of an imbalance so much smaller than the noise explains, for it to be believed
KNOWN = 1e-10  # variance of an imbalance, in units of the outputs' variances, below which there is nothing to be told
RANK = 1e-12  # share of the largest eigenvalue of a covariance below which there is none
ROUND_OFF = 1e-9  # of an output's standard deviation: rows that were not rounded
DETERMINED = 1e-6  # share of a cell that the law leaves open, below which it counts as determined
# Cosine of the angle by which a law's slope turns from the fit's values to those that meet it, below which its tangent tells
# little: 25 degrees. Products of skewed factors: filled cells 2.5 to 25 standard deviations off, where it was .83 to .86.
BENT = 0.9


@dataclass(frozen=True)
class Balance:
    """The law at some rows of a table: ``seen`` its imbalance in the data, ``constants`` (U,) of the law with variances."""

    law: Law
    scaling: Scaling
    seen: Imbalance
    constants: np.ndarray
    constant_variances: np.ndarray

    @property
    def is_linear(self) -> bool:
        """True if one step meets the law."""
        return bool(getattr(self.law, "is_linear", False))

    def at(self, y: np.ndarray, x: np.ndarray) -> Slopes:
        """Imbalance and slopes at unit-free cells y (n, T), each row divided by the size of its slope."""
        T = y.shape[1]
        constants = np.broadcast_to(self.constants, (len(y), len(self.constants)))
        f = np.column_stack([self.scaling.restore(y), constants])
        with np.errstate(all="ignore"):
            g, J = self.law.residual(f, x), self.law.jacobian(f, x)
            own = J[:, :, :T] * self.scaling.y_scale
            size = np.sqrt(np.sum(own**2, axis=2))
            good = self.law.active(x) & np.isfinite(g) & np.isfinite(size) & (size > 0)
            size = np.where(good, size, 1.0)
            loose = (self.law.noise / size) ** 2 + np.sum(J[:, :, T:] ** 2 * self.constant_variances, axis=2) / size**2
        return Slopes(
            np.where(good, g / size, 0.0),
            np.where(good[:, :, None], own / size[:, :, None], 0.0),
            np.where(good, loose, 0.0),
        )


class Slopes(NamedTuple):
    """``g`` (n, R) imbalance, ``J`` (n, R, T) slopes by unit-free outputs, of length one, or zero where a row says nothing,
    and ``loose`` (n, R) variances with which the law holds."""

    g: np.ndarray
    J: np.ndarray
    loose: np.ndarray


class Balanced(NamedTuple):
    """Unit-free cells (n, T) and covariances (n, T, T), which cells the law determines from the measured ones of their
    row (n, T), rows (n,) in which no values were found that meet the law, and rows (n,) in which its slope turns much on
    the way to them, so that intervals are too narrow."""

    y: np.ndarray
    covariance: np.ndarray
    determined: np.ndarray
    unmet: np.ndarray
    bent: np.ndarray


def balanced(balance: Balance, y: np.ndarray, covariance: np.ndarray, noise: np.ndarray, x: np.ndarray) -> Balanced:
    """Rows with cells y (n, T), covariances (n, T, T; zero for measured cells) and noise variances (n, T), at x.

    A curved law is followed by Newton's method from the posterior mean, so that of several roots the nearest is taken.
    """
    start = balance.at(y, x)
    believed = _believed(balance, start, noise)
    missing, nowhere = np.einsum("ntt->nt", covariance) > 0, np.zeros(len(y), dtype=bool)
    if not believed.any():
        return Balanced(y, covariance, determined(balance, start, missing), nowhere, nowhere)
    linear = balance.is_linear
    now, there = y, start
    for _ in range(1 if linear else STEPS):
        moved, left = _update(balance, there, _Given(y, covariance, noise, believed), now)
        step = moved - now
        length = np.max(np.abs(step), axis=1)
        if linear or np.all(length < NEAR):
            now = moved
            break
        now = now + step * np.minimum(1.0, LONGEST_STEP / np.maximum(length, 1e-300))[:, None]
        there = balance.at(now, x)
    unmet = nowhere if linear else ~(length < np.sqrt(NEAR))
    now = np.where(unmet[:, None], y, now)
    left = np.where(unmet[:, None, None], covariance, left)
    bent = nowhere if linear else _cosine(covariance, start.J * believed[:, None], there.J * believed[:, None]) < BENT
    return Balanced(now, left, determined(balance, there, missing) & ~unmet[:, None], unmet, bent)


def _cosine(covariance: np.ndarray, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """(n,) of the angle between slopes (n, R, T) before and after, in the metric of what was open; the law's smallest."""
    of_both, of_one, of_other = (
        np.einsum("nrt,nts,nrs->nr", J, covariance, K) for J, K in ((before, after), (before, before), (after, after))
    )
    size = np.sqrt(np.maximum(of_one, 0.0) * np.maximum(of_other, 0.0))
    return np.min(np.divide(of_both, size, out=np.ones_like(size), where=size > 0), axis=1)


def _believed(balance: Balance, slopes: Slopes, noise: np.ndarray) -> np.ndarray:
    """(R,) rows of the law whose imbalance in the data counts: met up to rounding, or far better than noise explains."""
    seen = balance.seen
    with np.errstate(invalid="ignore"):
        C = np.median(np.einsum("nrt,nt->nr", slopes.J**2, noise) + slopes.loose, axis=0)
        size = seen.count * (seen.sd**2 + seen.bias**2)
        smaller = size < C * chi2.ppf(FORESEEN, np.maximum(seen.count, 1))
    return np.where(np.isfinite(seen.sd), seen.closed | smaller, False)


class _Given(NamedTuple):
    """Cells (n, T), covariances (n, T, T) and noise variances (n, T) before the law, and which rows (R,) of it count."""

    y: np.ndarray
    Q: np.ndarray
    noise: np.ndarray
    believed: np.ndarray


def _update(balance: Balance, slopes: Slopes, given: _Given, around: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cells and covariances with the imbalance, linearised ``around`` some cells, as it was seen in the data."""
    y, Q, noise, believed = given
    seen, J = balance.seen, slopes.J * believed[:, None]
    R = J.shape[1]
    c = slopes.g * believed + np.einsum("nrt,nt->nr", J, y - around)
    QJ = Q @ J.swapaxes(1, 2)
    Qc = J @ QJ
    # Rows that are fully measured, or not believed, have nothing to tell: a unit variance keeps them apart.
    told = np.einsum("nrr->nr", Qc) > KNOWN * np.einsum("ntt->nt", Q).max(axis=1)[:, None]
    Qc = np.where(told[:, :, None] & told[:, None, :], Qc, 0.0)
    C = np.einsum("nrt,nt,nst->nrs", J, noise, J)
    C[:, range(R), range(R)] += slopes.loose
    C = np.where(told[:, :, None] & told[:, None, :], C, 0.0)
    sd2 = np.where(believed, np.nan_to_num(seen.sd) ** 2 * (1.0 + 1.0 / np.maximum(seen.count, 1)), 1.0) + TRACE**2
    bias = np.where(believed, np.nan_to_num(seen.bias), 0.0)
    inverse = _inverse(Qc)
    values, vectors = np.linalg.eigh(inverse - _inverse(C))
    precision = (vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.swapaxes(1, 2)
    precision[:, range(R), range(R)] += 1.0 / sd2
    # Some rows of the law may be met to the last digit and others roughly: each in a unit of its own.
    unit = 1.0 / np.sqrt(np.einsum("nrr->nr", precision))
    units = unit[:, :, None] * unit[:, None, :]
    after = units * np.linalg.inv(units * precision)
    # More rows of the law than missing cells: what they disagree in is open to no cell.
    values, vectors = np.linalg.eigh(Qc)
    outside = values <= RANK * values[:, -1:]
    shut = np.where(outside[:, None, :], vectors, 0.0)
    of_shut = shut.swapaxes(1, 2) @ after @ shut
    of_shut[:, range(R), range(R)] += ~outside
    after = after - after @ shut @ np.linalg.inv(of_shut) @ shut.swapaxes(1, 2) @ after
    pull = np.einsum("nrs,ns->nr", inverse - precision, c) + bias / sd2
    gain = QJ @ inverse
    moved = y + np.einsum("ntr,nr->nt", gain @ after, pull)
    return moved, Q + gain @ (after - Qc) @ gain.swapaxes(1, 2)


def _inverse(A: np.ndarray) -> np.ndarray:
    """Pseudo-inverses (n, R, R) of covariances."""
    return np.linalg.pinv(A, rcond=RANK, hermitian=True)


def determined(balance: Balance, slopes: Slopes, missing: np.ndarray) -> np.ndarray:
    """(n, T) cells that exact rows of the law fix once the measured cells of their row are given."""
    exact = balance.law.noise == 0
    J = slopes.J * exact[:, None] * missing[:, None, :]
    fixed = np.einsum("ntr,nrt->nt", np.linalg.pinv(J, rcond=1e-9), J)
    return missing & (fixed > 1.0 - DETERMINED)


def rounding(balance: Balance, slopes: Slopes, missing: np.ndarray) -> np.ndarray:
    """(n, T) standard deviations of cells that closed rows of the law fix, from the imbalance of rows that were rounded."""
    sd = np.where(balance.seen.closed, np.nan_to_num(balance.seen.sd), 0.0)
    to_cells = np.linalg.pinv(slopes.J * missing[:, None, :], rcond=1e-9)
    found = np.sqrt(np.einsum("ntr,r->nt", to_cells**2, sd**2))
    return np.where(found < ROUND_OFF, 0.0, found)
