"""Cells between the rows before and after: a plain predictor beside outputs with kernels of their own.

Along one input each output is interpolated linearly over the run of rows in which a cell is missing. So are the measured
cells of these rows: what they miss by over the whole run tells more of the missing ones than what they miss between
neighbours. Covariances come from runs as long elsewhere. How much such a fill counts is learnt from complete rows in which
the same cells are hidden: with errors e of outputs with kernels of their own and i of interpolation, the share w for which
those of both together, e + w (i - e), are smallest. Interpolation then has that share of the weight of such outputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from sumgp.prediction.row_balance import Balance
from sumgp.prediction.row_cells import Beside, Rows, conditioned
from sumgp.prediction.row_correlation import row_correlation
from sumgp.strategies import Cells, Fitted, LocalPosterior, OwnComponent

SHORTEST = 4  # rows of a run: in shorter ones, cells of six sets are filled no better with interpolation than without
USUAL_SHARE = 0.5  # sd of the share before the errors are seen: where both fills are alike they tell nothing of it
FOLDS = 5  # of the runs: those that give covariances are not those that are filled by them
NOISE = 0.5  # share of what interpolation misses that is noise of the cell itself: what a soft law knows better
FEWEST_RUNS = 5  # complete ones, with fewer there is no interpolation
LEAST_VARIANCE = 1e-9  # unit-free, of what interpolation misses: outputs that never change


class _Runs(NamedTuple):
    """All runs of one length in the data, left out in turn: rows (B, L), own outputs' means and variances (B, L, T) without
    the run, residuals (B, L, T) of interpolation, NaN = not measured, their covariance (T, T), and its size (L,) at each
    place of a run, one on average."""

    rows: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    residual: np.ndarray
    covariance: np.ndarray
    size: np.ndarray


def interpolated(fitted: Fitted, rows: Rows, data: Rows, balance: Balance | None, freedom: float) -> Beside | None:
    """For the rows that are among ``data``, whose cells were all used; None where interpolation is no candidate.

    It is one for outputs with kernels of their own along one input, without a law or with a linear one.
    """
    own = next((c for c in fitted.components if isinstance(c, OwnComponent)), None)
    order = np.argsort(data.inputs[:, 0], kind="stable")
    line = data.inputs[order, 0]
    if own is None or data.inputs.shape[1] != 1 or np.any(np.diff(line) <= 0):
        return None
    if balance is not None and not balance.is_linear:
        return None
    learner = _Learner(own, Rows(*(a[order] for a in data)), balance, freedom)
    found = Beside(np.zeros(rows.y.shape), np.zeros((*rows.y.shape, rows.y.shape[1])), np.zeros(len(rows.y)))
    place = np.minimum(np.searchsorted(line, rows.inputs[:, 0]), len(line) - 1)
    for mine, run, missing in _asked(rows, learner.data, place):
        share = learner.share(len(run), missing)
        if share > 0.0:
            found.share[mine] = share
            found.y[mine], found.y_covariance[mine] = learner.filled(
                run, Rows(*(a[mine] for a in rows)), place[mine] - run[0]
            )
    return found if np.any(found.share > 0) else None


def _asked(rows: Rows, data: Rows, place: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Rows with gaps that belong together, the run of data rows that they lie in and what is missing in them (T,).

    The run of a row is the longest in which an output that it lacks was not measured.
    """
    n = len(data.y)
    measured = ~np.isnan(data.y)
    steps = np.arange(n)[:, None]
    before = np.maximum.accumulate(np.where(measured, steps, -1), axis=0)
    after = np.minimum.accumulate(np.where(measured, steps, n)[::-1], axis=0)[::-1]
    missing = np.isnan(rows.y)
    fit = rows.used.any(axis=1) & missing.any(axis=1) & (data.inputs[place, 0] == rows.inputs[:, 0])
    fit &= np.all(~missing | ~measured[place], axis=1)
    groups: dict[tuple[int, int, bytes], list[int]] = {}
    for i in np.flatnonzero(fit).tolist():
        lost = np.flatnonzero(missing[i])
        t = lost[np.argmax((after - before)[place[i], lost])]
        first, last = int(before[place[i], t]) + 1, int(after[place[i], t])
        if first > 0 and last < n and last - first >= SHORTEST:
            groups.setdefault((first, last, missing[i].tobytes()), []).append(i)
    for (first, last, _), members in groups.items():
        yield np.array(members), np.arange(first, last), missing[members[0]]


