"""Several outputs as independent latent processes on one kernel: w = M Z with noise of variance one in each row.

K (x) S + I (x) R with full S and R is diagonal after a change of basis that whitens R and rotates S: as many parameters,
and every latent is a problem of its own. Z (N, c) holds the outputs, whitened by a first guess, in its first q columns;
the others are columns that explain them: what a law says is noise alone, and a law's varying totals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import erf, exp, pi, sqrt
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from sumgp.errors import NumericalError, Status
from sumgp.priors import alike_lengths
from sumgp.solvers.vecchia.blocks import BlockGroup
from sumgp.solvers.vecchia.covariance import LatentKernels, ScaledCovariance
from sumgp.solvers.vecchia.evidence import LatentEvidence, Latents, latent_evidence, latent_log_density, surprises

MEAN_VARIANCE = 4.0  # of the constant mean, times the signal's: as elsewhere
LEAST_NOISE = 1e-4  # sd of the noise in sds of an output: keeps covariances regular and the evidence bounded
SIGNAL_BOUNDS = (float(np.log(1e-6)), float(np.log(1.0 / LEAST_NOISE**2)))  # of log signal / noise variance
SIGNAL_CENTRE, SIGNAL_SD = float(np.log(400.0)), 4.0  # log signal / noise variance: as the prior of noise sds elsewhere
LENGTH_BELOW, LENGTH_ABOVE, LENGTH_HEAVY = 1.0, 10.0, 1.5  # widths of a log lengthscale's prior, as elsewhere
SHAPE_SD = 2.0  # of log alpha
REFUSED = 1e25  # value where a factor fails; finite, so that a line search backs off
MOST_CURVED = 24  # parameters up to which as many evaluations for the curvature are worth their time
CURVED_STEP = 1e-4  # of logarithms, in differences of the closed-form gradient
LEAST_CURVATURE = 1e-5  # of the largest
HOPELESS, FAIR_STEPS = 0.05, 3  # gain of one step relative to what is missing, looked at after so many steps
NOTHING_LEFT, FIRST_MOVE = 1.0, 0.1  # log posterior that a step without gain may promise at the end; length of a new start
SUFFICIENT, SHORTER, SHORTEST_STEP = 1e-4, 0.3, 1e-4  # of a step: share of the expected gain, next length, least length


class LengthPrior(NamedTuple):
    """Centres of theta's weak prior (p,), which entries are lengthscales, below what these are spikes at single rows, and
    groups of those that are expected to be about the same in units of their centres."""

    centre: np.ndarray
    is_length: np.ndarray
    spikes: np.ndarray
    alike: tuple[np.ndarray, ...] = ()

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Log density up to a constant, and its gradient."""
        offset = theta - self.centre
        width = np.where(self.is_length, np.where(offset < 0, LENGTH_BELOW, LENGTH_ABOVE), SHAPE_SD)
        z = offset / width
        inner = np.where(self.is_length, np.maximum(z, -LENGTH_HEAVY), z)
        likeness, slope = alike_lengths(offset, self.alike)
        return float(inner @ (0.5 * inner - z)) + likeness, slope - inner / width

    @property
    def log_mass(self) -> float:
        """Log integral of what the call gives: without it kernels of more parameters would weigh too much in averages."""
        half = sqrt(0.5 * pi)
        tail = exp(-0.5 * LENGTH_HEAVY**2) / LENGTH_HEAVY
        of_length = LENGTH_BELOW * (half * erf(LENGTH_HEAVY / sqrt(2.0)) + tail) + LENGTH_ABOVE * half
        return float(np.sum(np.log(np.where(self.is_length, of_length, 2.0 * SHAPE_SD * half))))

    def repeated(self, count: int) -> LengthPrior:
        """Of ``count`` kernels of the same form."""
        alike = tuple(k * len(self.centre) + group for k in range(count) for group in self.alike)
        centre, is_length, spikes = (np.tile(part, count) for part in self[:3])
        return LengthPrior(centre, is_length, spikes, alike)


