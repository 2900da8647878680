"""Expectation propagation: each site matches the first two moments of its likelihood term against all other sites."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sumgp.errors import NumericalError, Status
from sumgp.numerics import normal_rule
from sumgp.paper_method.engines import sites as engine
from sumgp.paper_method.engines.laplace import Laplace
from sumgp.paper_method.likelihoods import Likelihood

# The quadrature's reference density is the current marginal with this much more variance, so that it covers the tails.
_WIDENED = 1.4


@dataclass(frozen=True, eq=False)
class _Tilted:
    """Cavity N(mean, variance) per observation and the normaliser and moments of cavity times likelihood, (n,)."""

    cavity_mean: np.ndarray
    cavity_variance: np.ndarray
    log_normaliser: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    by_noise: np.ndarray


@dataclass(frozen=True)
class ExpectationPropagation(engine.Engine):
    """Parallel EP with damping; restarted with the next, heavier damping if it does not settle.

    E = log Z(sites) + sum_i [log int cavity_i p(y_i|u_i) - log int cavity_i site_i]. Sites whose matched precision would
    be negative (likelihoods that are not log-concave) rest on a small positive floor.
    ``tolerance`` is the largest mismatch of a mean or sd, in posterior sds.
    """

    max_steps: int = 300
    tolerance: float = 1e-9
    nodes: int = 64
    dampings: tuple[float, ...] = (0.8, 0.4, 0.15)

    def settle(
        self, m: np.ndarray, K: np.ndarray, likelihood: Likelihood, start: engine.SiteResult | None
    ) -> engine.SiteResult:
        reason = "the sites did not settle under any damping"
        for damping in self.dampings:
            try:
                posterior = engine.regress(m, K, *engine.start_sites(likelihood, start))
                posterior, n_steps = self._iterate(m, K, likelihood, posterior, damping)
                energy = _energy(m, posterior, _tilted(likelihood, posterior.marginals(), self.nodes))
                return engine.finished(posterior, energy, Status.CONVERGED, n_steps, self)
            except NumericalError as error:
                reason = str(error)
        return engine.fall_back(self, reason, Laplace().infer(m, K, likelihood))

    def _iterate(
        self, m: np.ndarray, K: np.ndarray, likelihood: Likelihood, posterior: engine.SitePosterior, damping: float
    ) -> tuple[engine.SitePosterior, int]:
        floor = engine.precision_floor(K)
        for step in range(1, self.max_steps + 1):
            tilted = _tilted(likelihood, posterior.marginals(), self.nodes)
            natural, precisions = _matched(tilted, likelihood, floor)
            proposal = engine.regress(m, K, *engine.damped_sites(posterior, natural, precisions, damping))
            change = engine.largest_change(posterior, proposal) / damping
            posterior = proposal
            if change < self.tolerance:
                return posterior, step
        raise NumericalError(f"the sites still moved by {change:.1e} sd after {self.max_steps} steps")

    def own_gradient(
        self, m: np.ndarray, K: np.ndarray, likelihood: Likelihood, result: engine.SiteResult
    ) -> engine.EvidenceGradient:
        """With the sites held: exact where all moments match.

        A site on its floor does not match its variance, and its pull on the other sites is left out: one datum on the
        wrong branch by one noise sd costs about one per cent of the gradient.
        """

        def slopes(curved: Likelihood, marginals: engine.SiteMarginals) -> engine.Slopes:
            tilted = _tilted(curved, marginals, self.nodes)
            return engine.Slopes(*_mismatch(marginals, tilted), np.where(curved.active, tilted.by_noise, 0.0))

        return engine.gradient_at_fixed_sites(K, likelihood, result.posterior, slopes)


def _tilted(likelihood: Likelihood, posterior: engine.SiteMarginals, nodes: int) -> _Tilted:
    """Moments by quadrature around the current marginals, which the tilted density equals at convergence."""
    variance, precisions = posterior.variance, posterior.precisions
    remaining = 1.0 - precisions * variance
    if np.any(remaining <= 0.0):
        raise NumericalError("a cavity variance is not positive")
    cavity_variance = variance / remaining
    cavity_mean = (posterior.mean - posterior.natural * variance) / remaining
    spread = _WIDENED * variance
    u, log_weights = normal_rule(posterior.mean, np.sqrt(spread), likelihood.kinks, nodes)
    terms = likelihood.terms(u)
    # Both normal densities carry the factor (2 pi)^-1/2, which cancels.
    log_cavity = -0.5 * ((u - cavity_mean[:, None]) ** 2 / cavity_variance[:, None] + np.log(cavity_variance)[:, None])
    log_reference = -0.5 * ((u - posterior.mean[:, None]) ** 2 / spread[:, None] + np.log(spread)[:, None])
    logs = log_weights + terms.log_density + log_cavity - log_reference
    top = logs.max(axis=1)
    if not np.all(np.isfinite(top)):
        raise NumericalError("a tilted density has no finite value")
    shares = np.exp(logs - top[:, None])
    total = shares.sum(axis=1)
    shares /= total[:, None]
    mean = np.sum(shares * u, axis=1)
    return _Tilted(
        cavity_mean=cavity_mean,
        cavity_variance=cavity_variance,
        log_normaliser=top + np.log(total),
        mean=mean,
        variance=np.sum(shares * (u - mean[:, None]) ** 2, axis=1),
        by_noise=np.sum(shares * terms.noise, axis=1),
    )


def _matched(tilted: _Tilted, likelihood: Likelihood, floor: float) -> tuple[np.ndarray, np.ndarray]:
    """Natural target and precision with which cavity times site has the tilted moments; the mean alone on the floor."""
    precisions = 1.0 / tilted.variance - 1.0 / tilted.cavity_variance
    precisions = np.where(likelihood.active, np.maximum(precisions, floor), 0.0)
    natural = tilted.mean * (precisions + 1.0 / tilted.cavity_variance) - tilted.cavity_mean / tilted.cavity_variance
    return np.where(likelihood.active, natural, 0.0), precisions


def _energy(m: np.ndarray, posterior: engine.SitePosterior, tilted: _Tilted) -> float:
    """log Z_EP, with sites in the form exp(b u - w u^2/2): no term grows as a precision w falls to its floor."""
    w, b = posterior.precisions, posterior.precisions * posterior.targets
    gap = b - w * m
    log_joint = -0.5 * posterior.log_det + np.sum(b * m - 0.5 * w * m**2) + 0.5 * gap @ posterior.cov @ gap
    m_c, v_c = tilted.cavity_mean, tilted.cavity_variance
    log_site = b * m_c - 0.5 * w * m_c**2 + 0.5 * (b - w * m_c) ** 2 * v_c / (1.0 + w * v_c) - 0.5 * np.log1p(w * v_c)
    energy = float(log_joint + np.sum((tilted.log_normaliser - log_site)[w > 0]))
    if not np.isfinite(energy):
        raise NumericalError("the energy is not finite")
    return energy


def _mismatch(posterior: engine.SiteMarginals, tilted: _Tilted) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives of sum_i [log tilted normaliser - log site normaliser] by the marginal means and variances.

    By the cavity's mean (mean' - mean)/v_c and variance (second moments about the cavity mean)/(2 v_c^2), chained through
    v_c = v/(1 - w v), m_c = (mean - b v)/(1 - w v); zero where moments match.
    """
    v_c, m_c = tilted.cavity_variance, tilted.cavity_mean
    by_cavity_mean = (tilted.mean - posterior.mean) / v_c
    second_tilted = tilted.variance + (tilted.mean - m_c) ** 2
    second_site = posterior.variance + (posterior.mean - m_c) ** 2
    by_cavity_variance = 0.5 * (second_tilted - second_site) / v_c**2
    ratio = v_c / posterior.variance
    gap = posterior.precisions * m_c - posterior.natural
    by_variance = by_cavity_variance * ratio**2 + by_cavity_mean * ratio * gap
    return by_cavity_mean * ratio, by_variance
