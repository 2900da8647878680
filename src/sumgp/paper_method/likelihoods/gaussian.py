"""Gaussian noise on y, with y the latent value itself or the latent value seen through an inverse branch of h."""

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
from sumgp.transforms import Transform


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
