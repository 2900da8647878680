"""Gaussian measurement noise as seen by the transformed outputs f' = h(f)."""

from sumgp.paper_method.likelihoods.base import Likelihood, NoisySites, Terms, column
from sumgp.paper_method.likelihoods.gaussian import GaussianLikelihood, LinkedLikelihood, NoncentralSquare
from sumgp.paper_method.likelihoods.links import Link, link_of
from sumgp.paper_method.likelihoods.stacked import StackedLikelihood, likelihood_of_output, likelihood_of_transformed
