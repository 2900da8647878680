"""Starts of the search from what outputs say alone and together."""

from __future__ import annotations

import numpy as np
import pytest

from sumgp.hyperparameters import Objective, Scan, maximise, row_spacing
from sumgp.priors import FullTask, MultitaskPrior, NoiseModel, default_candidates, hyper_priors
from sumgp.solvers import DenseEvidence

HALF = np.array([0.5])
OUTPUTS = 8


def problem(seed: int) -> tuple[Scan, Objective]:
    """Outputs that each look like noise and have a season in common, 32 rows."""
    generator = np.random.default_rng(seed)
    x = np.linspace(-0.5, 0.5, 32)[:, None]
    season = np.sin(2.0 * np.pi * 8.0 * x + seed) + 0.3 * generator.standard_normal(x.shape)
    y = season * generator.uniform(0.5, 1.0, OUTPUTS) + 0.05 * generator.standard_normal((32, OUTPUTS))
    y = (y - y.mean(axis=0)) / y.std(axis=0)
    kernel = default_candidates(HALF)[0].kernels[0]
    priors = (tuple(hyper_priors(kernel, HALF, row_spacing(x / HALF))),)
    noise = NoiseModel(tuple((t,) for t in range(OUTPUTS)), np.ones(OUTPUTS))
    prior = MultitaskPrior((kernel,), priors, (FullTask(OUTPUTS),), noise, OUTPUTS)
    return Scan(x, y), Objective(prior, DenseEvidence(prior, x, y))


@pytest.mark.parametrize("seed", [1000, 1001])
def test_outputs_together_show_what_none_shows_alone(seed: int) -> None:
    scan, objective = problem(seed)
    together = scan.starts(objective.prior, 1, objective.value)[0]
    alone = scan.starts(objective.prior, 1)[0]
    assert objective.value(together) < objective.value(alone) - 20.0
    # A search from what each says alone, or from the prior, ends at curves without the season.
    best = maximise(objective, starts=[together]).value
    for start in (alone, objective.prior.start()):
        assert best < maximise(objective, starts=[start]).value - 100.0
