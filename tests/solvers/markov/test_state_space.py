"""Matern processes as state spaces, down to steps where textbook formulas lose all digits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from sklearn.gaussian_process.kernels import Matern

from sumgp.errors import DataError
from sumgp.solvers.markov.state_space import Matern as Process
from sumgp.solvers.markov.state_space import MaternTerm, assemble, matern

NUS = (0.5, 1.5, 2.5, 3.5, 4.5)
STEPS = np.array([0.0, 1e-12, 1e-8, 1e-4, 1e-2, 0.1, 1.0, 3.0, 20.0])


@pytest.mark.parametrize("nu", NUS)
def test_transition_is_the_matrix_exponential(nu: float) -> None:
    process = matern(nu)
    expected = np.array([scipy.linalg.expm(process.drift * tau) for tau in STEPS])
    np.testing.assert_allclose(process.transition(STEPS), expected, rtol=1e-12, atol=1e-14)


def round_off(process: Process) -> float:
    """Of sums of products whose factors are as large as the drift's entries: 1 to 3 up to nu = 5/2, 6 and 10 beyond."""
    return 1e-15 * max(2.0, float(np.abs(process.drift).max()))


@pytest.mark.parametrize("nu", NUS)
def test_stationary_state_stays(nu: float) -> None:
    process = matern(nu)
    step = process.transition(STEPS)
    kept = step @ process.stationary @ step.swapaxes(1, 2) + process.process_noise(STEPS)
    np.testing.assert_allclose(kept, np.broadcast_to(process.stationary, kept.shape), atol=round_off(process))


@pytest.mark.parametrize("nu", NUS)
@pytest.mark.parametrize("tau", [1e-30, 1e-12, 1e-6, 1e-3, 0.1, 2.0])
def test_two_half_steps_are_one_step_to_relative_accuracy(nu: float, tau: float) -> None:
    process = matern(nu)
    half, whole = process.process_noise(np.array([tau / 2, tau]))
    step = process.transition(np.array([tau / 2]))[0]
    sd = np.sqrt(whole.diagonal())
    np.testing.assert_allclose(
        (step @ half @ step.T + half) / np.outer(sd, sd), whole / np.outer(sd, sd), atol=round_off(process)
    )


@pytest.mark.parametrize("nu", NUS)
def test_small_steps_follow_the_integrated_wiener_process(nu: float) -> None:
    process, tau = matern(nu), 1e-7
    d = process.n_states
    noise = process.process_noise(np.array([tau]))[0]
    power = np.arange(d)[::-1]
    factorials = np.array([1.0, 1.0, 2.0, 6.0, 24.0])[power]
    exponent = power[:, None] + power + 1
    expected = process.diffusion[-1, -1] * tau**exponent / (factorials[:, None] * factorials * exponent)
    np.testing.assert_allclose(noise, expected, rtol=1e-6)


@pytest.mark.parametrize("nu", NUS)
def test_process_noise_is_definite_at_any_step(nu: float) -> None:
    smallest = 10.0 ** (-280.0 / (2.0 * nu))  # its power 2 nu, the first entry, is still a number
    noise = matern(nu).process_noise(np.geomspace(smallest, 1e3, 200))
    sd = np.sqrt(np.einsum("nii->ni", noise))
    correlation = noise / (sd[:, :, None] * sd[:, None, :])
    # The correlations of repeated integrals of white noise: .0095 for two, .00048 for three, .000021 for four of them.
    assert np.linalg.eigvalsh(correlation).min() > {0.5: 0.9, 1.5: 0.1, 2.5: 9e-3, 3.5: 4e-4, 4.5: 2e-5}[nu]


@pytest.mark.parametrize("nu", NUS)
def test_noise_grows_by_the_lyapunov_equation(nu: float) -> None:
    process, tau, h = matern(nu), 0.7, 1e-3
    noise = process.process_noise(tau + h * np.array([-2.0, -1.0, 0.0, 1.0, 2.0]))
    slope = (8.0 * (noise[3] - noise[1]) - (noise[4] - noise[0])) / (12.0 * h)
    expected = process.drift @ noise[2] + noise[2] @ process.drift.T + process.diffusion
    np.testing.assert_allclose(slope, expected, atol=1e-10)


def test_assembled_terms_have_the_kernel_of_the_sum(rng: np.random.Generator) -> None:
    B = rng.normal(size=(2, 2))
    terms = [MaternTerm(2.5, 0.7, B @ B.T), MaternTerm(0.5, 2.0, np.diag([1.0, 0.0])), MaternTerm(1.5, 3.0, np.ones((2, 2)))]
    gaps = np.array([0.0, 0.3, 1.7])
    K = [Matern(length_scale=term.lengthscale, nu=term.nu)(gaps[:, None], np.zeros((1, 1))) for term in terms]
    expected = sum(k[:, :, None] * term.covariance for k, term in zip(K, terms, strict=True))
    for compact, n_states in ((False, 12), (True, 9)):
        space = assemble(terms, gaps, compact)
        assert space.stationary.shape == (n_states, n_states)
        found = space.observe @ space.transition @ space.stationary @ space.observe.T
        np.testing.assert_allclose(found, expected, atol=1e-14)


def test_other_smoothness_is_refused() -> None:
    with pytest.raises(DataError, match=r"0\.5, 1\.5, 2\.5, 3\.5, 4\.5"):
        matern(1.7)


def test_a_step_beyond_all_memory_forgets() -> None:
    process = matern(2.5)
    tau = process.steps(np.array([1e300]), 1e-3)
    assert np.all(process.transition(tau) == 0.0)
    np.testing.assert_allclose(process.process_noise(tau)[0], process.stationary, atol=1e-15)
