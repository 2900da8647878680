"""Evidence of the latent tasks under an engine, with its gradient by the hyperparameters.

n observations, each of one task at one point; P points: the training inputs, then those of virtual measurements.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from sumgp.errors import NumericalError, SumGPWarning
from sumgp.numerics import SchurConditioning
from sumgp.paper_method.engines import Engine, SiteResult
from sumgp.paper_method.likelihoods import StackedLikelihood
from sumgp.priors import KernelOnPoints, MultitaskPrior

REMEMBERED = 500  # results by hyperparameters: those of a search and its draws
Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class Observations:
    """What was measured: observation i is of task ``task[i]`` at point ``point[i]``.

    ``row[i]`` is the row of known noise (0 where there is none); ``virtual[i]`` observations keep the noise they have.
    ``noise_unit`` (n,) turns the prior's unit-free noise into that of the likelihood. An auxiliary output learnt again
    sees the values of its term a second time: ``share`` is the number of measured values over that of their observations,
    ``twice[i]`` marks observations whose value is used once more.
    """

    x: np.ndarray  # (P, D) as the kernels see them
    totals: np.ndarray  # (P, R) unit-free right sides of the law
    point: np.ndarray
    task: np.ndarray
    row: np.ndarray
    virtual: np.ndarray
    noise_unit: np.ndarray
    likelihood: StackedLikelihood
    share: float
    twice: np.ndarray

    def with_noise(self, variances: np.ndarray, counted_once: bool = False) -> StackedLikelihood:
        """The likelihood for unit-free noise variances (L,) of the tasks, or (N, L).

        ``counted_once``: what is seen twice gets the square root of its likelihood, N(y | f, s^2)^(1/2) ~ N(y | f, 2 s^2).
        """
        own = variances[self.task] if variances.ndim == 1 else variances[self.row, self.task]
        if counted_once:
            own = np.where(self.twice, 2.0 * own, own)
        noise = np.where(self.virtual, self.likelihood.noise, np.sqrt(own) * self.noise_unit)
        return self.likelihood.with_noise(noise)


@dataclass(frozen=True, eq=False)
class LatentPrior:
    """Prior moments of the observed latent values for one theta, and what their derivatives need."""

    mean: np.ndarray  # (n,)
    cov: np.ndarray  # (n, n)
    K: np.ndarray  # (n, n) data kernel plus the mean's variance
    kernel_slopes: np.ndarray  # (p, P, P)
    conditioning: SchurConditioning


class TransformedEvidence:
    """An engine's log p(y | theta) for the latent tasks, given the law, times the ``share`` of the observations.

    That power counts each measured value once; without it hyperparameters seem up to twice as well known as they are.
    Each call starts from the sites of the last, so that neighbouring theta cost little, and values are remembered, since
    curvatures are asked for more than once. A theta at which the engine fails raises NumericalError: another engine's
    value would not compare.
    """

    def __init__(self, prior: MultitaskPrior, observations: Observations, engine: Engine) -> None:
        self.prior = prior
        self.observations = observations
        self.engine = engine
        self._kernel = KernelOnPoints(prior.kernels[0], observations.x)
        self._indicator = np.eye(prior.n_outputs)[observations.task]  # (n, L)
        # Positions of all pairs of observations in flattened (P, P) and (L, L) matrices.
        point, task = observations.point, observations.task
        self._point_pairs = point[:, None] * len(observations.x) + point
        self._task_pairs = task[:, None] * prior.n_outputs + task
        self._last: SiteResult | None = None
        self._known: dict[bytes, tuple[float, np.ndarray]] = {}
        self._inferred: dict[bytes, SiteResult] = {}

    def latent(self, theta: np.ndarray) -> LatentPrior:
        """Prior moments of the latent values, given the law."""
        o, (kernel, _) = self.observations, self.prior.slices[0]
        K, dK = self._kernel.matrix_and_gradient(theta[kernel])
        conditioning = self.prior.conditioned(self.prior.Sigmas(theta)[0])
        assert conditioning is not None
        between = K.take(self._point_pairs) + self.prior.mean_variance
        mean = (o.totals @ conditioning.D)[o.point, o.task]
        return LatentPrior(mean, conditioning.covariance.take(self._task_pairs) * between, between, dK, conditioning)

    def infer(self, theta: np.ndarray) -> SiteResult:
        """Sites of the posterior at theta, each measured value counted once.

        Where the engine fails, those of the engine it falls back on, with its warning.
        """
        known = self._inferred.get(np.asarray(theta, dtype=float).tobytes())
        if known is not None and not self.observations.twice.any():
            return known
        latent, likelihood = self.latent(theta), self._likelihood(theta, counted_once=True)
        result = self._quietly(latent, likelihood, known)
        start = self._last if known is None else None
        if result.engine is not self.engine and (start is not None or known is not None):
            result = self._quietly(latent, likelihood, start)
        if result.engine is not self.engine:
            result = self.engine.infer(latent.mean, latent.cov, likelihood)
        return result

    def _quietly(self, latent: LatentPrior, likelihood: StackedLikelihood, start: SiteResult | None) -> SiteResult:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SumGPWarning)
            return self.engine.infer(latent.mean, latent.cov, likelihood, start)

    def _likelihood(self, theta: np.ndarray, counted_once: bool = False) -> StackedLikelihood:
        return self.observations.with_noise(self.prior.noise.variances(theta[self.prior.noise_slice]), counted_once)

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient with respect to theta."""
        value, gradient = _remembered(self._known, theta, self._computed)
        return value, gradient.copy()

    def value(self, theta: np.ndarray) -> float:
        """The value alone; its sites are kept, since value and posterior at theta may be asked for next."""
        settled = _remembered(self._inferred, theta, lambda at: self._settled(self.latent(at), self._likelihood(at)))
        return self.observations.share * settled.evidence

    def _computed(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        latent, likelihood = self.latent(theta), self._likelihood(theta)
        result = self._settled(latent, likelihood)
        share = self.observations.share
        return share * result.evidence, share * self._gradient(theta, latent, likelihood, result)

    def _settled(self, latent: LatentPrior, likelihood: StackedLikelihood) -> SiteResult:
        """The engine's own sites, from the last ones or afresh; NumericalError where it has none."""
        result = self._quietly(latent, likelihood, self._last)
        if result.engine is not self.engine and self._last is not None:
            result = self._quietly(latent, likelihood, None)
        if result.engine is not self.engine:
            raise NumericalError(result.status)
        self._last = result
        return result

    def _gradient(
        self, theta: np.ndarray, latent: LatentPrior, likelihood: StackedLikelihood, result: SiteResult
    ) -> np.ndarray:
        o, prior, Z = self.observations, self.prior, self._indicator
        by = self.engine.gradient(latent.mean, latent.cov, likelihood, result)
        (kernel, task), Sigma = prior.slices[0], latent.conditioning.covariance
        weighted = by.prior_cov * Sigma.take(self._task_pairs)
        place = np.eye(len(o.x))[o.point]
        gradient = np.empty(prior.n_parameters)
        gradient[kernel] = np.tensordot(latent.kernel_slopes, place.T @ weighted @ place, axes=([1, 2], [0, 1]))
        by_Sigma = Z.T @ (by.prior_cov * latent.K) @ Z
        by_total = o.totals[o.point].T @ (by.prior_mean[:, None] * Z)
        gradient[task] = prior.tasks[0].pull_back(theta[task], latent.conditioning.pull_back(by_Sigma, by_total))
        parameters = theta[prior.noise_slice]
        if len(parameters):
            by_log = Z.T @ np.where(o.virtual, 0.0, by.log_noise)
            gradient[prior.noise_slice] = prior.noise.pull_back(parameters, 0.5 * by_log / prior.noise.variances(parameters))
        return gradient


def _remembered(known: dict[bytes, Found], theta: np.ndarray, find: Callable[[np.ndarray], Found]) -> Found:
    """What was found at theta before, or is now."""
    key = np.asarray(theta, dtype=float).tobytes()
    if key not in known:
        if len(known) >= REMEMBERED:
            known.clear()
        known[key] = find(theta)
    return known[key]
