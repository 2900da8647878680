"""With few rows the data say little about each output's noise, and a law believes the output that looks least noisy."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from equivalence.small_problems import differences

import sumgp
from families import FAMILIES
from sumgp.priors.multitask import NoiseModel

SEEDS = (1000, 1001)


def relative_noise(gp: sumgp.ConstrainedGP, sd: np.ndarray) -> np.ndarray:
    """Noise standard deviations of a plug-in fit beside the outputs' own ``sd``."""
    return np.sqrt(gp.fitted_.components[0].noise) * gp.scaling_.y_scale / sd


def test_agreement_is_highest_where_all_agree_and_has_the_slope_it_says() -> None:
    model = NoiseModel(((0,), (1,), (2,)), np.ones(3))
    here = np.log([0.05, 0.1, 0.3])
    value, slope = model.agreement(here)
    np.testing.assert_allclose(slope, differences(lambda p: model.agreement(p)[0], here), atol=1e-6)
    assert model.agreement(np.full(3, -2.0))[0] == pytest.approx(0.0, abs=1e-12)
    assert value < -1.0
    assert model.agreement(here + 1.0)[0] == pytest.approx(value)
    one = NoiseModel(((0, 1, 2),), np.ones(3))
    assert one.agreement(here[:1]) == (0.0, np.zeros(1))


@pytest.mark.parametrize("name", ["reaction rate", "vapour pressure"])
def test_not_knowing_the_noise_costs_little(name: str) -> None:
    """Eight and ten rows, all outputs measured equally well: independent noises differed 1.9 to 3.5 times."""
    family = next(f for f in FAMILIES if f.name == name)
    costs = []
    for seed in SEEDS:
        problem = family.problem(seed)
        sd = problem.truth.std(axis=0)
        errors = []
        for noise in ("per-output", family.noise * sd):
            gp = sumgp.ConstrainedGP(
                list(family.laws),
                outputs=family.outputs,
                inputs=family.inputs,
                constants=problem.constants or None,
                noise=noise,
                uncertainty="plug-in",
            ).fit(problem.x, problem.y)
            errors.append(np.sqrt(np.mean(((gp.predict(problem.x_test) - problem.truth) / sd) ** 2)))
            if isinstance(noise, str):
                found = relative_noise(gp, sd)
                assert found.max() < 1.5 * found.min()
        costs.append(errors[0] / errors[1])
    assert np.exp(np.mean(np.log(costs))) < 1.2


def test_noises_that_differ_tenfold_are_found() -> None:
    """The tail is so heavy that 30 rows overrule it."""
    t = np.linspace(0.0, 1.0, 30)
    truth = np.stack([np.sin(4.0 * t), np.cos(5.0 * t)], axis=1)
    sd, given = truth.std(axis=0), np.array([0.02, 0.2])
    logs = []
    for seed in SEEDS:
        y = truth + given * sd * np.random.default_rng(seed).standard_normal(truth.shape)
        gp = sumgp.ConstrainedGP(outputs=["a", "b"], uncertainty="plug-in").fit(t[:, None], y)
        logs.append(np.log(relative_noise(gp, sd) / given))
    assert np.all(np.abs(np.mean(logs, axis=0)) < np.log(1.4))
