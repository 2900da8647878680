"""Gaussian processes whose predictions obey a law."""

from sumgp.errors import ConstraintError, DataError, NumericalError, SumGPError, SumGPWarning
from sumgp.estimator import ConstrainedGP
from sumgp.files import load
from sumgp.laws import (
    Constraint,
    FunctionConstraint,
    LinearConstraint,
    SumConstraint,
    Term,
    Unknown,
    parse_constraint,
)
from sumgp.many import FitResult, fit_many
from sumgp.paper_method import Transformed
from sumgp.paper_method.engines import ExpectationPropagation, Gaussian, Laplace, MomentMatched, Variational
from sumgp.solvers import Dense, Kronecker, Markov
from sumgp.strategies import Conditioned, Linearized, Projected, Unconstrained

__version__ = "0.1.0"

__all__ = [
    "Conditioned",
    "ConstrainedGP",
    "Constraint",
    "ConstraintError",
    "DataError",
    "Dense",
    "ExpectationPropagation",
    "FitResult",
    "FunctionConstraint",
    "Gaussian",
    "Kronecker",
    "Laplace",
    "LinearConstraint",
    "Linearized",
    "Markov",
    "MomentMatched",
    "NumericalError",
    "Projected",
    "SumConstraint",
    "SumGPError",
    "SumGPWarning",
    "Term",
    "Transformed",
    "Unconstrained",
    "Unknown",
    "Variational",
    "fit_many",
    "load",
    "parse_constraint",
]
