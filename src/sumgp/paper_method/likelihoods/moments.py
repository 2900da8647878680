"""Gaussian stand-ins for transformed data: y' = h(y) as it is, or with mean and variance matched."""

from __future__ import annotations

import numpy as np

from sumgp.numerics import standard_normal
from sumgp.paper_method.likelihoods.base import NoisySites
from sumgp.transforms import Transform


def plain_transformed(transform: Transform, y: np.ndarray, noise: np.ndarray) -> NoisySites:
    """Target h(y), variance noise^2: standard regression, which takes ``noise`` as the noise of y' itself."""
    value = transform.value(y)
    used = np.isfinite(value)
    variance = np.where(used, noise**2, np.inf)
    return NoisySites(np.where(used, value, 0.0), variance, np.zeros_like(value), np.where(used, 2.0 * noise**2, 0.0))


def matched_moments(transform: Transform, y: np.ndarray, noise: np.ndarray, reference: np.ndarray) -> NoisySites:
    """Target h(y) - bias and variance of h(a + e), e ~ N(0, noise^2), at the reference a.

    bias = E h(a + e) - h(a). For the square: target y^2 - noise^2, variance 4 a^2 noise^2 + 2 noise^4. Transforms with
    an edge or poles use the delta method, bias = h'' noise^2 / 2 and variance h'^2 noise^2 + h''^2 noise^4 / 2, since
    their moments do not exist.
    """
    value = transform.value(y)
    used = np.isfinite(value)
    everywhere = transform.relaxed(1.0) is transform and transform.is_continuous
    bias, variance, bias_noise, variance_noise = (_quadrature if everywhere else _delta)(transform, noise, reference)
    # A reference on a flat point of h would otherwise claim certainty.
    floor = (1e-6 * (1.0 + np.abs(np.where(used, value, 0.0)))) ** 2
    return NoisySites(
        targets=np.where(used, value - bias, 0.0),
        variances=np.where(used, variance + floor, np.inf),
        targets_noise=np.where(used, -bias_noise, 0.0),
        variances_noise=np.where(used, variance_noise, 0.0),
    )


def _quadrature(transform: Transform, noise: np.ndarray, reference: np.ndarray) -> tuple[np.ndarray, ...]:
    z, weights = standard_normal(24)
    error = noise[:, None] * z
    values = transform.value(reference[:, None] + error)
    rates = transform.derivative(reference[:, None] + error) * error  # d h / d log noise
    mean = values @ weights
    centred = values - mean[:, None]
    return (
        mean - transform.value(reference),
        centred**2 @ weights,
        rates @ weights,
        2.0 * (centred * rates) @ weights,
    )


def _delta(transform: Transform, noise: np.ndarray, reference: np.ndarray) -> tuple[np.ndarray, ...]:
    smooth = transform.relaxed(float(np.median(np.abs(reference))))
    slope, bend, square = smooth.derivative(reference), smooth.second_derivative(reference), noise**2
    linear, quadratic = slope**2 * square, 0.5 * bend**2 * square**2
    return 0.5 * bend * square, linear + quadratic, bend * square, 2.0 * linear + 4.0 * quadratic
