"""Series in state-space form: measurements sorted in time, and Matern kernels as chains of states.

State-space form of Matern kernels: what happens to (f, f', f'') over one time step.
Time is measured in units of lengthscale / sqrt(2 nu) and the k-th derivative in the matching unit, so that the
stationary process is the same for every lengthscale and only the dimensionless step tau carries it. The state z obeys
dz = drift z dtau + dw with diffusion Cov(dw) = diffusion dtau, hence z(tau) = Phi(tau) z(0) + N(0, Q(tau)).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import comb, factorial

import numpy as np
from scipy.special import gammainc

from sumgp.errors import DataError


@dataclass(frozen=True)
class TimeSeries:
    """What is known at n distinct, increasing times: ``observed`` = ``rows`` f + N(0, I), a zero row saying nothing.

    ``times`` (n,), ``rows`` (n, g, T), ``observed`` (n, g). ``place`` (N,) says which time each given point became.
    ``constant`` is the part of log p(y) that does not depend on f. ``values`` and ``variance`` (N, T) are the data as
    given, NaN where nothing was measured.
    """

    times: np.ndarray
    rows: np.ndarray
    observed: np.ndarray
    place: np.ndarray
    constant: float
    values: np.ndarray
    variance: np.ndarray

    @property
    def n_outputs(self) -> int:
        """Number of outputs T."""
        return self.rows.shape[2]

    @property
    def first(self) -> np.ndarray:
        """(n,) index of the first given point at each distinct time."""
        return np.unique(self.place, return_index=True)[1]


def time_series(times: np.ndarray, values: np.ndarray, variance: np.ndarray) -> TimeSeries:
    """Merge N points at ``times`` (N,) with ``values`` (N, T), NaN = not measured, and noise ``variance`` (T,) or (N, T).

    Measurements of one output at one time become their weighted mean, which loses nothing: the scatter about it enters
    log p(y) as a constant.
    """
    times, values = np.asarray(times, dtype=float), np.asarray(values, dtype=float)
    variance = np.broadcast_to(np.asarray(variance, dtype=float), values.shape)
    measured = ~np.isnan(values)
    distinct, place = np.unique(times, return_inverse=True)
    weight = np.where(measured, 1.0 / np.where(measured, variance, 1.0), 0.0)
    filled = np.where(measured, values, 0.0)
    total = _summed(weight, place, len(distinct))
    centre = _summed(weight * filled, place, len(distinct)) / np.where(total > 0, total, 1.0)
    scatter = weight * np.where(measured, filled - centre[place], 0.0) ** 2
    constant = -0.5 * float(scatter.sum() + np.log(2.0 * np.pi * variance[measured]).sum())
    rows = np.sqrt(total)[:, :, None] * np.eye(values.shape[1])
    return TimeSeries(distinct, rows, np.sqrt(total) * centre, place, constant, values, variance)


def _summed(values: np.ndarray, place: np.ndarray, n: int) -> np.ndarray:
    """(n, T) sums of the (N, T) values that share a place."""
    return np.stack([np.bincount(place, weights=column, minlength=n) for column in values.T], axis=1)


def with_rows(series: TimeSeries, J: np.ndarray, target: np.ndarray, variance: np.ndarray) -> TimeSeries:
    """The same with R further observations J_i f(t_i) = target_i + N(0, variance_i) at every distinct time.

    J (n, R, T), target and variance (n, R), in the order of ``series.times``; a row of J that is zero says nothing.
    """
    sd = np.sqrt(variance)
    said = np.any(J != 0, axis=2)
    return replace(
        series,
        rows=np.concatenate([series.rows, J / sd[:, :, None]], axis=1),
        observed=np.concatenate([series.observed, np.where(said, target / sd, 0.0)], axis=1),
        constant=series.constant - 0.5 * float(np.log(2.0 * np.pi * variance[said]).sum()),
    )


def with_times(series: TimeSeries, times: np.ndarray) -> tuple[TimeSeries, np.ndarray]:
    """The same with further times (m,) at which nothing was seen; also the (m,) places of the new times."""
    union, place = np.unique(np.concatenate([series.times, times]), return_inverse=True)
    old, new = place[: len(series.times)], place[len(series.times) :]
    rows = np.zeros((len(union), *series.rows.shape[1:]))
    observed = np.zeros((len(union), series.rows.shape[1]))
    rows[old], observed[old] = series.rows, series.observed
    return replace(series, times=union, rows=rows, observed=observed, place=old[series.place]), new


@dataclass(frozen=True)
class Matern:
    """Constants of the unit-variance Matern process with d = nu + 1/2 states.

    ``drift`` and ``diffusion`` (d, d) define dz above, ``stationary`` (d, d) is the covariance of z at any one time,
    ``powers`` (d, d, d) holds (drift + I)^k / k!, which ends at k = d - 1 because drift + I is nilpotent.
    """

    nu: float
    drift: np.ndarray
    diffusion: np.ndarray
    stationary: np.ndarray
    powers: np.ndarray

    @property
    def n_states(self) -> int:
        """Number of states d."""
        return len(self.drift)

    def steps(self, gaps: np.ndarray, lengthscale: float) -> np.ndarray:
        """(n,) dimensionless steps tau = sqrt(2 nu) gap / lengthscale, capped where exp(-tau) is zero anyway."""
        return np.minimum(np.sqrt(2.0 * self.nu) * (gaps / lengthscale), 1e3)

    def transition(self, tau: np.ndarray) -> np.ndarray:
        """(n, d, d) matrices Phi(tau) = exp(drift tau) = exp(-tau) sum_k (drift + I)^k tau^k / k!."""
        monomials = tau[:, None] ** np.arange(self.n_states) * np.exp(-tau)[:, None]
        return (monomials @ self.powers.reshape(self.n_states, -1)).reshape(-1, *self.drift.shape)

    def process_noise(self, tau: np.ndarray) -> np.ndarray:
        """(n, d, d) covariances Q(tau) = int_0^tau v(s) v(s)^T ds with v = Phi(s) times the root of the diffusion.

        Every entry is a combination of int_0^tau s^n e^(-2s) ds whose lowest power leads for small tau, so it keeps its
        relative accuracy down to the smallest step, where stationary - Phi stationary Phi^T would cancel.
        """
        impulse = self.powers[:, :, -1] * np.sqrt(self.diffusion[-1, -1])
        weights = np.zeros((2 * self.n_states - 1, *self.drift.shape))
        for a in range(self.n_states):
            for b in range(self.n_states):
                weights[a + b] += np.outer(impulse[a], impulse[b])
        moments = _exponential_moments(tau, len(weights))
        return (moments @ weights.reshape(len(weights), -1)).reshape(-1, *self.drift.shape)


def _exponential_moments(tau: np.ndarray, count: int) -> np.ndarray:
    """(n, count) integrals int_0^tau s^k exp(-2 s) ds = k! / 2^(k+1) P(k + 1, 2 tau), each relatively accurate.

    The regularised gamma function is taken once and continued downwards by P(k, x) = P(k + 1, x) + x^k e^(-x) / k!,
    where nothing cancels.
    """
    doubled = 2.0 * tau
    result = np.empty((len(tau), count))
    regularised = gammainc(float(count), doubled)
    for k in range(count - 1, -1, -1):
        result[:, k] = factorial(k) / 2.0 ** (k + 1) * regularised
        regularised = regularised + doubled**k * np.exp(-doubled) / factorial(k)
    return result


SMOOTHNESS = (0.5, 1.5, 2.5, 3.5, 4.5)  # nu of the Matern processes used here, which have nu + 1/2 states


@cache
def matern(nu: float) -> Matern:
    """The Matern process of smoothness 1/2, 3/2, ... 9/2, whose functions have nu - 1/2 derivatives.

    Its spectral density is proportional to (1 + w^2)^-d, d = nu + 1/2; the variance of derivative j is therefore
    prod_{i <= j} (2 i - 1) / (2 d - 2 i - 1), and the diffusion 2^(2 d - 1) (d - 1)!^2 / (2 d - 2)!.
    """
    if nu not in SMOOTHNESS:
        raise DataError("nu", "one of " + ", ".join(map(str, SMOOTHNESS)), f"{nu!r}", "only these have a state here")
    d = int(nu + 0.5)
    drift = np.eye(d, k=1)
    drift[-1] = [-float(comb(d, k)) for k in range(d)]
    diffusion, stationary = np.zeros((d, d)), np.zeros((d, d))
    diffusion[-1, -1] = 2.0 ** (2 * d - 1) * factorial(d - 1) ** 2 / factorial(2 * d - 2)
    variances = np.cumprod([1.0, *((2.0 * i - 1.0) / (2.0 * d - 2.0 * i - 1.0) for i in range(1, d))])
    for a in range(d):
        for b in range(a % 2, d, 2):
            stationary[a, b] = (-1.0) ** ((b - a) // 2) * variances[(a + b) // 2]
    powers = [np.linalg.matrix_power(drift + np.eye(d), k) / factorial(k) for k in range(d)]
    return Matern(nu, drift, diffusion, stationary, np.array(powers))


@dataclass(frozen=True)
class MaternTerm:
    """Functions g of covariance K(t, t') (x) ``covariance`` (q, q), K a unit-variance Matern kernel, and what f has of them.

    A constant factor of the kernel belongs into ``covariance``, which may be singular. ``read`` (C, A, q): f is the sum over
    a < A of read[:, a] times derivative a of g; None: f is g.
    """

    nu: float
    lengthscale: float
    covariance: np.ndarray
    read: np.ndarray | None = None

    @property
    def rate(self) -> float:
        """By how much a derivative is larger than the state that stands for it."""
        return float(np.sqrt(2.0 * self.nu) / self.lengthscale)

    @property
    def n_columns(self) -> int:
        """C, of f."""
        return len(self.covariance) if self.read is None else len(self.read)

    def observe(self, compact: bool, order: int = 0) -> np.ndarray:
        """(C, states) matrix that reads f, or its derivative of this order by time, from the state of ``assemble``."""
        n_states, (basis, _) = matern(self.nu).n_states, _split(self.covariance, compact)
        read = np.eye(len(basis))[:, None] if self.read is None else self.read
        highest = order + read.shape[1] - 1
        if highest >= n_states:
            got = f"Matern(nu={self.nu:g})"
            remedy = (
                f"use Matern(nu={highest + 0.5}) or a smoother one" if highest < len(SMOOTHNESS) else "ask for a lower one"
            )
            raise DataError("kernel", f"one whose functions have {highest} derivative(s)", got, remedy)
        result = np.zeros((len(read), n_states, basis.shape[1]))
        for a in range(read.shape[1]):
            result[:, order + a] = self.rate ** (order + a) * (read[:, a] @ basis)
        return result.reshape(len(read), -1)


@dataclass(frozen=True)
class StateSpace:
    """The sum of several terms as one process: f = observe x, x_{i+1} = transition_i x_i + N(0, noise_i).

    ``transition``, ``noise`` (n, D, D); ``stationary`` (D, D); ``observe`` (C, D); ``slices`` gives each term's states,
    ordered derivative first, output second; ``compact`` says whether states were saved where a covariance is singular.
    """

    transition: np.ndarray
    noise: np.ndarray
    stationary: np.ndarray
    observe: np.ndarray
    slices: tuple[slice, ...]
    compact: bool


def assemble(terms: Sequence[MaternTerm], gaps: np.ndarray, compact: bool = False) -> StateSpace:
    """The state space of the sum of all terms for the time differences ``gaps`` (n,).

    Each term has d_r q_r states with Q = Q_r(tau) (x) Sigma_r. ``compact`` spends only d_r rank(Sigma_r) states, which
    gives the same distribution of f but no derivative in the directions that Sigma_r lacks.
    """
    cores = [_split(term.covariance, compact)[1] for term in terms]
    sizes = [matern(term.nu).n_states * len(core) for term, core in zip(terms, cores, strict=True)]
    stops = np.cumsum(sizes)
    slices = tuple(slice(int(stop - size), int(stop)) for stop, size in zip(stops, sizes, strict=True))
    total = sum(sizes)
    transitions, noises = [], []
    stationary = np.zeros((total, total))
    observe = np.concatenate([term.observe(compact) for term in terms], axis=1)
    for term, core, part in zip(terms, cores, slices, strict=True):
        process = matern(term.nu)
        tau = process.steps(gaps, term.lengthscale)
        transitions.append((process.transition(tau), np.eye(len(core))))
        noises.append((process.process_noise(tau), core))
        stationary[part, part] = np.kron(process.stationary, core)
    transition, noise = (_block_diagonal(pairs, slices, len(gaps)) for pairs in (transitions, noises))
    return StateSpace(transition, noise, stationary, observe, slices, compact)


def _block_diagonal(pairs: Sequence[tuple[np.ndarray, np.ndarray]], slices: Sequence[slice], count: int) -> np.ndarray:
    """(n, D, D) matrices of one block a pair: the Kronecker products of (n, d, d) with one (q, q)."""
    result = np.zeros((count, slices[-1].stop, slices[-1].stop))
    for (left, right), part in zip(pairs, slices, strict=True):
        d, q = left.shape[1], len(right)
        # One large matrix product: each entry of the left matrix times its unit matrix's Kronecker product.
        units = np.eye(d * d).reshape(d * d, d, d)
        spread = np.array([np.kron(unit, right).ravel() for unit in units])
        result[:, part, part] = (left.reshape(count, d * d) @ spread).reshape(count, d * q, d * q)
    return result


def _split(covariance: np.ndarray, compact: bool) -> tuple[np.ndarray, np.ndarray]:
    """B (T, q) and a core (q, q) with covariance = B core B^T, q its rank; B = I if it is full or not to be reduced.

    The rank is that of the correlations: outputs in small units count as much as others.
    """
    T = len(covariance)
    scale = np.sqrt(np.maximum(covariance.diagonal(), 0.0))
    inverse = np.divide(1.0, scale, out=np.zeros(T), where=scale > 0)
    values, vectors = np.linalg.eigh(covariance * np.outer(inverse, inverse))
    kept = values > 4.0 * T * np.finfo(float).eps
    if not compact or kept.all() or not kept.any():
        return np.eye(T), covariance
    return scale[:, None] * vectors[:, kept], np.diag(values[kept])
