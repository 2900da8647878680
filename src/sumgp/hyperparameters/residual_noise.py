"""Noise from what is left of the data beside curves that are given data and law."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from sumgp.priors import ALIKE_NOISES, NoiseModel

LEAST = 1e-12  # unit-free square of a residual: curves that meet all data leave nothing


def noise_told(model: NoiseModel, squares: np.ndarray, degrees: np.ndarray, alike: float = ALIKE_NOISES) -> np.ndarray:
    """(G,) most probable log noise sds of the groups; ``squares`` (T,) of residuals have ``degrees`` (T,) of freedom.

    The prior of curves does not depend on the noise. All else held, its density is therefore that of the data under the
    law, for curves of u degrees of freedom that leave r^2 of N values -(N - u) log s - r^2 / (2 s^2), times the prior of s,
    which holds those of several outputs within about ``alike`` in their logs. The search begins where all are the same.
    """
    groups = [list(group) for group in model.groups]
    left = np.array([np.sum(squares[group] / model.reference[group] ** 2) for group in groups])
    free = np.array([np.sum(degrees[group]) for group in groups])
    centre, width = model.prior_mean(), model.prior_sd()

    def against(logs: np.ndarray) -> tuple[float, np.ndarray]:
        agreed, slope = model.agreement(logs, alike)
        z, off = (logs - centre) / width, left * np.exp(-2.0 * logs)
        return float(np.sum(free * logs + 0.5 * off + 0.5 * z**2)) - agreed, free - off + z / width - slope

    same = 0.5 * np.log(max(left.sum(), LEAST) / max(free.sum(), 1.0))
    return np.asarray(minimize(against, np.full(len(groups), same), jac=True, method="L-BFGS-B").x)
