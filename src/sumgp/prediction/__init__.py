"""Means, intervals, samples and residuals of a fitted model, in the user's units."""

from sumgp.prediction.completion import Completion, RowPosterior, complete_rows, given_rows
from sumgp.prediction.mixture import mixture_quantile
from sumgp.prediction.plotting import plot_posterior
from sumgp.prediction.posterior import Posterior
from sumgp.prediction.tabulated import input_label

__all__ = [
    "Completion",
    "Posterior",
    "RowPosterior",
    "complete_rows",
    "given_rows",
    "input_label",
    "mixture_quantile",
    "plot_posterior",
]
