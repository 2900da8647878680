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
from sumgp.persistence import load
from sumgp.solvers.choice import Dense, Kronecker
from sumgp.strategies import Conditioned, Linearized, Projected, Unconstrained

__version__ = "0.1.0"

__all__ = [
    "Conditioned",
    "ConstrainedGP",
    "Constraint",
    "ConstraintError",
    "DataError",
    "Dense",
    "FunctionConstraint",
    "Kronecker",
    "LinearConstraint",
    "Linearized",
    "NumericalError",
    "Projected",
    "SumConstraint",
    "SumGPError",
    "SumGPWarning",
    "Term",
    "Unconstrained",
    "Unknown",
    "load",
    "parse_constraint",
]
