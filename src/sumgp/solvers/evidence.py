"""Gradient of the Markov evidence in closed form: d log p(y) = <lambda, dm> + <(lambda lambda^T - Lambda)/2, dP>.

lambda and Lambda are the smoother's adjoints at a time, m and P the predicted state there. No inverse of a process
noise appears, so small gaps do no harm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sumgp.solvers.markov import MarkovPosterior, MarkovPrior, smooth
from sumgp.solvers.smallmatrices import root
from sumgp.solvers.statespace import matern
from sumgp.solvers.timeseries import TimeSeries


@dataclass(frozen=True)
class MarkovEvidence:
    """log p(y) and its derivatives.

    ``lengthscales`` (R,): by the log of each term's lengthscale. ``covariances`` (R, T, T): by Sigma_r, symmetric, so that
    d log p = sum(covariances[r] * dSigma_r). ``noise`` (N, T): by each measurement's variance, zero where missing.
    ``mean_covariance`` (T, T): by the covariance of the constant mean.
    """

    value: float
    lengthscales: np.ndarray
    covariances: np.ndarray
    noise: np.ndarray
    mean_covariance: np.ndarray


def evidence(prior: MarkovPrior, series: TimeSeries) -> MarkovEvidence:
    """log p(y) of a time series and its gradient, in O(N)."""
    posterior = smooth(prior, series, compact=False)
    constant = posterior.constant
    by_mean = 0.5 * (
        np.outer(constant.score, constant.score)
        - constant.precision
        + constant.precision @ constant.covariance @ constant.precision
    )
    return MarkovEvidence(
        posterior.log_evidence,
        *_kernel_gradient(posterior),
        _noise_gradient(posterior),
        by_mean,
    )


def _noise_gradient(posterior: MarkovPosterior) -> np.ndarray:
    """(N, T): ((y - E f)^2 + Var f) / (2 variance^2) - 1 / (2 variance)."""
    series = posterior.series
    measured = ~np.isnan(series.values)
    misfit = np.where(measured, series.values - posterior.mean, 0.0) ** 2 + np.einsum("ntt->nt", posterior.covariance)
    precision = np.where(measured, 1.0 / np.where(measured, series.variance, 1.0), 0.0)
    return 0.5 * precision * (misfit * precision - 1.0)


def _kernel_gradient(posterior: MarkovPosterior) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives by log lengthscales (R,) and by Sigma_r (R, T, T).

    A step tau changes the prediction by dm = F m dtau, dP = (F P + P F^T + diffusion (x) Sigma) dtau, and dtau / dlog l
    = -tau. Averaging over the constant mean's posterior adds columns to lambda and m.
    """
    factor, lanes = posterior.factor, posterior.factor.chain.lanes
    D, T = posterior.space.stationary.shape[0], posterior.series.n_outputs
    gaps = lanes.deal(np.append(0.0, np.diff(posterior.series.times))).ravel()
    spread = root(posterior.constant.covariance[None])[0].T
    weights = np.zeros((1 + T, 1 + T))
    weights[0, 0], weights[1:, 1:] = 1.0, spread
    adjoint = (posterior.solution.adjoint @ weights).reshape(-1, D, 1 + T)
    predicted = (posterior.solution.predicted @ weights).reshape(-1, D, 1 + T)
    G = adjoint @ adjoint.swapaxes(1, 2) - factor.adjoint.reshape(-1, D, D)
    scaled = gaps[:, None, None] * G
    along = np.einsum("n,nap,nbp->ab", gaps, adjoint, predicted, optimize=True)
    along += scaled.reshape(-1, D).T @ factor.predicted.reshape(-1, D)
    across = scaled.sum(axis=0)
    lengthscales, covariances = [], []
    for term, part in zip(posterior.prior.terms, posterior.space.slices, strict=True):
        process = matern(term.nu)
        rate = float(process.steps(np.ones(1), term.lengthscale)[0])
        drift = np.kron(process.drift, np.eye(T))
        diffusion = np.kron(process.diffusion, term.covariance)
        lengthscales.append(-rate * float(np.sum(along[part, part] * drift) + 0.5 * np.sum(across[part, part] * diffusion)))
        noise = process.process_noise(process.steps(gaps, term.lengthscale))
        noise[0] = process.stationary
        covariances.append(0.5 * _contracted(noise, G[:, part, part], T))
    return np.array(lengthscales), np.array(covariances)


def _contracted(noise: np.ndarray, G: np.ndarray, T: int) -> np.ndarray:
    """(T, T) sums over times n and states k, l of noise_n[k, l] G_n[(k, a), (l, b)]."""
    d = noise.shape[1]
    blocks = G.reshape(len(G), d, T, d, T)
    total = np.zeros((T, T))
    for k in range(d):
        for l in range(d):
            total += np.einsum("n,nab->ab", noise[:, k, l], blocks[:, k, :, l, :])
    return 0.5 * (total + total.T)
