"""Laplace approximation at the posterior mode (appendix B.3 of the paper; Rasmussen and Williams, algorithms 3.1, 5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from sumgp.errors import NumericalError, Status, warn
from sumgp.numerics import backtrack
from sumgp.paper_method.engines import sites as engine
from sumgp.paper_method.engines.sites import MomentMatched
from sumgp.paper_method.likelihoods import Likelihood, Terms

# Relative gain in log density that round-off may hide.
_ROUND_OFF = 1e-8
FAIR_SHARE = 1e-4  # of the gain that the slope promises: less is no progress (Armijo)
SHORTEST = 0.5**40  # of a full step


class _Mode(NamedTuple):
    """alpha (n,) at the mode, steps taken, and how the search ended."""

    alpha: np.ndarray
    n_steps: int
    status: Status


@dataclass(frozen=True)
class Laplace(engine.Engine):
    """Mode of log p(y|u) + log N(u | m, K), sites from the curvature W >= 0 (Fisher or Gauss-Newton) there.

    E = log p(y|u) - (u - m)^T alpha / 2 - log |I + K W| / 2 at the mode, where u = m + K alpha and alpha = grad log p.
    ``tolerance`` bounds the gain in log posterior density that a further step could bring.
    """

    max_steps: int = 100
    tolerance: float = 1e-14

    def settle(
        self, m: np.ndarray, K: np.ndarray, likelihood: Likelihood, start: engine.SiteResult | None
    ) -> engine.SiteResult:
        try:
            alpha, n_steps, status = self._mode(m, K, likelihood, start)
            return self._at_mode(m, K, likelihood, alpha, n_steps, status)
        except NumericalError as error:
            return engine.fall_back(self, str(error), MomentMatched().infer(m, K, likelihood))

    def _mode(self, m: np.ndarray, K: np.ndarray, likelihood: Likelihood, start: engine.SiteResult | None) -> _Mode:
        """alpha (n,) at the mode, steps taken, status."""
        # Warm starts are a step or two from the mode: the weights of the last sites, without their posterior.
        targets, precisions = engine.start_sites(likelihood, start)
        root = np.sqrt(precisions)
        alpha = root * _solve(np.eye(len(m)) + root[:, None] * K * root, root * (targets - m))
        here = _at(m, K, likelihood, alpha)
        gain = np.inf
        for step in range(1, self.max_steps + 1):
            before = gain
            direction, gain = _direction(K, here, newton=gain < 1.0)
            moved = _line_search(m, K, likelihood, here, direction, gain)
            # Very precise observations leave more round-off than the last gains: nothing better can be seen.
            if moved is here:
                return _Mode(here.alpha, step, Status.CONVERGED)
            here = moved
            alpha = here.alpha
            # Newton's steps square the error, so a small gain that does not shrink any more is round-off.
            if gain <= self.tolerance or (gain < 1e-10 and gain > 0.5 * before):
                return _Mode(alpha, step, Status.CONVERGED)
        warn(
            f"Laplace: the mode was not reached in {self.max_steps} steps (a further step promises a gain of {gain:.1e} in "
            "log density); raise max_steps"
        )
        return _Mode(alpha, self.max_steps, Status.STEP_LIMIT)

    def _at_mode(
        self, m: np.ndarray, K: np.ndarray, likelihood: Likelihood, alpha: np.ndarray, n_steps: int, status: str
    ) -> engine.SiteResult:
        u = m + K @ alpha
        terms = likelihood.terms(u)
        precisions = _positive(terms, likelihood, K)
        used = precisions > 0
        targets = np.where(used, u + terms.first / np.where(used, precisions, 1.0), 0.0)
        posterior = engine.regress(m, K, targets, precisions)
        evidence = float(np.sum(terms.log_density) - 0.5 * alpha @ (u - m) - 0.5 * posterior.log_det)
        if not np.isfinite(evidence):
            raise NumericalError("the evidence at the mode is not finite")
        return engine.finished(posterior, evidence, status, n_steps, self)

    def own_gradient(
        self, m: np.ndarray, K: np.ndarray, likelihood: Likelihood, result: engine.SiteResult
    ) -> engine.EvidenceGradient:
        """Explicit part at the fixed mode, plus the part through the mode: d u = (I + K H)^-1 (dK alpha + dm + K dg).

        H = -d^2 log p / du^2 is the true curvature, whatever sign it has; W is the one in the determinant.
        """
        posterior = result.posterior
        terms = likelihood.terms(posterior.mean)
        alpha, variance = posterior.alpha, np.diagonal(posterior.cov)
        floored = terms.curvature < (1.0 - 1e-6) * posterior.precisions
        slope = np.where(floored, 0.0, terms.curvature_first)
        by_mode = -0.5 * variance * slope
        implicit = _solve(np.eye(len(alpha)) - terms.second[:, None] * K, by_mode)
        by_noise = np.where(floored, 0.0, terms.curvature_noise)
        return engine.EvidenceGradient(
            prior_mean=alpha + implicit,
            prior_cov=0.5 * (np.outer(alpha, alpha) - posterior.R + np.outer(implicit, alpha) + np.outer(alpha, implicit)),
            log_noise=terms.noise - 0.5 * variance * by_noise + (K @ implicit) * terms.first_noise,
        )


def _positive(terms: Terms, likelihood: Likelihood, K: np.ndarray) -> np.ndarray:
    """Curvatures kept above the floor; 0 for observations that are not used."""
    return np.where(likelihood.active, np.maximum(terms.curvature, engine.precision_floor(K)), 0.0)


@dataclass(frozen=True, eq=False)
class _Point:
    """One alpha (n,) with K alpha, the likelihood's terms at m + K alpha and log p(y|u) - alpha^T K alpha / 2."""

    alpha: np.ndarray
    moved: np.ndarray
    terms: Terms
    value: float


