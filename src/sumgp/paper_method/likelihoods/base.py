"""The interface of a likelihood: one independent term per observation, as a function of the latent value f' = h(f)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields

import numpy as np


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


def column(values: np.ndarray, like: np.ndarray) -> np.ndarray:
    """(n,) values shaped to broadcast along the further axes of ``like`` (n, ...)."""
    return values.reshape(values.shape + (1,) * (like.ndim - 1))
