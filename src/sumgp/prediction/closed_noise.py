"""Noise of closed data: independent noise N(0, V) of a measurement given that the measurement meets the law.

In the law's tangent at the mean, with slopes J: A V with A = I - V J^T (J V J^T)^-1 J.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sumgp.strategies import projected_draws

if TYPE_CHECKING:
    from sumgp.prediction.posterior import Posterior


EVERYWHERE = slice(None)  # all points of a posterior


def within_law(posterior: Posterior, noise: np.ndarray, points: np.ndarray | slice = EVERYWHERE) -> np.ndarray:
    """(n, T, T) matrices A that take independent noise with variances (T,), unit-free, into the law's tangent."""
    law, scaling, T = posterior.law, posterior.scaling, len(noise)
    assert law is not None
    # Data of laws with unknown constants are not looked at for closure: there are outputs only.
    x = posterior.x[points]
    J = law.jacobian(posterior.mean[points], x)[:, :, :T] * scaling.y_scale
    J = np.where(law.active(x)[:, :, None], J, 0.0)
    size = np.linalg.norm(J, axis=2, keepdims=True)
    J = J / np.where(size > 0, size, 1.0)
    JV = J * noise
    return np.eye(T) - JV.swapaxes(1, 2) @ np.linalg.pinv(JV @ J.swapaxes(1, 2), rcond=1e-12, hermitian=True) @ J


def noise_variances(posterior: Posterior, points: np.ndarray | slice = EVERYWHERE) -> np.ndarray:
    """(K, n, T) noise variances of each component; (K, 1, T) where the data are not closed."""
    noises = [c.noise for c in posterior.fitted.components]
    if not posterior.closed:
        return np.stack(noises)[:, None, :]
    return np.stack([np.einsum("ntt->nt", within_law(posterior, v, points)) * v for v in noises])


def noise_covariances(posterior: Posterior) -> np.ndarray:
    """(n, T, T) noise covariance of the mixture at each point."""
    noise = posterior.fitted.weights @ np.stack([c.noise for c in posterior.fitted.components])
    if not posterior.closed:
        return np.broadcast_to(np.diag(noise), (len(posterior.x), len(noise), len(noise)))
    return within_law(posterior, noise) * noise


def measured_outputs(
    posterior: Posterior, draws: np.ndarray, normal: np.ndarray, noise: np.ndarray, points: np.ndarray | slice = EVERYWHERE
) -> np.ndarray:
    """(count, n, T) measurements that meet the law, in the user's units, of unit-free draws (count, n, C) of true values.

    ``normal`` (count, n or 1, T): standard normal numbers; ``noise`` (T,): variances of the component that was drawn from.
    Bounds that all measurements of the data obey are kept too.
    """
    T = len(noise)
    moved = draws.copy()
    moved[:, :, :T] += np.einsum("ntu,knu->knt", within_law(posterior, noise, points), normal * np.sqrt(noise))
    law = posterior.fitted.law
    if law is not None and not law.is_linear:
        metric = np.zeros((draws.shape[2],) * 2)
        metric[range(T), range(T)] = noise
        metrics = np.broadcast_to(metric, (draws.shape[1], *metric.shape))
        moved = projected_draws(law, moved, metrics, posterior.x[points])
    return posterior.scaling.restore(moved[:, :, :T]) if posterior.ends is None else posterior.outputs_of(moved, points)
