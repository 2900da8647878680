"""How well a fit predicts rows that were left out, and whether its intervals are calibrated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import binom

from sumgp.estimator import ConstrainedGP
from sumgp.laws import Law, SumLaw, task_rows, typical_rows
from sumgp.paper_method import Transformed
from sumgp.prediction import Posterior
from sumgp.priors import read_noise
from sumgp.report.drawing import Band, Curve, Panel, Points, Theme
from sumgp.strategies import OwnComponent, PosteriorComponent, RowNoise, RowsLeftOut, TrainingRows, component_left_out, mixed

INTERVAL_95 = 1.959963984540054  # half width in standard deviations


@dataclass(frozen=True)
class LeftOut:
    """Scores of rows predicted from all other rows, hyperparameters as fitted.

    ``rmse`` (T,) in the outputs' units; ``inside`` (T,) the share of measurements within their 95 % interval;
    ``standardised`` (N, T) residuals over their standard deviation, NaN where nothing was measured.
    """

    rmse: np.ndarray
    inside: np.ndarray
    standardised: np.ndarray


@dataclass(frozen=True)
class Violation:
    """Mean |g| of each law (R,): of the raw rows with all outputs measured, of a fit without the law, of this fit."""

    raw: np.ndarray
    plain: np.ndarray | None
    own: np.ndarray


def leave_one_out(model: ConstrainedGP) -> LeftOut:
    """Each row predicted from the others, in closed form.

    NaN for outputs never measured, and for Transformed.
    """
    data, scaling, fitted = model.data_, model.scaling_, model.fitted_
    if isinstance(model.strategy_, Transformed):
        # Noise is not Gaussian there, so that the closed form does not hold; refits would take the time of the fit N times.
        unknown = np.full(data.y.shape[1], np.nan)
        return LeftOut(unknown, unknown, np.full(data.y.shape, np.nan))
    widening = model.fit_report_.details.get("widening", 1.0)
    rows = TrainingRows(scaling.inputs(data.x), data.x, scaling.outputs(data.y))
    parts = [_each_left_out(model, c, rows, widening) for c in fitted.components]
    found = mixed(parts, fitted.weights)
    measured = data.measured
    with np.errstate(invalid="ignore"):
        standardised = found.residual / np.sqrt(found.variance)
        inside = np.abs(standardised) <= INTERVAL_95
    counts = np.maximum(measured.sum(axis=0), 1)
    squares = np.where(measured, found.residual, 0.0) ** 2
    any_measured = measured.any(axis=0)
    rmse = np.where(any_measured, np.sqrt(squares.sum(axis=0) / counts), np.nan)
    return LeftOut(rmse * scaling.y_scale, np.where(any_measured, inside.sum(axis=0) / counts, np.nan), standardised)


def _each_left_out(model: ConstrainedGP, component: PosteriorComponent, rows: TrainingRows, widening: float) -> RowsLeftOut:
    if isinstance(component, OwnComponent):
        return component.left_out(rows)
    return component_left_out(component, rows, _row_noise(model, component), widening=widening)


def _row_noise(model: ConstrainedGP, component: PosteriorComponent) -> RowNoise:
    """Each row's own noise where it was given, noise that outputs share, and noise that obeys the law where the data do.

    Over the row's weight, if it has one.
    """
    data, scaling, details = model.data_, model.scaling_, model.fit_report_.details
    weights = np.asarray(details.get("sample_weight", np.ones(len(data.y))))
    estimated = isinstance(model.noise, str)
    given = read_noise("shared" if estimated else model.noise, scaling.y_scale, (), len(weights)).weighted(weights)
    F = None
    if estimated and "noise_covariance" in details:
        return RowNoise(np.broadcast_to(component.noise, data.y.shape), None, component.noise_covariance, given.row_factor)
    # Models of version 0.1 do not say so themselves.
    old = details.get("closed_data", False) and details.get("law") == "on the task covariance"
    if estimated and details.get("noise_within_law", old):
        assert isinstance(model.law_, SumLaw)
        F = task_rows(model.law_, data, scaling).F
    return RowNoise.learnt(given, component.noise, len(data.y), F)


def law_violation(model: ConstrainedGP, posterior: Posterior, plain: Posterior | None) -> Violation:
    """Mean |left minus right side| of each law: at complete raw rows, and at the prediction points for the fits."""
    law = model.law_
    assert law is not None
    data = model.data_
    involved = law.involved()[: len(law.outputs)]
    complete = data.measured[:, involved].all(axis=1)
    # Outputs outside the law may be missing; any number does for them.
    filled = np.where(data.measured, data.y, model.scaling_.restore(typical_rows(data, model.scaling_)))
    raw = _mean_size(law, posterior, filled[complete], data.x[complete])
    without = None if plain is None else _mean_size(law, posterior, plain.mean, posterior.x)
    own = np.mean(np.abs(posterior.residual()), axis=0)
    return Violation(raw, without, own)


def _mean_size(law: Law, posterior: Posterior, f: np.ndarray, x: np.ndarray) -> np.ndarray:
    # Derivatives are not measured, and other fits' are not those of this one.
    if not len(f) or law.derivatives:
        return np.full(law.n_rows, np.nan)
    g = residual_sizes(law, posterior, f, x)
    g = np.where(law.active(x) & np.isfinite(g), g, np.nan)
    return np.array([np.nanmean(column) if np.isfinite(column).any() else np.nan for column in g.T])


def residual_sizes(law: Law, posterior: Posterior, f: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(n, R) |left minus right side| at outputs f (n, T), with the constants that ``posterior`` has estimated."""
    constants = posterior.constants()["mean"].to_numpy()
    with np.errstate(all="ignore"):
        return np.abs(law.residual(np.column_stack([f, np.tile(constants, (len(f), 1))]), x))


