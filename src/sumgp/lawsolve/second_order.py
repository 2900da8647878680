"""What a curved law rules out although its tangent leaves it open.

A linearised law leaves open directions e in which it holds to first order. At f + c e a curved law is missed by c^2 r with
r = g''[e, e] / 2. Other directions make up for a part of that, at the least cost r^T (J P J^T + s^2)^-1 r. An example is the
energy of a damped oscillator with d(z, t) = v: in the tangent its phase is open, but the energy decays fastest where the
mass is fastest, so that only one phase obeys the law with a smooth curve.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from sumgp.laws import UnitFreeLaw
from sumgp.lawsolve.solve import LawSolution
from sumgp.numerics import solve_cholesky, solve_lower

OPEN = 1e-3  # variance of a direction that is looked at, relative to that of the widest
MOST = 8  # directions: an energy and a derivative leave one open
STEPS = np.linspace(-6.0, 6.0, 241)  # along a direction, in its standard deviations given the linearised law


@dataclass(frozen=True)
class SecondOrder:
    """What the law says of the weights besides its tangent: their mean moves, and W loses D D^T."""

    shift: np.ndarray  # (weights,)
    drop: np.ndarray  # (weights, k) D


def second_order(law: UnitFreeLaw, x: np.ndarray, root: np.ndarray, solution: LawSolution) -> SecondOrder:
    """From the posterior's ``root`` (n, C, weights) given the data at the law's points x, and the law solved there.

    W is the covariance of the weights given data and tangent. Each of its open directions is looked at by itself, with
    merit (c + b c^2)^2 / 2 + q c^4 / 2 - (w r) c^2, and gets mean and variance of exp(-merit) if that is narrower.
    """
    n, C, _ = root.shape
    rows = np.einsum("nrc,ncw->wnr", solution.J, root).reshape(root.shape[2], -1)
    gain = solve_lower(solution.factor, rows.T).T
    flat = root.reshape(n * C, -1)
    at_points = flat @ gain
    K = flat @ flat.T - at_points @ at_points.T
    values, vectors = eigh(K, subset_by_index=[max(0, n * C - MOST), n * C - 1])
    wide = values > max(OPEN * values[-1], 0.0)
    sizes, vectors = np.sqrt(values[wide]), vectors[:, wide]
    weights = (flat.T @ vectors - gain @ (at_points.T @ vectors)) / sizes
    moments = [_moments(law, x, (size * v).reshape(n, C), solution) for size, v in zip(sizes, vectors.T, strict=True)]
    mean, variance = np.array(moments).reshape(-1, 2).T
    return SecondOrder(weights @ mean, weights * np.sqrt(1.0 - variance))


def _moments(law: UnitFreeLaw, x: np.ndarray, e: np.ndarray, solution: LawSolution) -> tuple[float, float]:
    """Mean and variance along e (n, C), which has variance one given the tangent."""
    f = solution.f
    r = 0.5 * (law.residual(f + e, x) + law.residual(f - e, x) - 2.0 * law.residual(f, x)).ravel()
    if not np.all(np.isfinite(r)):
        return 0.0, 1.0
    b = float(np.einsum("nrc,nc->nr", solution.J, e).ravel() @ (r / solution.variances))
    q = float(r @ solve_cholesky(solution.factor, r))
    merit = 0.5 * (STEPS + b * STEPS**2) ** 2 + 0.5 * q * STEPS**4 - float(solution.w @ r) * STEPS**2
    density = np.exp(merit.min() - merit)
    density /= density.sum()
    mean = float(density @ STEPS)
    variance = float(density @ (STEPS - mean) ** 2)
    return (mean, variance) if variance < 1.0 else (0.0, 1.0)
