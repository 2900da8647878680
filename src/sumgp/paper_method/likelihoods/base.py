"""The interface of a likelihood, one independent term per observation as a function of f' = h(f), and Gaussian stand-ins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace

import numpy as np

from sumgp.numerics import standard_normal
from sumgp.transforms import Transform


@dataclass(frozen=True)
class Terms:
    """log p(y_i | u_i) and its derivatives at latent values u, each of the shape of u.

    ``curvature`` W >= 0 stands in for -second where a step or a variance needs a positive number: the Fisher
    information of the observation (Gauss-Newton for a Gaussian), or a bound of it. Derivatives by ``noise`` are with
    respect to the logarithm of the observation's noise standard deviation.
    """

    log_density: np.ndarray
    first: np.ndarray
    second: np.ndarray
    curvature: np.ndarray
    curvature_first: np.ndarray
    noise: np.ndarray
    first_noise: np.ndarray
    curvature_noise: np.ndarray

    def kept(self, active: np.ndarray) -> Terms:
        """The same with zeros for observations that are not used; ``active`` (n,)."""
        if active.all():
            return self
        mask = column(active, self.first)
        return Terms(*(np.where(mask, getattr(self, field.name), 0.0) for field in fields(self)))


@dataclass(frozen=True)
class NoisySites:
    """Gaussian stand-ins N(target_i | u_i, variance_i) with derivatives by log noise; variance inf = not used."""

    targets: np.ndarray
    variances: np.ndarray
    targets_noise: np.ndarray
    variances_noise: np.ndarray


class Likelihood(ABC):
    """n observations with Gaussian noise of standard deviation ``noise`` (n,), independent given the latent values."""

    noise: np.ndarray

    @abstractmethod
    def terms(self, u: np.ndarray) -> Terms:
        """Log density and derivatives at u, of shape (n,) or (n, q) for q latent values per observation."""

    @abstractmethod
    def plain_sites(self) -> NoisySites:
        """Standard regression on the transformed data: target h(y), variance noise^2."""

    @abstractmethod
    def moment_sites(self) -> NoisySites:
        """Mean and variance of h(y) matched at the reference values: the safe start of every engine."""

    @abstractmethod
    def with_noise(self, noise: np.ndarray) -> Likelihood:
        """The same observations with other noise standard deviations (n,)."""

    @property
    @abstractmethod
    def active(self) -> np.ndarray:
        """(n,) truth of whether an observation is used; false where h(y) is needed and does not exist."""

    def without_gaussian(self) -> tuple[np.ndarray, Likelihood]:
        """Positions (k,) of the terms that are not exactly Gaussian in u, and their likelihood.

        The others have the targets and variances of ``plain_sites`` as their exact sites.
        """
        return np.arange(self.size), self

    @property
    def kinks(self) -> np.ndarray:
        """(n, k) latent values near which a term is not smooth, NaN where there are fewer: where quadrature is split."""
        return np.empty((self.size, 0))

    @property
    def size(self) -> int:
        """Number of observations n."""
        return len(self.noise)

    @property
    def n_dropped(self) -> int:
        """Number of observations that cannot be used."""
        return int(np.sum(~self.active))


@dataclass(frozen=True, eq=False)
class MeasuredLikelihood(Likelihood):
    """Of measurements ``y`` (n,), all of them used."""

    y: np.ndarray
    noise: np.ndarray

    @property
    def active(self) -> np.ndarray:
        return np.ones(len(self.y), dtype=bool)

    def with_noise(self, noise: np.ndarray) -> Likelihood:
        return replace(self, noise=noise)


def column(values: np.ndarray, like: np.ndarray) -> np.ndarray:
    """(n,) values shaped to broadcast along the further axes of ``like`` (n, ...)."""
    return values.reshape(values.shape + (1,) * (like.ndim - 1))


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
    return (mean - transform.value(reference), centred**2 @ weights, rates @ weights, 2.0 * (centred * rates) @ weights)


def _delta(transform: Transform, noise: np.ndarray, reference: np.ndarray) -> tuple[np.ndarray, ...]:
    smooth = transform.relaxed(float(np.median(np.abs(reference))))
    slope, bend, square = smooth.derivative(reference), smooth.second_derivative(reference), noise**2
    linear, quadratic = slope**2 * square, 0.5 * bend**2 * square**2
    return 0.5 * bend * square, linear + quadratic, bend * square, 2.0 * linear + 4.0 * quadratic
