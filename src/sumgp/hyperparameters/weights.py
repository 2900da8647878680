"""Importance weights that no single draw can dominate."""

from __future__ import annotations

import numpy as np

CAP = 1.5  # no weight exceeds CAP / sqrt(number of draws)
MIN_EFFECTIVE = 12.0  # weights are tempered until the effective sample size reaches this


def tempered(log_weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Normalised weights, flattened by a power until enough draws count, and capped.

    Returns the weights and the power (1 = the weights as they are).
    """
    finite = np.isfinite(log_weights)
    if not finite.any():
        return np.full(len(log_weights), 1.0 / len(log_weights)), 0.0
    weights, power = flattened(log_weights, MIN_EFFECTIVE)
    cap = max(CAP / np.sqrt(len(weights)), 1.0 / float(finite.sum()))
    for _ in range(20):
        over = weights > cap
        if not over.any():
            break
        rest = weights[~over].sum()
        if rest <= 0:
            break
        weights = np.where(over, cap, weights * (1.0 - cap * over.sum()) / rest)
    return weights / weights.sum(), power


def flattened(log_weights: np.ndarray, least: float) -> tuple[np.ndarray, float]:
    """Normalised weights to the highest power up to 1 that leaves ``least`` effective draws, and that power.

    Where fewer than twice as many have any weight, half of those have to do.
    """
    needed = min(least, 0.5 * float(np.isfinite(log_weights).sum()))
    low, high = 0.0, 1.0
    if effective(_normalised(log_weights, 1.0)) >= needed:
        low = 1.0
    else:
        for _ in range(30):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if effective(_normalised(log_weights, middle)) >= needed else (low, middle)
    return _normalised(log_weights, low), low


def effective(weights: np.ndarray) -> float:
    """Effective sample size of normalised weights."""
    return float(1.0 / np.sum(weights**2))


def log_total(log_weights: np.ndarray) -> float:
    """Log of the sum of weights, minus infinity if there are none."""
    top = float(np.max(log_weights))
    return top + float(np.log(np.sum(np.exp(log_weights - top)))) if np.isfinite(top) else -np.inf


def _normalised(log_weights: np.ndarray, power: float) -> np.ndarray:
    """Weights to a power, of sum one; draws without weight have none at any power."""
    finite = np.isfinite(log_weights)
    scaled = np.where(finite, log_weights * power, -np.inf) if power == 0.0 else log_weights * power
    return np.exp(scaled - log_total(scaled))
