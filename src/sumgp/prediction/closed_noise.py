"""Noise of closed data: noise N(0, V) of a measurement given that the measurement meets the law.

In the law's tangent at the mean, with slopes J: A V with A = I - V J^T (J V J^T)^-1 J. Under a curved law V was found
without the law: it is what each output shows, and A takes from it what the data have. So that is given back, as a factor of
all outputs: A V has the trace of V then, up to the factor T / (T - R) of noise that is alike in all directions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sumgp.laws import projected_draws
from sumgp.numerics import root

if TYPE_CHECKING:
    from sumgp.prediction.marginals import CommonNumbers
    from sumgp.prediction.posterior import Posterior


EVERYWHERE = slice(None)  # all points of a posterior
NO_NOISE = 1e-10  # variance along a law's slope, in the outputs' largest: noise that obeys the law already, up to round-off


def within_law(posterior: Posterior, noise: np.ndarray, points: np.ndarray | slice = EVERYWHERE) -> np.ndarray:
    """(n, T, T) matrices A that take noise of covariance (T, T), unit-free, into the law's tangent."""
    law, scaling, T = posterior.law, posterior.scaling, len(noise)
    assert law is not None
    # Data of laws with unknown constants are not looked at for closure: there are outputs only.
    x = posterior.x[points]
    J = law.jacobian(posterior.mean[points], x)[:, :, :T] * scaling.y_scale
    J = np.where(law.active(x)[:, :, None], J, 0.0)
    size = np.linalg.norm(J, axis=2, keepdims=True)
    J = J / np.where(size > 0, size, 1.0)
    JV = J @ noise
    across = JV @ J.swapaxes(1, 2)
    if np.count_nonzero(noise) > T:
        across = np.where(np.abs(across) > NO_NOISE * noise.max(), across, 0.0)
    A = np.eye(T) - JV.swapaxes(1, 2) @ np.linalg.pinv(across, rcond=1e-12, hermitian=True) @ J
    if posterior.fitted.law is None or posterior.fitted.law.is_linear:
        return A
    kept, directions = np.einsum("ntu,ut->n", A, noise), np.einsum("ntt->n", A)
    lost = np.minimum(np.trace(noise) * directions, T * kept) / np.maximum(kept * directions, np.finfo(float).tiny)
    return np.sqrt(np.maximum(lost, 1.0))[:, None, None] * A


def _shared(posterior: Posterior) -> np.ndarray:
    """(T, T) noise covariance of the mixture, before the law is looked at."""
    each = np.stack([c.noise_covariance for c in posterior.fitted.components])
    return np.einsum("k,ktu->tu", posterior.fitted.weights, each)


def noise_variances(posterior: Posterior, points: np.ndarray | slice = EVERYWHERE) -> np.ndarray:
    """(K, n, T) noise variances of each component; (K, 1, T) where the data are not closed."""
    if not posterior.closed:
        return np.stack([c.noise for c in posterior.fitted.components])[:, None, :]
    each = [c.noise_covariance for c in posterior.fitted.components]
    inside = [within_law(posterior, V, points) for V in each]
    return np.stack([np.einsum("ntu,uv,ntv->nt", A, V, A) for A, V in zip(inside, each, strict=True)])


def noise_covariances(posterior: Posterior) -> np.ndarray:
    """(n, T, T) noise covariance of the mixture at each point."""
    noise = _shared(posterior)
    if not posterior.closed:
        return np.broadcast_to(noise, (len(posterior.x), *noise.shape))
    A = within_law(posterior, noise)
    return A @ noise @ A.swapaxes(1, 2)


def measured_outputs(
    posterior: Posterior, draws: np.ndarray, normal: np.ndarray, noise: np.ndarray, points: np.ndarray | slice = EVERYWHERE
) -> np.ndarray:
    """(count, n, T) measurements that meet the law, in the user's units, of unit-free draws (count, n, C) of true values.

    ``normal`` (count, n or 1, T): standard normal numbers; ``noise`` (T, T): covariance, of the component that was drawn.
    Bounds that all measurements of the data obey are kept too.
    """
    T = len(noise)
    moved = draws.copy()
    moved[:, :, :T] += np.einsum("ntu,knu->knt", within_law(posterior, noise, points), normal @ root(noise[None])[0])
    law = posterior.fitted.law
    if law is not None and not law.is_linear:
        metric = np.zeros((draws.shape[2],) * 2)
        metric[range(T), range(T)] = np.diagonal(noise)
        metrics = np.broadcast_to(metric, (draws.shape[1], *metric.shape))
        moved = projected_draws(law, moved, metrics, posterior.x[points])
    return posterior.scaling.restore(moved[:, :, :T]) if posterior.ends is None else posterior.outputs_of(moved, points)


def drawn_measurements(posterior: Posterior, columns: np.ndarray, numbers: CommonNumbers, points: np.ndarray) -> np.ndarray:
    """(M, n, T) measurements of closed data that belong to draws (M, n, C), each with the noise of its own component."""
    draws = np.empty((*columns.shape[:2], len(posterior.output_names)))
    for k in np.unique(numbers.owners):
        own, noise = numbers.owners == k, posterior.fitted.components[k].noise_covariance
        draws[own] = measured_outputs(posterior, columns[own], numbers.noise[own][:, None, :], noise, points)
    return draws
