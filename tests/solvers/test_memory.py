"""Memory is known in advance: the estimate against the peak that is measured, and an error before any allocation."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest
from equivalence.small_problems import small_prior, some_data
from sklearn.gaussian_process.kernels import RBF

from sumgp import ConstrainedGP, LinearConstraint
from sumgp.errors import DataError
from sumgp.solvers import memory
from sumgp.solvers.dense import DenseEvidence
from sumgp.solvers.joint import JointEvidence
from sumgp.solvers.memory import available_bytes, dense_bytes


@pytest.mark.parametrize(("N", "T", "missing"), [(700, 1, 0.0), (300, 2, 0.0), (150, 4, 0.0), (300, 3, 0.3), (200, 4, 0.6)])
def test_estimate_is_the_measured_peak(N: int, T: int, missing: float) -> None:
    prior = small_prior(T)
    x, y = some_data(T, N, missing)
    tracemalloc.start()
    DenseEvidence(prior, x, y)(prior.start())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert dense_bytes(N, T, int((~np.isnan(y)).sum())) == pytest.approx(peak, rel=0.1)


def test_available_memory_is_a_sensible_number() -> None:
    assert 1e7 < available_bytes() < 1e14


def far_too_large(n_inputs: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X, Y = rng.uniform(size=(200_000, n_inputs)), rng.standard_normal((200_000, 2))
    Y[0, 0] = np.nan
    return X, Y


@pytest.mark.parametrize(
    ("n_inputs", "way"), [(1, r"solver=Markov\(\) with a Matern kernel"), (2, r"complete rows with solver=Kronecker\(\)")]
)
def test_a_fit_that_cannot_fit_is_refused_at_once(n_inputs: int, way: str) -> None:
    start = time.process_time()
    with pytest.raises(DataError, match=rf"200000 rows with 399999 measured values needs about \d+\.\d GB.*{way}"):
        ConstrainedGP(kernel=RBF(0.1)).fit(*far_too_large(n_inputs))
    assert time.process_time() - start < 5.0


def test_the_number_of_rows_it_names_would_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: dense_bytes(100, 2, 200))
    memory.check_memory(100, 2, 200, 1)
    with pytest.raises(DataError, match="at most 100 rows"):
        memory.check_memory(400, 2, 800, 1)


def test_laws_on_the_full_joint_are_checked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Complete data pass the first check, since most strategies take the Kronecker form there; the joint cannot."""
    monkeypatch.setattr(memory, "available_bytes", lambda: 1e4)
    x, y = some_data(2, 30)
    law = LinearConstraint(lambda x: np.column_stack([1 + x[:, 0], np.ones(len(x))])[:, None, :], 1.0)
    with pytest.raises(DataError, match="memory: a dense fit of 30 rows"):
        ConstrainedGP(law, kernel=RBF(0.3)).fit(x, y)
    with pytest.raises(DataError, match="memory: a dense fit of 30 rows"):
        JointEvidence(small_prior(2), x, y, np.ones((30, 1, 2)), np.ones((30, 1)))
