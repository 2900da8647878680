"""Means, residuals and draws of a Markov chain whose covariances are known: everything linear in the observed values.

Lanes are coupled as in the factorisation: the recursions are affine, so a run from zero and the lane's closed-loop
transition give the state at each lane's border, and a second run everything in between. Shapes and names are those of
``chain``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sumgp.numerics import Fresh, Scratch, root, transposed
from sumgp.solvers.markov.chain import Chain, Factor


@dataclass(frozen=True)
class Solution:
    """Means for given observations (p columns at once), in lane order.

    ``predicted`` (s, l, D, p): m_i given what was seen before i; ``adjoint`` (s, l, D, p): lambda_i, so that the smoothed
    mean is m + P lambda; ``innovation`` (s, l, g, p): L^-1 (rho - B m), so that the filtered one is m + update^T innovation.
    """

    predicted: np.ndarray
    adjoint: np.ndarray
    innovation: np.ndarray


def solve(factor: Factor, observed: np.ndarray, scratch: Scratch | None = None) -> Solution:
    """Means of the chain for observed rows rho (s, l, g, p) in lane order; costs about a third of the factor."""
    steps, closed = factor.chain.lanes.steps, factor.closed
    empty, shape = (scratch or Fresh()).empty, (*closed.shape[:3], observed.shape[-1])
    innovation = factor.innovate @ observed
    predicted, adjoint = empty("predicted means", shape), empty("adjoint means", shape)
    ends = np.zeros(predicted.shape[1:])
    for s in range(steps):
        predicted[s] = factor.chain.transition[s] @ (transposed(factor.update[s]) @ innovation[s])
        ends = closed[s] @ ends + predicted[s]
    mean = _carry(factor.lane_closed, ends)
    for s in range(steps):
        predicted[s], mean = mean, closed[s] @ mean + predicted[s]
    starts = np.zeros_like(ends)
    for s in range(steps - 1, -1, -1):
        innovation[s] -= factor.sight[s] @ predicted[s]
        adjoint[s] = transposed(factor.sight[s]) @ innovation[s]
        starts = transposed(closed[s]) @ starts + adjoint[s]
    beyond = _carry(transposed(factor.lane_closed)[::-1], starts[::-1])[::-1]
    for s in range(steps - 1, -1, -1):
        beyond = transposed(closed[s]) @ beyond + adjoint[s]
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
        result[s] = cross @ observe.T - cross @ factor.adjoint[s] @ transposed(cross)
    return result


def residuals(factor: Factor, solution: Solution) -> np.ndarray:
    """(s, l, g, p) values of rho - B x at the smoothed mean, in lane order.

    Worked out from the innovations: the difference itself loses its digits where a row's variance is very small.
    """
    following = np.zeros_like(solution.adjoint)
    following[:-1] = solution.adjoint[1:]
    following[-1, :-1] = solution.adjoint[0, 1:]
    pulled = factor.update @ (transposed(factor.chain.transition) @ following)
    return transposed(factor.innovate) @ (solution.innovation - pulled)


def prior_paths(chain: Chain, n_paths: int, rng: np.random.Generator) -> np.ndarray:
    """(s, l, D, p) independent draws of the whole chain before anything is seen, in lane order."""
    flat = chain.noise.reshape(-1, *chain.initial.shape)
    shocks = transposed(root(flat)) @ rng.standard_normal((*flat.shape[:2], n_paths))
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
