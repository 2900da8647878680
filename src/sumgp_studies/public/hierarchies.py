"""Hierarchies of time series: base forecasts by a standard method, then reconciliation, scored as published.

The last eight time points of TourismSmall, Labour and Swiss tourism are the test. Base forecasts are additive exponential
smoothing with a seasonal term for each series alone (Holt-Winters, smoothing weights by least squares of one-step errors),
so that all reconciliations start from the same numbers. Score: 2 x mean over 19 quantiles of the pinball loss, summed over
series and steps, divided by the sum of |y| (sCRPS).
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import ndtri

import sumgp
from sumgp.reconciliation import shrunk_covariance

STEPS = 8
PERIODS = {"tourismsmall": 4, "labour": 12, "swiss_tourism": 12}
QUANTILES = np.linspace(0.05, 0.95, 19)
MOST_MONTHS = 120  # of the training data used: older months only slow the smoothing down
DATES = ("date", "year", "month")
EDGE = 1e-3  # of the range of smoothing weights


@dataclass(frozen=True)
class Hierarchy:
    """Series (n, T) with names, their summing matrix (T, bottom), and the seasonal period in steps."""

    name: str
    values: np.ndarray
    summing: pd.DataFrame
    period: int


@dataclass(frozen=True)
class BaseForecasts:
    """Means (STEPS, T), one-step errors (m, T) and the variance's growth with the step (STEPS, T)."""

    mean: np.ndarray
    errors: np.ndarray
    growth: np.ndarray


def read_hierarchy(folder: Path, name: str) -> Hierarchy:
    """One of the stored hierarchies; columns in the order of its summing matrix."""
    frame = pd.read_csv(folder / "hierarchies" / f"{name}.csv")
    matrix = folder / "hierarchies" / f"{name}_S.csv"
    if matrix.is_file():
        summing = pd.read_csv(matrix, index_col=0)
    else:  # one total before its parts, after the date
        series = [column for column in frame.columns if column not in DATES]
        bottom = len(series) - 1
        summing = pd.DataFrame(np.vstack([np.ones(bottom), np.eye(bottom)]), index=series, columns=series[1:])
    return Hierarchy(name, frame[list(summing.index)].to_numpy(float), summing, PERIODS[name])


def smoothing_errors(y: np.ndarray, period: int, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One-step errors of additive Holt-Winters smoothing and its forecasts of the next STEPS values."""
    alpha, beta, gamma = weights
    level, slope = y[:period].mean(), (y[period : 2 * period].mean() - y[:period].mean()) / period
    season = list(y[:period] - level)
    errors = np.empty(len(y) - period)
    for t in range(period, len(y)):
        errors[t - period] = y[t] - (level + slope + season[t - period])
        e = errors[t - period]
        level, slope = level + slope + alpha * e, slope + alpha * beta * e
        season.append(season[t - period] + gamma * (1.0 - alpha) * e)
    ahead = np.arange(1, STEPS + 1)
    return errors, level + slope * ahead + np.array([season[len(y) - period + (h - 1) % period] for h in ahead])


def base_forecasts(values: np.ndarray, period: int) -> BaseForecasts:
    """Holt-Winters for each series alone, weights by least squares."""
    means, errors, growths = [], [], []
    ahead = np.arange(1, STEPS)
    for y in values.T:
        size = float(np.std(y)) or 1.0

        def loss(weights: np.ndarray, y: np.ndarray = y, size: float = size) -> float:
            return float(np.mean((smoothing_errors(y, period, weights)[0] / size) ** 2))

        best = minimize(loss, [0.3, 0.05, 0.1], bounds=[(EDGE, 1.0 - EDGE)] * 3, method="L-BFGS-B").x
        found, mean = smoothing_errors(y, period, best)
        alpha, beta, gamma = best
        # An error now moves the forecast h steps ahead by alpha (1 + h beta), and by the season's share every period.
        moves = alpha * (1.0 + ahead * beta) + np.where(ahead % period == 0, gamma * (1.0 - alpha), 0.0)
        means.append(mean)
        errors.append(found)
        growths.append(1.0 + np.concatenate([[0.0], np.cumsum(moves**2)]))
    return BaseForecasts(np.column_stack(means), np.column_stack(errors), np.column_stack(growths))


def scaled_crps(truth: np.ndarray, quantiles: np.ndarray) -> float:
    """Score of forecasts (STEPS, T) given by their quantiles (19, STEPS, T)."""
    below = truth - quantiles
    level = QUANTILES[:, None, None]
    pinball = np.maximum(level * below, (level - 1.0) * below)
    return float(2.0 * np.sum(pinball.mean(axis=0)) / np.sum(np.abs(truth)))


def gaussian_quantiles(mean: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """(19, STEPS, T) quantiles of Gaussian forecasts."""
    return mean + sd * ndtri(QUANTILES)[:, None, None]


def hierarchy_scores(hierarchy: Hierarchy) -> dict[str, float]:
    """sCRPS of base forecasts, bottom-up, least squares, MinT by its textbook form and by a package, and reconcile."""
    train, truth = hierarchy.values[:-STEPS][-MOST_MONTHS:], hierarchy.values[-STEPS:]
    base = base_forecasts(train, hierarchy.period)
    W = shrunk_covariance(base.errors)
    S = hierarchy.summing.to_numpy(float)
    sd = np.sqrt(np.diag(W) * base.growth)
    # As MinT has it: one-step errors weigh the series; each series' spread grows with the step in its own way.
    covariances = W * np.sqrt(base.growth[:, :, None] * base.growth[:, None, :])
    found = {"base forecasts": gaussian_quantiles(base.mean, sd)}
    bottom = [list(hierarchy.summing.index).index(name) for name in hierarchy.summing.columns]
    for name, projection in (
        ("bottom-up", S @ np.eye(S.shape[0])[bottom]),
        ("least squares", S @ np.linalg.pinv(S)),
        ("MinT", S @ np.linalg.solve(S.T @ np.linalg.solve(W, S), np.linalg.solve(W, S).T)),
    ):
        spread = np.sqrt(np.maximum(np.einsum("ij,njk,ik->ni", projection, covariances, projection), 0.0))
        found[name] = gaussian_quantiles(base.mean @ projection.T, spread)
    if find_spec("hierarchicalforecast") is not None:
        found["MinT of hierarchicalforecast"] = package_quantiles(S, base, sd)
    forecasts = pd.DataFrame(base.mean, columns=list(hierarchy.summing.index))
    for name, law in (("sumgp.reconcile", hierarchy.summing), ("sumgp.reconcile, >= 0", [hierarchy.summing, "all >= 0"])):
        moved = sumgp.reconcile(forecasts, law, errors=base.errors, covariance=covariances)
        found[name] = np.stack([moved.quantile(p) for p in QUANTILES])
    return {name: scaled_crps(truth, quantiles) for name, quantiles in found.items()}


def package_quantiles(S: np.ndarray, base: BaseForecasts, sd: np.ndarray) -> np.ndarray:
    """The same base forecasts reconciled by hierarchicalforecast: MinTrace with shrunk covariance, Gaussian spread."""
    from hierarchicalforecast.methods import MinTrace
    from hierarchicalforecast.probabilistic_methods import Normality

    y, errors = base.mean.T, base.errors.T
    model = MinTrace("mint_shrink").fit(S=S, y_hat=y, y_insample=errors, y_hat_insample=np.zeros_like(errors))
    spread = Normality(S=S, P=model.P, y_hat=y, sigmah=sd.T, W=model.W)
    return gaussian_quantiles((S @ model.P @ y).T, spread.sigmah_rec.T)
