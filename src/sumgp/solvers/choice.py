"""Which solver computes the evidence: asked for, or chosen from data and prior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sumgp.errors import DataError
from sumgp.priors.multitask import MultitaskPrior
from sumgp.solvers.dense import DenseEvidence
from sumgp.solvers.kronecker import KroneckerEvidence, fits_kronecker
from sumgp.solvers.memory import check_memory

KRONECKER_OUTPUTS = 3  # with two outputs one dense factor is as fast as the eigendecompositions
KRONECKER_ENTRIES = 100


@dataclass(frozen=True)
class Dense:
    """One Cholesky factor of all measured entries: any data, O((N T)^3)."""


@dataclass(frozen=True)
class Kronecker:
    """Two eigendecompositions: complete data, one kernel term, O(N^3 + T^3)."""


@dataclass(frozen=True)
class Markov:
    """State-space form on one input: Matern kernels, O(N)."""


def choose_evidence(
    solver: object, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray
) -> DenseEvidence | KroneckerEvidence:
    """Evidence by the solver asked for; by itself Kronecker wherever it is exact and measured to be faster."""
    exact = fits_kronecker(prior, y)
    if isinstance(solver, Kronecker):
        if not exact:
            raise DataError(
                "solver: Kronecker() needs complete data, one kernel term and an unknown noise per output, which is not "
                "the case here; use Dense() or leave solver=None"
            )
        return KroneckerEvidence(prior, x, y)
    if solver is None and exact and y.shape[1] >= KRONECKER_OUTPUTS and y.size >= KRONECKER_ENTRIES:
        return KroneckerEvidence(prior, x, y)
    check_memory(*y.shape, int((~np.isnan(y)).sum()), x.shape[1])
    return DenseEvidence(prior, x, y)
