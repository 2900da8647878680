"""Gaussian inference on a Markov chain of N states, in O(N) and without a Python loop over the N steps.

The chain x_{i+1} = Phi_i x_i + N(0, Q_i), x_0 ~ N(0, P_0), is seen through g rows a time, rho_i = B_i x_i + N(0, I),
a zero row meaning that nothing was seen. Its Kalman filter and the adjoint form of its smoother use only covariances:
the inverses of Q that the precision form needs grow like gap^-5 for a Matern-5/2 process and swamp the data when
the gaps are small.

The steps are dealt out to about sqrt(N) lanes of about sqrt(N) consecutive steps, and all lanes run in lockstep, one
array operation for all of them. What a lane needs to know of the others is a state at its border: for means and
adjoints the recursions are affine, so a run from zero and the lane's closed-loop transition suffice; for the
covariance, which is not, see ``_lane_starts``.

Arrays in lane order have shape (steps, lanes, ...): entry [s, j] belongs to time j * steps + s.

Means, residuals and draws of a Markov chain whose covariances are known: everything linear in the observed values.
Lanes are coupled as in the factorisation: the recursions are affine, so a run from zero and the lane's closed-loop
transition give the state at each lane's border, and a second run everything in between. Shapes and names are those of
``chain``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpstrf

from sumgp.errors import NumericalError
from sumgp.numerics import REMEDY, root, symmetric, whiten

MATCH = 1e-11  # lanes that agree on the covariance at their border to this part of the variances need no correction
TOLERABLE = 1e-5  # where round-off stops the correction: still good enough, in the same unit


@dataclass(frozen=True)
class Lanes:
    """How N times are dealt out: lane j holds times j * steps ... (j + 1) * steps - 1, the last lane may be padded."""

    n: int
    steps: int
    count: int

    @classmethod
    def of(cls, n: int) -> Lanes:
        """About equally many lanes and steps, so that neither loop is long."""
        steps = max(1, round(np.sqrt(n)))
        return cls(n, steps, -(-n // steps))

    def deal(self, values: np.ndarray) -> np.ndarray:
        """(N, ...) in time order -> (steps, lanes, ...), padded with zeros."""
        padded = np.zeros((self.count * self.steps, *values.shape[1:]))
        padded[: len(values)] = values
        return np.ascontiguousarray(padded.reshape(self.count, self.steps, *values.shape[1:]).swapaxes(0, 1))

    def collect(self, values: np.ndarray) -> np.ndarray:
        """(steps, lanes, ...) -> (N, ...) in time order."""
        return values.swapaxes(0, 1).reshape(self.count * self.steps, *values.shape[2:])[: self.n]


@dataclass(frozen=True)
class Chain:
    """A chain and what is seen of it, in lane order: transition, noise (s, l, D, D) and sight B (s, l, g, D).

    ``transition[s, j]`` leads from time i = j * steps + s to i + 1. ``initial`` (D, D) is P_0.
    """

    lanes: Lanes
    transition: np.ndarray
    noise: np.ndarray
    initial: np.ndarray
    sight: np.ndarray


@dataclass(frozen=True)
class Factor:
    """Everything about a chain that does not depend on the observed values, in lane order.

    ``predicted`` (s, l, D, D): P_i, covariance of x_i given what was seen before i. ``adjoint`` (s, l, D, D): Lambda_i =
    (J^-1 + P_i)^-1 with J the information from i on, so that the smoothed covariance is P - P Lambda P.
    With the Cholesky factor L of the innovations' covariance I + B P B^T: ``innovate`` (s, l, g, g) = L^-1,
    ``sight`` (s, l, g, D) = L^-1 B, ``update`` (s, l, g, D) = L^-1 B P. ``closed`` (s, l, D, D): the mean's transition
    Phi (I - update^T sight), ``lane_closed`` (l, D, D) its product over a lane. ``logdet``: log |I + B K B^T|.
    """

    chain: Chain
    predicted: np.ndarray
    adjoint: np.ndarray
    innovate: np.ndarray
    sight: np.ndarray
    update: np.ndarray
    closed: np.ndarray
    lane_closed: np.ndarray
    logdet: float


def factorise(chain: Chain) -> Factor:
    """Covariances of the chain given what is seen of it: an open run, one or more filters, an adjoint run."""
    starts = _lane_starts(chain.initial, *_open_lanes(chain))
    before = np.inf
    while True:
        forward, ends = _filter(chain, starts)
        mismatch = ends[:-1] - starts[1:]
        size = _relative(mismatch, starts[1:])
        if size <= MATCH or not size <= 0.5 * before:
            break
        before = size
        starts = _matched(starts, mismatch, forward.lane_closed)
    if not size <= TOLERABLE:
        raise NumericalError(
            f"covariances of neighbouring stretches of time differ by {size:.1e} of the variances; {REMEDY}"
        )
    return _adjoint(forward)


def _see(covariance: np.ndarray, sight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """L^-1 (l, g, g), L^-1 B and L^-1 B P (l, g, D) and log-determinants (l,) of I + B P B^T = L L^T."""
    rows, size = sight.shape[1:]
    cross = sight @ covariance
    inner = np.eye(rows) + cross @ sight.mT
    unit = np.broadcast_to(np.eye(rows), inner.shape)
    whitened, logdet = whiten(inner, np.concatenate([unit, sight, cross], axis=2))
    return whitened[:, :, :rows], whitened[:, :, rows : rows + size], whitened[:, :, rows + size :], logdet


def _open_lanes(chain: Chain) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A, C and J (l, D, D) of every lane, its starting state being held fixed.

    x_end = A x_start + N(0, C), and exp(-x_start^T J x_start / 2) is what the lane tells of its start.
    """
    shape = (chain.lanes.count, *chain.initial.shape)
    A = np.broadcast_to(np.eye(len(chain.initial)), shape)
    C, J = np.zeros(shape), np.zeros(shape)
    for s in range(chain.lanes.steps):
        innovate, sight, update, _ = _see(C, chain.sight[s])
        seen = sight @ A
        J = J + seen.mT @ seen
        closed, C = _predict(C, innovate, sight, update, chain.transition[s], chain.noise[s])
        A = closed @ A
    return A, C, symmetric(J)


