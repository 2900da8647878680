"""Maximise the posterior density of hyperparameters, and propose others around the maximum.

Priors over latent functions start from a look at every lengthscale that rows can tell apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from scipy.special import gammaincinv, gammaln, ndtri
from scipy.stats import qmc
from sklearn.gaussian_process.kernels import Kernel

from sumgp.errors import NumericalError, Status
from sumgp.priors import KernelDerivatives, MultitaskPrior
from sumgp.solvers import DenseEvidence, Evidence

REFUSED = 1e25  # value of a point where the evidence cannot be computed; finite, so that a line search backs off


@dataclass(frozen=True)
class Objective:
    """-log p(y | theta) - log p(theta) with its gradient."""

    prior: MultitaskPrior
    evidence: Evidence

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient; a failed Cholesky factor is a very bad value, not an exception."""
        try:
            value, gradient = self.evidence(theta)
        except NumericalError:
            return REFUSED, np.zeros(len(theta))
        prior_value, prior_gradient = self.prior.log_prior(theta)
        if not np.isfinite(value) or not np.all(np.isfinite(gradient)):
            return REFUSED, np.zeros(len(theta))
        return -value - prior_value, -gradient - prior_gradient

    def value(self, theta: np.ndarray) -> float:
        """The value alone, which some evidences give at less cost."""
        try:
            value = float(self.evidence.value(theta))
        except NumericalError:
            return REFUSED
        return -value - self.prior.log_prior(theta)[0] if np.isfinite(value) else REFUSED


def values_at(objective: Objective, thetas: np.ndarray) -> list[float]:
    """The values of an objective, or of what gives values as one does, at several thetas (m, p)."""
    evidence = getattr(objective, "evidence", None)
    if isinstance(evidence, DenseEvidence) and len(thetas):
        try:
            priors = [objective.prior.log_prior(theta)[0] for theta in thetas]
            return [-v - p if np.isfinite(v) else REFUSED for v, p in zip(evidence.values(thetas), priors, strict=True)]
        except NumericalError:
            pass  # which of them it is, single values tell
    return [objective.value(theta) for theta in thetas]


FIRST_STEPS = 40  # of every start; then only the best goes on
PRECISION = 1e-6  # of the log posterior, at which a run ends
JOINED, JOINED_VALUE = 0.15, 0.1  # in every parameter and in the log posterior: so close a run ends where the other did
# Above so many parameters a run ends where so many steps together have gained so little: draws of them lie sqrt(p) standard
# deviations away, and the rest of a long flat valley would move their centre by a few tenths of one.
MANY, STEPS_BACK, GAINED = 40, 10, 0.05
STOPPED = 99  # scipy's status of a run that its callback ended
_SOUND = (Status.CONVERGED, Status.STEP_LIMIT)


@dataclass(frozen=True)
class Attempt:
    """One run of the optimiser and what became of it."""

    theta: np.ndarray
    value: float
    steps: int
    status: Status


@dataclass(frozen=True)
class MapEstimate:
    """The best attempt, and all of them."""

    theta: np.ndarray
    value: float
    status: Status
    attempts: tuple[Attempt, ...]


def starting_points(objective: Objective, restarts: int, random_state: int) -> list[np.ndarray]:
    """The prior's start, then shorter and longer lengthscales with other noise, then random ones."""
    prior = objective.prior
    start = prior.start()
    lengths = prior.lengthscales()
    noise = np.zeros(len(start), dtype=bool)
    noise[prior.noise_slice] = True
    generator = np.random.default_rng([random_state, 7])
    points = [start]
    for shift, factor in ((-1.2, 0.0), (0.8, 1.0), (-2.0, -1.0))[:restarts]:
        points.append(start + shift * lengths + factor * noise)
    for _ in range(max(restarts - 3, 0)):
        points.append(start + generator.normal(0.0, 1.0, len(start)) * np.where(lengths | noise, 1.0, 0.5))
    low, high = np.array(prior.bounds()).T
    return [np.clip(p, low, high) for p in points]


