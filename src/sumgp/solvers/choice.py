"""Which solver computes the evidence: asked for, or chosen from data and prior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sumgp.errors import DataError, worded
from sumgp.numerics import check_memory
from sumgp.priors import MultitaskPrior
from sumgp.solvers.dense import DenseEvidence
from sumgp.solvers.kronecker import KroneckerEvidence, fits_kronecker, has_kronecker_form
from sumgp.solvers.markov import LawRows, MarkovObjectiveEvidence

KRONECKER_OUTPUTS = 3  # with two outputs one dense factor is as fast as the eigendecompositions
KRONECKER_ENTRIES = 100
# Short series of many outputs: a filter works on matrices of three times the outputs in turn, row by row. With so many
# rows for each output, and so large a share of the entries missing, two eigendecompositions are measured to be at least
# twice as fast (300 rows of 12 outputs: 7 times).
SERIES_ROWS = 40
SERIES_GAPS = 0.01


@dataclass(frozen=True)
class Dense:
    """One Cholesky factor of all measured entries: any data, O((N T)^3)."""


@dataclass(frozen=True)
class Kronecker:
    """Two eigendecompositions: one kernel term, few missing entries, O(N^3 + T^3)."""


@dataclass(frozen=True)
class Markov:
    """State-space form on one input: Matern kernels, O(N)."""


@dataclass(frozen=True)
class Vecchia:
    """Blocks of points given their nearest earlier neighbours: many points in several inputs, O(N).

    ``neighbours`` of each block of ``block`` points; predictions rest on ``nodes`` averages over the data, ever larger with
    their distance from the prediction point.
    """

    neighbours: int = 64
    block: int = 32
    nodes: int = 100

    def __post_init__(self) -> None:
        for name, least in (("neighbours", 1), ("block", 1), ("nodes", 2)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
                raise DataError(worded(name, f"a whole number from {least} on", repr(value), "leave the default"))


def takes_kronecker(solver: object, prior: MultitaskPrior, y: np.ndarray) -> bool:
    """True if the Kronecker form is asked for, or nothing is and it is measured to be faster; an error if it cannot be."""
    if isinstance(solver, Kronecker):
        if not has_kronecker_form(prior):
            raise DataError(
                "solver: Kronecker() needs one kernel term and an unknown noise per output, which is not the case here; "
                "use Dense() or leave solver=None"
            )
        return True
    large = y.shape[1] >= KRONECKER_OUTPUTS and y.size >= KRONECKER_ENTRIES
    return solver is None and large and fits_kronecker(prior, y)


def check_solver_memory(solver: object, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray) -> None:
    """Raise DataError if the solver that these data get would need more memory than there is."""
    check_memory(y.shape[0], y.shape[1], int((~np.isnan(y)).sum()), x.shape[1], takes_kronecker(solver, prior, y))


def choose_evidence(
    solver: object, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray
) -> DenseEvidence | KroneckerEvidence:
    """Evidence by the solver asked for; by itself Kronecker wherever it is exact and measured to be faster."""
    check_solver_memory(solver, prior, x, y)
    return KroneckerEvidence(prior, x, y) if takes_kronecker(solver, prior, y) else DenseEvidence(prior, x, y)


def choose_series_evidence(
    prior: MultitaskPrior, x: np.ndarray, y: np.ndarray, law: LawRows | None
) -> MarkovObjectiveEvidence | KroneckerEvidence:
    """Evidence of Matern terms on one input: the same number by the Kronecker form where that is faster."""
    short = len(y) <= SERIES_ROWS * y.shape[1] and y.shape[1] >= KRONECKER_OUTPUTS
    if law is None and short and fits_kronecker(prior, y) and float(np.isnan(y).mean()) <= SERIES_GAPS:
        return KroneckerEvidence(prior, x, y)
    return MarkovObjectiveEvidence(prior, x, y, law)
