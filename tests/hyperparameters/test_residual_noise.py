"""Noise from residuals: that of each output where its data tell it, about alike where they do not."""

from __future__ import annotations

import numpy as np
import pytest

import sumgp
from sumgp.hyperparameters import noise_told
from sumgp.priors import NoiseModel

ABOUT = 0.5


def model(n_outputs: int, *, shared: bool = False) -> NoiseModel:
    groups = (tuple(range(n_outputs)),) if shared else tuple((t,) for t in range(n_outputs))
    return NoiseModel(groups, np.ones(n_outputs))


def test_one_output_has_the_variance_of_its_residuals() -> None:
    found = noise_told(model(1), np.array([0.09]), np.array([36.0]))
    assert np.exp(2.0 * found[0]) == pytest.approx(0.09 / 36.0, rel=0.01)


def test_a_group_shares_residuals_and_degrees() -> None:
    found = noise_told(model(2, shared=True), np.array([0.02, 0.07]), np.array([16.0, 20.0]))
    assert np.exp(2.0 * found) == pytest.approx([0.09 / 36.0], rel=0.01)


def test_noises_that_differ_are_left_as_many_rows_tell_them() -> None:
    found = noise_told(model(2), 40.0 * np.array([0.01, 0.1]) ** 2, np.array([40.0, 40.0]), ABOUT)
    assert np.exp(found) == pytest.approx([0.01, 0.1], rel=0.05)


def test_a_curve_that_meets_the_few_values_of_one_output_does_not_tell_its_noise() -> None:
    """Such values have no degree of freedom left, and no residual."""
    found = noise_told(model(3), np.array([4e-4, 4e-4, 1e-12]), np.array([4.0, 4.0, 0.1]), ABOUT)
    assert np.exp(found) == pytest.approx([0.01] * 3, rel=0.5)


def test_no_output_of_few_rows_is_taken_to_be_free_of_noise() -> None:
    """Two coupled oscillators at five times: without a prior of how noises differ the law believed one output most."""
    laws = ["d(x, t) = u", "d(y, t) = v", "d(u, t) = 0.4*y - 1.4*x", "d(v, t) = 0.4*x - 1.4*y"]
    t, fast = np.linspace(0.0, 10.0, 5), np.sqrt(1.8)
    together, apart = np.cos(t) / 2, np.cos(fast * t) / 2
    slopes = -np.sin(t) / 2, -fast * np.sin(fast * t) / 2
    truth = np.column_stack([together + apart, together - apart, slopes[0] + slopes[1], slopes[0] - slopes[1]])
    measured = truth + 0.02 * np.random.default_rng(1001).standard_normal(truth.shape)
    fit = sumgp.ConstrainedGP(laws, outputs=list("xyuv"), inputs=["t"]).fit(t[:, None], measured)
    noise = np.sqrt(fit.fitted_.components[0].noise) * fit.scaling_.y_scale
    assert noise.min() > 0.35 * 0.02  # was .22
