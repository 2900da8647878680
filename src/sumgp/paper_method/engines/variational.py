"""Variational inference with a full covariance, as a fixed point of Gaussian sites (appendix B.4 of the paper)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sumgp.errors import NumericalError, Status, warn
from sumgp.numerics import cholesky, normal_rule, solve_cholesky
from sumgp.paper_method.engines import sites as engine
from sumgp.paper_method.engines.laplace import Laplace
from sumgp.paper_method.likelihoods import Likelihood

# Number of past steps that an extrapolation looks at.
_MEMORY = 4
# Number of steps without a rise of the bound after which it counts as flat.
_PATIENCE = 5
# Share of its diagonal that makes a singular Fisher matrix positive definite.
_RIDGE = 1e-11
# Relative fall of the bound that may be round-off.
_ROUND_OFF = 1e-8


@dataclass(frozen=True, eq=False)
class _Expectations:
    """E_q log p per observation and its derivatives by the mean, the variance and log noise of each marginal, (n,)."""

    log_density: np.ndarray
    by_mean: np.ndarray
    by_variance: np.ndarray
    by_noise: np.ndarray


class _Ascent(NamedTuple):
    """Where the bound was highest, the bound, steps taken, and how the search ended."""

    posterior: engine.SitePosterior
    bound: float
    n_steps: int
    status: Status


@dataclass(frozen=True)
class Variational(engine.Engine):
    """q(u) = N(mean, cov) that maximises ELBO = E_q log p(y|u) - KL(q || prior).

    At the optimum q has the form of regression on sites with precision -2 dE/dvariance and natural target
    dE/dmean + precision mean, E the expected log likelihood: the conjugate-computation update, a natural-gradient step
    of length one, here extrapolated or damped so that the ELBO never falls. Only 2n numbers are free, although the
    covariance is full. ``tolerance`` is how far a site may be from its update, in posterior sds; ``nodes`` the order of
    the quadrature.
    """

    max_steps: int = 500
    tolerance: float = 1e-7
    nodes: int = 64

    def settle(
        self, m: np.ndarray, K: np.ndarray, likelihood: Likelihood, start: engine.SiteResult | None
    ) -> engine.SiteResult:
        try:
            posterior = engine.regress(m, K, *engine.start_sites(likelihood, start))
            posterior, bound, n_steps, status = self._ascend(m, K, likelihood, posterior)
            return engine.finished(posterior, bound, status, n_steps, self)
        except NumericalError as error:
            return engine.fall_back(self, str(error), Laplace().infer(m, K, likelihood))

    def _ascend(self, m: np.ndarray, K: np.ndarray, likelihood: Likelihood, posterior: engine.SitePosterior) -> _Ascent:
        floor = engine.precision_floor(K)
        state = _State(K, likelihood, posterior, self.nodes, floor)
        history: list[_State] = []
        bounds: list[float] = []
        for step in range(1, self.max_steps + 1):
            # Sites that do not matter may wander; a bound that has been flat for long is the optimum all the same.
            small = max(1e-9, 0.01 * self.tolerance) * max(1.0, abs(state.bound))
            flat = len(bounds) >= _PATIENCE and state.bound - bounds[-_PATIENCE] < small
            if state.gap < self.tolerance or flat:
                return _Ascent(state.posterior, state.bound, step, Status.CONVERGED)
            bounds.append(state.bound)
            history = [*history[-_MEMORY:], state]
            highest = -np.inf
            for sites in _proposals(history, floor):
                targets, precisions = _targets(sites, likelihood.active, floor)
                proposal = _State(K, likelihood, engine.regress(m, K, targets, precisions), self.nodes, floor)
                highest = max(highest, proposal.bound)
                if proposal.bound >= state.bound - 1e-11 * max(1.0, abs(state.bound)):
                    break
            else:
                # Very precise observations leave the bound with more round-off than that: it cannot be seen to rise.
                if highest > state.bound - _ROUND_OFF * max(1.0, abs(state.bound)):
                    return _Ascent(state.posterior, state.bound, step, Status.CONVERGED)
                raise NumericalError("no damping made the evidence bound rise")
            state = proposal
        warn(f"Variational: sites still off by {state.gap:.1e} sd after {self.max_steps} steps; raise max_steps")
        return _Ascent(state.posterior, state.bound, self.max_steps, Status.STEP_LIMIT)

    def own_gradient(
        self, m: np.ndarray, K: np.ndarray, likelihood: Likelihood, result: engine.SiteResult
    ) -> engine.EvidenceGradient:
        """With the sites held; exact at the optimum, also where a precision rests on its floor."""

        def slopes(curved: Likelihood, own: engine.SiteMarginals) -> engine.Slopes:
            expected = _expectations(curved, own, self.nodes)
            by_mean = expected.by_mean - own.natural + own.precisions * own.mean
            return engine.Slopes(by_mean, expected.by_variance + 0.5 * own.precisions, expected.by_noise)

        return engine.gradient_at_fixed_sites(K, likelihood, result.posterior, slopes)


def _expectations(likelihood: Likelihood, posterior: engine.SiteMarginals, nodes: int) -> _Expectations:
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


def _elbo(K: np.ndarray, posterior: engine.SitePosterior, expected: _Expectations) -> float:
    """E log p - KL, with KL = (tr B^-1 - n + alpha^T K alpha + log |B|) / 2 and tr B^-1 = n - tr(W cov)."""
    alpha = posterior.alpha
    divergence = 0.5 * (alpha @ K @ alpha + posterior.log_det - posterior.precisions @ np.diagonal(posterior.cov))
    bound = float(np.sum(expected.log_density) - divergence)
    if np.isnan(bound):
        raise NumericalError("the evidence bound is not a number")
    return bound


def _natural_step(
    posterior: engine.SitePosterior, expected: _Expectations, active: np.ndarray, floor: float
) -> tuple[np.ndarray, np.ndarray]:
    """Steps (2n,), (2n,) of natural targets and precisions: the natural gradient, and the same cut off at the floor.

    Without the floor they lead to natural target dE/dmean + precision mean and precision -2 dE/dvariance.
    """
    precisions = np.where(active, -2.0 * expected.by_variance, 0.0)
    held = active & (precisions < floor) & (posterior.precisions <= 100.0 * floor)
    wanted = np.where(held, floor, precisions)
    natural = expected.by_mean + wanted * posterior.mean
    if held.any():
        change = _others_response(posterior, held, (precisions - floor)[held])
        natural, wanted = natural + change[0], wanted + change[1]
    cut = np.where(active, np.maximum(wanted, floor), 0.0)
    here = np.concatenate([posterior.precisions * posterior.targets, posterior.precisions])
    return (
        np.concatenate([natural, wanted]) - here,
        np.concatenate([natural + (cut - wanted) * posterior.mean, cut]) - here,
    )


def _others_response(
    posterior: engine.SitePosterior, held: np.ndarray, blocked: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Changes (n,), (n,) of the natural targets and precisions that make up for precisions ``held`` on their floor.

    The gradient of the ELBO by the sites is the Fisher matrix G, the covariance of (u, -u^2/2) under q, times the residual.
    With the residual ``blocked`` on the held precisions (k,), the gradient by all others vanishes for a residual of
    -G_ff^+ G_fh blocked, not for zero. On the held sites' own targets -mean x blocked of that is in the update already.
    """
    mean, cov = posterior.mean, posterior.cov
    mixed = -cov * mean
    G = np.block([[cov, mixed], [mixed.T, 0.5 * cov**2 + cov * np.outer(mean, mean)]])
    size = np.sqrt(np.maximum(np.diagonal(G), 1e-300))
    is_held = np.concatenate([np.zeros(len(mean), dtype=bool), held])
    scaled = G / np.outer(size, size)
    right = scaled[np.ix_(~is_held, is_held)] @ (size[is_held] * blocked)
    change = np.zeros(2 * len(mean))
    # G_ff is singular where latent values are tied; a ridge gives the pseudo-inverse's answer in a fraction of its time.
    free = scaled[np.ix_(~is_held, ~is_held)] + _RIDGE * np.eye(len(right))
    change[~is_held] = solve_cholesky(cholesky(free, "variational response"), right) / size[~is_held]
    change[: len(mean)][held] += mean[held] * blocked
    return change[: len(mean)], change[len(mean) :]


