"""Every solver under every strategy on every law kind: the numbers of Dense, or a refusal that says what to use instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from conformance.checks import check_numbers, check_on_law, data, estimator
from conformance.laws import ASKED, LAWS, X
from equivalence.small_problems import small_prior, some_data, some_theta
from sklearn.gaussian_process.kernels import Matern

from sumgp import (
    Conditioned,
    ConstraintError,
    DataError,
    Dense,
    Kronecker,
    Linearized,
    Markov,
    Projected,
    Transformed,
    Unconstrained,
)
from sumgp.solvers import Automatic, Solver
from sumgp.strategies import Strategy

# A new solver, and a new strategy, join by one line.
SOLVERS: dict[str, Any] = {"dense": Dense(), "kronecker": Kronecker(), "markov": Markov()}


@dataclass(frozen=True)
class Way:
    """A strategy, and whether nonlinear laws are promised and predictions are on the law."""

    strategy: Strategy
    nonlinear: bool = True
    on_law: bool = True


WAYS: dict[str, Way] = {
    "conditioned": Way(Conditioned(), nonlinear=False),
    "conditioned, joint": Way(Conditioned(joint=True), nonlinear=False),
    "linearized": Way(Linearized()),
    "projected": Way(Projected()),
    "unconstrained": Way(Unconstrained(), on_law=False),
}
PATTERNS_OF = {"constant": ("complete", "scattered", "last_never"), "squares": ("complete", "scattered")}
SAME_LAW = ("formula",)  # the constant law once it is read: test_strategies has it
JOINT_ANYWAY = ("varying coefficients", "part of the inputs", "unknown total")  # without being told so
# Where predictions alone are moved onto the law, the solver sees its unknown totals and its errors, not its form.
NOT_SEEN = ("varying total", "varying coefficients", "part of the inputs", "redundant rows", "logarithm", "length")
# What Dense does with each strategy, law and gap is in test_strategies. A law that is not imposed may be any.
CASES = [
    (solver, way, kind, pattern)
    for solver in SOLVERS
    if solver != "dense"
    for way in WAYS
    for kind in LAWS
    for pattern in PATTERNS_OF.get(kind, ("scattered",))
    if kind not in SAME_LAW
    and (LAWS[kind].linear or WAYS[way].nonlinear)
    and (way != "unconstrained" or kind in PATTERNS_OF)
    and (way != "projected" or kind not in NOT_SEEN)
    and (way != "conditioned, joint" or kind not in JOINT_ANYWAY)
]
KERNEL = Matern(nu=2.5)

pytestmark = pytest.mark.filterwarnings("ignore::sumgp.SumGPWarning")


@pytest.mark.parametrize(("solver", "way", "kind", "pattern"), CASES)
def test_works_or_says_what_to_use(solver: str, way: str, kind: str, pattern: str) -> None:
    law, chosen = LAWS[kind], WAYS[way]
    gp = estimator(chosen.strategy, law, KERNEL, SOLVERS[solver])
    y = data(law, pattern)
    if refused(solver, way, kind):
        with pytest.raises(
            (DataError, ConstraintError), match=r"solver: Kronecker\(\).*; use Dense\(\) or leave solver=None"
        ):
            gp.fit(X, y)
        return
    posterior = gp.fit(X, y).posterior(ASKED)
    check_numbers(posterior)
    if chosen.on_law:
        check_on_law(posterior)


def refused(solver: str, way: str, kind: str) -> bool:
    """Laws that leave no Kronecker form: several kernel terms after conditioning, or columns of the law's own."""
    if solver != "kronecker":
        return False
    return way == "conditioned, joint" or (way == "conditioned" and kind in JOINT_ANYWAY)


@pytest.mark.parametrize("way", ["conditioned", "projected", "unconstrained"])
@pytest.mark.parametrize("pattern", ["complete", "scattered"])
def test_the_numbers_are_those_of_dense(way: str, pattern: str) -> None:
    law = LAWS["constant"]
    y = data(law, pattern)
    dense, kronecker, markov = (
        estimator(WAYS[way].strategy, law, KERNEL, solver).fit(X, y).posterior(ASKED)
        for solver in (Dense(), Kronecker(), Markov())
    )
    # Another search for the hyperparameters; and the state-space form has priors of its own for a long series.
    np.testing.assert_allclose(kronecker.mean, dense.mean, atol=0.02 * dense.std.min())
    np.testing.assert_allclose(kronecker.std, dense.std, rtol=0.02)
    assert np.max(np.abs(markov.mean - dense.mean) / dense.std) < 0.5


def test_transformed_refuses_the_state_space_form() -> None:
    law = LAWS["squares"]
    with pytest.raises(DataError, match=r"solver: Markov\(\) does not work with .*; use Linearized\(\)"):
        estimator(Transformed(), law, KERNEL, Markov()).fit(X, data(law, "scattered"))


def test_the_state_space_form_refuses_several_inputs_and_other_kernels() -> None:
    law = LAWS["constant"]
    y = data(law, "scattered")
    with pytest.raises(DataError, match=r"one input for Markov\(\), got 2 inputs; use Dense\(\)"):
        estimator(None, law, KERNEL, Markov()).fit(np.column_stack([X, X**2]), y)
    from sklearn.gaussian_process.kernels import RBF

    with pytest.raises(DataError, match=r"Matern 1/2, 3/2 \.\.\. 9/2.*; e.g. Matern\(nu=2.5\)"):
        estimator(None, law, RBF(), Markov()).fit(X, y)


def test_something_that_is_no_solver_is_refused() -> None:
    law = LAWS["constant"]
    with pytest.raises(DataError, match=r"solver"):
        estimator(None, law, KERNEL, "dance").fit(X, data(law, "complete"))


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("solver", [*SOLVERS.values(), Automatic()], ids=lambda solver: type(solver).__name__)
def test_the_evidence_is_that_of_dense_and_its_value_alone_is_the_same(solver: Solver, missing: float) -> None:
    prior = small_prior(kernels=(Matern(0.4, nu=1.5),))
    x, y = some_data(missing=missing)
    theta = some_theta(prior)
    solver.check(prior, x, y)
    evidence = solver.evidence(prior, x, y)
    value, gradient = evidence(theta)
    expected, slope = Dense().evidence(prior, x, y)(theta)
    assert value == pytest.approx(expected, rel=1e-9)
    assert evidence.value(theta) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(gradient, slope, atol=1e-6 * np.max(np.abs(slope)))
