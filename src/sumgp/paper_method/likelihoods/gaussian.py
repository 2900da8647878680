"""Gaussian noise on y, with y the latent value itself or the latent value seen through an inverse branch of h.

Where y' = y^2 is taken as measured, squares have a noncentral chi-square density in the latent u = f^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sumgp.numerics import LOG_2PI
from sumgp.paper_method.likelihoods.base import (
    Likelihood,
    MeasuredLikelihood,
    NoisySites,
    Terms,
    column,
    matched_moments,
    plain_transformed,
)
from sumgp.paper_method.likelihoods.links import Link, link_of
from sumgp.transforms import Square, Transform


@dataclass(frozen=True, eq=False)
class GaussianLikelihood(MeasuredLikelihood):
    """y_i ~ N(u_i, noise_i^2): outputs outside the law, auxiliary outputs, virtual measurements."""

    def terms(self, u: np.ndarray) -> Terms:
        precision = column(self.noise**-2.0, u) + np.zeros_like(u)
        residual = column(self.y, u) - u
        scaled = precision * residual
        zero = np.zeros_like(u)
        return Terms(
            log_density=0.5 * (np.log(precision) - LOG_2PI - scaled * residual),
            first=scaled,
            second=-precision,
            curvature=precision,
            curvature_first=zero,
            noise=scaled * residual - 1.0,
            first_noise=-2.0 * scaled,
            curvature_noise=-2.0 * precision,
        )

    def plain_sites(self) -> NoisySites:
        variance = self.noise**2
        return NoisySites(self.y, variance, np.zeros_like(self.y), 2.0 * variance)

    def moment_sites(self) -> NoisySites:
        return self.plain_sites()

    def without_gaussian(self) -> tuple[np.ndarray, Likelihood]:
        return np.arange(0), GaussianLikelihood(self.y[:0], self.noise[:0])


@dataclass(frozen=True, eq=False)
class LinkedLikelihood(MeasuredLikelihood):
    """y_i ~ N(g(u_i), noise_i^2) with g the smooth inverse of h on the branch of ``reference`` (n,).

    The reference is the auxiliary output at the observation, in units of y. With ``of_transformed`` the density is that
    of y' = h(y) by change of variables (the paper's Eq. for p(y'|f')), log N(y | g(u)) - log |h'(y)|: the same function
    of u, but observations without an h(y) are not used.
    """

    transform: Transform
    reference: np.ndarray
    of_transformed: bool = False

    @cached_property
    def _link(self) -> Link:
        sizes = np.abs(self.transform.value(self.y))
        sizes = sizes[np.isfinite(sizes)]
        return link_of(self.transform, float(np.median(sizes)) if sizes.size else 1.0)

    @cached_property
    def active(self) -> np.ndarray:
        return np.isfinite(self.transform.value(self.y)) if self.of_transformed else super().active

    @cached_property
    def kinks(self) -> np.ndarray:
        return self._link.kinks(self._branch)

    @cached_property
    def _branch(self) -> np.ndarray:
        return self.transform.branch_of(self.reference)

    @cached_property
    def _log_jacobian(self) -> np.ndarray:
        if not self.of_transformed:
            return np.zeros(len(self.y))
        slope = np.abs(self.transform.derivative(self.y))
        return -np.log(np.where(self.active & (slope > 0), slope, 1.0))

    def terms(self, u: np.ndarray) -> Terms:
        sd = column(self.noise, u)
        g = self._link.evaluate(u, sd, column(self._branch, u))
        precision = sd**-2.0
        residual = column(self.y, u) - g.value
        curvature = precision * g.first**2
        jacobian = column(self._log_jacobian, u)
        return Terms(
            log_density=0.5 * (np.log(precision) - LOG_2PI - precision * residual**2) + jacobian,
            first=precision * residual * g.first,
            second=precision * residual * g.second - curvature,
            curvature=curvature,
            curvature_first=2.0 * precision * g.first * g.second,
            noise=precision * residual * (residual + g.noise) - 1.0,
            first_noise=precision * (residual * (g.first_noise - 2.0 * g.first) - g.noise * g.first),
            curvature_noise=2.0 * precision * g.first * g.first_noise - 2.0 * curvature,
        ).kept(self.active)

    def plain_sites(self) -> NoisySites:
        return plain_transformed(self.transform, self.y, self.noise)

    def moment_sites(self) -> NoisySites:
        return matched_moments(self.transform, self.y, self.noise, self.reference)


@dataclass(frozen=True, eq=False)
class NoncentralSquare(MeasuredLikelihood):
    """p(y'|u) = (2 pi sigma^2 y')^-1/2 exp(-(y' + u)/(2 sigma^2)) cosh(z), z = |y| sqrt(u) / sigma^2.

    This is the noncentral chi-square density with one degree of freedom, whose Bessel function I_-1/2 is a hyperbolic
    cosine; it is log-concave in u >= 0. Below zero, where no square lies, it goes on as N(y' | u + sigma^2, 2 sigma^4),
    the density with the moments of u = 0: score and Fisher information are continuous there.
    The curvature 1/(4 u sigma^2 + 2 sigma^4) is that of the matched moments, 0 to 12 % below the Fisher information.
    ``reference`` (n,) is the auxiliary output in units of y; only the matched moments need it.
    """

    reference: np.ndarray

    @property
    def kinks(self) -> np.ndarray:
        return np.zeros((len(self.y), 1))

    def terms(self, u: np.ndarray) -> Terms:
        square, variance = column(self.y**2, u), column(self.noise**2, u)
        inside = np.maximum(u, 0.0)
        below = np.minimum(u, 0.0)
        rate = square / variance**2
        z = np.sqrt(rate * inside)
        quotient, sech2 = _tanh_quotient(z), 1.0 / np.cosh(np.minimum(z, 300.0)) ** 2
        log_cosh = z + np.log1p(np.exp(-2.0 * z)) - np.log(2.0)
        constant = -0.5 * (LOG_2PI + np.log(variance) + np.log(np.where(square > 0, square, 1.0)))
        score = 0.5 * (rate * quotient - 1.0 / variance)
        curvature = 1.0 / (4.0 * inside * variance + 2.0 * variance**2)
        positive = u >= 0
        return Terms(
            log_density=constant
            - (square + inside) / (2.0 * variance)
            + log_cosh
            + below * (score - below / (4.0 * variance**2)),
            first=score - below / (2.0 * variance**2),
            second=np.where(positive, 0.25 * rate**2 * _bend(z, quotient, sech2), -0.5 / variance**2),
            curvature=curvature,
            curvature_first=np.where(positive, -4.0 * variance * curvature**2, 0.0),
            noise=(square + inside) / variance
            - 1.0
            - 2.0 * z**2 * quotient
            + below * (1.0 / variance - 2.0 * rate + below / variance**2),
            first_noise=1.0 / variance - rate * (quotient + sech2) + 2.0 * below / variance**2,
            curvature_noise=-8.0 * curvature**2 * variance * (inside + variance),
        )

    def plain_sites(self) -> NoisySites:
        return plain_transformed(Square(), self.y, self.noise)

    def moment_sites(self) -> NoisySites:
        return matched_moments(Square(), self.y, self.noise, self.reference)


def _tanh_quotient(z: np.ndarray) -> np.ndarray:
    """tanh(z)/z, 1 at z = 0."""
    safe = np.where(z > 1e-8, z, 1.0)
    return np.where(z > 1e-8, np.tanh(safe) / safe, 1.0)


def _bend(z: np.ndarray, quotient: np.ndarray, sech2: np.ndarray) -> np.ndarray:
    """(sech^2 z - tanh(z)/z) / z^2, by its series where the difference would cancel."""
    square = np.minimum(z, 1.0) ** 2
    series = -2.0 / 3.0 + square * (8.0 / 15.0 + square * (-34.0 / 105.0 + square * 496.0 / 2835.0))
    safe = np.where(z > 0.02, z, 1.0)
    return np.where(z > 0.02, (sech2 - quotient) / safe**2, series)