class _Learner:
    """Fills rows of the ``data``, which are in the order of their input, by interpolation, and knows its share."""

    def __init__(self, own: OwnComponent, data: Rows, balance: Balance | None, freedom: float):
        self.own, self.data, self.balance, self.freedom = own, data, balance, freedom
        self.alone = own.alone(data.inputs, Cells(data.y, ~np.isnan(data.y)))
        self._runs: dict[int, _Runs] = {}
        self._shares: dict[tuple[int, bytes], float] = {}

    def runs(self, length: int) -> _Runs:
        """All runs of a length that have rows before and after them; those of long ones overlap by half."""
        if length not in self._runs:
            starts = np.arange(1, max(len(self.data.y) - length, 1), max(1, length // 2))
            rows = starts[:, None] + np.arange(length)
            residual = self.data.y[rows] - np.stack([_line(self.data, run) for run in rows])
            self._runs[length] = _Runs(rows, *_without(self.own, self.data, rows, self.alone), residual, *_spread(residual))
        return self._runs[length]

    def share(self, length: int, missing: np.ndarray) -> float:
        """Of interpolation in runs of a length in which some outputs (T,) are missing."""
        key = (length, missing.tobytes())
        if key not in self._shares:
            self._shares[key] = self._learnt(length, missing) if len(self.data.y) > length + 1 else 0.0
        return self._shares[key]

    def _learnt(self, length: int, missing: np.ndarray) -> float:
        """From complete rows of all runs: the most probable share given errors of unit size, and that it is small."""
        runs = self.runs(length)
        run, step = np.nonzero(~np.isnan(self.data.y[runs.rows]).any(axis=2))
        overlap = length / max(1, length // 2)
        if len(run) < FEWEST_RUNS * length * overlap:
            return 0.0
        fold = run * FOLDS // len(runs.rows)
        e, d = np.zeros((len(run), missing.sum())), np.zeros((len(run), missing.sum()))
        for k in range(FOLDS):
            some = fold == k
            e[some], d[some] = self._errors(runs, (run[some], step[some]), missing, np.unique(run[~some]))
        count = length * overlap  # values of a run stand for one
        share = -np.sum(e * d) / (np.sum(d * d) + count * np.mean(e * e) / USUAL_SHARE**2)
        return float(np.clip(share, 0.0, 1.0))

    def _errors(
        self, runs: _Runs, at: tuple[np.ndarray, np.ndarray], missing: np.ndarray, others: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Errors (n, M) of own outputs and how far interpolation is from these, in their standard deviations, for cells
        ``missing`` (T,) of rows ``at`` a run and a step, with the covariances that the ``others`` of the runs give."""
        rows = runs.rows[at]
        y, hidden = self.data.y[rows], Rows(*(a[rows] for a in self.data))
        hidden = hidden._replace(y=np.where(missing, np.nan, y))
        elsewhere = np.unique(runs.rows[others])
        z = (self.data.y - self.alone[0]) / np.sqrt(self.alone[1] + self.own.noise)
        R, noise = row_correlation(z[elsewhere]), np.diag(self.own.noise)
        mean = np.where(missing, runs.mean[at], self.alone[0][rows])
        sd = np.sqrt(np.where(missing, runs.variance[at], self.alone[1][rows]) + self.own.noise)
        free = LocalPosterior(mean, sd[:, :, None] * R * sd[:, None, :] - noise)
        own = conditioned(free, noise, hidden, ~np.isnan(hidden.y), self.freedom, self.balance)
        covariance, size = _spread(runs.residual[others])
        other, _ = self._conditioned(y - runs.residual[at], covariance, size[at[1]], hidden)
        scale = np.sqrt(np.maximum(np.einsum("ntt->nt", own.y_covariance), LEAST_VARIANCE))
        return ((own.y - y) / scale)[:, missing], ((other - own.y) / scale)[:, missing]

    def filled(self, run: np.ndarray, rows: Rows, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cells (n, T) and covariances of rows at some steps of a run."""
        runs = self.runs(len(run))
        return self._conditioned(_line(self.data, run)[steps], runs.covariance, runs.size[steps], rows)

    def _conditioned(
        self, lines: np.ndarray, covariance: np.ndarray, size: np.ndarray, rows: Rows
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows with interpolated values (n, T) given their cells and the law."""
        noise = NOISE * np.diag(np.diagonal(covariance))
        free = LocalPosterior(lines, size[:, None, None] * covariance - noise)
        part = conditioned(free, noise, rows, ~np.isnan(rows.y), self.freedom, self.balance)
        return part.y, part.y_covariance


def _line(data: Rows, run: np.ndarray) -> np.ndarray:
    """(L, T) each output interpolated linearly over a run from the nearest cells measured outside."""
    keep = np.ones(len(data.y), dtype=bool)
    keep[run] = False
    x, lines = data.inputs[:, 0], np.empty((len(run), data.y.shape[1]))
    for t, column in enumerate(data.y.T):
        seen = keep & ~np.isnan(column)
        lines[:, t] = np.interp(x[run], x[seen], column[seen]) if seen.any() else 0.0
    return lines


def _without(
    own: OwnComponent, data: Rows, rows: np.ndarray, alone: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances (B, L, T) of each own output given all rows but the run; NaN where nothing was measured."""
    length = rows.shape[1]
    if length == 1:
        return alone[0][rows], alone[1][rows]
    mean, variance = np.full((*rows.shape, own.n_outputs), np.nan), np.full((*rows.shape, own.n_outputs), np.nan)
    turns = -(-length // (length // 2))
    for t, output in enumerate(own.outputs):
        seen = ~np.isnan(data.y[:, t])
        place = np.full(len(seen), -1)
        place[seen] = np.argsort(output.x[:, 0], kind="stable")
        for turn in range(turns):  # runs of one turn do not overlap
            some = rows[turn::turns]
            residual, whole = output.left_out([block for run in some if len(block := place[run][place[run] >= 0])])
            here = place[some]
            mean[turn::turns, :, t] = np.where(here < 0, np.nan, data.y[some, t] - residual[here])
            variance[turn::turns, :, t] = own.widening**2 * np.maximum(whole[here] - output.noise, 0.0)
    return mean, variance


def _spread(residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Covariance (T, T) of residuals (B, L, T), and its size (L,) at each place of a run: both ends of it are alike."""
    sd = np.sqrt(np.maximum(np.nanmean(residual**2, axis=(0, 1)), LEAST_VARIANCE))
    z = residual / sd
    size = np.nanmean(z**2, axis=(0, 2))
    size = 0.5 * (size + size[::-1])
    z = (z / np.sqrt(size)[:, None]).reshape(-1, residual.shape[2])
    return sd[:, None] * row_correlation(z) * sd, size / size.mean()
