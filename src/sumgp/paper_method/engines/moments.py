"""Engines in closed form: standard regression on h(y), and regression with matched moments."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from sumgp.errors import Status
from sumgp.paper_method.engines.sites import Engine, EvidenceGradient, SiteResult, finished, regress
from sumgp.paper_method.likelihoods import Likelihood, NoisySites


class _ClosedForm(Engine):
    """One regression on sites that the likelihood tells."""

    @abstractmethod
    def sites(self, likelihood: Likelihood) -> NoisySites:
        """Targets and variances, and their derivatives by the noise."""

    def infer(self, m: np.ndarray, K: np.ndarray, likelihood: Likelihood, start: SiteResult | None = None) -> SiteResult:
        return self.settle(m, K, likelihood, start)

    def settle(self, m: np.ndarray, K: np.ndarray, likelihood: Likelihood, start: SiteResult | None) -> SiteResult:
        sites = self.sites(likelihood)
        posterior = regress(m, K, sites.targets, 1.0 / sites.variances)
        return finished(posterior, posterior.log_density, Status.CONVERGED, 0, self)

    def own_gradient(self, m: np.ndarray, K: np.ndarray, likelihood: Likelihood, result: SiteResult) -> EvidenceGradient:
        """Targets and variances are explicit functions of the noise."""
        sites, alpha, R = self.sites(likelihood), result.posterior.alpha, result.posterior.R
        by_noise = 0.5 * (alpha**2 - np.diagonal(R)) * sites.variances_noise - alpha * sites.targets_noise
        return EvidenceGradient(alpha, 0.5 * (np.outer(alpha, alpha) - R), by_noise)


@dataclass(frozen=True)
class Gaussian(_ClosedForm):
    """Standard GP regression on y' = h(y): the noise is taken as Gaussian noise of y' itself (the paper's fallback)."""

    def sites(self, likelihood: Likelihood) -> NoisySites:
        return likelihood.plain_sites()


@dataclass(frozen=True)
class MomentMatched(_ClosedForm):
    """Regression on h(y) less its bias, with the variance that noise on y gives h(y) at the reference values.

    For the square: target y^2 - sigma^2, variance 4 a^2 sigma^2 + 2 sigma^4 with a the auxiliary output.
    """

    def sites(self, likelihood: Likelihood) -> NoisySites:
        return likelihood.moment_sites()
