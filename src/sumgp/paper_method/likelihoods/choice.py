"""The likelihood of a measured output, chosen by its transform."""

import numpy as np

from sumgp.paper_method.likelihoods.base import Likelihood
from sumgp.paper_method.likelihoods.gaussian import GaussianLikelihood, LinkedLikelihood
from sumgp.paper_method.likelihoods.noncentral import NoncentralSquare
from sumgp.transforms import Square, Transform


def likelihood_of_output(y: np.ndarray, noise: np.ndarray, transform: Transform, reference: np.ndarray) -> Likelihood:
    """Likelihood of y itself given f' = h(f), on the branches of ``reference``: every finite y is used."""
    if transform.is_identity:
        return GaussianLikelihood(y, noise)
    return LinkedLikelihood(y, noise, transform, reference)


def likelihood_of_transformed(y: np.ndarray, noise: np.ndarray, transform: Transform, reference: np.ndarray) -> Likelihood:
    """Likelihood of y' = h(y) given f' = h(f): noncentral chi-square for squares, change of variables otherwise.

    Observations without an h(y) are kept in place but not used; ``n_dropped`` counts them.
    """
    if transform.is_identity:
        return GaussianLikelihood(y, noise)
    if isinstance(transform, Square):
        return NoncentralSquare(y, noise, reference)
    return LinkedLikelihood(y, noise, transform, reference, of_transformed=True)
