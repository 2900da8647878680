"""Lengthscales of one kernel along several inputs that are about the same.

Rows on lines that lie further apart than a field varies say nothing of the lengthscale across them, and a prior that has
nothing against long ones makes it as long as the data allow. What the rows say of the other inputs is the better guess.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from sumgp.priors.kernels import leaves, lengthscale_mask
from sumgp.priors.tasks import student_around_mean

ALIKE_LENGTHS = 0.25  # scale of log lengthscales, in half ranges, around their mean; with .5 one map in four held 85 to 89 %
ALIKE_DEGREES = 1.0  # of freedom of that Student t: so few that rows which do tell inputs apart have their way


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
