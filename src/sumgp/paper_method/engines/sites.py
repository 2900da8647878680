"""Gaussian sites: every engine replaces each likelihood term by N(target_i | u_i, variance_i); the rest is regression.

Shapes: n latent values u ~ N(m, K) with K (n, n) positive semidefinite, possibly singular (a linear law conditioned
on), one likelihood term each. K is never inverted: all goes through B = I + W^1/2 K W^1/2 with W the site precisions.

The engines in closed form are here: standard regression on h(y), and regression with matched moments.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sumgp.errors import Status, warn
from sumgp.numerics import LOG_2PI, cholesky, cholesky_inverse, solve_cholesky, solve_lower
from sumgp.paper_method.likelihoods import Likelihood, NoisySites

# Site precisions stay above this share of the prior's own, so that every site has a target and a positive variance.
PRECISION_FLOOR = 1e-9


@dataclass(frozen=True, eq=False)
class SiteMarginals:
    """Posterior marginals of some latent values and their own sites, each (k,)."""

    mean: np.ndarray
    variance: np.ndarray
    targets: np.ndarray
    precisions: np.ndarray

    @property
    def natural(self) -> np.ndarray:
        """Precision times target."""
        return self.precisions * self.targets


@dataclass(frozen=True, eq=False)
class SitePosterior:
    """Exact regression on sites: mean = m + K alpha, cov = K - K R K with R = (K + W^-1)^-1, alpha = R (t - m)."""

    targets: np.ndarray
    precisions: np.ndarray
    mean: np.ndarray
    alpha: np.ndarray
    log_det: float  # log |B| = log |I + K W|
    misfit: float  # (t - m)^T R (t - m)
    prior_cov: np.ndarray
    factor: np.ndarray  # lower factor of B

    # Both on demand: the evidence of closed-form engines needs neither, their gradients only R.
    @cached_property
    def cov(self) -> np.ndarray:
        """(n, n) posterior covariance."""
        half = solve_lower(self.factor, np.sqrt(self.precisions)[:, None] * self.prior_cov)
        return self.prior_cov - half.T @ half

    @cached_property
    def R(self) -> np.ndarray:
        """(n, n) (K + W^-1)^-1 = W^1/2 B^-1 W^1/2."""
        root = np.sqrt(self.precisions)
        return root[:, None] * cholesky_inverse(self.factor) * root

    @property
    def log_density(self) -> float:
        """log N(targets | m, K + W^-1) over the sites in use."""
        used = self.precisions[self.precisions > 0]
        return float(0.5 * np.sum(np.log(used / (2.0 * np.pi))) - 0.5 * self.log_det - 0.5 * self.misfit)

    @property
    def variance(self) -> np.ndarray:
        """(n,) marginal variances, not below round-off of the prior's size."""
        diagonal = np.diagonal(self.cov)
        return np.maximum(diagonal, 1e-16 * float(np.max(diagonal, initial=1e-300)) + 1e-300)

    def marginals(self, where: np.ndarray | slice = slice(None)) -> SiteMarginals:
        """Marginals and sites at these positions."""
        return SiteMarginals(self.mean[where], self.variance[where], self.targets[where], self.precisions[where])


def regress(prior_mean: np.ndarray, prior_cov: np.ndarray, targets: np.ndarray, precisions: np.ndarray) -> SitePosterior:
    """Posterior of N(m, K) given sites; precision 0 = no information. Raises NumericalError on NaN."""
    root = np.sqrt(precisions)
    factor = cholesky(np.eye(len(root)) + root[:, None] * prior_cov * root, "site")
    residual = targets - prior_mean
    alpha = root * solve_cholesky(factor, root * residual)
    return SitePosterior(
        targets=targets,
        precisions=precisions,
        mean=prior_mean + prior_cov @ alpha,
        alpha=alpha,
        log_det=2.0 * float(np.sum(np.log(np.diagonal(factor)))),
        misfit=float(residual @ alpha),
        prior_cov=prior_cov,
        factor=factor,
    )


