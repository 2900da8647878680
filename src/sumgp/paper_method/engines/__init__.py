"""Engines that replace each likelihood term by a Gaussian site."""

from sumgp.paper_method.engines.expectation_propagation import ExpectationPropagation
from sumgp.paper_method.engines.laplace import Laplace
from sumgp.paper_method.engines.sites import Engine, EvidenceGradient, Gaussian, MomentMatched, SiteResult
from sumgp.paper_method.engines.variational import Variational
