"""Elliptical slice sampling of u ~ N(m, K) times a likelihood: the slow, exact answer that engines are compared with."""

from __future__ import annotations

import numpy as np

from sumgp.numerics.linear_algebra import symmetric_root
from sumgp.paper_method.likelihoods import Likelihood


def elliptical_slice(
    prior_mean: np.ndarray,
    prior_cov: np.ndarray,
    likelihood: Likelihood,
    start: np.ndarray,
    *,
    chains: int = 1000,
    burn: int = 150,
    keep: int = 150,
    seed: int = 0,
) -> np.ndarray:
    """Samples (n, keep * chains) from many chains side by side (Murray, Adams and MacKay 2010, figure 2).

    ``start`` (n, chains) are the chains' first latent values. The prior covariance may be singular.
    """
    rng = np.random.default_rng(seed)
    root = symmetric_root(prior_cov)
    centre = prior_mean[:, None]
    state = start - centre
    level = _log_likelihood(likelihood, centre + state)
    kept = []
    for step in range(burn + keep):
        state, level = _one_step(likelihood, centre, root, state, level, rng)
        if step >= burn:
            kept.append(centre + state)
    return np.concatenate(kept, axis=1)


def _one_step(
    likelihood: Likelihood,
    centre: np.ndarray,
    root: np.ndarray,
    state: np.ndarray,
    level: np.ndarray,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    chains = state.shape[1]
    other = root @ rng.standard_normal((root.shape[1], chains))
    threshold = level + np.log(rng.uniform(size=chains))
    angle = rng.uniform(0.0, 2.0 * np.pi, size=(chains,))
    lower, upper = angle - 2.0 * np.pi, angle.copy()
    new_state, new_level = state.copy(), level.copy()
    waiting = np.arange(chains)
    while waiting.size:
        turn = angle[waiting]
        proposal = state[:, waiting] * np.cos(turn) + other[:, waiting] * np.sin(turn)
        value = _log_likelihood(likelihood, centre + proposal)
        accepted = value > threshold[waiting]
        done = waiting[accepted]
        new_state[:, done], new_level[done] = proposal[:, accepted], value[accepted]
        waiting, turn = waiting[~accepted], turn[~accepted]
        lower[waiting] = np.where(turn < 0, turn, lower[waiting])
        upper[waiting] = np.where(turn >= 0, turn, upper[waiting])
        angle[waiting] = rng.uniform(lower[waiting], upper[waiting])
    return new_state, new_level


def _log_likelihood(likelihood: Likelihood, u: np.ndarray) -> np.ndarray:
    return np.sum(likelihood.terms(u).log_density, axis=0)
