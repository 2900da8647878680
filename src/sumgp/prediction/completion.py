"""Tables with gaps: rows given the cells that were measured in them, and the table with every gap filled."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import norm

from sumgp.data import Calendar, Data
from sumgp.errors import DataError, counted, warn
from sumgp.laws import between_outputs, measured_imbalance
from sumgp.notebook import listed
from sumgp.numerics import limited_threads
from sumgp.prediction.bounding import BoundedPoints
from sumgp.prediction.marginals import principal_root
from sumgp.prediction.posterior import BLOCK, Posterior
from sumgp.prediction.row_balance import Balance, Balanced, balanced, determined, rounding
from sumgp.prediction.row_bounds import BoundedRows, bounded_rows, bounds_of_rows
from sumgp.prediction.row_cells import RowGaussians, Rows, already_used, given_cells
from sumgp.prediction.row_correlation import with_row_correlation
from sumgp.prediction.tabulated import input_values, output_columns

if TYPE_CHECKING:
    import pandas as pd

SHOWN_ROWS = 5  # of the table in a notebook
NAMED_ROWS = 5  # in a warning
DIGITS = 14  # of a row's largest cell that hold no round-off
MOST_DECIMALS = 22  # whose power of ten is a double without error
UNFORESEEN = 10.0  # standard deviations of a new measurement, beyond which a cell is named in a warning
TRACE = 1e-9  # of an output's standard deviation: no more than round-off


@dataclass(frozen=True, repr=False)
class RowPosterior:
    """Outputs of the rows of a table, each given the data, the law and the cells measured in the row itself.

    ``mean``, ``std`` (n, T) and ``covariance`` (n, T, T) of each row, in the user's units. Rows are taken one by one: a
    cell of one row says nothing about another beyond what the fit knows. ``observed()`` is the same for what a
    measurement would give: cells that were measured are then known, and the rest meets the law as closely as the
    measured rows of the data do. Means obey bounds; intervals and draws do too, of measurements if those of the data do.
    """

    mean: np.ndarray
    covariance: np.ndarray
    x: np.ndarray
    data: Data
    measurement: RowPosterior | None = None  # None: this is the measurement
    determined: np.ndarray | None = None  # (n, T) cells that the law fixes from the measured ones
    calendar: Calendar = field(default_factory=dict)
    within: BoundedRows | None = None

    def __repr__(self) -> str:
        of = "measurements of " if self.measurement is None else ""
        return f"RowPosterior({len(self.x)} rows of {listed(self.data.input_names)}: {of}{listed(self.data.output_names)})"

    @cached_property
    def std(self) -> np.ndarray:
        """(n, T) standard deviations."""
        return np.sqrt(np.maximum(np.einsum("ntt->nt", self.covariance), 0.0))

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends (n, T) of the central interval that holds the value with probability ``level``."""
        if not 0.0 < level < 1.0:
            raise DataError("level", "a probability between 0 and 1", repr(level), "e.g. 0.95")
        reach = float(norm.ppf(0.5 + 0.5 * level)) * self.std
        lower, upper = self.mean - reach, self.mean + reach
        if self.within is None:
            return lower, upper
        tail, near, marginals = 0.5 * (1.0 - level), self.within.near, self.within.marginals
        lower[near], upper[near] = marginals.quantile(tail), marginals.quantile(1.0 - tail)
        return self.within.bounds.clipped(lower), self.within.bounds.clipped(upper)

    def sample(self, n: int = 1, random_state: int = 0) -> np.ndarray:
        """(n, rows, T) draws, each row on its own."""
        free = self if self.within is None else self.within
        normal = np.random.default_rng(random_state).standard_normal((n, *self.mean.shape))
        roots = principal_root(free.covariance, np.arange(self.mean.shape[1]))
        draws = free.mean + np.einsum("ntq,knq->knt", roots, normal)
        return draws if self.within is None else self.within.bounds.draws(draws, self.mean)

    def observed(self) -> RowPosterior:
        """The same for measurements of the cells."""
        return self if self.measurement is None else self.measurement

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """One row per row of the table: inputs, then mean, sd, lower and upper of each output."""
        lower, upper = self.interval(level)
        return _frame(self, {"": self.mean, "_sd": self.std, "_lower": lower, "_upper": upper})


