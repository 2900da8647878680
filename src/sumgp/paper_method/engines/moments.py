"""Engines in closed form: standard regression on h(y), and regression with matched moments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sumgp.errors import Status
from sumgp.paper_method.engines.sites import Engine, EvidenceGradient, SiteResult, finished, noisy_site_gradient, regress
from sumgp.paper_method.likelihoods import Likelihood, NoisySites


@dataclass(frozen=True)
class Gaussian(Engine):
    """Standard GP regression on y' = h(y): the noise is taken as Gaussian noise of y' itself (the paper's fallback)."""

    def infer(
        self, prior_mean: np.ndarray, prior_cov: np.ndarray, likelihood: Likelihood, start: SiteResult | None = None
    ) -> SiteResult:
        return _closed_form(prior_mean, prior_cov, likelihood.plain_sites(), self)

    def own_gradient(
        self, prior_mean: np.ndarray, prior_cov: np.ndarray, likelihood: Likelihood, result: SiteResult
    ) -> EvidenceGradient:
        return noisy_site_gradient(result.posterior, likelihood.plain_sites())


@dataclass(frozen=True)
class MomentMatched(Engine):
    """Regression on h(y) less its bias, with the variance that noise on y gives h(y) at the reference values.

    For the square: target y^2 - sigma^2, variance 4 a^2 sigma^2 + 2 sigma^4 with a the auxiliary output.
    """

    def infer(
        self, prior_mean: np.ndarray, prior_cov: np.ndarray, likelihood: Likelihood, start: SiteResult | None = None
    ) -> SiteResult:
        return _closed_form(prior_mean, prior_cov, likelihood.moment_sites(), self)

    def own_gradient(
        self, prior_mean: np.ndarray, prior_cov: np.ndarray, likelihood: Likelihood, result: SiteResult
    ) -> EvidenceGradient:
        return noisy_site_gradient(result.posterior, likelihood.moment_sites())


def _closed_form(prior_mean: np.ndarray, prior_cov: np.ndarray, sites: NoisySites, engine: Engine) -> SiteResult:
    posterior = regress(prior_mean, prior_cov, sites.targets, 1.0 / sites.variances)
    return finished(posterior, posterior.log_density, Status.CONVERGED, 0, engine)
