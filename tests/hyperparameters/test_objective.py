"""The function that hyperparameter search minimises."""

from __future__ import annotations

import numpy as np
import pytest
from equivalence.small_problems import assert_gradient, small_prior, some_data, some_theta

from sumgp.errors import NumericalError
from sumgp.hyperparameters.optimise import REFUSED, Objective
from sumgp.solvers.dense import DenseEvidence


def test_objective_is_minus_evidence_minus_prior_with_its_gradient() -> None:
    prior = small_prior(T=2)
    target = Objective(prior, DenseEvidence(prior, *some_data(T=2, N=12)))
    theta = some_theta(prior)
    value, _ = target(theta)
    assert value == pytest.approx(-target.evidence(theta)[0] - prior.log_prior(theta)[0])
    assert_gradient(target, theta)


def test_a_failed_factor_or_nan_is_a_very_bad_value() -> None:
    prior = small_prior(T=2)

    def fails(theta: np.ndarray) -> tuple[float, np.ndarray]:
        raise NumericalError("no factor")

    assert Objective(prior, fails)(prior.start())[0] == REFUSED
    assert Objective(prior, lambda t: (np.nan, np.zeros(len(t))))(prior.start())[0] == REFUSED
    assert Objective(prior, lambda t: (0.0, np.full(len(t), np.inf)))(prior.start())[0] == REFUSED
