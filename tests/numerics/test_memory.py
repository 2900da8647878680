"""Memory is known in advance: the estimate against the peak that is measured, and an error before any allocation."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest
from equivalence.small_problems import small_prior, some_data
from sklearn.gaussian_process.kernels import RBF

from sumgp import ConstrainedGP, Dense, Kronecker, LinearConstraint
from sumgp.errors import DataError
from sumgp.numerics import linear_algebra as memory
from sumgp.numerics.linear_algebra import available_bytes, dense_bytes, kronecker_bytes
from sumgp.solvers import Solver
from sumgp.solvers.dense import Automatic, DenseEvidence, KroneckerEvidence
from sumgp.solvers.joint import JointEvidence
from sumgp.solvers.low_rank import LowRankEvidence


@pytest.mark.parametrize(("N", "T", "missing"), [(700, 1, 0.0), (300, 2, 0.0), (150, 4, 0.0), (300, 3, 0.3), (200, 4, 0.6)])
def test_estimate_is_the_measured_peak(N: int, T: int, missing: float) -> None:
    prior = small_prior(T)
    x, y = some_data(T, N, missing)
    tracemalloc.start()
    DenseEvidence(prior, x, y)(prior.start())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert dense_bytes(N, T, int((~np.isnan(y)).sum())) == pytest.approx(peak, rel=0.1)


@pytest.mark.parametrize(("N", "T", "missing"), [(400, 3, 0.0), (200, 4, 0.1), (150, 4, 0.2)])
def test_estimate_of_the_kronecker_form(N: int, T: int, missing: float) -> None:
    prior = small_prior(T)
    x, y = some_data(T, N, missing)
    tracemalloc.start()
    KroneckerEvidence(prior, x, y)(prior.start())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert kronecker_bytes(N, T, int((~np.isnan(y)).sum())) == pytest.approx(peak, rel=0.1)


def test_looking_for_features_needs_no_more_than_the_estimate() -> None:
    """A lengthscale far below the spacing of the rows has as many features as there are rows: the dense form takes over."""
    prior, N = small_prior(1), 700
    x, y = some_data(1, N, 0.0)
    theta = prior.start()
    theta[prior.slices[0][0]] = np.log(1e-3)
    tracemalloc.start()
    evidence = Automatic().evidence(prior, x, y)
    evidence(theta)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(evidence, LowRankEvidence)
    assert peak < 1.1 * dense_bytes(N, 1, N)


def test_available_memory_is_a_sensible_number() -> None:
    assert 1e7 < available_bytes() < 1e14


@pytest.mark.parametrize(("T", "form", "solver"), [(2, "dense", Dense()), (3, "Kronecker", Kronecker())])
@pytest.mark.parametrize(("n_inputs", "way"), [(1, r"use solver=Markov\(\) with a Matern kernel"), (2, "use at most")])
def test_a_fit_that_cannot_fit_is_refused_at_once(n_inputs: int, way: str, T: int, form: str, solver: Solver) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.uniform(size=(200_000, n_inputs)), rng.standard_normal((200_000, T))
    Y[0, 0] = np.nan
    start = time.process_time()
    with pytest.raises(
        DataError, match=rf"a {form} fit of 200000 rows with {Y.size - 1} measured.*needs about \d+\.\d GB.*{way}"
    ):
        ConstrainedGP(kernel=RBF(0.1), solver=solver).fit(X, Y)
    assert time.process_time() - start < 5.0


def test_kronecker_is_named_where_it_would_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: 2.0 * kronecker_bytes(100, 4, 400))
    with pytest.raises(DataError, match=r"use solver=Kronecker\(\)"):
        memory.check_memory(100, 4, 400, 2)
    memory.check_memory(100, 4, 400, 2, kronecker=True)


def test_the_number_of_rows_it_names_would_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: dense_bytes(100, 2, 200))
    memory.check_memory(100, 2, 200, 1)
    with pytest.raises(DataError, match="at most 100 rows"):
        memory.check_memory(400, 2, 800, 1)


def test_laws_on_the_full_joint_are_checked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three complete outputs pass the first check, since most strategies take the Kronecker form; the joint cannot."""
    monkeypatch.setattr(memory, "available_bytes", lambda: 1.5 * kronecker_bytes(40, 3, 120))
    x, y = some_data(3, 40)
    law = LinearConstraint(lambda x: np.column_stack([1 + x[:, 0], np.ones((len(x), 2))])[:, None, :], 1.0)
    with pytest.raises(DataError, match="memory: a dense fit of 40 rows"):
        ConstrainedGP(law, kernel=RBF(0.3)).fit(x, y)
    with pytest.raises(DataError, match="memory: a dense fit of 40 rows"):
        JointEvidence(small_prior(3), x, y, np.ones((40, 1, 3)), np.ones((40, 1)))
