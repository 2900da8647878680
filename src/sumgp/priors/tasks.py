"""Task covariances Sigma_t between the outputs, with gradients and weak priors, in unit-free outputs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from sumgp.errors import NumericalError

FLOOR = 1e-4  # of an output's variance: keeps Sigma_t regular, without which a law can hurt
LIKE_STEPS = 20  # towards the parameters of a given covariance; each halves the error or better
LEAST_OWN = 0.05  # share of an output's variance that is its own, where parameters are to begin with
AMPLITUDE_SD = 4.0  # prior sd of log amplitudes: wide, since the data tell them
CORRELATION_SD = 1.5  # prior sd of the parameters of correlations: wide, but not up to outputs that are copies


@dataclass(frozen=True)
class SymmetricExponential:
    """expm(S) of a symmetric S, with the adjoint of its derivative (Daleckii-Krein)."""

    value: np.ndarray
    values: np.ndarray  # (T,) eigenvalues of S
    vectors: np.ndarray

    @cached_property
    def divided(self) -> np.ndarray:
        """(T, T) divided differences of exp at the eigenvalues; only gradients need them."""
        values, exponentials = self.values, np.exp(self.values)
        gap = values[:, None] - values[None, :]
        close = np.abs(gap) < 1e-8
        safe = np.where(close, 1.0, gap)
        middle = np.exp(0.5 * (values[:, None] + values[None, :]))
        return np.where(close, middle, (exponentials[:, None] - exponentials) / safe)

    def pull_back(self, gradient: np.ndarray) -> np.ndarray:
        """Gradient with respect to S from the symmetric gradient with respect to expm(S)."""
        U = self.vectors
        return U @ (self.divided * (U.T @ gradient @ U)) @ U.T


def symmetric_exponential(S: np.ndarray) -> SymmetricExponential:
    """Matrix exponential through the eigendecomposition of S."""
    values, U, info = lapack.dsyevd(S)
    if info != 0:
        raise NumericalError("the eigenvalues of a task covariance did not converge; check the scale of the data")
    return SymmetricExponential((U * np.exp(values)) @ U.T, values, U)


def nullspace_basis(F: np.ndarray) -> np.ndarray:
    """(T, T - rank) orthonormal vectors G with F G = 0."""
    _, values, right = np.linalg.svd(F)
    rank = int(np.sum(values > 1e-12 * values[0]))
    return right[rank:].T


class ReorderedTask(NamedTuple):
    """A covariance of the outputs in another order; parameter i of it is parameter ``places[i]`` of the given one."""

    task: TaskCovariance
    places: np.ndarray


class TaskCovariance(ABC):
    """A parametrised (T, T) covariance."""

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """Length of the parameter vector."""

    def start(self) -> np.ndarray:
        """Parameters to begin an optimisation with: the prior's centre, unless it is a bad start."""
        return self.prior_mean()

    @abstractmethod
    def covariance(self, parameters: np.ndarray) -> np.ndarray:
        """Sigma_t (T, T)."""

    @abstractmethod
    def pull_back(self, parameters: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Gradient with respect to the parameters from the symmetric gradient with respect to Sigma_t."""

    @abstractmethod
    def like(self, Sigma: np.ndarray) -> np.ndarray:
        """Parameters whose covariance is near a regular ``Sigma`` (T, T)."""

    @abstractmethod
    def reordered(self, order: np.ndarray) -> ReorderedTask:
        """The covariance of the outputs ``order`` (T,)."""

    @property
    def speaks_of(self) -> int | None:
        """The one output that the covariance is about, None for all."""
        return None

    @abstractmethod
    def prior_sd(self) -> np.ndarray:
        """Standard deviations of the parameters' normal prior, which is centred at ``prior_mean``."""

    @abstractmethod
    def prior_mean(self) -> np.ndarray:
        """Centre of the parameters' prior."""


@dataclass(frozen=True)
class FullTask(TaskCovariance):
    """Sigma_t = D expm(S) D + floor, D = diag(exp(d)), S symmetric with zero diagonal.

    The same matrices as B B^T + diag(v) of full rank, but each has one parameter vector only (no rotations of B),
    so that Hessians are regular. Parameters: d (T), then S above the diagonal row by row.
    """

    n_outputs: int
    amplitude: float = 1.0

    @property
    def n_parameters(self) -> int:
        return self.n_outputs * (self.n_outputs + 1) // 2

    def prior_mean(self) -> np.ndarray:
        mean = np.zeros(self.n_parameters)
        mean[: self.n_outputs] = np.log(self.amplitude)
        return mean

    def prior_sd(self) -> np.ndarray:
        sd = np.full(self.n_parameters, CORRELATION_SD)
        sd[: self.n_outputs] = AMPLITUDE_SD
        return sd

    def like(self, Sigma: np.ndarray) -> np.ndarray:
        d = 0.5 * np.log(np.diagonal(Sigma))
        for _ in range(LIKE_STEPS):  # d is right where the logarithm of D^-1 Sigma D^-1 has a diagonal of zeros
            scale = np.exp(-d)
            values, U = np.linalg.eigh(scale[:, None] * Sigma * scale)
            S = (U * np.log(np.maximum(values, FLOOR))) @ U.T
            d = d + 0.5 * np.diagonal(S)
        return np.concatenate([d + np.log(self.amplitude), S[self._above]])

    def reordered(self, order: np.ndarray) -> ReorderedTask:
        place = np.zeros((self.n_outputs, self.n_outputs), dtype=int)
        place[self._above] = np.arange(self.n_outputs, self.n_parameters)
        place = place + place.T
        return ReorderedTask(self, np.concatenate([order, place[np.ix_(order, order)][self._above]]))

    @cached_property
    def _above(self) -> tuple[np.ndarray, ...]:
        return np.triu_indices(self.n_outputs, 1)

    @cached_property
    def _memory(self) -> dict[bytes, SymmetricExponential]:
        return {}

    def _exponential(self, parameters: np.ndarray) -> SymmetricExponential:
        """expm(S); the last one is kept, since value and gradient are asked for in turn."""
        key = parameters[self.n_outputs :].tobytes()
        if key not in self._memory:
            self._memory.clear()
            self._memory[key] = symmetric_exponential(self._symmetric(parameters))
        return self._memory[key]

    def _symmetric(self, parameters: np.ndarray) -> np.ndarray:
        S = np.zeros((self.n_outputs, self.n_outputs))
        S[self._above] = parameters[self.n_outputs :]
        return S + S.T

    def covariance(self, parameters: np.ndarray) -> np.ndarray:
        if self.n_outputs == 2:
            return _pair_covariance(parameters.tolist())
        d = np.exp(parameters[: self.n_outputs])
        E = self._exponential(parameters).value
        return d[:, None] * E * d + FLOOR * np.eye(self.n_outputs)

    def pull_back(self, parameters: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        if self.n_outputs == 2:
            return _pair_pull_back(parameters.tolist(), gradient.tolist())
        d = np.exp(parameters[: self.n_outputs])
        exponential = self._exponential(parameters)
        scaled = d[:, None] * gradient * d
        amplitudes = 2.0 * np.sum(scaled * exponential.value, axis=1)
        correlations = 2.0 * exponential.pull_back(scaled)[self._above]
        return np.concatenate([amplitudes, correlations])


# Two outputs are the commonest case, and expm [[0, s], [s, 0]] = [[cosh s, sinh s], [sinh s, cosh s]].
def _pair_covariance(parameters: list[float]) -> np.ndarray:
    d1, d2, s = parameters
    a, b = math.exp(d1), math.exp(d2)
    even, cross = math.cosh(s), a * b * math.sinh(s)
    return np.array([[a * a * even + FLOOR, cross], [cross, b * b * even + FLOOR]])


def _pair_pull_back(parameters: list[float], gradient: list[list[float]]) -> np.ndarray:
    d1, d2, s = parameters
    a, b = math.exp(d1), math.exp(d2)
    even, odd = math.cosh(s), math.sinh(s)
    (g11, g12), (_, g22) = gradient
    first, cross, second = a * a * g11, a * b * g12, b * b * g22
    return np.array(
        [
            2.0 * (first * even + cross * odd),
            2.0 * (second * even + cross * odd),
            (first + second) * odd + 2.0 * cross * even,
        ]
    )


@dataclass(frozen=True)
class LowRankTask(TaskCovariance):
    """Sigma_t = B B^T + diag(v) + floor, the paper's Eq. (B.5), with B (T, rank) and v = exp(w).

    Parameters: B row by row, then w (T).
    """

    n_outputs: int
    rank: int

    @property
    def n_parameters(self) -> int:
        return self.n_outputs * (self.rank + 1)

    def start(self) -> np.ndarray:
        # Different loadings in every column, else the columns' gradients are equal and B stays of rank one.
        B = 0.7 * np.cos(np.outer(np.arange(self.n_outputs), np.arange(self.rank)) + np.arange(self.rank) * 0.5)
        return np.concatenate([B.ravel(), np.full(self.n_outputs, np.log(0.3))])

    def reordered(self, order: np.ndarray) -> ReorderedTask:
        loadings = np.arange(self.n_outputs * self.rank).reshape(self.n_outputs, self.rank)[order]
        return ReorderedTask(self, np.concatenate([loadings.ravel(), self.n_outputs * self.rank + order]))

    def like(self, Sigma: np.ndarray) -> np.ndarray:
        values, U = np.linalg.eigh(Sigma)
        most = np.argsort(values)[::-1][: self.rank]
        B = U[:, most] * np.sqrt(np.maximum(values[most], 0.0))
        left = np.diagonal(Sigma - B @ B.T)
        return np.concatenate([B.ravel(), np.log(np.maximum(left, LEAST_OWN * np.diagonal(Sigma)))])

    def prior_mean(self) -> np.ndarray:
        return np.concatenate([np.zeros(self.n_outputs * self.rank), np.full(self.n_outputs, np.log(0.3))])

    def prior_sd(self) -> np.ndarray:
        return np.concatenate([np.full(self.n_outputs * self.rank, 2.0), np.full(self.n_outputs, 3.0)])

    def _split(self, parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        size = self.n_outputs * self.rank
        return parameters[:size].reshape(self.n_outputs, self.rank), np.exp(parameters[size:])

    def covariance(self, parameters: np.ndarray) -> np.ndarray:
        B, v = self._split(parameters)
        return B @ B.T + np.diag(v + FLOOR)

    def pull_back(self, parameters: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        B, v = self._split(parameters)
        return np.concatenate([(2.0 * gradient @ B).ravel(), np.diagonal(gradient) * v])


@dataclass(frozen=True)
class OneOutputTask(TaskCovariance):
    """A term for one ``output`` alone: Sigma_t is zero but for exp(2 d) + floor on the diagonal. Parameter: d."""

    n_outputs: int
    output: int

    @property
    def n_parameters(self) -> int:
        return 1

    @property
    def speaks_of(self) -> int | None:
        return self.output

    def reordered(self, order: np.ndarray) -> ReorderedTask:
        return ReorderedTask(replace(self, output=int(np.flatnonzero(order == self.output)[0])), np.zeros(1, dtype=int))

    def like(self, Sigma: np.ndarray) -> np.ndarray:
        return 0.5 * np.log(Sigma[[self.output], self.output])

    def prior_mean(self) -> np.ndarray:
        return np.zeros(1)

    def prior_sd(self) -> np.ndarray:
        return np.full(1, AMPLITUDE_SD)

    def covariance(self, parameters: np.ndarray) -> np.ndarray:
        Sigma = np.zeros((self.n_outputs, self.n_outputs))
        Sigma[self.output, self.output] = np.exp(2.0 * parameters[0]) + FLOOR
        return Sigma

    def pull_back(self, parameters: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        return np.array([2.0 * np.exp(2.0 * parameters[0]) * gradient[self.output, self.output]])


def student_around_mean(values: np.ndarray, scale: float, degrees: float) -> tuple[float, np.ndarray]:
    """Log density, up to a constant, of values (n,) that are about the same, and its gradient.

    A Student t of each difference d from their mean: -(nu + 1) / 2 log(1 + d^2 / (nu s^2)).
    """
    away, total = values - np.add.reduce(values) / len(values), np.add.reduce  # a method of few values takes far longer
    spread = degrees * scale**2
    slope = -(degrees + 1.0) * away / (spread + away**2)
    return -0.5 * (degrees + 1.0) * float(total(np.log1p(away**2 / spread))), slope - total(slope) / len(values)
