"""Maximum a posteriori search: reaches known maxima, restarts after failures, says what it tried."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from equivalence.small_problems import small_prior, some_data
from scipy.optimize import minimize

from sumgp.errors import NumericalError
from sumgp.hyperparameters.optimise import REFUSED, Objective, maximise, starting_points, values_at
from sumgp.solvers.dense import DenseEvidence
from sumgp.solvers.kronecker import KroneckerEvidence


def objective() -> Objective:
    prior = small_prior(T=2)
    x, y = some_data(T=2, N=12)
    return Objective(prior, DenseEvidence(prior, x, y))


def test_maximum_is_one_a_derivative_free_search_cannot_improve() -> None:
    target = objective()
    found = maximise(target, restarts=2)
    assert found.status == "converged"
    assert len(found.attempts) == 3
    polished = minimize(lambda t: target(t)[0], found.theta, method="Nelder-Mead", options={"maxfev": 800, "fatol": 1e-10})
    assert found.value <= polished.fun + 1e-4


def test_starting_points_are_repeatable_distinct_and_within_bounds() -> None:
    target = objective()
    points = starting_points(target, 5, 3)
    assert len(points) == 6
    np.testing.assert_array_equal(points, starting_points(target, 5, 3))
    assert len({p.tobytes() for p in points}) == 6
    low, high = np.array(target.prior.bounds()).T
    assert all(np.all((p >= low) & (p <= high)) for p in points)
    assert not np.array_equal(points[5], starting_points(target, 5, 4)[5])


def quadratic(centre: np.ndarray, fail: Callable[[np.ndarray], bool]) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    def evidence(theta: np.ndarray) -> tuple[float, np.ndarray]:
        if fail(theta):
            raise NumericalError("no factor")
        return -0.5 * float(np.sum((theta - centre) ** 2)), centre - theta

    return evidence


def test_failed_starts_lead_to_further_ones() -> None:
    """Every planned start fails; a random one outside the failing region then succeeds."""
    prior = small_prior(T=1)
    planned = {p.tobytes() for p in starting_points(Objective(prior, quadratic(prior.start(), lambda t: False)), 2, 0)}
    target = Objective(prior, quadratic(prior.start(), lambda t: t.tobytes() in planned))
    found = maximise(target, restarts=2)
    assert [a.status for a in found.attempts[:3]] == ["failed Cholesky factor"] * 3
    assert found.status == "converged"
    assert 3 < len(found.attempts) <= 8


def test_when_all_starts_fail_the_error_says_what_was_tried() -> None:
    prior = small_prior(T=1)
    with pytest.raises(NumericalError, match=r"8 starts ended with: failed Cholesky factor;.*noise="):
        maximise(Objective(prior, quadratic(prior.start(), lambda t: True)), restarts=2)


def test_collapsed_lengthscales_are_passed_over_for_a_sound_maximum() -> None:
    """Spikes have the higher value here, but the sound maximum is chosen."""
    prior = small_prior(T=1)
    spikes = np.log(0.5) - 8.0

    def evidence(theta: np.ndarray) -> tuple[float, np.ndarray]:
        near_spikes = theta[0] < np.log(0.5) - 1.5
        centre, height = (spikes, 100.0) if near_spikes else (np.log(0.5), 0.0)
        gradient = np.zeros(len(theta))
        gradient[0] = -30.0 * (theta[0] - centre)
        return height - 15.0 * (theta[0] - centre) ** 2, gradient

    found = maximise(Objective(prior, evidence), restarts=3)
    assert "lengthscale collapsed" in [a.status for a in found.attempts]
    assert found.status == "converged"
    assert found.theta[0] == pytest.approx(np.log(0.5), abs=0.05)


def test_a_run_that_is_cut_short_says_so() -> None:
    assert maximise(objective(), restarts=0, max_steps=1).status == "step limit"


def test_a_search_of_many_parameters_ends_on_a_plateau(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sooner than one that goes on while steps of a millionth are gained, and next to nothing below it."""
    prior = small_prior(T=9)
    x, y = some_data(T=9, N=12)
    target = Objective(prior, KroneckerEvidence(prior, x, y))
    soon = maximise(target, restarts=0)
    monkeypatch.setattr("sumgp.hyperparameters.optimise.MANY", prior.n_parameters)
    late = maximise(target, restarts=0)
    assert soon.status == late.status == "converged"
    assert soon.attempts[0].steps < late.attempts[0].steps
    assert soon.value < late.value + 0.1


def test_a_refused_trial_does_not_end_the_search() -> None:
    """A wall next to the start: the first steps beyond it fail, the maximum lies before it."""
    prior = small_prior(T=1)
    centre = prior.start() + np.array([0.6, 0.4, 0.4])

    def evidence(theta: np.ndarray) -> tuple[float, np.ndarray]:
        if theta[0] > centre[0] + 0.3:
            raise NumericalError("no factor")
        return -500.0 * float(np.sum((theta - centre) ** 2)), -1000.0 * (theta - centre)

    found = maximise(Objective(prior, evidence), restarts=0)
    assert found.status == "converged"
    np.testing.assert_allclose(found.theta, centre, atol=2e-3)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_values_of_several_are_those_of_each_alone(missing: float) -> None:
    """To the last bit, in passes of several and of one; where one of them fails the others stay."""
    prior = small_prior(2)
    x, y = some_data(2, 12, missing)
    whole = Objective(prior, DenseEvidence(prior, x, y))
    thetas = prior.start() + 0.3 * np.random.default_rng(3).standard_normal((40, prior.n_parameters))
    alone = [whole.value(theta) for theta in thetas]
    assert values_at(whole, thetas) == alone
    assert alone == pytest.approx([whole(theta)[0] for theta in thetas], rel=1e-12)
    thetas[5, prior.noise_slice] = np.nan
    found = values_at(whole, thetas)
    assert found[5] == REFUSED
    assert [*found[:5], *found[6:]] == [*alone[:5], *alone[6:]]
