"""A lengthscale for each input of one output alone, and whether the data ask for them.

y ~ N(0, s^2 (K + m 1 1^T + r^2 I)) with a Matern 5/2 kernel; at s^2 = q = y^T C^-1 y / n the log evidence is
-n/2 log q - 1/2 log|C|, with derivative tr((a a^T / q - C^-1) dC) / 2, a = C^-1 y. Lengthscales and r are those of highest
posterior density. In units of half the range they are expected to be about the same: a Student t of their logarithms around
the mean lets few rows keep them equal and many make them as different as they are. How they differ hardly depends on the
kernel; how long they are does, which is looked for afterwards, kernel by kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern

from sumgp.errors import NumericalError
from sumgp.hyperparameters.scan import CLUSTERS, MEAN_VARIANCE, MOST_ROWS, clustered_rows
from sumgp.numerics import cholesky, cholesky_inverse
from sumgp.priors import LENGTH_STEP, HyperPrior, KernelFamily, KernelOnPoints, hyper_priors, student_around_mean

STARTS = ((0.0, 0.1), (-1.0, 0.01), (1.0, 0.5))  # log lengthscales over the prior's centres, and r
LOG_RANGE = (-7.0, 7.0)  # of log lengthscales around those centres
RATIO_RANGE = (np.log(1e-4), np.log(10.0))  # of log r
RATIO_CENTRE, RATIO_SD = np.log(0.05), 2.0  # of log r, as in the noise model
ALIKE = 0.5  # scale of log lengthscales around their mean
ALIKE_DEGREES = 1.0  # of freedom of that Student t: so few that an input without influence has a lengthscale of its own
STEPS = 60  # of L-BFGS-B, at most
SMALLEST = 1e-12  # of q, unit-free: a column of equal values has no amplitude of its own
REFUSED = 1e10  # where the covariance has no factor
AROUND = 1.05  # logarithm of lengthscales that are tried over those found with one kernel, at most
# Logarithms of lengthscales of RBF and of Matern kernels over those of Matern 5/2 that suit the same curve.
RBF_LONGER = -0.7
MATERN_LONGER = {0.5: 1.75, 1.5: 0.7, 2.5: 0.0}  # by their smoothness nu


class OwnLengths(NamedTuple):
    """Log lengthscales (D,), and by how much more than the penalty they raise the log density over equal ones."""

    logs: np.ndarray
    gain: float


def own_lengthscales(x: np.ndarray, y: np.ndarray, half_range: np.ndarray, spacing: float) -> list[OwnLengths]:
    """Of each output y (N, T, NaN = not measured) at x (N, D); ``spacing`` as in ``hyper_priors``."""
    kernel = Matern(half_range, nu=2.5)
    priors = hyper_priors(kernel, half_range, spacing)
    result = []
    for column in y.T:
        rows = np.flatnonzero(~np.isnan(column))
        if len(rows) > MOST_ROWS:
            rows = rows[clustered_rows(x[rows], MOST_ROWS, CLUSTERS)]
        result.append(_Alone(KernelOnPoints(kernel, x[rows]), column[rows], priors).found())
    return result


def own_length_families(x: np.ndarray, y: np.ndarray, half_range: np.ndarray, spacing: float) -> list[KernelFamily]:
    """RBF and Matern kernels with a lengthscale for each input, if some output asks for it; all of one change together."""
    found = own_lengthscales(x, y, half_range, spacing)
    if not any(lengths.gain > 0 for lengths in found):
        return []
    centres = np.stack([lengths.logs for lengths in found])
    shifts = np.arange(AROUND, -AROUND - 1e-9, -LENGTH_STEP)
    prior = -0.5 * np.minimum(shifts, 0.0) ** 2 - _penalty(*x.shape)
    thetas = np.repeat(shifts[:, None], x.shape[1], axis=1)
    kernels: list[tuple[Kernel, float]] = [(RBF(half_range), RBF_LONGER)]
    kernels += [(Matern(half_range, nu=nu), longer) for nu, longer in MATERN_LONGER.items()]
    return [KernelFamily(kernel, thetas, prior, centres=centres + longer) for kernel, longer in kernels]


def _penalty(rows: int, inputs: int) -> float:
    """Schwarz's, of the log evidence, for lengthscales of their own in place of one."""
    return 0.5 * (inputs - 1) * float(np.log(rows))


class _Alone(NamedTuple):
    """One output y (n,) and the priors (D,) of its log lengthscales."""

    kernel: KernelOnPoints
    y: np.ndarray
    priors: Sequence[HyperPrior]

    def found(self) -> OwnLengths:
        """The best of several starts, compared with lengthscales that are equal in units of their centres."""
        centre = np.array([p.centre for p in self.priors])
        starts = [np.append(centre + shift, np.log(ratio)) for shift, ratio in STARTS]
        together = np.append(np.ones(len(centre)), 0.0), np.append(np.zeros(len(centre)), 1.0)
        equal = self._minimum(starts, np.stack(together))
        best = self._minimum([equal[1], starts[1]], np.eye(len(centre) + 1))
        return OwnLengths(best[1][:-1], equal[0] - best[0] - _penalty(len(self.y), len(centre)))

    def _minimum(self, starts: Sequence[np.ndarray], directions: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and place of the lowest minus log density found along ``directions`` (k, D + 1)."""
        sizes = np.sum(directions, axis=1)
        bounds = [LOG_RANGE] * (len(directions) - 1) + [RATIO_RANGE]
        centre = np.append([p.centre for p in self.priors], 0.0)

        def along(z: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = self.minus_log_density(centre + z @ directions)
            return value, directions @ gradient

        found = []
        for start in starts:
            z = directions @ (start - centre) / sizes
            run = minimize(along, z, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": STEPS})
            found.append((float(run.fun), centre + run.x @ directions))
        return min(found, key=lambda pair: pair[0])

    def minus_log_density(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient at log lengthscales and log r."""
        K, dK = self.kernel.matrix_and_gradient(theta[:-1])
        n, square = len(self.y), np.exp(2.0 * theta[-1])
        C = K + MEAN_VARIANCE
        C[np.diag_indices(n)] += square
        try:
            factor = cholesky(C, "output alone")
        except NumericalError:
            return REFUSED, np.zeros(len(theta))
        inverse = cholesky_inverse(factor)
        a = inverse @ self.y
        q = max(float(self.y @ a) / n, SMALLEST)
        G = 0.5 * (inverse - np.outer(a, a) / q)
        value = 0.5 * n * np.log(q) + float(np.sum(np.log(np.diagonal(factor))))
        gradient = np.append(np.einsum("dij,ij->d", dK, G), 2.0 * square * np.trace(G))
        prior, slope = self._log_prior(theta)
        return value - prior, gradient - slope

    def _log_prior(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        lengths = theta[:-1]
        z = (theta[-1] - RATIO_CENTRE) / RATIO_SD
        alike, slope = student_around_mean(lengths - [p.centre for p in self.priors], ALIKE, ALIKE_DEGREES)
        value = sum(p.log_density(float(v)) for p, v in zip(self.priors, lengths, strict=True)) - 0.5 * z**2
        slopes = slope + [p.slope(float(v)) for p, v in zip(self.priors, lengths, strict=True)]
        return value + alike, np.append(slopes, -z / RATIO_SD)
