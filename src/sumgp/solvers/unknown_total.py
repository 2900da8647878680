"""Evidence of data whose outputs add up to an unknown constant, F f(x) = total everywhere, in Kronecker form.

Given its total the law is one on the task covariance, and the log evidence L(total) is quadratic in the total: three
evaluations tell all of it, gradients included. The prior of the total, N(S, w), is multiplied by the density that the prior
of the outputs gives to F f = total at all rows, N(total 1; 0, K s) with s = F Sigma F^T. With q = 1^T K^-1 1 that leaves
N(m, v), 1 / v = 1 / w + q / s, m = v S / w, over which exp(L) is averaged in closed form.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sumgp.numerics import cholesky, pivoted_cholesky, solve_cholesky
from sumgp.priors import KernelOnPoints, MultitaskPrior, TaskLaw
from sumgp.solvers.joint import REPEATED, JointEvidence
from sumgp.solvers.kronecker import KroneckerEvidence, fits_kronecker

MANY_ENTRIES = 200  # of the data: with fewer one dense factor is as fast
ALIKE = 1e-12  # unit-free: round-off between rows of one law


def given_linear_law(
    prior: MultitaskPrior, x: np.ndarray, y: np.ndarray, rows: np.ndarray, totals: np.ndarray
) -> JointEvidence | UnknownTotalEvidence:
    """log p(y | theta, law) with ``rows`` (N, R, C) f = ``totals`` (N, R), by the faster form where there is one."""
    one_unknown = rows.shape[1:] == (1, y.shape[1] + 1) and len(prior.unknown) == 1 and prior.mean_shape == "task"
    alike = one_unknown and bool(np.ptp(rows, axis=0).max() <= ALIKE and np.ptp(totals) <= ALIKE)
    if alike and y.size >= MANY_ENTRIES and fits_kronecker(prior, y):
        return UnknownTotalEvidence(prior, x, y, rows[0, 0], float(totals[0, 0]))
    return JointEvidence(prior, x, y, rows, totals)


class UnknownTotalEvidence:
    """log p(y | theta, law) of the law ``row`` (T + 1,) (f, unknown) = ``total``, the unknown of variance prior.unknown."""

    def __init__(self, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray, row: np.ndarray, total: float) -> None:
        self.prior, self.F = prior, row[None, :-1]
        self.centre, self.variance = total, float(row[-1] ** 2 * prior.unknown[0])
        self.kernel = KernelOnPoints(prior.kernels[0], x)
        self.step = abs(float(row[-1]))
        self.known = []
        for node in (-1.0, 0.0, 1.0):
            law = TaskLaw(self.F, np.zeros(1), np.full((len(y), 1), total + node * self.step))
            self.known.append(KroneckerEvidence(replace(prior, law=law, unknown=np.zeros(0)), x, y))

    def value(self, theta: np.ndarray) -> float:
        """log p(y | theta, law) alone; the gradient costs little beside it."""
        return self(theta)[0]

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """log p(y | theta, law) and its gradient with respect to theta."""
        prior, (ks, ts) = self.prior, self.prior.slices[0]
        K, dK = self.kernel.matrix_and_gradient(theta[ks])
        solved = _inverse_of_ones(K + prior.mean_variance)
        q, s = float(solved.sum()), float((self.F @ prior.Sigmas(theta)[0] @ self.F.T)[0, 0])
        v = 1.0 / (1.0 / self.variance + q / s)
        m = v * self.centre / self.variance
        (low, g_low), (middle, g_middle), (high, g_high) = (known(theta) for known in self.known)
        # L(centre + step z) = middle + b z - e z^2 / 2 is averaged over z ~ N(m, v) in units of the step from the centre.
        b, e = 0.5 * (high - low), 2.0 * middle - high - low
        z, spread = (m - self.centre) / self.step, v / self.step**2
        left = 1.0 / (1.0 / spread + e)
        mean = left * (z / spread + b)
        value = middle + 0.5 * (mean**2 / left - z**2 / spread) + 0.5 * np.log(left / spread)
        # The gradient of L is quadratic too: its average over what the data leave of z.
        gradient = g_middle + 0.5 * mean * (g_high - g_low) + 0.5 * (mean**2 + left) * (g_high + g_low - 2.0 * g_middle)
        by_z = (mean - z) / spread
        by_spread = 0.5 * ((mean - z) ** 2 + left - spread) / spread**2
        by_v = by_z * self.centre / (self.variance * self.step) + by_spread / self.step**2
        by_ratio = -(v**2) * by_v  # by q / s
        gradient[ks] -= by_ratio / s * np.einsum("pij,i,j->p", dK, solved, solved)
        gradient[ts] += prior.tasks[0].pull_back(theta[ts], -by_ratio * q / s**2 * self.F.T @ self.F)
        return float(value), gradient


def _inverse_of_ones(K: np.ndarray) -> np.ndarray:
    """(N,) K^-1 1, with zeros at rows that repeat others."""
    pivots = pivoted_cholesky(K / K[0, 0], REPEATED)[0]
    result = np.zeros(len(K))
    result[pivots] = solve_cholesky(cholesky(K[np.ix_(pivots, pivots)], "law"), np.ones(len(pivots)))
    return result
