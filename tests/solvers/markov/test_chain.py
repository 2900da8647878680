"""Chains in lanes against the same chain written out as one dense Gaussian."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from sumgp.errors import NumericalError
from sumgp.numerics.linear_algebra import root, whiten
from sumgp.solvers.markov.chain import Chain, Lanes, factorise, prior_paths, residuals, smoothed, smoothed_covariance, solve
from sumgp.solvers.markov.state_space import MaternTerm, assemble


def chain_of(n: int, rng: np.random.Generator, lanes: Lanes | None = None) -> tuple[Chain, np.ndarray, np.ndarray]:
    """A chain, its rows in time order, and its dense prior covariance."""
    t = np.sort(rng.uniform(0.0, 5.0, n))
    space = assemble([MaternTerm(1.5, 1.0, np.array([[1.0, 0.3], [0.3, 0.5]]))], np.append(np.diff(t), 0.0))
    lanes = lanes or Lanes.of(n)
    sight = rng.normal(size=(n, 3, 4)) * 3.0
    sight[rng.random((n, 3)) < 0.3] = 0.0
    chain = Chain(lanes, lanes.deal(space.transition), lanes.deal(space.noise), space.stationary, lanes.deal(sight))
    P = np.zeros((n, 4, n, 4))
    for i in range(n):
        block = space.stationary
        for j in range(i, n):
            P[j, :, i, :], P[i, :, j, :] = block, block.T
            block = space.transition[j] @ block
    return chain, sight, P.reshape(4 * n, 4 * n)


def dense_of(sight: np.ndarray, P: np.ndarray, rho: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Smoothed means (n, D, p), covariances (n, D, D) and log |I + B P B^T|."""
    n, _, D = sight.shape
    B = scipy.linalg.block_diag(*sight)
    S = np.eye(len(B)) + B @ P @ B.T
    gain = np.linalg.solve(S, B @ P).T
    cov = (P - gain @ B @ P).reshape(n, D, n, D)[np.arange(n), :, np.arange(n), :]
    return (gain @ rho.reshape(len(B), -1)).reshape(n, D, -1), cov, float(np.linalg.slogdet(S)[1])


