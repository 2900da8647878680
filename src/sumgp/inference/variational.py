"""Variational inference with a full covariance, as a fixed point of Gaussian sites (appendix B.4 of the paper)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from sumgp.errors import NumericalError, SumGPWarning
from sumgp.inference.laplace import Laplace
from sumgp.inference.sites import (
    Engine,
    EvidenceGradient,
    SitePosterior,
    SiteResult,
    damped_sites,
    fall_back,
    finished,
    gradient_at_fixed_sites,
    largest_change,
    precision_floor,
    regress,
    start_posterior,
)
from sumgp.likelihoods import Likelihood
from sumgp.likelihoods.quadrature import normal_rule


@dataclass(frozen=True, eq=False)
class _Expectations:
    """E_q log p per observation and its derivatives by the mean, the variance and log noise of each marginal, (n,)."""

    log_density: np.ndarray
    by_mean: np.ndarray
    by_variance: np.ndarray
    by_noise: np.ndarray


@dataclass(frozen=True)
class Variational(Engine):
    """q(u) = N(mean, cov) that maximises ELBO = E_q log p(y|u) - KL(q || prior).

    At the optimum q has the form of regression on sites with precision -2 dE/dvariance and natural target
    dE/dmean + precision mean, E the expected log likelihood: the conjugate-computation update, a natural-gradient step
    of length one, here damped so that the ELBO never falls. Only 2n numbers are free, although the covariance is full.
    ``tolerance`` is the last change of a mean or sd, in posterior sds; ``nodes`` the order of the quadrature.
    """

    max_steps: int = 500
    tolerance: float = 1e-7
    nodes: int = 64

    def infer(
        self, prior_mean: np.ndarray, prior_cov: np.ndarray, likelihood: Likelihood, start: SiteResult | None = None
    ) -> SiteResult:
        try:
            posterior = start_posterior(prior_mean, prior_cov, likelihood, start)
            posterior, bound, n_steps, status = self._ascend(prior_mean, prior_cov, likelihood, posterior)
            return finished(posterior, bound, status, n_steps, self)
        except NumericalError as error:
            return fall_back(self, str(error), Laplace().infer(prior_mean, prior_cov, likelihood))

    def _ascend(
        self, m: np.ndarray, K: np.ndarray, likelihood: Likelihood, posterior: SitePosterior
    ) -> tuple[SitePosterior, float, int, str]:
        expected = _expectations(likelihood, posterior, self.nodes)
        bound = _elbo(K, posterior, expected)
        damping, change = 1.0, np.inf
        for step in range(1, self.max_steps + 1):
            wanted = _wanted_sites(posterior, expected, likelihood, precision_floor(K))
            while True:
                targets, precisions = damped_sites(posterior, *wanted, damping)
                proposal = regress(m, K, targets, precisions)
                new_expected = _expectations(likelihood, proposal, self.nodes)
                new_bound = _elbo(K, proposal, new_expected)
                if new_bound >= bound - 1e-11 * max(1.0, abs(bound)):
                    break
                damping *= 0.5
                if damping < 1e-6:
                    raise NumericalError("no damping made the evidence bound rise")
            before, change = change, largest_change(posterior, proposal) / damping
            posterior, expected, bound = proposal, new_expected, new_bound
            # Close to the optimum the bound is flat to round-off; there the changes tell whether steps overshoot.
            damping = min(1.0, 1.15 * damping) if change < 0.9 * before else 0.7 * damping
            if change < self.tolerance:
                return posterior, bound, step, "converged"
        warnings.warn(
            f"Variational: q still moved by {change:.1e} sd after {self.max_steps} steps; raise max_steps",
            SumGPWarning,
            stacklevel=3,
        )
        return posterior, bound, self.max_steps, "step limit"

    def own_gradient(
        self, prior_mean: np.ndarray, prior_cov: np.ndarray, likelihood: Likelihood, result: SiteResult
    ) -> EvidenceGradient:
        """With the sites held; exact at the optimum, also where a precision rests on its floor."""
        posterior = result.posterior
        expected = _expectations(likelihood, posterior, self.nodes)
        natural = posterior.precisions * posterior.targets
        by_mean = expected.by_mean - natural + posterior.precisions * posterior.mean
        by_variance = expected.by_variance + 0.5 * posterior.precisions
        mean_part, cov_part = gradient_at_fixed_sites(prior_cov, posterior, by_mean, by_variance)
        return EvidenceGradient(mean_part, cov_part, expected.by_noise)


def _expectations(likelihood: Likelihood, posterior: SitePosterior, nodes: int) -> _Expectations:
    """Quadrature over the marginals; dE/dvariance = E[log p' (u - mean)] / (2 variance) needs no second derivative."""
    mean, variance = posterior.mean, posterior.variance
    u, log_weights = normal_rule(mean, np.sqrt(variance), likelihood.kinks, nodes)
    weights, terms = np.exp(log_weights), likelihood.terms(u)
    return _Expectations(
        log_density=np.sum(weights * terms.log_density, axis=1),
        by_mean=np.sum(weights * terms.first, axis=1),
        by_variance=np.sum(weights * terms.first * (u - mean[:, None]), axis=1) / (2.0 * variance),
        by_noise=np.sum(weights * terms.noise, axis=1),
    )


def _elbo(K: np.ndarray, posterior: SitePosterior, expected: _Expectations) -> float:
    """E log p - KL, with KL = (tr B^-1 - n + alpha^T K alpha + log |B|) / 2 and tr B^-1 = n - tr(K R)."""
    alpha = posterior.alpha
    divergence = 0.5 * (alpha @ K @ alpha + posterior.log_det - np.sum(K * posterior.R))
    bound = float(np.sum(expected.log_density) - divergence)
    if np.isnan(bound):
        raise NumericalError("the evidence bound is not a number")
    return bound


def _wanted_sites(
    posterior: SitePosterior, expected: _Expectations, likelihood: Likelihood, floor: float
) -> tuple[np.ndarray, np.ndarray]:
    """Natural target and precision of the undamped update; zero where an observation is not used."""
    precisions = np.where(likelihood.active, np.maximum(-2.0 * expected.by_variance, floor), 0.0)
    return expected.by_mean + precisions * posterior.mean, precisions
