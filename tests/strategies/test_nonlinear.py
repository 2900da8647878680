"""Nonlinear laws end to end: the oscillator, laws that vanish or cannot be met, unknown and soft totals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from test_estimator import plug_in

from sumgp import (
    ConstrainedGP,
    FunctionConstraint,
    Linearized,
    Projected,
    SumConstraint,
    SumGPWarning,
    Term,
    Transformed,
    Unconstrained,
)
from sumgp.strategies import linearized as law_engine
from sumgp.strategies.linearized import POINTS_PER_LENGTHSCALE
from sumgp.transforms import Log, Sin

X = np.linspace(0.0, 6.0, 15)
GRID = np.linspace(0.0, 6.0, 61)
ENERGY = "z**2 + v**2 = 1"


def curves(x: np.ndarray) -> np.ndarray:
    return np.column_stack([np.cos(x), -np.sin(x)])


def measured(sd: float = 0.1, seed: int = 0) -> np.ndarray:
    return curves(X) + sd * np.random.default_rng(seed).standard_normal((15, 2))


def error(posterior: Any) -> float:
    return float(np.sqrt(np.mean((posterior.mean - curves(GRID)) ** 2)))


@pytest.mark.parametrize("strategy", [Linearized(), Projected()], ids=repr)
def test_the_law_is_kept_and_helps(strategy: Any) -> None:
    with_law = [
        plug_in(ENERGY, outputs=["z", "v"], strategy=strategy).fit(X, measured(seed=s)).posterior(GRID) for s in range(3)
    ]
    without = [plug_in(strategy=Unconstrained()).fit(X, measured(seed=s)).posterior(GRID) for s in range(3)]
    for posterior in with_law:
        assert np.max(np.abs(posterior.residual())) < 1e-12
        assert np.max(np.abs(np.sum(posterior.sample(5) ** 2, axis=2) - 1.0)) < 1e-8
    assert np.mean([error(p) for p in with_law]) < 0.95 * np.mean([error(p) for p in without])


def test_a_taper_of_zero_is_projection_point_by_point() -> None:
    choices = {"outputs": ["z", "v"], "kernel": RBF()}
    tapered = plug_in(ENERGY, strategy=Linearized(taper=0.0), **choices).fit(X, measured())
    projected = plug_in(ENERGY, strategy=Projected(), **choices).fit(X, measured())
    assert tapered.fit_report_["taper"] == 0.0
    np.testing.assert_allclose(tapered.predict(GRID), projected.predict(GRID), atol=1e-6)


def test_an_unknown_energy_is_found_with_its_uncertainty() -> None:
    gp = plug_in("z**2 + v**2 = E", outputs=["z", "v"], constants={"E": "unknown"}).fit(X, measured(0.05))
    row = gp.posterior(GRID).constants().loc["E"]
    assert abs(row["mean"] - 1.0) < 4.0 * row["sd"]
    assert 0.003 < row["sd"] < 0.1
    totals = np.sum(gp.posterior(GRID).sample(30) ** 2, axis=2)
    np.testing.assert_allclose(totals, totals[:, :1] * np.ones((1, 61)), atol=1e-7)


def impossible(f: np.ndarray, x: np.ndarray) -> np.ndarray:
    return f[:, 0] ** 2 + f[:, 1] ** 2 + 1.0


@pytest.mark.parametrize("strategy", [Linearized(), Projected()], ids=repr)
def test_a_law_that_cannot_be_met_is_said_to_be_so(strategy: Any) -> None:
    with pytest.warns(SumGPWarning, match="law infeasible near x ="):
        gp = plug_in(FunctionConstraint(impossible), strategy=strategy).fit(X, measured())
    assert gp.fit_report_.status.startswith("law infeasible near x =")
    assert np.all(np.isfinite(gp.predict(GRID)))


@pytest.mark.filterwarnings("ignore::sumgp.SumGPWarning")
@pytest.mark.parametrize("strategy", [Linearized(), Projected()], ids=repr)
def test_a_law_whose_slope_vanishes_where_it_is_met(strategy: Any) -> None:
    """z**2 = 0 and z**2 + v**2 = 0: every measured value is noise; the mean goes to zero within round-off of the square."""
    noise = 0.1 * np.random.default_rng(1).standard_normal((15, 2))
    for law, columns in (("z**2 = 0", [0]), ("z**2 + v**2 = 0", [0, 1])):
        mean = plug_in(law, outputs=["z", "v"], strategy=strategy).fit(X, noise).predict(GRID)
        assert np.all(np.isfinite(mean))
        assert np.max(np.abs(mean[:, columns])) < 1e-4


def test_values_outside_a_domain_never_give_nan() -> None:
    """Noisy values of a concentration fall below zero, where the logarithm has none."""
    x = np.linspace(0.0, 3.0, 12)
    y = np.column_stack([np.exp(-2.0 * x), 2.0 * x]) + 0.15 * np.random.default_rng(3).standard_normal((12, 2))
    assert np.min(y[:, 0]) < 0
    posterior = plug_in("log(c) + t = 0", outputs=["c", "t"]).fit(x, y).posterior(x)
    assert np.all(np.isfinite(posterior.mean))
    assert np.all(posterior.mean[:, 0] > 0)
    assert np.max(np.abs(posterior.residual())) < 1e-8


def test_points_do_not_depend_on_each_other_for_a_nonlinear_law() -> None:
    for strategy in (Linearized(), Projected()):
        gp = plug_in(ENERGY, outputs=["z", "v"], strategy=strategy).fit(X, measured())
        together = gp.posterior(GRID)
        for i in (0, 17, 60):
            alone = gp.posterior(GRID[i : i + 1])
            np.testing.assert_allclose(alone.mean[0], together.mean[i], atol=1e-6 * together.std[i].min())
            np.testing.assert_allclose(alone.std[0], together.std[i], rtol=1e-6)


def test_a_function_equals_the_same_law_as_a_formula() -> None:
    function = FunctionConstraint(lambda f, x: f[:, 0] ** 2 + f[:, 1] ** 2 - 1.0)
    a = plug_in(function).fit(X, measured()).posterior(GRID)
    b = plug_in(ENERGY, outputs=["z", "v"]).fit(X, measured()).posterior(GRID)
    np.testing.assert_allclose(a.mean, b.mean, atol=1e-5 * b.std.min())


def test_an_output_measured_on_one_side_follows_the_law_through_its_turning_point() -> None:
    """log a + sin b = C(x) with b measured on the left only: the branch that turns back fits the prior less well."""
    x = np.linspace(0.0, 2.0, 21)
    truth = np.column_stack([0.5 + 0.3 * np.cos(2.0 * x), 0.5 + 1.2 * x])
    noise = np.random.default_rng(3).standard_normal((21, 2))
    Y = truth + 0.02 * noise
    Y[x > 0.75, 1] = np.nan
    total = np.log(truth[:, 0]) + np.sin(truth[:, 1])
    law = SumConstraint([Term("a", 1.0, Log()), Term("b", 1.0, Sin())], lambda X: np.interp(X[:, 0], x, total))
    gp = ConstrainedGP(law, outputs=["a", "b"], strategy=Linearized(taper=None)).fit(x[:, None], Y)
    assert gp.predict(x[:, None])[-1, 1] == pytest.approx(truth[-1, 1], abs=0.3)
    paper = ConstrainedGP(law, outputs=["a", "b"], strategy=Transformed()).fit(x[:, None], Y)
    assert paper.predict(x[:, None])[-1, 1] == pytest.approx(truth[-1, 1], abs=0.3)
    for fitted in (gp, paper):
        assert np.max(np.abs(fitted.posterior(x[:, None]).residual())) < 1e-9


@pytest.mark.parametrize("seed", [0, 1])
def test_twice_as_many_law_points_move_means_by_less_than_a_twentieth_of_the_sd(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = []
    for points in (POINTS_PER_LENGTHSCALE, 2.0 * POINTS_PER_LENGTHSCALE):
        monkeypatch.setattr(law_engine, "POINTS_PER_LENGTHSCALE", points)
        gp = plug_in(ENERGY, outputs=["z", "v"], strategy=Linearized(taper=None)).fit(X, measured(seed=seed))
        answers.append((len(gp.fitted_.components[0].conditioning.points), gp.posterior(GRID)))
    (few, coarse), (many, fine) = answers
    assert many > few + 10
    assert np.max(np.abs(coarse.mean - fine.mean) / fine.std) < 0.05