def maximise(
    objective: Objective,
    restarts: int = 2,
    random_state: int = 0,
    max_steps: int = 300,
    starts: Sequence[np.ndarray] | None = None,
) -> MapEstimate:
    """Best of several L-BFGS-B runs; more random starts while every run fails a check, at most eight.

    Each start gets a few steps; the best of them is then followed to its end, the others are left behind.
    ``starts`` replaces the starting points chosen from the prior.
    """
    attempts: list[Attempt] = []
    points = starting_points(objective, restarts, random_state) if starts is None else list(starts)
    first_steps = min(FIRST_STEPS, max_steps) if len(points) > 1 else max_steps
    extra = np.random.default_rng([random_state, 8])
    while points:
        attempts.append(
            _attempt(objective, points.pop(0), first_steps, [a for a in attempts if a.status is Status.CONVERGED])
        )
        if not points and not any(a.status in _SOUND for a in attempts) and len(attempts) < 8:
            points.append(objective.prior.start() + extra.normal(0.0, 1.0, objective.prior.n_parameters))
    if first_steps < max_steps:
        attempts = _follow_best(objective, attempts, max_steps - first_steps)
    sound = [a for a in attempts if a.value < REFUSED]
    if not sound:
        tried = "; ".join(a.status for a in attempts)
        raise NumericalError(
            f"no hyperparameters could be fitted: {len(attempts)} starts ended with: {tried}; "
            "check the data's units and duplicates, give a known noise=, or another kernel="
        )
    good = [a for a in sound if a.status in _SOUND] or sound
    best = min(good, key=lambda a: a.value)
    return MapEstimate(best.theta, best.value, best.status, tuple(attempts))


def _follow_best(objective: Objective, attempts: list[Attempt], steps: int) -> list[Attempt]:
    """Attempts by rising value taken to their end until one ends well; others that had steps to go are left behind."""
    result = list(attempts)
    found = False
    for i in sorted(range(len(attempts)), key=lambda i: attempts[i].value):
        if result[i].status is Status.STEP_LIMIT:
            if found:
                result[i] = replace(result[i], status=Status.LEFT_BEHIND)
            else:
                more = _attempt(objective, result[i].theta, steps)
                result[i] = replace(more, steps=result[i].steps + more.steps)
        found = found or result[i].status in _SOUND
    return result


def _settled(prior: MultitaskPrior, values: list[float]) -> bool:
    """Whether the last of many steps in many directions have gained next to nothing."""
    return prior.n_parameters > MANY and len(values) > STEPS_BACK and values[-1 - STEPS_BACK] - values[-1] < GAINED


def _collapsed(prior: MultitaskPrior, theta: np.ndarray) -> bool:
    """Whether a lengthscale is so short that rows have nothing in common."""
    spikes = np.array([p.spikes for priors in prior.kernel_priors for p in priors])
    lengths = np.concatenate([theta[k] for k, _ in prior.slices])
    mask = np.concatenate([prior.lengthscales()[k] for k, _ in prior.slices])
    return bool(np.any(lengths[mask] < spikes[mask]))


