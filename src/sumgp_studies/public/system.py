"""Differential equations of public sets, and the curve that solves them with least squares to the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares

TOLERANCE = 1e-8  # relative, of the solved equation: far below the noise of any set
STEP = 1e-5  # relative change of a parameter for derivatives by differences
Rates = Callable[[float, np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class System:
    """dz/dt = rates(t, z, constants); ``shown``: the states that are the outputs, in their order.

    ``constants`` and ``start`` are true values, from which the search starts; unknown are the states at the first time
    and, if ``estimated``, the constants.
    """

    rates: Rates
    constants: tuple[float, ...]
    start: tuple[float, ...]
    shown: tuple[int, ...]
    estimated: bool = False

    def curve(self, parameters: np.ndarray, times: np.ndarray) -> np.ndarray:
        """(n, T) outputs at rising times, the first of them that of the start; NaN where the solution ends before."""
        states = len(self.start)
        constants = parameters[states:] if self.estimated else np.array(self.constants)
        found = solve_ivp(
            lambda t, z: self.rates(t, z, constants),
            (times[0], times[-1]),
            parameters[:states],
            t_eval=times,
            rtol=TOLERANCE,
            atol=TOLERANCE,
            method="LSODA",
        )
        values = np.full((len(times), states), np.nan)
        values[: found.y.shape[1]] = found.y.T
        return values[:, list(self.shown)]

    @property
    def truth(self) -> np.ndarray:
        """(P,) true parameters."""
        return np.array([*self.start, *(self.constants if self.estimated else ())])


class FittedSystem(NamedTuple):
    """Parameters (P,), their covariance (P, P) and the noise variances (T,)."""

    system: System
    parameters: np.ndarray
    covariance: np.ndarray
    noise: np.ndarray
    first: float

    def curve(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means and variances (n, T) of the noiseless outputs; variances by the slopes of the curve."""
        order = np.unique(np.concatenate([[self.first], times]))
        at = np.searchsorted(order, times)
        mean = self.system.curve(self.parameters, order)[at]
        slopes = []
        for p, value in enumerate(self.parameters):
            step = STEP * max(abs(value), 1e-2)
            changed = self.parameters.copy()
            changed[p] += step
            slopes.append((self.system.curve(changed, order)[at] - mean) / step)
        G = np.stack(slopes, axis=2)
        return mean, np.einsum("ntp,pq,ntq->nt", G, self.covariance, G)


def least_squares_fit(system: System, times: np.ndarray, y: np.ndarray, first: float) -> FittedSystem:
    """Parameters with the least squares to y (N, T), NaN = not measured, outputs weighed by their noise (two rounds)."""
    order = np.unique(np.concatenate([[first], times]))
    at = np.searchsorted(order, times)
    seen = ~np.isnan(y)
    sd = np.nanstd(y, axis=0)
    found = None
    for _ in range(2):

        def misses(parameters: np.ndarray, sd: np.ndarray = sd) -> np.ndarray:
            return np.nan_to_num(((system.curve(parameters, order)[at] - y) / sd)[seen], nan=1e3)

        found = least_squares(
            misses, system.truth if found is None else found.x, x_scale=np.maximum(abs(system.truth), 1e-2)
        )
        left = system.curve(found.x, order)[at] - y
        share = 1.0 - len(system.truth) / seen.sum()  # of the degrees of freedom that the parameters leave
        sd = np.maximum(np.sqrt(np.nanmean(left**2, axis=0) / max(share, 0.1)), 1e-9 * np.nanstd(y, axis=0))
    assert found is not None
    # The misses were divided by the noise, so this is the covariance of the parameters.
    return FittedSystem(system, found.x, np.linalg.pinv(found.jac.T @ found.jac), sd**2, first)
