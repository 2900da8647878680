"""Inference: engines that replace likelihood terms by Gaussian sites, the algebra of Gram matrices, hyperparameters."""

from sumgp.inference.expectation_propagation import ExpectationPropagation
from sumgp.inference.gram import Gram
from sumgp.inference.laplace import Laplace
from sumgp.inference.moments import Gaussian, MomentMatched
from sumgp.inference.sites import Engine, EvidenceGradient, SiteResult
from sumgp.inference.variational import Variational

__all__ = [
    "Engine",
    "EvidenceGradient",
    "ExpectationPropagation",
    "Gaussian",
    "Gram",
    "Laplace",
    "MomentMatched",
    "SiteResult",
    "Variational",
]
