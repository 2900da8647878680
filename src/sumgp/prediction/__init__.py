"""Means, intervals, samples and residuals of a fitted model, in the user's units."""

from sumgp.prediction.bounding import Bounding
from sumgp.prediction.mixture import mixture_quantile
from sumgp.prediction.plotting import plot_posterior
from sumgp.prediction.point_draws import DrawnMarginals, common_numbers, point_draws
from sumgp.prediction.posterior import Posterior
from sumgp.prediction.tabulated import input_label

__all__ = [
    "Bounding",
    "DrawnMarginals",
    "Posterior",
    "common_numbers",
    "input_label",
    "mixture_quantile",
    "plot_posterior",
    "point_draws",
]
