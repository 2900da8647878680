"""Gaussian processes whose predictions obey a law."""

from sumgp.constraints import (
    Constraint,
    FunctionConstraint,
    LinearConstraint,
    SumConstraint,
    Term,
    Unknown,
    parse_constraint,
)
from sumgp.errors import ConstraintError, DataError, NumericalError, SumGPError, SumGPWarning
from sumgp.estimator import ConstrainedGP
from sumgp.inference import ExpectationPropagation, Gaussian, Laplace, MomentMatched, Variational
from sumgp.many import FitResult, fit_many
from sumgp.persistence import load
from sumgp.solvers.choice import Dense, Kronecker, Markov
from sumgp.strategies import Conditioned, Linearized, Projected, Transformed, Unconstrained

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