@pytest.mark.parametrize("n", [1, 2, 3, 7, 40])
def test_a_chain_equals_its_dense_form(n: int, rng: np.random.Generator) -> None:
    chain, sight, P = chain_of(n, rng)
    rho = rng.normal(size=(n, 3, 2))
    mean, cov, logdet = dense_of(sight, P, rho)
    factor = factorise(chain)
    solution = solve(factor, chain.lanes.deal(rho))
    collect, H = chain.lanes.collect, np.eye(4)
    np.testing.assert_allclose(collect(smoothed(factor, solution, H)), mean, atol=1e-12)
    np.testing.assert_allclose(collect(smoothed_covariance(factor, H)), cov, atol=1e-13)
    assert factor.logdet == pytest.approx(logdet, rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(collect(residuals(factor, solution)), rho - sight @ mean, atol=1e-11)


@pytest.mark.parametrize("steps", [1, 4, 40, 55])
def test_the_number_of_lanes_does_not_matter(steps: int, rng: np.random.Generator) -> None:
    n = 40
    lanes = Lanes(n, steps, -(-n // steps))
    chain, sight, P = chain_of(n, rng, lanes)
    rho = rng.normal(size=(n, 3, 1))
    mean, cov, logdet = dense_of(sight, P, rho)
    factor = factorise(chain)
    found = smoothed(factor, solve(factor, lanes.deal(rho)), np.eye(4))
    np.testing.assert_allclose(lanes.collect(found), mean, atol=1e-12)
    np.testing.assert_allclose(lanes.collect(smoothed_covariance(factor, np.eye(4))), cov, atol=1e-13)
    assert factor.logdet == pytest.approx(logdet, rel=1e-12)


def test_lanes_deal_and_collect() -> None:
    values = np.arange(11.0)
    for n in (1, 5, 11):
        lanes = Lanes.of(n)
        dealt = lanes.deal(values[:n])
        assert dealt.shape == (lanes.steps, lanes.count)
        assert max(lanes.steps, lanes.count) <= 2 * np.sqrt(n) + 1
        np.testing.assert_array_equal(lanes.collect(dealt), values[:n])
    assert Lanes.of(11).deal(values)[0, 1] == Lanes.of(11).steps


def test_prior_paths_have_the_chain_covariance(rng: np.random.Generator) -> None:
    chain, _, P = chain_of(7, rng)
    draws = 40_000
    paths = chain.lanes.collect(prior_paths(chain, draws, rng)).reshape(28, draws)
    sd = np.sqrt(np.diag(P))
    error = (paths @ paths.T / draws - P) / np.outer(sd, sd) * np.sqrt(draws)
    assert np.abs(error).max() < 6.5
    assert np.abs(error).std() < 1.0


def test_root_of_singular_matrices_in_mixed_units(rng: np.random.Generator) -> None:
    unit = np.array([1e-6, 1.0, 1e3, 1e6])
    B = rng.normal(size=(50, 4, 3))
    B[0] = 0.0
    R = root((B @ B.swapaxes(1, 2)) * np.outer(unit, unit)) / unit
    np.testing.assert_allclose(R.swapaxes(1, 2) @ R, B @ B.swapaxes(1, 2), atol=1e-13)
    assert np.all(np.tril(R, -1) == 0.0)
    assert np.all(R[0] == 0.0)


def test_whitening(rng: np.random.Generator) -> None:
    B = rng.normal(size=(50, 4, 4))
    M = np.eye(4) + B @ B.swapaxes(1, 2)
    right = rng.normal(size=(50, 4, 2))
    half, logdet = whiten(M, right)
    np.testing.assert_allclose(half.swapaxes(1, 2) @ half, right.swapaxes(1, 2) @ np.linalg.solve(M, right), atol=1e-12)
    np.testing.assert_allclose(logdet, np.linalg.slogdet(M)[1], atol=1e-13)


def test_lanes_are_corrected_where_rows_are_nearly_exact() -> None:
    """Information sums alone lose noisy rows beside nearly exact ones: means off by 2e-8 instead of 4e-13."""
    n = 400
    t = np.linspace(0.0, 40.0, n)
    space = assemble([MaternTerm(2.5, 2.0, np.eye(2))], np.append(np.diff(t), 0.0))
    angle = np.stack([np.cos(t), np.sin(t)], axis=1)
    sight = np.concatenate([np.broadcast_to(0.1 * np.eye(2), (n, 2, 2)), 1e5 * angle[:, None, :]], axis=1) @ space.observe
    rho = np.concatenate([0.1 * angle, np.full((n, 1), 1e5)], axis=1)[:, :, None]

    def means(lanes: Lanes) -> np.ndarray:
        deal = lanes.deal
        factor = factorise(Chain(lanes, deal(space.transition), deal(space.noise), space.stationary, deal(sight)))
        return lanes.collect(smoothed(factor, solve(factor, deal(rho)), space.observe))

    np.testing.assert_allclose(means(Lanes.of(n)), means(Lanes(n, n, 1)), atol=1e-10)


def test_rows_beyond_round_off_are_an_error(rng: np.random.Generator) -> None:
    n = 100
    t = np.linspace(0.0, 1e-3, n)
    space = assemble([MaternTerm(2.5, 2.0, np.eye(2))], np.append(np.diff(t), 0.0))
    lanes = Lanes.of(n)
    sight = rng.normal(size=(n, 1, 2)) @ space.observe * 1e12
    chain = Chain(lanes, lanes.deal(space.transition), lanes.deal(space.noise), space.stationary, lanes.deal(sight))
    with pytest.raises(NumericalError, match="too small beside the prior"):
        factorise(chain)
