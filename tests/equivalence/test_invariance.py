"""Units, offsets and orders that must not matter, and numbers that must repeat."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from equivalence.held import fit_held
from test_estimator import X, Y

from sumgp import Conditioned, ConstrainedGP, LinearConstraint, Linearized, Projected
from sumgp.laws import Constraint, FunctionConstraint

ASKED = np.array([-0.5, 0.2, 2.6, 5.5])
STRATEGIES = [Conditioned(), Conditioned(joint=True), Linearized(), Projected()]
UNITS = np.array([1e-12, 1.0, 1e12])


def plug_in(law: Any, **more: Any) -> ConstrainedGP:
    """One search for each of the kernels that are tried by default."""
    return ConstrainedGP(law, uncertainty="plug-in", restarts=0, **more)


def budget(units: np.ndarray, total: float = 1.0) -> LinearConstraint:
    return LinearConstraint(1.0 / units, total)


def gaps() -> np.ndarray:
    y = Y.copy()
    y[[1, 5, 9], [0, 1, 2]] = np.nan
    return y


def predicted(gp: ConstrainedGP, asked: np.ndarray) -> np.ndarray:
    """Means and standard deviations (2, n, T)."""
    return np.stack(gp.predict(asked, return_std=True))


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_units_of_outputs_do_not_matter(strategy: Any) -> None:
    """Twelve orders of magnitude up and down: hyperparameters held, and fitted anew."""
    y = gaps()
    plain, scaled = (plug_in(budget(u), strategy=strategy) for u in (np.ones(3), UNITS))
    a = predicted(fit_held(plain, X, y), ASKED)
    b = predicted(fit_held(scaled, X, y * UNITS), ASKED) / UNITS
    np.testing.assert_allclose(b, a, atol=1e-8 * a[1].min())
    a, b = predicted(plain.fit(X, y), ASKED), predicted(scaled.fit(X, y * UNITS), ASKED) / UNITS
    np.testing.assert_allclose(b, a, atol=0.02 * a[1].min())


@pytest.mark.parametrize("offset", [1e3, 1e9])
@pytest.mark.parametrize("unit", [1e-12, 86400.0])
def test_units_and_offsets_of_inputs_do_not_matter(unit: float, offset: float) -> None:
    """Dyadic inputs and units keep the shifted numbers exact, so that only the algorithm is tested."""
    x, asked = np.arange(12) / 2.0, np.array([0.25, 3.75, 6.5])
    factor = 2.0 ** np.round(np.log2(unit))
    shift = factor * 2.0 ** np.round(np.log2(offset))
    for strategy in STRATEGIES:
        gp = plug_in(budget(np.ones(3)), strategy=strategy)
        a = predicted(fit_held(gp, x, gaps()), asked)
        b = predicted(fit_held(gp, shift + factor * x, gaps()), shift + factor * asked)
        np.testing.assert_allclose(b, a, atol=1e-8 * a[1].min())


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_order_of_rows_and_outputs_does_not_matter(strategy: Any) -> None:
    y = gaps()
    rows, columns = np.random.default_rng(0).permutation(12), np.array([2, 0, 1])
    gp = plug_in(budget(np.ones(3)), strategy=strategy)
    a = predicted(fit_held(gp, X, y), ASKED)
    b = predicted(fit_held(gp, X[rows], y[rows][:, columns]), ASKED)
    np.testing.assert_allclose(b, a[:, :, columns], atol=1e-6 * a[1].min())
    a, b = predicted(gp.fit(X, y), ASKED), predicted(gp.fit(X[rows], y[rows][:, columns]), ASKED)
    np.testing.assert_allclose(b, a[:, :, columns], atol=0.02 * a[1].min())


def product(f: np.ndarray, x: np.ndarray) -> np.ndarray:
    return f[:, 0] * f[:, 1] - 1.0


@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_units_do_not_matter_for_a_nonlinear_law(unit: float) -> None:
    x = np.linspace(0.0, 2.0, 10)
    true = np.column_stack([1.0 + 0.5 * np.sin(2 * x), 1.0 / (1.0 + 0.5 * np.sin(2 * x))])
    y = true + 0.02 * np.random.default_rng(0).standard_normal(true.shape)
    units = np.array([unit, 1.0 / unit])
    for strategy in (Linearized(), Projected()):
        gp = plug_in(FunctionConstraint(product), strategy=strategy)
        a = predicted(fit_held(gp, x, y), x[::3])
        b = predicted(fit_held(gp, x, y * units), x[::3]) / units
        np.testing.assert_allclose(b, a, atol=1e-6 * a[1].min())


def test_a_longer_list_of_laws_equals_one_law_with_all_rows() -> None:
    rows: list[Constraint] = [LinearConstraint([1.0, 1.0, 1.0], 1.0), LinearConstraint([1.0, -1.0, 0.0], 0.1)]
    both = LinearConstraint([[1.0, 1.0, 1.0], [1.0, -1.0, 0.0]], [1.0, 0.1])
    a, b = (predicted(fit_held(plug_in(law), X, gaps()), ASKED) for law in (rows, both))
    np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


FEW_DRAWS = [Conditioned(draws=4), Conditioned(draws=4, joint=True), Linearized(draws=4), Projected(draws=4)]


def numbers(strategy: Any, seed: int) -> np.ndarray:
    gp = ConstrainedGP(budget(np.ones(3)), strategy=strategy, random_state=seed, restarts=0).fit(X[:8], gaps()[:8])
    posterior = gp.posterior(ASKED)
    return np.concatenate([posterior.mean, posterior.std, *posterior.interval(), *posterior.sample(2)])


# Few draws make for little time, and for a warning that they are few.
@pytest.mark.filterwarnings("ignore::sumgp.SumGPWarning")
@pytest.mark.parametrize("strategy", FEW_DRAWS, ids=repr)
def test_a_seed_repeats_every_number(strategy: Any) -> None:
    np.testing.assert_array_equal(numbers(strategy, 3), numbers(strategy, 3))


@pytest.mark.filterwarnings("ignore::sumgp.SumGPWarning")
def test_another_seed_draws_other_hyperparameters() -> None:
    assert not np.array_equal(numbers(FEW_DRAWS[0], 3), numbers(FEW_DRAWS[0], 4))