class _State:
    """One set of sites with all that follows from it: posterior, bound, and the step that the update asks for.

    ``sites`` (2n,) are natural targets and precisions, ``ascent`` the natural gradient, ``residual`` the same cut off at
    the floor, ``scale`` what turns a site's change into posterior sds.
    """

    def __init__(
        self, K: np.ndarray, likelihood: Likelihood, posterior: engine.SitePosterior, nodes: int, floor: float
    ) -> None:
        expected = _expectations(likelihood, posterior.marginals(), nodes)
        self.posterior = posterior
        self.bound = _elbo(K, posterior, expected)
        self.sites = np.concatenate([posterior.precisions * posterior.targets, posterior.precisions])
        self.ascent, self.residual = _natural_step(posterior, expected, likelihood.active, floor)
        self.scale = np.concatenate([np.sqrt(posterior.variance), posterior.variance])
        self.gap = float(np.max(np.abs(self.residual * self.scale)))


def _proposals(history: list[_State], floor: float) -> Iterator[np.ndarray]:
    """Sites (2n,) to try in turn: Anderson's extrapolation of the last steps, the update, ever shorter steps uphill.

    The extrapolation is the combination of past updates with the smallest residual; it takes a third of the plain
    iteration's steps and cures its oscillation near turning points of h. The short steps go along the natural gradient,
    which rises, and end where the first precision meets its floor.
    """
    last = history[-1]
    if len(history) > 1:
        moves = np.diff([state.sites for state in history], axis=0).T
        turns = np.diff([state.residual for state in history], axis=0).T
        weights = np.linalg.lstsq(turns * last.scale[:, None], last.residual * last.scale, rcond=1e-8)[0]
        yield last.sites + last.residual - (moves + turns) @ weights
    yield last.sites + last.residual
    precisions, fall = np.split(last.sites, 2)[1], -np.split(last.ascent, 2)[1]
    falling = fall > 0
    longest = float(np.min((precisions - floor)[falling] / fall[falling], initial=1.0))
    for halvings in range(25):
        yield last.sites + max(longest, 1e-9) * 0.5**halvings * last.ascent


def _targets(sites: np.ndarray, active: np.ndarray, floor: float) -> tuple[np.ndarray, np.ndarray]:
    """Targets and precisions (n,), (n,) with precisions kept above the floor."""
    natural, precisions = np.split(sites, 2)
    precisions = np.where(active, np.maximum(precisions, floor), 0.0)
    return np.where(active, natural / np.where(active, precisions, 1.0), 0.0), precisions