def _at(m: np.ndarray, K: np.ndarray, likelihood: Likelihood, alpha: np.ndarray) -> _Point:
    moved = K @ alpha
    with np.errstate(over="ignore"):
        terms = likelihood.terms(m + moved)
        return _Point(alpha, moved, terms, float(np.sum(terms.log_density) - 0.5 * alpha @ moved))


def _direction(K: np.ndarray, here: _Point, newton: bool) -> tuple[np.ndarray, float]:
    """Change of alpha and the gain it promises: Newton's near the mode if that ascends, else Gauss-Newton's."""
    alpha, terms = here.alpha, here.terms
    uphill = K @ (terms.first - alpha)
    for curvature in ([-terms.second] if newton else []) + [terms.curvature]:
        matrix = np.eye(len(alpha)) + curvature[:, None] * K
        change = _solve(matrix, curvature * here.moved + terms.first) - alpha
        gain = float(uphill @ change)
        if gain >= 0.0 and np.isfinite(gain):
            return change, gain
    # Round-off can make a vanishing gain negative.
    if abs(gain) < 1e-9:
        return np.zeros_like(alpha), 0.0
    raise NumericalError("no direction of ascent was found for the posterior mode")


def _line_search(
    m: np.ndarray, K: np.ndarray, likelihood: Likelihood, here: _Point, direction: np.ndarray, gain: float
) -> _Point:
    """Halve the step until the log posterior rises by a fair share of what its slope promises.

    ``here`` itself comes back where the promise is as small as round-off may be.
    """
    roundoff = 1e-12 * max(1.0, abs(here.value))

    def risen(length: float) -> _Point | None:
        point = _at(m, K, likelihood, here.alpha + length * direction)
        enough = np.isfinite(point.value) and point.value >= here.value + FAIR_SHARE * length * gain - roundoff
        return point if enough else None

    found = backtrack(risen, SHORTEST)
    if found is not None:
        return found
    if gain < _ROUND_OFF * max(1.0, abs(here.value)):
        return here
    raise NumericalError("the line search for the posterior mode found no better point")


def _solve(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """LU solve; NumericalError where the matrix is singular or holds NaN."""
    _, _, solution, info = lapack.dgesv(matrix, right)
    if info != 0 or not np.all(np.isfinite(solution)):
        raise NumericalError("a linear system for the posterior mode is singular")
    return solution.reshape(right.shape)
