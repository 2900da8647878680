"""Means, intervals, samples and residuals of a fitted model, in the user's units."""

from sumgp.prediction.plotting import plot_posterior
from sumgp.prediction.posterior import Posterior, mixture_quantile

__all__ = ["Posterior", "mixture_quantile", "plot_posterior"]
