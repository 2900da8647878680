"""Small priors and data for comparing two ways to the same number, and derivatives by differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from sklearn.gaussian_process.kernels import Kernel, Matern

from sumgp.priors import FullTask, MultitaskPrior, NoiseModel, TaskCovariance, TaskLaw
from sumgp.priors.kernels import hyper_priors


def differences(function: Callable[[np.ndarray], np.ndarray | float], at: np.ndarray, step: float = 1e-3) -> np.ndarray:
    """(p, ...) derivatives by fourth-order central differences."""
    at = np.asarray(at, dtype=float)
    result = []
    for i in range(at.size):
        shift = np.zeros(at.size)
        shift[i] = step
        shift = shift.reshape(at.shape)
        near = np.asarray(function(at + shift)) - np.asarray(function(at - shift))
        far = np.asarray(function(at + 2 * shift)) - np.asarray(function(at - 2 * shift))
        result.append((8.0 * near - far) / (12.0 * step))
    return np.array(result)


def assert_gradient(function: Callable[[np.ndarray], tuple[float, np.ndarray]], at: np.ndarray, rtol: float = 1e-6) -> None:
    """The gradient a function returns equals differences of its value, relative to the gradient's largest entry."""
    _, gradient = function(at)
    numerical = differences(lambda theta: function(theta)[0], at)
    size = np.max(np.abs(numerical))
    assert size > 0
    np.testing.assert_allclose(gradient, numerical, rtol=0.0, atol=rtol * size)


def unknown_noise(T: int) -> NoiseModel:
    """One noise parameter per output."""
    return NoiseModel(tuple((t,) for t in range(T)), np.ones(T))


def small_prior(
    T: int = 3,
    kernels: Sequence[Kernel] = (Matern(length_scale=0.4, nu=0.5),),
    noise: NoiseModel | None = None,
    law: TaskLaw | None = None,
    tasks: Sequence[TaskCovariance] | None = None,
    **more: object,
) -> MultitaskPrior:
    """A multitask prior over inputs in [0, 1]."""
    return MultitaskPrior(
        kernels=tuple(kernels),
        kernel_priors=tuple(tuple(hyper_priors(k, np.array([0.5]))) for k in kernels),
        tasks=tuple(tasks) if tasks is not None else (FullTask(T),) * len(kernels),
        noise=noise or unknown_noise(T),
        n_outputs=T,
        law=law,
        **more,  # type: ignore[arg-type]
    )


def some_theta(prior: MultitaskPrior, seed: int = 0) -> np.ndarray:
    """A point of the hyperparameter space away from any symmetric or special one."""
    return prior.start() + 0.3 * np.random.default_rng(seed).standard_normal(prior.n_parameters)


def some_data(T: int = 3, N: int = 9, missing: float = 0.0, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Inputs (N, 1) in [0, 1], outputs (N, T), with a share of entries missing."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(size=(N, 1)), axis=0)
    y = np.cos(4.0 * x + np.arange(T)) + 0.3 * rng.standard_normal((N, T))
    y[rng.uniform(size=y.shape) < missing] = np.nan
    return x, y


def textbook_covariance(prior: MultitaskPrior, theta: np.ndarray, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Prior covariance (n C, m C) between points, ordered point by point, straight from the definition.

    Columns: outputs, unknown constants, errors of soft laws.
    """
    hyper = prior.unpack(theta)
    T, U, Q = prior.n_outputs, len(prior.unknown), len(prior.soft)
    C = T + U + Q
    ones = np.ones((len(x), len(z)))
    total = np.zeros((len(x) * C, len(z) * C))
    for r, (kernel, Sigma) in enumerate(zip(hyper.kernels, hyper.Sigmas, strict=True)):
        wide = np.zeros((C, C))
        wide[:T, :T] = Sigma
        constant = prior.mean_variance if r == 0 and prior.mean_shape == "task" else 0.0
        total += np.kron(kernel(x, z) + constant, wide)
    if prior.mean_shape == "identity":
        total += np.kron(ones, np.diag([prior.mean_variance] * T + [0.0] * (U + Q)))
    total += np.kron(ones, np.diag([0.0] * T + list(prior.unknown) + [0.0] * Q))
    if Q:
        soft = np.diag([0.0] * (T + U) + list(prior.soft))
        shape = hyper.kernels[0](x, z)
        if prior.mean_shape == "task":
            shape = (shape + prior.mean_variance) / (1.0 + prior.mean_variance)
        total += np.kron(shape, soft)
    return total


def gaussian_given(
    mean: np.ndarray, covariance: np.ndarray, H: np.ndarray, value: np.ndarray, noise: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of f ~ N(mean, covariance) given H f + e = value, e ~ N(0, noise)."""
    S = H @ covariance @ H.T + noise
    gain = np.linalg.solve(S, H @ covariance).T
    return mean + gain @ (value - H @ mean), covariance - gain @ H @ covariance
