"""A law that leaves functions open: how much room the law leaves to them, which constants and amplitudes depend on.

The most probable weights and constants together favour constants under which functions that obey the law have a small norm:
those that decay slowly, say. The density of the constants alone has the room besides that a value leaves to the weights,
with H the precision of the weights given the law and the data, or the law alone:

    -log p(c | y, law) = min over w of the merit + log |H(y, law)| / 2 - log |H(law)| / 2.

A prior variance that was found without the law is too small: most functions do not obey it, and those that do have large
norms. Where it is the most probable one given data and law, the weights of an output have the same mean square given both as
given the law alone, so that their quotient is the factor by which the variance is to change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sumgp.lawsolve.collocation import CollocationProblem, given_data
from sumgp.numerics import cholesky, solve_cholesky

STEP = 1e-4  # of a constant, in units of its spread by gradient matching; laws are mostly linear in them


class LawVolume(NamedTuple):
    """Slopes (U,) of the room by the constants, and factors (T,) of the outputs' prior variances."""

    slope: np.ndarray
    factors: np.ndarray


def law_volume(problem: CollocationProblem, w: np.ndarray, noise: Sequence[np.ndarray], level: float) -> LawVolume:
    """At weights and constants w. d log |H0 + A^T A| / 2 = tr(H^-1 A^T dA), where A are the law's slopes by the weights."""
    constants, sds = problem.slices[-1], problem.law_sds(level)[:, None]
    weights = slice(0, constants.start)
    A = problem.slopes(w)[:, weights] / sds
    own = np.eye(constants.start)
    both = given_data(problem, noise).H[weights, weights] + A.T @ A
    given_both = solve_cholesky(cholesky(both, "law"), own)
    given_law = solve_cholesky(cholesky(own + A.T @ A, "law"), own)
    mean = given_law @ (A.T @ (A @ w[weights] - problem.residual(w).ravel() / sds[:, 0]))
    squares = w[weights] ** 2 + np.diagonal(given_both)
    expected = mean**2 + np.diagonal(given_law)
    slope = np.zeros(len(problem.unknown))
    for u in range(len(slope)):
        moved = np.zeros_like(w)
        moved[constants.start + u] = STEP
        change = (problem.slopes(w + moved)[:, weights] - problem.slopes(w - moved)[:, weights]) / (2.0 * STEP * sds)
        slope[u] = np.sum((given_both - given_law) * (A.T @ change))
    return LawVolume(slope, np.array([squares[part].sum() / expected[part].sum() for part in problem.slices[:-1]]))
