"""Noise models: what the argument means, gradients, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from equivalence.small_problems import differences

from sumgp.errors import DataError
from sumgp.priors import read_noise
from sumgp.priors.multitask import SMALLEST

SCALE = np.array([2.0, 0.5, 4.0])
GROUPS = [(0, 2), (1,)]


@pytest.mark.parametrize("noise", ["per-output", "shared"])
def test_gradient_equals_differences(noise: str) -> None:
    model = read_noise(noise, SCALE, GROUPS, 5)
    parameters = np.array([-1.0, -2.0])[: model.n_parameters]
    G = np.array([1.0, -0.7, 2.0])
    numerical = differences(lambda p: float(G @ model.variances(p)), parameters)
    np.testing.assert_allclose(model.pull_back(parameters, G), numerical, rtol=1e-6)


def test_per_output_noise_is_common_within_groups() -> None:
    model = read_noise("per-output", SCALE, GROUPS, 5)
    sd = np.sqrt(model.variances(np.log([0.1, 0.3])))
    np.testing.assert_allclose(sd, [0.1, 0.3, 0.1], rtol=1e-9)


def test_shared_noise_is_one_standard_deviation_in_the_users_units() -> None:
    model = read_noise("shared", SCALE, [(0,), (1,), (2,)], 5)
    in_units = np.sqrt(model.variances(np.array([np.log(0.2)])) - SMALLEST**2) * SCALE
    np.testing.assert_allclose(in_units, in_units[0], rtol=1e-12)
    assert in_units[0] == pytest.approx(0.2 * np.exp(np.mean(np.log(SCALE))))


@pytest.mark.parametrize("known", [0.3, [0.1, 0.2, 0.3], np.full((5, 3), 0.7)])
def test_known_noise_is_taken_in_the_users_units(known: Any) -> None:
    model = read_noise(known, SCALE, GROUPS, 5)
    assert model.n_parameters == 0
    sd = np.sqrt(model.variances(np.zeros(0)) - SMALLEST**2) * SCALE
    np.testing.assert_allclose(sd, np.broadcast_to(known, (5, 3)), rtol=1e-9)
    np.testing.assert_allclose(model.typical(np.zeros(0)), model.variances(np.zeros(0)).mean(axis=0))
    assert model.pull_back(np.zeros(0), np.ones(3)).shape == (0,)


@pytest.mark.parametrize("bad", ["loud", [0.1, 0.2], -1.0, np.nan, np.inf, [[0.1, 0.1, 0.1]], object(), ["a", "b", "c"]])
def test_bad_noise_is_refused(bad: Any) -> None:
    with pytest.raises(DataError, match=r"^noise: expected .*; "):
        read_noise(bad, SCALE, GROUPS, 5)
