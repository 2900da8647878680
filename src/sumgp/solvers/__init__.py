"""Regression with Gaussian noise: dense, Kronecker, and in weight space; time series in linear time are in ``markov``."""

from sumgp.solvers.choice import (
    Dense,
    Kronecker,
    Markov,
    Vecchia,
    check_solver_memory,
    choose_evidence,
    choose_series_evidence,
)
from sumgp.solvers.dense import DenseEvidence
from sumgp.solvers.joint import JointEvidence
from sumgp.solvers.kronecker import KroneckerEvidence, fits_kronecker
from sumgp.solvers.weights import WeightPosterior, build_features, condition_on_data

__all__ = [
    "Dense",
    "DenseEvidence",
    "JointEvidence",
    "Kronecker",
    "KroneckerEvidence",
    "Markov",
    "Vecchia",
    "WeightPosterior",
    "build_features",
    "check_solver_memory",
    "choose_evidence",
    "choose_series_evidence",
    "condition_on_data",
    "fits_kronecker",
]
