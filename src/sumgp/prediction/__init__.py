"""Means, intervals, samples and residuals of a fitted model, in the user's units."""

from sumgp.prediction.bounding import Bounding
from sumgp.prediction.gaussian_mixture import mixture_quantile
from sumgp.prediction.plotting import plot_posterior
from sumgp.prediction.posterior import Posterior
from sumgp.prediction.tabulated import input_label

__all__ = [
    "Bounding",
    "Posterior",
    "input_label",
    "mixture_quantile",
    "plot_posterior",
]
