"""Importance weights: as they are where even, flattened and capped where a few would dominate."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from sumgp.hyperparameters.average import CAP, effective, flattened, log_total, tempered


def test_even_weights_stay_as_they_are() -> None:
    logs = np.log(np.random.default_rng(0).uniform(0.5, 1.0, 40))
    weights, power = tempered(logs)
    assert power == 1.0
    np.testing.assert_allclose(weights, np.exp(logs) / np.exp(logs).sum(), rtol=1e-12)


def test_degenerate_weights_are_flattened_and_capped() -> None:
    logs = -np.arange(64.0) * 50.0
    weights, power = tempered(logs)
    assert 0.0 < power < 1.0
    assert weights.sum() == pytest.approx(1.0)
    assert weights.max() <= CAP / np.sqrt(64) * (1.0 + 1e-9)
    assert 1.0 / np.sum(weights**2) > 5.0
    assert np.all(np.diff(weights) <= 1e-15)


def test_impossible_draws_get_no_weight() -> None:
    logs = np.concatenate([np.zeros(20), np.full(5, -np.inf)])
    weights, _ = tempered(logs)
    np.testing.assert_array_equal(weights[20:], 0.0)
    nothing, power = tempered(np.full(4, -np.inf))
    np.testing.assert_allclose(nothing, 0.25)
    assert power == 0.0


def test_flattening_goes_as_far_as_it_must() -> None:
    logs = -np.arange(50.0)
    weights, power = flattened(logs, 10.0)
    assert 0.0 < power < 1.0
    assert effective(weights) == pytest.approx(10.0, rel=1e-3)
    np.testing.assert_allclose(np.log(weights / weights[0]), power * logs, atol=1e-9)


def test_the_total_is_that_of_scipy() -> None:
    logs = np.array([-1000.0, -1001.0, -np.inf, -1002.5])
    assert log_total(logs) == pytest.approx(float(logsumexp(logs)), rel=1e-15)
    assert log_total(np.full(3, -np.inf)) == -np.inf