@dataclass(frozen=True, repr=False)
class Completion:
    """A table with its gaps filled, in the user's units; all arrays are (n, T).

    ``mean``: what was measured, and the expected measurement elsewhere. ``std``, ``lower``, ``upper`` of it (``level``);
    for measured cells zero and the value itself. ``measured``: cells that were given. ``determined``: gaps that the law
    fixes once the measured cells of their row are known.
    """

    mean: np.ndarray
    std: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    measured: np.ndarray
    determined: np.ndarray
    level: float
    rows: RowPosterior  # the rows that this was read off

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the T outputs."""
        return self.rows.data.output_names

    def __repr__(self) -> str:
        return (
            f"Completion({len(self.mean)} rows of {listed(self.rows.data.input_names)}: {listed(self.output_names)}; "
            f"{int((~self.measured).sum())} gaps filled, {int(self.determined.sum())} of them determined by the law)"
        )

    def _repr_html_(self) -> str:
        """The first rows with gaps as a table."""
        gaps = np.flatnonzero((~self.measured).any(axis=1))[:SHOWN_ROWS]
        shown = self.to_frame().iloc[gaps].to_html(float_format="{:.4g}".format)
        return f"{escape(repr(self))}, the first {len(gaps)} rows with gaps:{shown}"

    @property
    def source(self) -> np.ndarray:
        """(n, T) words: "measured", "law" (determined by the law from the row's cells) or "fit"."""
        return np.where(self.measured, "measured", np.where(self.determined, "law", "fit"))

    def to_frame(self) -> pd.DataFrame:
        """One row per row of the table: inputs, then value, sd, lower, upper, determined and source of each output."""
        parts = {"": self.mean, "_sd": self.std, "_lower": self.lower, "_upper": self.upper}
        return _frame(self.rows, parts | {"_determined": self.determined, "_source": self.source})


def _frame(rows: RowPosterior, parts: dict[str, np.ndarray]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(input_values(rows) | output_columns(rows.data.output_names, parts))


def given_rows(posterior: Posterior, y: np.ndarray) -> RowPosterior:
    """The rows at the points of ``posterior`` given their cells y (n, T), NaN = not measured; by blocks of rows."""
    scaling, balance = posterior.scaling, _balance(posterior)
    inputs, outputs = scaling.inputs(posterior.data.x), scaling.outputs(posterior.data.y)
    fitted, freedom = with_row_correlation(posterior.fitted, inputs, outputs, posterior.closed)
    parts: list[RowGaussians] = []
    laws: list[Balanced] = []
    used: list[np.ndarray] = []
    for start in range(0, len(y), BLOCK):
        block = slice(start, start + BLOCK)
        x, cells = posterior.x[block], y[block]
        rows = Rows(scaling.inputs(x), x, scaling.outputs(cells), already_used(posterior.data, x, cells))
        with limited_threads(1):
            part = given_cells(fitted, rows, balance, posterior.closed, freedom)
            parts.append(part)
            used.append(rows.used)
            laws.append(_balanced(balance, part, x, np.isnan(cells)))
    unmet = np.flatnonzero(np.concatenate([law.unmet for law in laws]))
    if len(unmet):
        _warn_of_unmet(unmet)
    _warn_of_bends(np.flatnonzero(np.concatenate([law.bent for law in laws])))
    _warn_of_unforeseen(posterior, np.where(np.concatenate(used), np.nan, y), np.concatenate([p.noise for p in parts]))
    measured = np.concatenate([law.y for law in laws]), np.concatenate([law.covariance for law in laws])
    f = np.concatenate([p.f for p in parts]), np.concatenate([p.f_covariance for p in parts])
    fixed = np.concatenate([law.determined for law in laws])
    units = scaling.y_scale[:, None] * scaling.y_scale
    exact = np.where(np.isnan(y), scaling.restore(measured[0]), y)
    closed = balance is not None and balance.seen.all_closed
    spread = measured[1] * units
    if balance is not None and closed:
        # What a closed law fixes is open by the rounding alone.
        spread = np.where(fixed[:, :, None] | fixed[:, None, :], 0.0, spread)
        rounded = rounding(balance, balance.at(measured[0], posterior.x), np.isnan(y)) * scaling.y_scale
        spread += np.eye(y.shape[1]) * np.where(fixed, rounded, 0.0)[:, None] ** 2
    spread = np.where(np.isnan(y)[:, :, None] & np.isnan(y)[:, None, :], spread, 0.0)
    known = RowPosterior(exact, spread, posterior.x, posterior.data, None, fixed, posterior.calendar)
    true = replace(known, mean=scaling.restore(f[0]), covariance=f[1] * units)
    if posterior.ends is not None and posterior.bounding is not None:
        constants = np.zeros(0) if balance is None else balance.constants
        true = _within(true, bounds_of_rows(posterior.ends, constants, True, np.zeros(y.shape, dtype=bool)), True)
        bounds = bounds_of_rows(posterior.ends, constants, closed, ~np.isnan(y))
        known = _within(known, bounds, posterior.bounding.measured)
    return replace(true, measurement=known)


def _within(rows: RowPosterior, bounds: BoundedPoints, obeyed: bool) -> RowPosterior:
    """Rows whose means are within the bounds, and their intervals and draws where these are ``obeyed`` by such values."""
    found, met = bounds.moved(rows.mean)
    mean = np.where(met[:, None], found, rows.mean)
    if not obeyed:
        return replace(rows, mean=mean)
    mean = np.where(met[:, None], mean, bounds.clipped(mean))
    if not met.all():
        _warn_of_unmet(np.flatnonzero(~met), " within the bounds")
    within, covariance = bounded_rows(bounds, (rows.mean, rows.covariance), mean)
    assert rows.determined is not None
    return replace(rows, mean=mean, covariance=covariance, within=within, determined=rows.determined & met[:, None])


def complete_rows(posterior: Posterior, y: np.ndarray, level: float, smooth_measured: bool) -> Completion:
    """The table with cells y (n, T) at the points of ``posterior``, its gaps filled."""
    rows = given_rows(posterior, y)
    measurement, measured = rows.observed(), ~np.isnan(y)
    lower, upper = measurement.interval(level)
    fixed = measurement.determined
    assert fixed is not None
    mean = np.where(fixed, _without_round_off(measurement.mean, posterior.scaling.y_scale), measurement.mean)
    std = np.where(measured, 0.0, measurement.std)
    lower, upper = np.where(std > 0, lower, mean), np.where(std > 0, upper, mean)
    _warn_of_negative(mean, measured, posterior)
    if smooth_measured:
        below, above = rows.interval(level)
        mean, std = np.where(measured, rows.mean, mean), np.where(measured, rows.std, std)
        lower, upper = np.where(measured, below, lower), np.where(measured, above, upper)
    return Completion(mean, std, lower, upper, measured, fixed, level, rows)


def _without_round_off(cells: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Rows (n, T) to the decimals that their largest cell has with ``DIGITS`` digits: sums of decimals stay decimals.

    Rows of very small numbers stay as they are: their powers of ten have round-off of their own. So do cells that are
    no sums of the others, such as amperes beside megavolts: rounding moves them by more than a trace of ``scale`` (T,).
    """
    largest = np.maximum(np.max(np.abs(cells), axis=1, keepdims=True), np.finfo(float).tiny)
    decimals = np.maximum(DIGITS - 1 - np.floor(np.log10(largest)), 0)
    unit = 10.0 ** np.minimum(decimals, MOST_DECIMALS)
    rounded = np.round(cells * unit) / unit
    return np.where((decimals <= MOST_DECIMALS) & (np.abs(rounded - cells) <= TRACE * scale), rounded, cells)


def _warn_of_negative(mean: np.ndarray, measured: np.ndarray, posterior: Posterior) -> None:
    """Shares and budgets seldom are: where no measured value is below zero, a filled one may be a bound not told."""
    y = posterior.data.y
    below = np.sum(~measured & (mean < -TRACE * posterior.scaling.y_scale), axis=0)
    for t in np.flatnonzero((below > 0) & np.all(np.isnan(y) | (y >= 0), axis=0)):
        name = posterior.data.output_names[t]
        warn(
            f"complete: {counted(int(below[t]), 'filled cell')} of {name!r} below zero, where no measured one is; "
            f"if that cannot be, add the law {name + ' >= 0'!r}"
        )


def _warn_of_unforeseen(posterior: Posterior, new: np.ndarray, noise: np.ndarray) -> None:
    """Cells ``new`` (n, T) to the fit (NaN elsewhere) that it did not foresee, with unit-free ``noise`` variances (n, T)."""
    rows = np.flatnonzero(np.any(~np.isnan(new), axis=1))
    if not len(rows):
        return
    expected = replace(posterior, x=posterior.x[rows])
    sd = np.sqrt(expected.std**2 + noise[rows] * posterior.scaling.y_scale**2)
    away = np.nan_to_num(np.abs(new[rows] - expected.mean) / sd)
    more = int(np.sum(away > UNFORESEEN)) - 1
    if more >= 0:
        i, t = np.unravel_index(np.argmax(away), away.shape)
        warn(
            f"Y: row {rows[i]}, output {posterior.data.output_names[t]!r} is {new[rows[i], t]:g}, where "
            f"{expected.mean[i, t]:.4g} with a standard deviation of {sd[i, t]:.2g} was expected"
            + (f", and {counted(more, 'more cell')} so far off" if more else "")
            + "; the rest of such a row follows that cell: correct it, or write NaN"
        )


def _balance(posterior: Posterior) -> Balance | None:
    """The law with its imbalance in the data; None without a law. Derivatives say nothing about the cells of a row."""
    law = None if posterior.law is None else between_outputs(posterior.law)
    if law is None:
        return None
    found = posterior.constants() if law.unknowns and posterior.fitted.law is not None else None
    if law.unknowns and found is None:
        return None
    constants = np.zeros(0) if found is None else found["mean"].to_numpy()
    variances = np.zeros(0) if found is None else found["sd"].to_numpy() ** 2
    seen = measured_imbalance(law, posterior.data, posterior.scaling, constants)
    return Balance(law, posterior.scaling, seen, constants, variances)


def _balanced(balance: Balance | None, part: RowGaussians, x: np.ndarray, missing: np.ndarray) -> Balanced:
    """The rows with what the law says of them; components have taken up a linear one already."""
    if balance is not None and not balance.is_linear:
        return balanced(balance, part.y, part.y_covariance, part.noise, x)
    fixed = np.zeros_like(missing) if balance is None else determined(balance, balance.at(part.y, x), missing)
    nowhere = np.zeros(len(x), dtype=bool)
    return Balanced(part.y, part.y_covariance, fixed, nowhere, nowhere)


def _in_rows(rows: np.ndarray) -> str:
    named = ", ".join(str(r) for r in rows[:NAMED_ROWS]) + (", ..." if len(rows) > NAMED_ROWS else "")
    return f"complete: in {counted(len(rows), 'row')} ({named}, counted from 0)"


def _warn_of_unmet(rows: np.ndarray, where: str = "") -> None:
    warn(
        f"{_in_rows(rows)} no missing values{where} meet the law together with the measured ones; they are filled without "
        "it: check the cells of these rows"
    )


def _warn_of_bends(rows: np.ndarray) -> None:
    if len(rows):
        warn(
            f"{_in_rows(rows)} the law bends between what the fit expects and the values that meet it, so that intervals "
            "are too narrow; measure one of the missing cells, or fit logarithms"
        )