@dataclass(frozen=True, eq=False)
class EvidenceGradient:
    """Derivatives of an engine's objective, to be chained to any hyperparameters.

    ``prior_cov`` (n, n) is symmetric: dE = sum_ij prior_cov_ij dK_ij. ``log_noise`` (n,) is by the logarithm of each
    observation's noise standard deviation.
    """

    prior_mean: np.ndarray
    prior_cov: np.ndarray
    log_noise: np.ndarray


@dataclass(frozen=True, eq=False)
class SiteResult:
    """What an engine found: sites, the posterior they give, and the engine's approximation of log p(y).

    ``variances`` inf marks observations that were not used. ``status`` is in words; ``engine`` is the one whose sites
    and objective these are, which differs from the one asked if that one failed.
    """

    targets: np.ndarray
    variances: np.ndarray
    mean: np.ndarray
    evidence: float
    status: str
    n_steps: int
    engine: Engine
    posterior: SitePosterior

    @property
    def cov(self) -> np.ndarray:
        """(n, n) posterior covariance."""
        return self.posterior.cov


class Engine(ABC):
    """A way to find sites. Fields are its settings; it holds no data."""

    def infer(self, m: np.ndarray, K: np.ndarray, likelihood: Likelihood, start: SiteResult | None = None) -> SiteResult:
        """Sites for u ~ N(m (n,), K (n, n)) under the likelihood; ``start`` = a result for similar hyperparameters.

        The terms that are not Gaussian are settled under the prior given all that are: log p(y) = log p(y_exact) +
        log p(y_rest | y_exact), and only the second part is approximated. No engine iterates on sites it knows, nor loses
        digits by very precise ones among them.
        """
        rest, curved = likelihood.without_gaussian()
        if len(rest) == likelihood.size:
            return self.settle(m, K, likelihood, start)
        sites = likelihood.plain_sites()
        targets, precisions = sites.targets.copy(), 1.0 / sites.variances
        if not len(rest):
            posterior = regress(m, K, targets, precisions)
            return finished(posterior, posterior.log_density, Status.CONVERGED, 0, self)
        mean, cov, log_density = _given_others(m, K, targets, precisions, rest)
        begin = None if start is None else replace(start, targets=start.targets[rest], variances=start.variances[rest])
        result = self.settle(mean, cov, curved, begin)
        targets[rest], precisions[rest] = result.targets, result.posterior.precisions
        posterior = regress(m, K, targets, precisions)
        return finished(posterior, log_density + result.evidence, result.status, result.n_steps, result.engine)

    @abstractmethod
    def settle(self, m: np.ndarray, K: np.ndarray, likelihood: Likelihood, start: SiteResult | None) -> SiteResult:
        """Sites for terms of which none is Gaussian."""

    @abstractmethod
    def own_gradient(self, m: np.ndarray, K: np.ndarray, likelihood: Likelihood, result: SiteResult) -> EvidenceGradient:
        """Gradient of the evidence of a result that this engine found."""

    def gradient(self, m: np.ndarray, K: np.ndarray, likelihood: Likelihood, result: SiteResult) -> EvidenceGradient:
        """Gradient of ``result.evidence``, by the engine that found it."""
        return result.engine.own_gradient(m, K, likelihood, result)


def finished(posterior: SitePosterior, evidence: float, status: str, n_steps: int, engine: Engine) -> SiteResult:
    """Gather an engine's outcome."""
    precisions = posterior.precisions
    variances = np.where(precisions > 0, 1.0 / np.where(precisions > 0, precisions, 1.0), np.inf)
    return SiteResult(posterior.targets, variances, posterior.mean, evidence, status, n_steps, engine, posterior)


def fall_back(engine: Engine, reason: str, result: SiteResult) -> SiteResult:
    """Hand on another engine's result, with a warning that names the reason."""
    names = type(engine).__name__, type(result.engine).__name__
    warn(f"{names[0]}: {reason}; the result is that of {names[1]}")
    return replace(result, status=f"fell back to {names[1]}: {reason}")


def start_sites(likelihood: Likelihood, start: SiteResult | None) -> tuple[np.ndarray, np.ndarray]:
    """Targets and precisions (n,) of ``start``, or of matched moments, which hold for every transform."""
    if start is not None:
        return start.targets, 1.0 / start.variances
    sites = likelihood.moment_sites()
    return sites.targets, 1.0 / sites.variances


