"""Which priors are tried, and that outputs with lengthscales of their own get what they need."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern, RationalQuadratic

from sumgp import ConstrainedGP
from sumgp.errors import DataError
from sumgp.priors import FullTask, LowRankTask, OneOutputTask, default_candidates, given_candidate
from sumgp.strategies import Unconstrained

HALF = np.array([0.5])


def described(candidates) -> list[tuple[str, int, bool]]:
    return [(type(c.kernels[0]).__name__, len(c.kernels), c.own) for c in candidates]


def test_two_outputs_may_have_lengthscales_of_their_own() -> None:
    found = described(default_candidates(HALF, 2, separable=False))
    assert found == [("RBF", 1, False), ("RBF", 2, True), ("RationalQuadratic", 2, True)]


@pytest.mark.parametrize(("outputs", "separable"), [(1, False), (2, True), (6, False)])
def test_otherwise_outputs_share_one_kernel(outputs: int, separable: bool) -> None:
    found = described(default_candidates(HALF, outputs, separable))
    assert found == [("RBF", 1, False), ("RationalQuadratic", 1, False)]


def test_several_inputs_get_a_lengthscale_each() -> None:
    (only,) = default_candidates(np.array([0.5, 0.5]), 2, separable=False)
    assert len(np.atleast_1d(only.kernels[0].length_scale)) == 2


def test_tasks_follow_the_kind() -> None:
    shared, own = default_candidates(HALF, 2, separable=False)[:2]
    assert shared.tasks(2, None) == (FullTask(2),)
    assert shared.tasks(2, 1) == (LowRankTask(2, 1),)
    assert own.tasks(2, None) == (OneOutputTask(2, 0), OneOutputTask(2, 1))
    terms = given_candidate([RBF(), Matern(nu=1.5)], HALF)[0].tasks(2, None)
    assert terms == (FullTask(2, 1.0 / np.sqrt(2.0)),) * 2


def test_an_empty_list_is_refused() -> None:
    with pytest.raises(DataError, match=r"kernel.*at least one kernel.*an empty list"):
        given_candidate([], HALF)
    assert described(given_candidate(RationalQuadratic(), HALF)) == [("RationalQuadratic", 1, False)]


def test_a_straight_line_beside_a_fast_wave_keeps_its_long_lengthscale() -> None:
    """Under a shared lengthscale the gap in the line's measurements would be as wide open as the wave's."""
    x = np.linspace(0.0, 10.0, 30)
    noise = 0.05 * np.random.default_rng(0).standard_normal((30, 2))
    Y = np.column_stack([np.sin(3.0 * x), 0.3 * x]) + noise
    Y[10:18, 1] = np.nan
    model = ConstrainedGP(strategy=Unconstrained()).fit(x, Y)
    posterior = model.posterior(x[10:18])
    assert np.max(np.abs(posterior.mean[:, 1] - 0.3 * x[10:18])) < 0.1
    assert np.max(posterior.std[:, 1]) < 0.1


def test_each_output_has_a_constant_of_its_own() -> None:
    """Far away from the data each output returns to its own level, not to zero."""
    x = np.linspace(0.0, 1.0, 25)
    wave = np.column_stack([100.0 + np.sin(20.0 * x), -50.0 + np.cos(31.0 * x)])
    model = ConstrainedGP(strategy=Unconstrained()).fit(x, wave + 0.01 * np.random.default_rng(1).standard_normal((25, 2)))
    far = model.posterior(np.array([60.0]))
    assert abs(far.mean[0, 0] - 100.0) < 2.0
    assert abs(far.mean[0, 1] + 50.0) < 2.0
