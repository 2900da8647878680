"""Regression with Gaussian noise: dense, Kronecker, and in weight space; time series in linear time are in ``markov``."""

from sumgp.solvers.closed import ClosedEvidence, ClosedRows, closed_rows
from sumgp.solvers.dense import (
    Dense,
    DenseEvidence,
    Kronecker,
    KroneckerEvidence,
    Markov,
    check_solver_memory,
    choose_evidence,
    choose_series_evidence,
    fits_kronecker,
)
from sumgp.solvers.joint import JointEvidence
from sumgp.solvers.weights import WeightPosterior, build_features, condition_on_data

__all__ = [
    "ClosedEvidence",
    "ClosedRows",
    "Dense",
    "DenseEvidence",
    "JointEvidence",
    "Kronecker",
    "KroneckerEvidence",
    "Markov",
    "WeightPosterior",
    "build_features",
    "check_solver_memory",
    "choose_evidence",
    "choose_series_evidence",
    "closed_rows",
    "condition_on_data",
    "fits_kronecker",
]