def noise_sds(model: ConstrainedGP) -> np.ndarray:
    """(T,) noise standard deviations in the outputs' units, averaged over the mixture."""
    variances = np.einsum(
        "k,kt->t", model.fitted_.weights, np.stack([np.diagonal(c.noise_covariance) for c in model.fitted_.components])
    )
    return np.sqrt(variances) * model.scaling_.y_scale


def lengthscales(model: ConstrainedGP) -> np.ndarray:
    """(D,) lengthscales in the inputs' units: of each component the shortest along each input, averaged in the log.

    NaN where no kernel has one.
    """
    x_scale = model.scaling_.x_scale
    logs, weights = [], []
    for weight, component in zip(model.fitted_.weights, model.fitted_.components, strict=True):
        shortest = np.full(len(x_scale), np.inf)
        for values in component.lengthscales():
            if len(values) in (1, len(x_scale)):
                shortest = np.minimum(shortest, values)
        if np.all(np.isfinite(shortest)):
            logs.append(np.log(shortest))
            weights.append(weight)
    if not logs:
        return np.full(len(x_scale), np.nan)
    return np.exp(np.average(logs, axis=0, weights=weights)) * x_scale


LEVELS = (0.5, 0.8, 0.95)  # nominal coverages in the table
CURVE = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)  # nominal coverages in the figure
EXPECTED = 0.95  # probability of the range of counts that is called expected
CLEAR = 0.99  # the same for the range beyond which something is said
FEW = 40  # measurements below which a count says little


@dataclass(frozen=True)
class Count:
    """``inside`` of ``total`` left-out measurements lie within their central interval of a ``level``."""

    level: float
    inside: int
    total: int

    @property
    def share(self) -> float:
        """inside / total."""
        return self.inside / self.total

    def expected(self, probability: float = EXPECTED) -> tuple[int, int]:
        """Smallest and largest count expected of calibrated intervals: quantiles of a binomial(total, level)."""
        tail = 0.5 * (1.0 - probability)
        low, high = binom.ppf([tail, 1.0 - tail], self.total, self.level)
        return int(low), int(high)


def counts(left_out: LeftOut, levels: Sequence[float] = LEVELS, output: int | None = None) -> tuple[Count, ...]:
    """One count per level over all outputs, or of one; none where nothing could be left out.

    A measurement is inside the interval of level p if its residual is at most Phi^-1((1 + p) / 2) standard deviations.
    """
    z = left_out.standardised if output is None else left_out.standardised[:, output]
    sizes = np.abs(z[np.isfinite(z)])
    if not len(sizes):
        return ()
    return tuple(Count(level, int(np.sum(sizes <= ndtri(0.5 + 0.5 * level))), len(sizes)) for level in levels)


def sentence(count: Count) -> str:
    """The count in plain words."""
    return f"{count.inside} of {count.total} measurements lie within their {count.level:.0%} leave-out interval".replace(
        "%", " %"
    )


def remark(total: int) -> str:
    """What a count of ``total`` measurements can tell, for readers of a table."""
    low, high = Count(0.95, 0, total).expected()
    few = " With so few measurements the counts show only large faults." if total < FEW else ""
    return (
        "Each measurement is predicted from all other rows, with the hyperparameters of the whole fit; calibrated intervals "
        f"would hold {low} to {high} of {total} at 95 %, in 19 of 20 cases.{few}"
    )


def left_out_panel(left_out: LeftOut, theme: Theme) -> Panel:
    """Observed against nominal coverage, the diagonal, and the band expected of calibrated intervals."""
    found = counts(left_out, CURVE)
    nominal = np.array([c.level for c in found])
    ranges = np.array([c.expected() for c in found]) / found[0].total
    first = theme.cycle[0]
    ends = np.array([0.0, 1.0])
    level = np.concatenate([[0.0], nominal, [1.0]])
    lower, upper = (np.concatenate([[0.0], ranges[:, side], [1.0]]) for side in (0, 1))
    marks = (
        Band(level, lower, upper, theme.faint, "expected range if calibrated"),
        Curve(ends, ends, theme.faint, "nominal", 1.0, "dash"),
        Curve(nominal, np.array([c.share for c in found]), first, "", 1.3),
        Points(nominal, np.array([c.share for c in found]), first, "left-out measurements", 6.0),
    )
    return Panel(marks, "observed coverage")
