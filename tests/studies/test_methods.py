"""Methods of the experiments: what each is told."""

from __future__ import annotations

import numpy as np
import pytest

from sumgp_studies.experiments import all_methods, all_problems
from sumgp_studies.experiments.methods import Settings


@pytest.mark.parametrize("experiment", ["harmonic_oscillator", "free_fall"])
def test_told_of_one_noise_a_fit_with_law_and_motion_is_least_squares(experiment):
    """With energy and motion given only the time of the start is open: both have the same information."""
    problem, methods = all_problems()[experiment], all_methods()
    cell = problem.cells[4]
    data = problem.dataset(cell, 1001)
    told, best = (
        methods[name].fit(data, Settings(uncertainty="plug-in")).predict(data.X_test).mean
        for name in ("linearized+derivative+noise", "least-squares")
    )
    assert np.sqrt(np.mean((told - best) ** 2)) < 0.01 * cell.noise  # two noises: 0.04 in free fall


def test_one_noise_is_told_where_least_squares_knows_it_too():
    method = all_methods()["linearized+derivative+noise"]
    assert [name for name in all_problems() if method.suits(name)] == ["harmonic_oscillator", "free_fall"]
