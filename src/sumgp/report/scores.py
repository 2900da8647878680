"""What a fit is judged by: how well the law is kept, and how well rows are predicted that were left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sumgp.estimator import ConstrainedGP
from sumgp.laws import SumLaw, task_rows, typical_rows
from sumgp.paper_method import Transformed
from sumgp.prediction import Posterior
from sumgp.priors import read_noise
from sumgp.strategies import PosteriorComponent, RowNoise, TrainingRows, component_left_out, mixed

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
    parts = [component_left_out(c, rows, _row_noise(model, c), widening=widening) for c in fitted.components]
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


def _row_noise(model: ConstrainedGP, component: PosteriorComponent) -> RowNoise:
    """Each row's own noise where it was given, and noise that obeys the law where the data do."""
    data, scaling = model.data_, model.scaling_
    if not isinstance(model.noise, str):
        known = read_noise(model.noise, scaling.y_scale, (), len(data.y)).known
        assert known is not None
        return RowNoise(known)
    F = None
    if model.fit_report_.details.get("closed_data", False):
        assert isinstance(model.law_, SumLaw)
        F = task_rows(model.law_, data, scaling).F
    return RowNoise(np.broadcast_to(component.noise, data.y.shape), F)


def law_violation(model: ConstrainedGP, posterior: Posterior, plain: Posterior | None) -> Violation:
    """Mean |left minus right side| of each law: at complete raw rows, and at the prediction points for the fits."""
    law = model.law_
    assert law is not None
    data = model.data_
    constants = posterior.constants()["mean"].to_numpy()
    involved = law.involved()[: len(law.outputs)]
    complete = data.measured[:, involved].all(axis=1)
    # Outputs outside the law may be missing; any number does for them.
    filled = np.where(data.measured, data.y, model.scaling_.restore(typical_rows(data, model.scaling_)))
    raw = _mean_size(model, filled[complete], data.x[complete], constants)
    without = None if plain is None else _mean_size(model, plain.mean, posterior.x, constants)
    own = np.mean(np.abs(posterior.residual()), axis=0)
    return Violation(raw, without, own)


def _mean_size(model: ConstrainedGP, f: np.ndarray, x: np.ndarray, constants: np.ndarray) -> np.ndarray:
    law = model.law_
    assert law is not None
    # Derivatives are not measured, and other fits' are not those of this one.
    if not len(f) or law.derivatives:
        return np.full(law.n_rows, np.nan)
    columns = np.concatenate([f, np.broadcast_to(constants, (len(f), len(constants)))], axis=1)
    with np.errstate(all="ignore"):
        g = np.abs(law.residual(columns, x))
    g = np.where(law.active(x) & np.isfinite(g), g, np.nan)
    return np.array([np.nanmean(column) if np.isfinite(column).any() else np.nan for column in g.T])


def noise_sds(model: ConstrainedGP) -> np.ndarray:
    """(T,) noise standard deviations in the outputs' units, averaged over the mixture."""
    variances = np.einsum("k,kt->t", model.fitted_.weights, np.stack([c.noise for c in model.fitted_.components]))
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
