"""Parameters that are about the same: noises of outputs, and lengthscales of one kernel along several inputs.

Rows on lines that lie further apart than a field varies say nothing of the lengthscale across them, and a prior that has
nothing against long ones makes it as long as the data allow. What the rows say of the other inputs is the better guess.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from sumgp.priors.kernels import leaves, lengthscale_mask

ALIKE_LENGTHS = 0.25  # scale of log lengthscales, in half ranges, around their mean; with .5 one map in four held 85 to 89 %
ALIKE_DEGREES = 1.0  # of freedom of that Student t: so few that rows which do tell inputs apart have their way


def student_around_mean(values: np.ndarray, scale: float, degrees: float) -> tuple[float, np.ndarray]:
    """Log density, up to a constant, of values (n,) that are about the same, and its gradient.

    A Student t of each difference d from their mean: -(nu + 1) / 2 log(1 + d^2 / (nu s^2)).
    """
    away, total = values - np.add.reduce(values) / len(values), np.add.reduce  # a method of few values takes far longer
    spread = degrees * scale**2
    slope = -(degrees + 1.0) * away / (spread + away**2)
    return -0.5 * (degrees + 1.0) * float(total(np.log1p(away**2 / spread))), slope - total(slope) / len(values)


def several_lengths(kernel: Kernel) -> list[np.ndarray]:
    """Positions in ``kernel.theta`` of the lengthscales of each elementary kernel with one for each of several inputs."""
    result, start = [], 0
    for leaf in leaves(kernel):
        places = start + np.flatnonzero(lengthscale_mask(leaf))
        start += len(leaf.theta)
        result += [places] if len(places) > 1 else []
    return result


def alike_lengths(offset: np.ndarray, groups: Iterable[np.ndarray]) -> tuple[float, np.ndarray]:
    """Log density, up to a constant, of theta (p,) less its centres, lengthscales of a group being alike; its gradient."""
    value, slope = 0.0, np.zeros(len(offset))
    for group in groups:
        own, slope[group] = student_around_mean(offset[group], ALIKE_LENGTHS, ALIKE_DEGREES)
        value += own
    return value, slope