def _attempt(objective: Objective, start: np.ndarray, max_steps: int, ended_before: Sequence[Attempt] = ()) -> Attempt:
    """One run of L-BFGS-B, left behind where it joins one that ended before."""
    prior = objective.prior
    first, slope = objective(start)
    if first >= REFUSED:
        return Attempt(start, first, 0, Status.FAILED_FACTOR)
    # Within a box L-BFGS-B tries the whole gradient as its first step, up to the corners: divided by its size it is one
    # of length one. Refused points get a value just above the worst, since one of 1e25 would end the line search.
    size = max(1.0, float(np.max(np.abs(slope))))
    worst = first
    # The first point is asked for again, and the last one after the run.
    known = {start.tobytes(): (first, slope)}

    def scaled(theta: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal worst
        key = theta.tobytes()
        if key not in known:
            known[key] = objective(theta)
        value, gradient = known[key]
        if value >= REFUSED:
            return (worst + 10.0 * size) / size, gradient
        worst = max(worst, value)
        return value / size, gradient / size

    values = [first]

    def watch(intermediate_result: OptimizeResult) -> None:
        values.append(intermediate_result.fun * size)
        near = [other.theta for other in ended_before if values[-1] - other.value < JOINED_VALUE]
        if _settled(prior, values) or any(np.max(np.abs(intermediate_result.x - theta)) < JOINED for theta in near):
            raise StopIteration

    options = {"maxiter": max_steps, "ftol": PRECISION / size, "gtol": 1e-3 / size, "maxcor": 20}
    result = minimize(scaled, start, jac=True, method="L-BFGS-B", bounds=prior.bounds(), options=options, callback=watch)
    theta = np.asarray(result.x)
    value, gradient = known.get(theta.tobytes()) or objective(theta)
    if value >= REFUSED:
        return Attempt(theta, value, int(result.nit), Status.FAILED_FACTOR)
    if _collapsed(prior, theta):
        return Attempt(theta, value, int(result.nit), Status.COLLAPSED)
    low, high = np.array(prior.bounds()).T
    free = (theta > low + 1e-9) & (theta < high - 1e-9)
    if result.status == STOPPED and not _settled(prior, values):
        return Attempt(theta, value, int(result.nit), Status.LEFT_BEHIND)
    # A step that no longer improves comes before a flat slope in long narrow valleys.
    ended = result.status in (0, STOPPED)
    still = ended or not free.any() or float(np.max(np.abs(gradient[free]))) < 0.05 * max(1.0, abs(value) * 1e-3)
    return Attempt(theta, value, int(result.nit), Status.CONVERGED if still else Status.STEP_LIMIT)


DEGREES = 6.0  # of freedom of proposals: tails heavier than any posterior of hyperparameters, with a variance
CURVATURE_FLOOR = 0.25  # of the log posterior: no direction is proposed with an sd above two, in logs of hyperparameters


@dataclass(frozen=True)
class Proposal:
    """A multivariate Student t."""

    mean: np.ndarray
    root: np.ndarray  # lower factor of the scale matrix

    @classmethod
    def around(cls, maximum: np.ndarray, curvature: np.ndarray, box: np.ndarray) -> Proposal:
        """As wide as the curvature of minus the log density says, but not wider than the floor and the bounds let it.

        ``box`` (p,): precision of a flat density between narrow bounds, zero for others.
        """
        values, vectors = np.linalg.eigh(curvature)
        scale = (vectors / np.maximum(values, CURVATURE_FLOOR)) @ vectors.T
        return cls(maximum, _root(np.linalg.inv(np.linalg.inv(scale) + np.diag(box)) if box.any() else scale))

    @classmethod
    def of_moments(cls, thetas: np.ndarray, weights: np.ndarray, wide: np.ndarray) -> Proposal:
        """Mean and covariance of weighted draws (n, p); the fewer count, the more of the covariance ``wide`` is mixed in."""
        mean = weights @ thetas
        away = thetas - mean
        p, effective = thetas.shape[1], 1.0 / float(np.sum(weights**2))
        share = p / (p + effective)
        return cls(mean, _root((1.0 - share) * (away.T * weights) @ away + share * wide))

    @property
    def scale(self) -> np.ndarray:
        """(p, p) scale matrix."""
        return self.root @ self.root.T

    def sample(self, count: int, generator: np.random.Generator) -> np.ndarray:
        """Quasi-random draws (scrambled Sobol), (count, p)."""
        p = len(self.mean)
        u = np.clip(qmc.Sobol(p + 1, scramble=True, seed=generator).random(count), 1e-9, 1.0 - 1e-9)
        scale = np.sqrt(DEGREES / (2.0 * gammaincinv(0.5 * DEGREES, u[:, p])))  # quantiles of chi squared
        return self.mean + (ndtri(u[:, :p]) * scale[:, None]) @ self.root.T

    def log_density(self, theta: np.ndarray) -> np.ndarray:
        """(count,) log densities."""
        p = len(self.mean)
        squares = np.sum(self.whitened(theta) ** 2, axis=1)
        constant = gammaln(0.5 * (DEGREES + p)) - gammaln(0.5 * DEGREES) - 0.5 * p * np.log(DEGREES * np.pi)
        return constant - np.sum(np.log(np.diagonal(self.root))) - 0.5 * (DEGREES + p) * np.log1p(squares / DEGREES)

    def whitened(self, theta: np.ndarray) -> np.ndarray:
        """(count, p) places in units of the scale."""
        return np.linalg.solve(self.root, (theta - self.mean).T).T


def _root(matrix: np.ndarray) -> np.ndarray:
    return np.linalg.cholesky(0.5 * (matrix + matrix.T))


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
