"""Starts of the search for priors over latent functions, from a look at every lengthscale that rows can tell apart."""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from sumgp.hyperparameters.optimise import Objective
from sumgp.priors import KernelDerivatives, MultitaskPrior

NOISES = (0.02, 0.1, 0.5)  # standard deviations in those of the outputs
STEP = 0.35  # between logarithms of lengthscales; a maximum is about twice as wide
LONGEST = 1.4  # logarithm of the longest lengthscale over the prior's centre
SHORTEST = -6.0  # the same for the shortest, whatever the rows
NEIGHBOUR = 0.5  # shortest lengthscale in distances between rows
FAR_BEHIND = 30.0  # log posterior density below the best, from which on another maximum is no start


def latent_starts(objective: Objective, count: int) -> list[np.ndarray]:
    """At most ``count`` starts, the best first; all lengthscales vary together, amplitudes follow from them."""
    prior = objective.prior
    lengths = prior.lengthscales()
    if not lengths.any():
        return []
    values = [_at(objective, lengths, shift) for shift in _shifts(prior)]
    found = []
    for i, (value, theta) in enumerate(values):
        beside = [values[j][0] for j in (i - 1, i + 1) if 0 <= j < len(values)]
        if all(value <= other for other in beside):
            found.append((value, theta))
    found.sort(key=lambda pair: pair[0])
    return [theta for value, theta in found if value < found[0][0] + FAR_BEHIND][:count]


def _shifts(prior: MultitaskPrior) -> np.ndarray:
    apart = min(
        (p.spacing - p.centre for priors in prior.kernel_priors for p in priors if np.isfinite(p.spacing)), default=SHORTEST
    )
    shortest = max(np.log(NEIGHBOUR) + apart, SHORTEST)
    return np.arange(LONGEST, min(shortest, -LONGEST) - 1e-9, -STEP)


def _at(objective: Objective, lengths: np.ndarray, shift: float) -> tuple[float, np.ndarray]:
    """The best of several noises with lengthscales ``shift`` from the prior's centres: objective and theta."""
    prior = objective.prior
    theta = prior.start()
    centres = np.concatenate(
        [
            [*(p.centre for p in priors), *np.zeros(task.n_parameters)]
            for priors, task in zip(prior.kernel_priors, prior.tasks, strict=True)
        ]
        + [np.zeros(prior.noise.n_parameters)]
    )
    theta[lengths] = centres[lengths] + shift
    low, high = np.array(prior.bounds()).T
    theta = np.clip(theta, low, high)
    for (_, own), kernel, task in zip(prior.slices, prior.unpack(theta).kernels, prior.tasks, strict=True):
        theta[own] = np.log(latent_size(prior, kernel, task.speaks_of or 0))
    tried = []
    for noise in NOISES:
        trial = theta.copy()
        trial[prior.noise_slice] = prior.noise.like(np.full(prior.n_outputs, noise))
        trial = np.clip(trial, low, high)
        tried.append((objective.value(trial), trial))
    return min(tried, key=lambda pair: pair[0])


def latent_size(prior: MultitaskPrior, kernel: Kernel, latent: int) -> float:
    """Standard deviation of a latent function for which the outputs that it makes have one of about one, in the mean."""
    assert prior.latent is not None
    orders, W = prior.latent.orders(latent)
    table = KernelDerivatives.paired(kernel, prior.latent.centre[None], prior.latent.centre[None])
    covariance = np.array([[table.value(a, b)[0] for b in orders] for a in orders])
    variances = np.einsum("ta,ab,tb->t", W, covariance, W)
    made = variances > 0
    return float(np.exp(-0.5 * np.mean(np.log(variances[made])))) if made.any() else 1.0
