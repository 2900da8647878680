"""Lengthscale, amplitude and noise of one output on its own, by a search over all lengthscales."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

SHORTEST, LONGEST, COUNT = 0.02, 3.0, 30  # lengthscales that are tried, in half ranges
FINEST = 0.01  # of the logarithm of a lengthscale
# The same for several inputs, and the first step along each; lengthscales are searched with so many rows at most.
ROUGH_COUNT, ROUGHEST, ROUGH_FINEST, MOST_ROWS = 10, 1.0, 0.1, 200
RATIOS = np.exp(np.linspace(np.log(1e-6), np.log(10.0), 50))  # noise variance / variance of the function
# Priors: lengthscales of about half the range or longer, noise of about a twentieth of the output's variation.
LOG_SD_SHORT, LOG_SD_LONG = 1.0, 10.0  # of log lengthscales below and above half the range
NOISE_CENTRE, NOISE_LOG_SD = 0.05, 2.0  # median of noise sd / amplitude, and sd of its logarithm


class OutputFit(NamedTuple):
    """Log posterior density, lengthscales (D,), variance of the function, and noise variance of a row of factor one."""

    log_density: float
    lengthscale: np.ndarray
    variance: float
    noise: float


class OneOutput(NamedTuple):
    """Measurements y (k,) at x (k, D); noise variances are ``factors`` (k,) times a common one, or these where known."""

    x: np.ndarray
    y: np.ndarray
    factors: np.ndarray
    known: bool
    half_range: np.ndarray  # (D,)
    mean_variance: float  # of the constant, in units of the function's variance


def fit_output(output: OneOutput, make: Callable[[np.ndarray], Kernel], lengthscale: np.ndarray | None = None) -> OutputFit:
    """The most probable hyperparameters; with given lengthscales (D,), variance and noise only.

    One input: all lengthscales are looked at. Several: all in proportion to the half ranges, then steps along each.
    """
    if lengthscale is not None:
        return _at(output, make, lengthscale)
    several = len(output.half_range) > 1
    rows = _some_rows(output) if several else output
    tried = np.exp(np.linspace(np.log(SHORTEST), np.log(LONGEST), ROUGH_COUNT if several else COUNT))
    best = max((_at(rows, make, value * output.half_range) for value in tried), key=_density)
    longest = LONGEST * output.half_range if several else np.inf
    step = ROUGHEST if several else 0.5 * float(np.log(tried[1] / tried[0]))
    while step > (ROUGH_FINEST if several else FINEST):
        moves = [side * step * axis for axis in np.eye(len(output.half_range)) for side in (-1.0, 1.0)]
        near = [_at(rows, make, np.minimum(best.lengthscale * np.exp(m), longest)) for m in moves]
        better = max(near, key=_density)
        step = step if several and better.log_density > best.log_density else 0.5 * step
        best = max(best, better, key=_density)
    return _at(output, make, best.lengthscale) if several else best


def _density(fit: OutputFit) -> float:
    return fit.log_density


def _some_rows(output: OneOutput) -> OneOutput:
    kept = np.random.default_rng(0).permutation(len(output.x))[:MOST_ROWS]
    return output._replace(x=output.x[kept], y=output.y[kept], factors=output.factors[kept])


def _at(output: OneOutput, make: Callable[[np.ndarray], Kernel], lengthscale: np.ndarray) -> OutputFit:
    """The profile over all ratios of noise to function: with eigenvalues l and squared projections z of whitened data,

    log p = -sum log(v l + n) / 2 - sum z / (v l + n) / 2, where v is closed-form for given n / v unless n is known.
    """
    sd = np.sqrt(output.factors)
    K = (make(lengthscale)(output.x) + output.mean_variance) / np.outer(sd, sd)
    values, vectors = np.linalg.eigh(K)
    z = (vectors.T @ (output.y / sd)) ** 2
    relative = np.maximum(values, 0.0) + RATIOS[:, None]
    variance = 1.0 / RATIOS if output.known else np.maximum(np.mean(z / relative, axis=1), 1e-300)
    log_density = -0.5 * np.sum(np.log(variance[:, None] * relative) + z / (variance[:, None] * relative), axis=1)
    if not output.known:
        log_density -= 0.5 * ((0.5 * np.log(RATIOS) - np.log(NOISE_CENTRE)) / NOISE_LOG_SD) ** 2
    away = np.log(lengthscale / output.half_range)
    best = int(np.argmax(log_density))
    prior = -0.5 * float(np.sum((away / np.where(away < 0, LOG_SD_SHORT, LOG_SD_LONG)) ** 2))
    return OutputFit(
        float(log_density[best] + prior), lengthscale, float(variance[best]), float(variance[best] * RATIOS[best])
    )