def _predict(
    covariance: np.ndarray, innovate: np.ndarray, sight: np.ndarray, update: np.ndarray, step: np.ndarray, noise: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Closed-loop transition Psi = Phi (I - update^T sight) and the next covariance Psi P Psi^T + M M^T + Q, all (l, D, D).

    M = Phi update^T L^-1 is what the observations' unit noise adds (Joseph's form): a sum of semidefinite terms stays
    so however exact a row is, which Phi (P - update^T update) Phi^T + Q does not.
    """
    moved = step @ update.mT
    closed = step - moved @ sight
    added = moved @ innovate
    return closed, symmetric(closed @ covariance @ closed.mT + added @ added.mT + noise)


def _lane_starts(initial: np.ndarray, A: np.ndarray, C: np.ndarray, J: np.ndarray) -> np.ndarray:
    """Predicted covariance at each lane's start (l, D, D): P_{j+1} = A (P_j^-1 + J)^-1 A^T + C."""
    starts = np.empty_like(A)
    covariance = initial
    for j in range(len(A)):
        starts[j] = covariance
        covariance = symmetric(A[j] @ _conditioned(covariance, J[j]) @ A[j].T + C[j])
    return starts


def _matched(starts: np.ndarray, mismatch: np.ndarray, lane_closed: np.ndarray) -> np.ndarray:
    """Newton correction of the lane starts, so that each lane ends where the next begins.

    The information J mixes what exact laws and noisy data tell, and loses digits of the latter. A filter run from the
    starts does not, and its end moves by Psi dP Psi^T with its start, Psi the closed-loop transition over the lane.
    """
    corrected = starts.copy()
    change = np.zeros_like(starts[0])
    for j in range(len(mismatch)):
        change = mismatch[j] + lane_closed[j] @ change @ lane_closed[j].T
        corrected[j + 1] += change
    scale = _scales(starts)
    values, vectors = np.linalg.eigh(corrected / scale)
    matched = scale * ((vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.mT)
    # States without variance keep none: round-off in its place would be measured against itself.
    live = np.einsum("nii->ni", corrected) > 0
    return np.where(live[:, :, None] & live[:, None, :], matched, 0.0)


def _relative(difference: np.ndarray, covariances: np.ndarray) -> float:
    """Largest difference in units of the standard deviations."""
    return float(np.max(np.abs(difference) / _scales(covariances), initial=0.0))


def _scales(covariances: np.ndarray) -> np.ndarray:
    """(n, D, D) products of standard deviations, 1 for states without variance."""
    variances = np.einsum("nii->ni", covariances)
    sd = np.sqrt(np.where(variances > 0, variances, 1.0))
    return sd[:, :, None] * sd[:, None, :]


def _conditioned(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(first^-1 + second)^-1 for semidefinite matrices (D, D), without inverting either.

    The pivoted Cholesky factor is taken of the correlations, so that entries of very different size do no harm.
    """
    scale = np.sqrt(np.maximum(first.diagonal(), 0.0))
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    factor, pivots, rank, _ = dpstrf(first * (inverse[:, None] * inverse), tol=4.0 * len(first) * np.finfo(float).eps)
    half = np.zeros_like(first)
    half[:rank, pivots - 1] = np.triu(factor)[:rank]
    half *= scale
    inner = np.eye(len(first)) + half @ second @ half.T
    try:
        return half.T @ np.linalg.solve(inner, half)
    except np.linalg.LinAlgError as error:
        raise NumericalError(
            f"the prior of a stretch of time is lost to round-off beside its information; {REMEDY}"
        ) from error


def _filter(chain: Chain, starts: np.ndarray) -> tuple[Factor, np.ndarray]:
    """Kalman filter in every lane; the adjoint is left empty. Also the covariance beyond each lane's end."""
    predicted, closed = np.empty_like(chain.transition), np.empty_like(chain.transition)
    sight, update = np.empty_like(chain.sight), np.empty_like(chain.sight)
    innovate = np.empty((*sight.shape[:3], sight.shape[2]))
    lane_closed = np.broadcast_to(np.eye(len(chain.initial)), starts.shape)
    covariance, logdet = starts, 0.0
    for s in range(chain.lanes.steps):
        predicted[s] = covariance
        innovate[s], sight[s], update[s], logdets = _see(covariance, chain.sight[s])
        seen = (innovate[s], sight[s], update[s])
        closed[s], covariance = _predict(covariance, *seen, chain.transition[s], chain.noise[s])
        lane_closed = closed[s] @ lane_closed
        logdet += float(logdets.sum())
    nothing = np.empty((0, *starts.shape))
    return Factor(chain, predicted, nothing, innovate, sight, update, closed, lane_closed, logdet), covariance


def _adjoint(factor: Factor) -> Factor:
    """Lambda_i = Psi_i^T Lambda_{i+1} Psi_i + sight_i^T sight_i, backwards through every lane from its end."""
    steps = factor.chain.lanes.steps
    inflow = np.empty_like(factor.closed)
    starts = np.zeros_like(factor.lane_closed)
    for s in range(steps - 1, -1, -1):
        inflow[s] = factor.sight[s].mT @ factor.sight[s]
        starts = factor.closed[s].mT @ (starts @ factor.closed[s]) + inflow[s]
    beyond = np.zeros_like(starts)
    for j in range(len(starts) - 1, 0, -1):
        lane = factor.lane_closed[j]
        beyond[j - 1] = starts[j] + lane.T @ beyond[j] @ lane
    adjoint = inflow
    for s in range(steps - 1, -1, -1):
        beyond = symmetric(factor.closed[s].mT @ (beyond @ factor.closed[s]) + inflow[s])
        adjoint[s] = beyond
    return Factor(**{**factor.__dict__, "adjoint": adjoint})


@dataclass(frozen=True)
class Solution:
    """Means for given observations (p columns at once), in lane order.

    ``predicted`` (s, l, D, p): m_i given what was seen before i; ``adjoint`` (s, l, D, p): lambda_i, so that the smoothed
    mean is m + P lambda; ``innovation`` (s, l, g, p): L^-1 (rho - B m), so that the filtered one is m + update^T innovation.
    """

    predicted: np.ndarray
    adjoint: np.ndarray
    innovation: np.ndarray


def solve(factor: Factor, observed: np.ndarray) -> Solution:
    """Means of the chain for observed rows rho (s, l, g, p) in lane order; costs about a third of the factor."""
    steps, closed = factor.chain.lanes.steps, factor.closed
    innovation = factor.innovate @ observed
    predicted, adjoint = (np.empty((*closed.shape[:3], observed.shape[-1])) for _ in range(2))
    ends = np.zeros(predicted.shape[1:])
    for s in range(steps):
        predicted[s] = factor.chain.transition[s] @ (factor.update[s].mT @ innovation[s])
        ends = closed[s] @ ends + predicted[s]
    mean = _carry(factor.lane_closed, ends)
    for s in range(steps):
        predicted[s], mean = mean, closed[s] @ mean + predicted[s]
    starts = np.zeros_like(ends)
    for s in range(steps - 1, -1, -1):
        innovation[s] -= factor.sight[s] @ predicted[s]
        adjoint[s] = factor.sight[s].mT @ innovation[s]
        starts = closed[s].mT @ starts + adjoint[s]
    beyond = _carry(factor.lane_closed.mT[::-1], starts[::-1])[::-1]
    for s in range(steps - 1, -1, -1):
        beyond = closed[s].mT @ beyond + adjoint[s]
        adjoint[s] = beyond
    return Solution(predicted, adjoint, innovation)


def _carry(matrices: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """v_0 = 0, v_{j+1} = matrices_j v_j + offsets_j, stacked (l, D, p)."""
    result = np.zeros_like(offsets)
    for j in range(len(offsets) - 1):
        result[j + 1] = matrices[j] @ result[j] + offsets[j]
    return result


def smoothed(factor: Factor, solution: Solution, observe: np.ndarray) -> np.ndarray:
    """(s, l, T, p) smoothed means H (m + P lambda) of f = H x for ``observe`` H (T, D), in lane order."""
    result = np.empty((*solution.predicted.shape[:2], len(observe), solution.predicted.shape[3]))
    for s in range(len(result)):
        result[s] = observe @ (solution.predicted[s] + factor.predicted[s] @ solution.adjoint[s])
    return result


def smoothed_covariance(factor: Factor, observe: np.ndarray) -> np.ndarray:
    """(s, l, T, T) smoothed covariances H (P - P Lambda P) H^T of f = H x, in lane order."""
    result = np.empty((*factor.predicted.shape[:2], len(observe), len(observe)))
    for s in range(len(result)):
        cross = observe @ factor.predicted[s]
        result[s] = cross @ observe.T - cross @ factor.adjoint[s] @ cross.mT
    return result


def residuals(factor: Factor, solution: Solution) -> np.ndarray:
    """(s, l, g, p) values of rho - B x at the smoothed mean, in lane order.

    Worked out from the innovations: the difference itself loses its digits where a row's variance is very small.
    """
    following = np.zeros_like(solution.adjoint)
    following[:-1] = solution.adjoint[1:]
    following[-1, :-1] = solution.adjoint[0, 1:]
    pulled = factor.update @ (factor.chain.transition.mT @ following)
    return factor.innovate.mT @ (solution.innovation - pulled)


def prior_paths(chain: Chain, n_paths: int, rng: np.random.Generator) -> np.ndarray:
    """(s, l, D, p) independent draws of the whole chain before anything is seen, in lane order."""
    flat = chain.noise.reshape(-1, *chain.initial.shape)
    shocks = root(flat).mT @ rng.standard_normal((*flat.shape[:2], n_paths))
    paths = shocks.reshape(*chain.noise.shape[:3], n_paths)
    first = root(chain.initial[None])[0].T @ rng.standard_normal((len(chain.initial), n_paths))
    ends, product = np.zeros(paths.shape[1:]), np.broadcast_to(np.eye(len(first)), chain.noise.shape[1:])
    ends[0] = first
    for s in range(chain.lanes.steps):
        ends = chain.transition[s] @ ends + paths[s]
        product = chain.transition[s] @ product
    state = _carry(np.concatenate([np.zeros_like(product[:1]), product[1:]]), ends)
    state[0] = first
    for s in range(chain.lanes.steps):
        paths[s], state = state, chain.transition[s] @ state + paths[s]
    return paths
