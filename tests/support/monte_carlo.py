"""Monte-Carlo errors of averages over groups that are independent of each other, and bounds that allow for them.

A comparison may differ by the systematic error that a method is allowed, plus the noise of both sides. Noise comes from
the spread between groups: chains of an MCMC, or runs with other random numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

FALSE_ALARM = 2e-5  # chance that noise alone passes one bound: below 1e-4 for the four bounds of a test


@dataclass(frozen=True)
class Estimate:
    """Values (...) with the variances (...) of their noise, known from a number of groups less one."""

    value: np.ndarray
    variance: np.ndarray
    degrees: float

    @staticmethod
    def of_groups(values: np.ndarray) -> Estimate:
        """From values (groups, ...), one a group."""
        return Estimate(values.mean(axis=0), values.var(axis=0, ddof=1) / len(values), len(values) - 1.0)

    def minus(self, other: Estimate) -> Estimate:
        """The difference of two that are independent; degrees by Satterthwaite's formula for the average variance."""
        own, others = np.mean(self.variance), np.mean(other.variance)
        degrees = (own + others) ** 2 / (own**2 / self.degrees + others**2 / other.degrees)
        return Estimate(self.value - other.value, self.variance + other.variance, float(degrees))

    def noise(self) -> float:
        """What the root mean square of the noise exceeds with a chance of FALSE_ALARM at most.

        However the values hang together, the mean square of Gaussian noise has a lighter tail than that of one value
        alone with the average variance.
        """
        return float(student.ppf(1.0 - 0.5 * FALSE_ALARM, self.degrees) * np.sqrt(np.mean(self.variance)))


def root_mean_square(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


@dataclass(frozen=True)
class Comparison:
    """Differences from draws, with their noise: of means in sds (...), of log sds (...), and the average of the latter."""

    means: Estimate
    log_sds: Estimate
    average: Estimate


def compared(mean: np.ndarray, sd: np.ndarray, f: np.ndarray, effective: float = np.inf) -> Comparison:
    """Means and sds (...) of a method beside draws f (steps, groups, ...) from groups that are independent.

    A draw moves a mean by z / count and a log sd by (z^2 - 1) / 2 / count, z = (f - mean) / sd. The method's own average
    is over hyperparameters, with an ``effective`` number of them, and exact given those: its noise is at most that of
    as many draws of f.
    """
    flat = f.reshape(-1, *f.shape[2:])
    centre, size = flat.mean(axis=0), flat.std(axis=0)
    z = (f - centre) / size
    log_ratio, influence = np.log(sd / size), 0.5 * (z**2 - 1.0)
    places = tuple(range(2, f.ndim))
    return Comparison(
        _difference((mean - centre) / size, z, effective),
        _difference(log_ratio, influence, effective),
        _difference(np.mean(log_ratio), influence.mean(axis=places), effective),
    )


def _difference(value: np.ndarray, influence: np.ndarray, effective: float) -> Estimate:
    own = Estimate(value, influence.var(axis=(0, 1)) / effective, effective)
    return own.minus(Estimate.of_groups(influence.mean(axis=0)))