@dataclass(frozen=True)
class MixedRows:
    """What is fitted: inputs (N, D), Z (N, c), noise factors (N,), the guess W0 (q, q) that whitened Z, whether the noise is
    known, so that latents may be rotated only, and whether latents may have kernels of their own."""

    x: np.ndarray
    Z: np.ndarray
    noise: np.ndarray
    whitening: np.ndarray
    noise_is_known: bool = False
    own_kernels: bool = False

    @property
    def n_latents(self) -> int:
        """Number q of latents."""
        return len(self.whitening)

    def at(self, rows: np.ndarray) -> MixedRows:
        """These rows only."""
        return replace(self, x=self.x[rows], Z=self.Z[rows], noise=self.noise[rows])

    def start(self) -> np.ndarray:
        """Mixing parameters of M = [I, 0]."""
        q, c = self.n_latents, self.Z.shape[1]
        if self.noise_is_known:
            return np.zeros(q * (q - 1) // 2 + q * (c - q))
        return np.eye(q, c).ravel()

    def mixing(self, parameters: np.ndarray) -> np.ndarray:
        """M (q, c): free, or a rotation of the first q columns by Cayley's transform of a skew matrix."""
        q, c = self.n_latents, self.Z.shape[1]
        if not self.noise_is_known:
            return parameters.reshape(q, c)
        n_skew = q * (q - 1) // 2
        return np.concatenate([_cayley(self._skew(parameters))[0], parameters[n_skew:].reshape(q, c - q)], axis=1)

    def pull_back(self, parameters: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Gradient by the parameters from that by M (q, c)."""
        q = self.n_latents
        if not self.noise_is_known:
            return gradient.ravel()
        rotation, inverse = _cayley(self._skew(parameters))
        by_skew = inverse.T @ gradient[:, :q] @ (np.eye(q) + rotation).T
        return np.concatenate([(by_skew - by_skew.T)[np.triu_indices(q, 1)], gradient[:, q:].ravel()])

    def _skew(self, parameters: np.ndarray) -> np.ndarray:
        q = self.n_latents
        K = np.zeros((q, q))
        K[np.triu_indices(q, 1)] = parameters[: q * (q - 1) // 2]
        return K - K.T


def _cayley(K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rotation (I - K)^-1 (I + K), and (I - K)^-1."""
    inverse = np.linalg.inv(np.eye(len(K)) - K)
    return inverse @ (np.eye(len(K)) + K), inverse


@dataclass(frozen=True)
class MixedObjective:
    """-log p(outputs) - log prior per row, by [kernel theta, log signal, mixing], with its gradient.

    log p = sum_i log p(w_i) + N log |det M_q|. The noise's own prior, N LEAST_NOISE^2 |M_q W0|^2 / 2, stands for an
    independent error of that size in each value.
    """

    rows: MixedRows
    kernels: LatentKernels
    blocks: tuple[tuple[BlockGroup, ...], ...]  # for each kernel
    prior: LengthPrior
    least: np.ndarray | None = None  # (p,) of theta, above its bounds

    def __call__(self, parameters: np.ndarray) -> tuple[float, np.ndarray]:
        rows, q, N = self.rows, self.rows.n_latents, len(self.rows.x)
        theta, log_signal, mixing = self._split(parameters)
        M, log_det = self._mixing(mixing)
        if M is None:
            return REFUSED, np.zeros(len(parameters))
        try:
            found = self._evidence(Latents(rows.Z @ M.T, log_signal, rows.noise), theta)
        except NumericalError:
            return REFUSED, np.zeros(len(parameters))
        noise_part = M[:, :q] @ rows.whitening
        by_M = found.by_w.T @ rows.Z
        by_M[:, :q] += N * (np.linalg.inv(M[:, :q]).T - LEAST_NOISE**2 * noise_part @ rows.whitening.T)
        prior_value, by_theta, by_signal = self.log_prior(parameters)
        value = found.value + N * log_det + prior_value
        parts = [found.by_kernel + by_theta, found.by_signal + by_signal, rows.pull_back(mixing, by_M)]
        return -value / N, -np.concatenate(parts) / N

    def value(self, parameters: np.ndarray) -> float:
        """The same without its gradient."""
        rows, N = self.rows, len(self.rows.x)
        theta, log_signal, mixing = self._split(parameters)
        M, log_det = self._mixing(mixing)
        if M is None:
            return REFUSED
        latents = Latents(rows.Z @ M.T, log_signal, rows.noise)
        try:
            found = sum(latent_log_density(*given, MEAN_VARIANCE) for given in self._each(latents, theta))
        except NumericalError:
            return REFUSED
        return -(found + N * log_det + self.log_prior(parameters)[0]) / N

    def surprises(self, parameters: np.ndarray) -> np.ndarray:
        """(N, q) what each row says beyond earlier ones, as independent N(0, 1) if the model is right."""
        theta, log_signal, mixing = self._split(parameters)
        latents = Latents(self.rows.Z @ self.rows.mixing(mixing).T, log_signal, self.rows.noise)
        return np.concatenate([surprises(*given, MEAN_VARIANCE).values for given in self._each(latents, theta)], axis=1)

    def _split(self, parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Theta, log signals and mixing parameters."""
        p, q = self.kernels.n_parameters, self.rows.n_latents
        return parameters[:p], parameters[p : p + q], parameters[p + q :]

    def _mixing(self, mixing: np.ndarray) -> tuple[np.ndarray | None, float]:
        """M, None where it turns a latent over, and log |det M_q| with the noise's own prior, per row."""
        M = self.rows.mixing(mixing)
        q = self.rows.n_latents
        sign, log_det = np.linalg.slogdet(M[:, :q])
        if sign <= 0:
            return None, 0.0
        return M, float(log_det - 0.5 * LEAST_NOISE**2 * np.sum((M[:, :q] @ self.rows.whitening) ** 2))

    def _evidence(self, latents: Latents, theta: np.ndarray) -> LatentEvidence:
        """Of all latents, those with a kernel of their own one by one."""
        parts = [latent_evidence(*given, MEAN_VARIANCE) for given in self._each(latents, theta)]
        values, by_kernel, by_signal, by_w = zip(*parts, strict=True)
        return LatentEvidence(
            float(sum(values)), np.concatenate(by_kernel), np.concatenate(by_signal), np.concatenate(by_w, axis=1)
        )

    def _each(
        self, latents: Latents, theta: np.ndarray
    ) -> Iterator[tuple[tuple[BlockGroup, ...], np.ndarray, ScaledCovariance, Latents]]:
        """Blocks, inputs, kernel and latents, kernel by kernel."""
        kernels = self.kernels.at(theta)
        for number, (covariance, blocks) in enumerate(zip(kernels.each, self.blocks, strict=True)):
            yield blocks, self.rows.x, covariance, latents.some(kernels.latents(number))

    def log_prior(self, parameters: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Log density of lengthscales and signals up to a constant, and its slopes by both."""
        p, q = self.kernels.n_parameters, self.rows.n_latents
        value, slope = self.prior(parameters[:p])
        away = (parameters[p : p + q] - SIGNAL_CENTRE) / SIGNAL_SD
        return value - 0.5 * float(away @ away), slope, -away / SIGNAL_SD

    def bounds(self) -> list[tuple[float, float]]:
        """Box for the search."""
        free = len(self.rows.start())
        kernels = self.kernels.bounds
        if self.least is not None:
            kernels = [(max(low, least), high) for (low, high), least in zip(kernels, self.least, strict=True)]
        return kernels + [SIGNAL_BOUNDS] * self.rows.n_latents + [(-np.inf, np.inf)] * free


class Found(NamedTuple):
    """End of a search: parameters, -log posterior of all rows, status in words, evaluations.

    ``metric`` (p, p): the inverse curvature per row that the search has seen; another on similar rows begins with it.
    """

    parameters: np.ndarray
    value: float
    status: str
    evaluations: int
    metric: np.ndarray


def search(objective: MixedObjective, start: np.ndarray, max_steps: int, precision: float) -> Found:
    """L-BFGS-B down to a gain below ``precision`` of the log posterior."""
    N, bounds = len(objective.rows.x), objective.bounds()
    low, high = np.array(bounds).T
    options = {"maxiter": max_steps, "ftol": precision / N, "gtol": 1e-9, "maxcor": 20}
    result = minimize(objective, np.clip(start, low, high), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    if not result.fun < REFUSED:
        raise NumericalError("Vecchia: no hyperparameters could be fitted; check duplicates, or give a known noise=")
    status = Status.CONVERGED if result.status == 0 or result.nit < max_steps else Status.STEP_LIMIT
    metric = result.hess_inv.todense()
    return Found(np.asarray(result.x), float(result.fun) * N, status, int(result.nfev), 0.5 * (metric + metric.T))


def with_curvature(objective: MixedObjective, found: Found) -> Found:
    """The same with its metric from differences of gradients, where parameters are few: L-BFGS sees no long valleys."""
    n = len(found.parameters)
    if n > MOST_CURVED:
        return found
    _, at = objective(found.parameters)
    H = np.stack([(objective(found.parameters + CURVED_STEP * e)[1] - at) / CURVED_STEP for e in np.eye(n)])
    values, vectors = np.linalg.eigh(0.5 * (H + H.T))
    metric = (vectors / np.maximum(values, LEAST_CURVATURE * values[-1])) @ vectors.T
    return found._replace(metric=metric, evaluations=found.evaluations + n + 1)


def search_near(objective: MixedObjective, near: Found, max_steps: int, precision: float, limit: float = np.inf) -> Found:
    """BFGS from the end of a search on similar rows, whose curvature makes the first steps nearly Newton's.

    Ends where the next step is expected to gain less than ``precision``, or far too little to come below ``limit``.
    """
    N, (low, high) = len(objective.rows.x), np.array(objective.bounds()).T
    x, H = np.clip(near.parameters, low, high), near.metric
    value, slope = objective(x)
    evaluations, status, steepest = 1, Status.STEP_LIMIT, False
    for step in range(max_steps):
        stuck = ((x <= low) & (slope > 0)) | ((x >= high) & (slope < 0))
        direction = np.where(stuck, 0.0, -H @ np.where(stuck, 0.0, slope))
        expected = float(slope @ direction)
        missing = N * value - limit if step > FAIR_STEPS else 0.0
        if -0.5 * N * expected < max(precision, HOPELESS * missing):
            status = Status.CONVERGED
            break
        new, new_value, new_slope, length = x, np.inf, slope, 1.0
        while new_value > value + SUFFICIENT * length * expected and length > SHORTEST_STEP:
            new = np.clip(x + length * direction, low, high)
            new_value, new_slope = objective(new)
            evaluations += 1
            length *= SHORTER
        if new_value >= value:
            if -0.5 * N * expected < NOTHING_LEFT or steepest:
                status = Status.STALLED if steepest else Status.CONVERGED  # round-off: no step of descent gains anything
                break
            H, steepest = FIRST_MOVE / float(np.linalg.norm(slope)) * np.eye(len(x)), True  # the curvature misled
            continue
        steepest = False
        H = _updated(H, new - x, new_slope - slope)
        x, value, slope = new, new_value, new_slope
    if not value < REFUSED:
        raise NumericalError("Vecchia: no hyperparameters could be fitted; check duplicates, or give a known noise=")
    return Found(x, value * N, status, evaluations, H)


def _updated(H: np.ndarray, moved: np.ndarray, turned: np.ndarray) -> np.ndarray:
    """BFGS's inverse curvature after a step ``moved`` that changed the slope by ``turned``."""
    along = float(moved @ turned)
    if along <= 1e-12 * float(np.linalg.norm(moved) * np.linalg.norm(turned)):
        return H
    Hy = H @ turned
    outer = np.outer(moved, Hy)
    return H + (1.0 + float(turned @ Hy) / along) * np.outer(moved, moved) / along - (outer + outer.T) / along
