"""Regression of time series the slow way: dense covariances built from scikit-learn's kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from sklearn.gaussian_process.kernels import Matern

from sumgp.solvers.markov import MarkovPrior, MaternTerm, markov_prior


def covariance(prior: MarkovPrior, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(n T, m T) prior covariance of f, ordered point by point, the constant mean included."""
    total = np.kron(np.ones((len(a), len(b))), prior.mean_covariance)
    for term in prior.terms:
        K = Matern(length_scale=term.lengthscale, nu=term.nu)(a[:, None], b[:, None])
        total = total + np.kron(K, term.covariance)
    return total


@dataclass(frozen=True)
class DensePosterior:
    log_evidence: float
    mean: np.ndarray  # (m, T)
    joint: np.ndarray  # (m T, m T)

    @property
    def blocks(self) -> np.ndarray:
        m, T = self.mean.shape
        return self.joint.reshape(m, T, m, T)[np.arange(m), :, np.arange(m), :]


def dense_posterior(
    prior: MarkovPrior, t: np.ndarray, y: np.ndarray, variance: np.ndarray, new: np.ndarray, rows: tuple | None = None
) -> DensePosterior:
    """Exact regression; ``rows`` = (J (n, R, T), target (n, R), variance (n, R)) are further observations at each t."""
    N, T = y.shape
    seen = ~np.isnan(y).ravel()
    sight = np.eye(N * T)[seen]
    target, noise = y.ravel()[seen], np.broadcast_to(variance, y.shape).ravel()[seen]
    if rows is not None:
        J, c, s2 = rows
        sight = np.concatenate([sight, scipy.linalg.block_diag(*J)])
        target, noise = np.concatenate([target, c.ravel()]), np.concatenate([noise, s2.ravel()])
    C = sight @ covariance(prior, t, t) @ sight.T + np.diag(noise)
    factor = scipy.linalg.cho_factor(C, lower=True)
    residual = target - sight @ np.tile(prior.mean, N)
    a = scipy.linalg.cho_solve(factor, residual)
    value = -0.5 * residual @ a - np.log(np.diag(factor[0])).sum() - 0.5 * len(a) * np.log(2 * np.pi)
    cross = covariance(prior, new, t) @ sight.T
    half = scipy.linalg.solve_triangular(factor[0], cross.T, lower=True)
    joint = covariance(prior, new, new) - half.T @ half
    return DensePosterior(float(value), (cross @ a).reshape(-1, T) + prior.mean, joint)


def dense_law(
    prior: MarkovPrior,
    t: np.ndarray,
    y: np.ndarray,
    variance: np.ndarray,
    residual: Callable[[np.ndarray], np.ndarray],
    jacobian: Callable[[np.ndarray], np.ndarray],
    law_variance: float | np.ndarray,
    steps: int = 30,
) -> tuple[DensePosterior, float]:
    """Iterated linearisation with dense matrices, no annealing; also the last step."""
    found = dense_posterior(prior, t, y, variance, t)
    f, step = found.mean, np.inf
    for _ in range(steps):
        J, g = jacobian(f), residual(f)
        target = np.einsum("irt,it->ir", J, f) - g
        found = dense_posterior(prior, t, y, variance, t, (J, target, np.broadcast_to(law_variance, g.shape)))
        step = float(np.abs(found.mean - f).max())
        f = found.mean
        if step < 1e-9:
            break
    return found, step


def random_covariance(rng: np.random.Generator, T: int) -> np.ndarray:
    B = rng.normal(size=(T, T))
    return B @ B.T / T + 0.1 * np.eye(T)


@dataclass(frozen=True)
class Problem:
    t: np.ndarray
    y: np.ndarray
    variance: np.ndarray
    prior: MarkovPrior


def random_problem(
    rng: np.random.Generator, N: int, T: int, nus: tuple[float, ...], mean: bool = True, missing: float = 0.2
) -> Problem:
    """Unordered times with repeats, missing entries, own noise per output."""
    t = rng.uniform(0.0, 10.0, N)
    t[: N // 6] = t[N // 6 : 2 * (N // 6)]
    y = 3.0 + rng.normal(size=(N, T))
    y[rng.random((N, T)) < missing] = np.nan
    terms = [MaternTerm(nu, float(rng.uniform(0.5, 3.0)), random_covariance(rng, T)) for nu in nus]
    spread = 5.0 * random_covariance(rng, T) if mean else None
    return Problem(t, y, rng.uniform(0.05, 0.2, T), markov_prior(terms, rng.normal(size=T), spread))