class _GivenOthers(NamedTuple):
    """Mean and covariance of some tasks given the sites of all others, and the log density of those."""

    mean: np.ndarray
    cov: np.ndarray
    log_density: float


def _given_others(
    m: np.ndarray, K: np.ndarray, targets: np.ndarray, precisions: np.ndarray, rest: np.ndarray
) -> _GivenOthers:
    """Mean and covariance of u[rest] given the sites of all others, and the log density of those sites' targets."""
    others = np.delete(np.arange(len(m)), rest)
    root, residual = np.sqrt(precisions[others]), (targets - m)[others]
    factor = cholesky(np.eye(len(root)) + root[:, None] * K[np.ix_(others, others)] * root, "site")
    right = np.column_stack([K[np.ix_(others, rest)], residual]) * root[:, None]
    solved = solve_lower(factor, right)
    half, white = solved[:, :-1], solved[:, -1]
    log_density = np.sum(np.log(root / np.diagonal(factor))) - 0.5 * (white @ white + len(root) * LOG_2PI)
    return _GivenOthers(m[rest] + half.T @ white, K[np.ix_(rest, rest)] - half.T @ half, float(log_density))


def precision_floor(prior_cov: np.ndarray) -> float:
    """Smallest precision a site may take."""
    return PRECISION_FLOOR / max(float(np.mean(np.diagonal(prior_cov))), 1e-300)


def damped_sites(
    posterior: SitePosterior, natural: np.ndarray, precisions: np.ndarray, damping: float
) -> tuple[np.ndarray, np.ndarray]:
    """Targets and precisions a share ``damping`` of the way to the wanted precision x target and precision (n,)."""
    old = posterior.precisions * posterior.targets
    natural = old + damping * (natural - old)
    precisions = posterior.precisions + damping * (precisions - posterior.precisions)
    used = precisions > 0
    return np.where(used, natural / np.where(used, precisions, 1.0), 0.0), precisions


def largest_change(before: SitePosterior, after: SitePosterior) -> float:
    """Largest change of a marginal's mean or sd, in posterior sds."""
    sd, new_sd = np.sqrt(before.variance), np.sqrt(after.variance)
    return float(np.max(np.maximum(np.abs(after.mean - before.mean), np.abs(new_sd - sd)) / sd))


class Slopes(NamedTuple):
    """Derivatives (k,) of a function of the marginals by their means, their variances and the logarithm of the noise."""

    mean: np.ndarray
    variance: np.ndarray
    log_noise: np.ndarray


def gradient_at_fixed_sites(
    K: np.ndarray, likelihood: Likelihood, posterior: SitePosterior, slopes: Callable[[Likelihood, SiteMarginals], Slopes]
) -> EvidenceGradient:
    """Gradient of log N(t | m, K + W^-1) + a function of the marginals of terms that are not Gaussian, the sites held.

    ``slopes`` are that function's. Means and variances move as d mean = A (dK alpha + dm), d cov = A dK A^T with
    A = I - K R = (I + K W)^-1. By the noise of a term that is Gaussian: (alpha^2 - R_ii) / precision.
    """
    alpha, R = posterior.alpha, posterior.R
    rest, curved = likelihood.without_gaussian()
    by = Slopes(*np.zeros((3, likelihood.size)))
    exact = np.ones(likelihood.size, dtype=bool)
    exact[rest] = False
    by.log_noise[exact] = ((alpha**2 - np.diagonal(R))[exact]) / posterior.precisions[exact]
    if len(rest):
        by.mean[rest], by.variance[rest], by.log_noise[rest] = slopes(curved, posterior.marginals(rest))
    A = np.eye(len(alpha)) - K @ R
    pulled = A.T @ by.mean
    by_cov = 0.5 * (np.outer(alpha, alpha) - R + np.outer(pulled, alpha) + np.outer(alpha, pulled))
    return EvidenceGradient(alpha + pulled, by_cov + A.T @ (by.variance[:, None] * A), by.log_noise)


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
