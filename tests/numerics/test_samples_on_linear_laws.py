"""Samples keep linear laws where the covariance that was conditioned is nearly singular."""

from __future__ import annotations

import numpy as np
import pytest
from properties.trials import FITTED, attempt, pose

from sumgp.numerics.linear_algebra import schur_condition, symmetric_root
from sumgp.solvers.weights import _within_law


def test_what_round_off_leaves_of_the_law_is_taken_back(rng: np.random.Generator) -> None:
    """A covariance with a condition number of 1e14, conditioned on four rows of five outputs."""
    F = rng.standard_normal((4, 5))
    vectors = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    Sigma = (vectors * 10.0 ** -np.array([0.0, 2.0, 5.0, 9.0, 14.0])) @ vectors.T
    root = symmetric_root(schur_condition(Sigma, F, np.zeros(4)).covariance)
    size = np.abs(F) @ np.abs(root)
    within = _within_law(root, F)
    assert np.max(np.abs(F @ root) / size) > 1e-12
    assert np.max(np.abs(F @ within)) <= 1e-15 * np.max(size)
    # A factor that already lies in the null space stays what it is.
    null = np.linalg.svd(F)[2][4:].T
    np.testing.assert_allclose(_within_law(null, F), null, atol=1e-15)


@pytest.mark.parametrize("seed", [100029, 100109, 100153])
def test_seeds_of_the_soak_test_that_once_missed_the_law(seed: int) -> None:
    problem, strategy, uncertainty = pose(seed)
    outcome, _, violation = attempt(problem, strategy, uncertainty)
    assert outcome == FITTED
    assert violation < 1e-11
