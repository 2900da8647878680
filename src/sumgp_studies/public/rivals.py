"""More competitors: rough Gaussian processes, log-ratios for compositions, least squares on a solved equation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import softmax

from sumgp_studies.public.case import Case
from sumgp_studies.public.methods import Gaussians, Predict, Prediction, gaussian_processes
from sumgp_studies.public.system import least_squares_fit

ZERO_SHARE = 0.65  # of the smallest positive value, put in place of zeros before logarithms
DRAWS = 400
ROUGH = 1.5  # derivatives of a Matern kernel, for data that are rougher than RBF expects


def rough_processes(case: Case) -> Callable[[np.ndarray], Gaussians]:
    """scikit-learn with a Matern 3/2 kernel for each output alone."""
    return gaussian_processes(case, ROUGH)


def is_composition(case: Case) -> bool:
    """True for one law that all outputs sum to a number, complete rows, no negative values."""
    left, _, right = case.laws[0].partition("=") if len(case.laws) == 1 else ("", "", "")
    named = {name.strip() for name in left.split("+")} == set(case.outputs)
    return named and right.strip().isdigit() and not np.isnan(case.y).any() and bool(np.all(case.y >= 0))


def log_ratios(case: Case) -> Predict:
    """Gaussian processes of centred log-ratios, turned back by draws: the usual way with compositions.

    Zeros are replaced by a share of the smallest positive value of their part.
    """
    total = float(case.laws[0].partition("=")[2])
    smallest = np.array([column[column > 0].min() for column in case.y.T])
    logs = np.log(np.where(case.y > 0, case.y, ZERO_SHARE * smallest))
    ratios = logs - logs.mean(axis=1, keepdims=True)
    each = rough_processes(Case(case.set_name, case.label, case.x, ratios, case.inputs, case.outputs, (), ()))

    def predict(x: np.ndarray, y: np.ndarray) -> Prediction:
        free = each(x)
        normal = np.random.default_rng(0).standard_normal((DRAWS, *free.mean.shape))
        shares = total * softmax(free.mean + np.sqrt(free.variance) * normal, axis=2)
        mean, sd = shares.mean(axis=0), shares.std(axis=0)
        lower, upper = np.quantile(shares, [0.025, 0.975], axis=0)
        log_density = -0.5 * ((y - mean) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2.0 * np.pi)
        return Prediction(mean, lower, upper, log_density)

    return predict


def solved_equation(case: Case) -> Callable[[np.ndarray], Gaussians]:
    """Least squares on the solution of the differential equation, started at the truth: what nobody can beat by much."""
    assert case.system is not None
    times, first = case.x[:, 0], float(min(case.x[0, 0], *(part.x[:, 0].min() for part in case.parts)))
    fitted = least_squares_fit(case.system, times, case.y, first)

    def predict(new: np.ndarray) -> Gaussians:
        mean, variance = fitted.curve(new[:, 0])
        return Gaussians(mean, variance if case.latent else variance + fitted.noise)

    return predict
