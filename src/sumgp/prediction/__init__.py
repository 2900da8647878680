"""Means, intervals, samples and residuals of a fitted model, in the user's units."""

from sumgp.prediction.bounding import BoundedPoints, Bounding
from sumgp.prediction.completion import Completion, RowPosterior, complete_rows, given_rows
from sumgp.prediction.constants import constants_posterior
from sumgp.prediction.marginals import DrawnMarginals, common_numbers, mixture_quantile, point_draws
from sumgp.prediction.posterior import Posterior
from sumgp.prediction.tabulated import input_label, output_columns, plot_posterior
