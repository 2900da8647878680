"""Regression with Gaussian noise: dense, Kronecker, and in weight space; time series in linear time are in ``markov``."""

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
from sumgp.solvers.latent_evidence import LatentEvidence
from sumgp.solvers.value_basis import MEAN_VARIANCE, ValueBasis
from sumgp.solvers.weights import SlopeOfOffset, WeightPosterior, build_features, condition_on_data

__all__ = [
    "MEAN_VARIANCE",
    "Dense",
    "DenseEvidence",
    "JointEvidence",
    "Kronecker",
    "KroneckerEvidence",
    "LatentEvidence",
    "Markov",
    "SlopeOfOffset",
    "ValueBasis",
    "WeightPosterior",
    "build_features",
    "check_solver_memory",
    "choose_evidence",
    "choose_series_evidence",
    "condition_on_data",
    "fits_kronecker",
]
