"""The method of the paper: transformed outputs, the likelihoods of what was measured, and engines."""

from sumgp.paper_method.transformed import Transformed
