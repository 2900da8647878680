"""Means, intervals, samples and residuals of a fitted model, in the user's units."""

from sumgp.prediction.gaussian_mixture import mixture_quantile
from sumgp.prediction.plotting import plot_posterior
from sumgp.prediction.posterior import Posterior

__all__ = ["Posterior", "mixture_quantile", "plot_posterior"]
