"""Regression with Gaussian noise: dense, Kronecker, and in weight space; time series in linear time are in ``markov``."""

from sumgp.solvers.closed import ClosedEvidence, ClosedRows, closed_rows
from sumgp.solvers.dense import (
    Automatic,
    Dense,
    DenseEvidence,
    Evidence,
    Kronecker,
    KroneckerEvidence,
    Solver,
    fits_kronecker,
)
from sumgp.solvers.joint import JointEvidence
from sumgp.solvers.markov import Markov
from sumgp.solvers.weights import WeightPosterior, build_features, condition_on_data

__all__ = [
    "Automatic",
    "ClosedEvidence",
    "ClosedRows",
    "Dense",
    "DenseEvidence",
    "Evidence",
    "JointEvidence",
    "Kronecker",
    "KroneckerEvidence",
    "Markov",
    "Solver",
    "WeightPosterior",
    "build_features",
    "closed_rows",
    "condition_on_data",
    "fits_kronecker",
]
