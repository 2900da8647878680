"""The order of the outputs makes no difference: after a new fit with default settings, means and bands stay."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest

import sumgp
from sumgp.priors.candidates import canonical_order, default_candidates, reordered
from sumgp.priors.kernels import hyper_priors
from sumgp.priors.multitask import MultitaskPrior, NoiseModel, TaskLaw
from sumgp.solvers.dense import DenseEvidence

Curve = Callable[[np.ndarray], np.ndarray]
NAMES = list("abcd")
# In posterior standard deviations. Without a law or with a linear one the answers differ by round-off. Under a nonlinear
# law the weights of hyperparameters come from solves that end at steps of 3e-2: to second order, log evidences and with
# them means are known to (3e-2)**2 / 2.
ROUND_OFF = 1e-6
LAST_STEP = 4.5e-4


def circle(t: np.ndarray) -> np.ndarray:
    return np.column_stack([np.sin(6 * t), np.cos(6 * t)])


def unrelated(t: np.ndarray) -> np.ndarray:
    return np.column_stack([np.exp(t), np.sin(5 * t)])


def shares(t: np.ndarray) -> np.ndarray:
    return np.column_stack([t, 1 - t - 0.3 * np.sin(5 * t), 0.3 * np.sin(5 * t)])


def product(t: np.ndarray) -> np.ndarray:
    return np.column_stack([1 + t, 1 / (1 + t)])


def sphere(t: np.ndarray) -> np.ndarray:
    return np.column_stack([np.sin(3 * t), np.cos(3 * t) * np.cos(t), np.cos(3 * t) * np.sin(t)])


def four(t: np.ndarray) -> np.ndarray:
    return np.column_stack([np.sin(3 * t), t**2, np.cos(4 * t), t])


# Seed 0 has complete rows, seed 1 has gaps: each with a nonlinear law, a linear one, and none.
PROBLEMS: list[tuple[Curve, str | None, float, int]] = [
    (circle, "a**2 + b**2 = 1", LAST_STEP, 0),
    (circle, "a**2 + b**2 = 1", LAST_STEP, 1),
    (unrelated, None, ROUND_OFF, 1),
    (shares, "a + b + c = 1", ROUND_OFF, 0),
    (shares, "a + b + c = 1", ROUND_OFF, 1),
    (product, "a*b = 1", LAST_STEP, 1),
    (sphere, "a**2 + b**2 + c**2 = 1", LAST_STEP, 0),
    (four, None, ROUND_OFF, 0),
]


@pytest.mark.parametrize(("curve", "law", "share", "seed"), PROBLEMS, ids=lambda v: getattr(v, "__name__", None))
def test_reversed_outputs(curve: Curve, law: str | None, share: float, seed: int) -> None:
    generator = np.random.default_rng([seed, 5])
    x = np.sort(generator.uniform(0.0, 1.0, 15 + 5 * seed))
    y = curve(x) + 0.05 * generator.standard_normal(curve(x).shape)
    if seed:
        y[2, 0] = y[5, 1] = np.nan
    names, asked = NAMES[: y.shape[1]], np.linspace(0.0, 1.0, 30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sumgp.SumGPWarning)
        first = sumgp.ConstrainedGP(law, outputs=names).fit(x, y).posterior(asked)
        second = sumgp.ConstrainedGP(law, outputs=names[::-1]).fit(x, y[:, ::-1]).posterior(asked)
    assert np.max(np.abs(first.mean - second.mean[:, ::-1]) / first.std) < share
    np.testing.assert_allclose(second.std[:, ::-1], first.std, rtol=10 * share)


def test_outputs_are_sorted_by_their_values_then_by_name() -> None:
    y = np.array([[3.0, 1.0, 2.0, 1.0], [0.0, 5.0, np.nan, 5.0]])
    order = canonical_order(y, ("a", "d", "c", "b"))
    assert [("a", "d", "c", "b")[i] for i in order] == ["a", "b", "d", "c"]
    turn = np.array([2, 0, 3, 1])
    again = canonical_order(y[:, turn], tuple(np.array(["a", "d", "c", "b"])[turn]))
    np.testing.assert_array_equal(turn[again], order)


@pytest.mark.parametrize("rank", [None, 1, 2])
@pytest.mark.parametrize("candidate", [0, 1])
def test_a_reordered_prior_has_the_same_evidence(candidate: int, rank: int | None) -> None:
    """Same log prior and log evidence of the data, with a shared noise for two of three outputs and with a linear law."""
    generator = np.random.default_rng(3)
    x, y = np.linspace(-0.5, 0.5, 9)[:, None], generator.standard_normal((9, 3))
    half = np.array([0.5])
    chosen = default_candidates(half, 3, separable=False)[candidate]
    law = None if candidate else TaskLaw(np.array([[1.0, 2.0, -1.0]]), np.zeros(1), generator.standard_normal((9, 1)))
    prior = MultitaskPrior(
        kernels=chosen.kernels,
        kernel_priors=tuple(tuple(hyper_priors(k, half)) for k in chosen.kernels),
        tasks=chosen.tasks(3, rank),
        noise=NoiseModel(((0, 2), (1,)), np.array([1.0, 2.0, 0.5])),
        n_outputs=3,
        mean_shape="identity" if chosen.own else "task",
        law=law,
    )
    order = np.array([2, 0, 1])
    turned = reordered(prior, order)
    theta = prior.start() + 0.3 * generator.standard_normal(prior.n_parameters)
    np.testing.assert_array_equal(turned.back(turned.there(theta)), theta)
    assert turned.prior.log_prior(turned.there(theta))[0] == pytest.approx(prior.log_prior(theta)[0], rel=1e-12)
    here, gradient = DenseEvidence(prior, x, y)(theta)
    there, gradient_there = DenseEvidence(turned.prior, x, y[:, order])(turned.there(theta))
    assert there == pytest.approx(here, rel=1e-10)
    np.testing.assert_allclose(turned.back(gradient_there), gradient, rtol=1e-6, atol=1e-8)
