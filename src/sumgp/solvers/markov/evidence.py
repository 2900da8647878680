"""Gradient of the Markov evidence in closed form: d log p(y) = <lambda, dm> + <(lambda lambda^T - Lambda)/2, dP>.

lambda and Lambda are the smoother's adjoints at a time, m and P the predicted state there. No inverse of a process
noise appears, so small gaps do no harm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sumgp.numerics import Scratch, root
from sumgp.solvers.markov.posterior import MarkovPosterior, MarkovPrior, smooth
from sumgp.solvers.markov.series import TimeSeries
from sumgp.solvers.markov.state_space import matern


@dataclass(frozen=True)
class MarkovEvidence:
    """log p(y) and its derivatives.

    ``lengthscales`` (R,): by the log of each term's lengthscale. ``covariances`` (R, T, T): by Sigma_r, symmetric, so that
    d log p = sum(covariances[r] * dSigma_r). ``noise`` (N, T): by each measurement's variance, zero where missing.
    ``mean_covariance`` (T, T): by the covariance of the constant mean. ``pull`` (N, T): (y - E f) / variance, by what is
    added to the mean at each point; zero where missing.
    """

    value: float
    lengthscales: np.ndarray
    covariances: np.ndarray
    noise: np.ndarray
    mean_covariance: np.ndarray
    pull: np.ndarray


def evidence(prior: MarkovPrior, series: TimeSeries, scratch: Scratch | None = None) -> MarkovEvidence:
    """log p(y) of a time series and its gradient, in O(N); a ``scratch`` saves time when this is asked again."""
    posterior = smooth(prior, series, compact=False, scratch=scratch)
    constant = posterior.constant
    by_mean = 0.5 * (
        np.outer(constant.score, constant.score)
        - constant.precision
        + constant.precision @ constant.covariance @ constant.precision
    )
    noise, pull = _measurement_gradients(posterior)
    return MarkovEvidence(posterior.log_evidence, *_kernel_gradient(posterior), noise, by_mean, pull)


def _measurement_gradients(posterior: MarkovPosterior) -> tuple[np.ndarray, np.ndarray]:
    """By variances ((y - E f)^2 + Var f) / (2 variance^2) - 1 / (2 variance), by means (y - E f) / variance, (N, T) each."""
    series = posterior.series
    measured = ~np.isnan(series.values)
    precision = np.where(measured, 1.0 / np.where(measured, series.variance, 1.0), 0.0)
    pull = precision * np.where(measured, series.values - posterior.mean, 0.0)
    spread = precision**2 * np.einsum("ntt->nt", posterior.covariance)
    return 0.5 * (pull**2 + spread - precision), pull


def _kernel_gradient(posterior: MarkovPosterior) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives by log lengthscales (R,) and by Sigma_r (R, T, T).

    A step tau changes the prediction by dm = F m dtau, dP = (F P + P F^T + diffusion (x) Sigma) dtau, and dtau / dlog l
    = -tau. Averaging over the constant mean's posterior adds columns to lambda and m.
    """
    T, terms, slices = posterior.series.n_outputs, posterior.prior.terms, posterior.space.slices
    lanes = posterior.factor.chain.lanes
    gaps = lanes.deal(np.append(0.0, np.diff(posterior.series.times)))
    along, across, covariances = _contractions(posterior, gaps)
    lengthscales = []
    for term, part in zip(terms, slices, strict=True):
        process = matern(term.nu)
        rate = float(process.steps(np.ones(1), term.lengthscale)[0])
        drift = np.kron(process.drift, np.eye(T))
        diffusion = np.kron(process.diffusion, term.covariance)
        lengthscales.append(-rate * float(np.sum(along[part, part] * drift) + np.sum(across[part, part] * diffusion)))
    return np.array(lengthscales), 0.5 * (covariances + covariances.swapaxes(1, 2))


def _contractions(posterior: MarkovPosterior, gaps: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums over all times of gap (lambda m^T + 2 G P), gap G, and per term <G, Q (x) .>, G = (lambda lambda^T - Lambda)/2.

    Shapes (D, D), (D, D), (R, T, T); ``gaps`` (s, l) lead to each time, the first time has the stationary state instead.
    """
    factor, solution, T = posterior.factor, posterior.solution, posterior.series.n_outputs
    weights = np.zeros((1 + T, 1 + T))
    weights[0, 0], weights[1:, 1:] = 1.0, root(posterior.constant.covariance[None])[0].T
    processes = [matern(term.nu) for term in posterior.prior.terms]
    steps = [p.steps(gaps, term.lengthscale) for p, term in zip(processes, posterior.prior.terms, strict=True)]
    D = len(posterior.space.stationary)
    along, across, covariances = np.zeros((D, D)), np.zeros((D, D)), np.zeros((len(processes), T, T))
    for s in range(len(gaps)):
        adjoint, predicted = solution.adjoint[s] @ weights, solution.predicted[s] @ weights
        G = 0.5 * (adjoint @ adjoint.swapaxes(1, 2) - factor.adjoint[s])
        scaled = gaps[s][:, None, None] * G
        along += np.tensordot(gaps[s][:, None, None] * adjoint, predicted, axes=([0, 2], [0, 2]))
        along += 2.0 * scaled.reshape(-1, D).T @ factor.predicted[s].reshape(-1, D)
        across += scaled.sum(axis=0)
        for r, (process, part) in enumerate(zip(processes, posterior.space.slices, strict=True)):
            noise = process.process_noise(steps[r][s])
            if s == 0:
                noise[0] = process.stationary
            covariances[r] += _contracted(noise, G[:, part, part], T)
    return along, across, covariances


def _contracted(noise: np.ndarray, G: np.ndarray, T: int) -> np.ndarray:
    """(T, T) sums over times n and states k, l of noise_n[k, l] G_n[(k, a), (l, b)]."""
    d = noise.shape[1]
    blocks = G.reshape(len(G), d, T, d, T).swapaxes(2, 3).reshape(-1, T * T)
    return (noise.ravel() @ blocks).reshape(T, T)
