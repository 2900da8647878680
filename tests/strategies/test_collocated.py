"""Laws with derivatives and unknown constants, imposed at points: accuracy, intervals, samples, files, what is refused."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares
from sklearn.gaussian_process.kernels import Matern

import sumgp
from sumgp import ConstrainedGP, ConstraintError, DataError, SumGPWarning

LAW = "d(n, t) = r*n*(1 - n/K)"
UNKNOWN = {"r": "unknown", "K": "unknown"}
TRUE = np.array([1.3, 2.0, 0.2])  # r, K, n(0)
NEW = np.linspace(0.0, 5.0, 21)[:, None]


def growth(p: np.ndarray, t: np.ndarray) -> np.ndarray:
    r, K, start = p
    return K / (1.0 + (K / start - 1.0) * np.exp(-r * t))


def measured(seed: int, rows: int = 13, noise: float = 0.08) -> tuple[np.ndarray, np.ndarray]:
    t = np.linspace(0.0, 5.0, rows)
    return t[:, None], (growth(TRUE, t) + noise * np.random.default_rng(seed).standard_normal(rows))[:, None]


def fitted(seed: int = 1, **more: Any) -> ConstrainedGP:
    X, Y = measured(seed)
    return ConstrainedGP(LAW, outputs=["n"], inputs=["t"], constants=UNKNOWN, **more).fit(X, Y)


@pytest.fixture(scope="module")
def model() -> ConstrainedGP:
    return fitted()


def test_about_as_good_as_least_squares_on_the_solved_equation() -> None:
    ours, best, inside = [], [], []
    for seed in range(1, 4):
        X, Y = measured(seed)
        posterior = fitted(seed).posterior(NEW)
        fit = least_squares(lambda p: growth(p, X[:, 0]) - Y[:, 0], TRUE).x  # noqa: B023
        truth = growth(TRUE, NEW[:, 0])
        lower, upper = posterior.interval()
        ours.append(np.mean((posterior.mean[:, 0] - truth) ** 2))
        best.append(np.mean((growth(fit, NEW[:, 0]) - truth) ** 2))
        inside.append(np.mean((lower[:, 0] < truth) & (truth < upper[:, 0])))
    assert np.sqrt(np.mean(ours)) < 1.2 * np.sqrt(np.mean(best))
    assert np.mean(inside) > 0.8


def test_little_noise_leaves_the_error_of_the_numbers_that_are_open() -> None:
    """A second-order equation against least squares on its solution a sin t + b cos t: the same curve, the same width."""
    generator, noise = np.random.default_rng(5), 0.001
    t = np.sort(generator.uniform(0.0, 10.0, 16))
    y = np.sin(t) + noise * generator.standard_normal(16)
    posterior = (
        ConstrainedGP("d(z, t, 2) = -z", outputs=["z"], inputs=["t"]).fit(t, y).posterior(np.linspace(t[0], t[-1], 40))
    )
    at, new = (np.column_stack([np.sin(s), np.cos(s)]) for s in (t, np.linspace(t[0], t[-1], 40)))
    exact = new @ np.linalg.lstsq(at, y, rcond=None)[0]
    sd = noise * np.sqrt(np.einsum("nk,kl,nl->n", new, np.linalg.inv(at.T @ at), new))
    assert np.sqrt(np.mean(((posterior.mean[:, 0] - exact) / sd) ** 2)) < 0.25
    assert 0.6 < np.mean(posterior.std[:, 0]) / np.mean(sd) < 1.6  # the noise is estimated from 14 degrees of freedom


def test_a_solution_that_misses_an_output_is_not_called_converged() -> None:
    """Six rows over three periods, two constants unknown: a straight line was found, all else called noise."""
    t = np.array([0.0, 2.1, 3.9, 6.2, 7.4, 10.0])
    decay, phase = np.exp(-0.15 * t), np.sqrt(4.0 - 0.15**2) * t
    z = decay * np.cos(phase) + 0.03 * np.random.default_rng(1).standard_normal(6)
    laws, constants = ["d(z, t) = v", "d(v, t) = -k*z - c*v"], {"k": "unknown", "c": "unknown"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SumGPWarning)
        model = ConstrainedGP(laws, outputs=["z", "v"], inputs=["t"], constants=constants).fit(
            t, np.c_[z, np.full(6, np.nan)]
        )
    wrong = np.abs(model.predict(t)[:, 0] - z).max() > 0.5
    assert not wrong or model.fit_report_["status"].startswith("under the law z is mostly noise")


def test_an_equation_without_unknown_constants() -> None:
    """Against least squares on its solution n(0) exp(-t / 2), a linear problem with one parameter: within its error."""
    t = np.linspace(0.0, 5.0, 12)
    shape = np.exp(-0.5 * t)
    y = shape + 0.05 * np.random.default_rng(3).standard_normal(12)
    model = ConstrainedGP("d(n, t) = -0.5*n", outputs=["n"], inputs=["t"]).fit(t, y)
    factor = model.predict(t) / shape
    assert np.ptp(factor) < 5e-3 * factor.mean()
    assert abs(factor.mean() - (shape @ y) / (shape @ shape)) < 0.05 / np.sqrt(shape @ shape)
    assert model.fit_report_["status"] == "converged"


def test_constants_are_told_with_intervals_samples_and_correlations(model: ConstrainedGP) -> None:
    posterior = model.posterior(NEW)
    table = posterior.constants()
    assert list(table.index) == ["r", "K"]
    assert np.all((table["lower"] < TRUE[:2]) & (TRUE[:2] < table["upper"]))
    draws = posterior.constant_samples(4000, random_state=1)
    np.testing.assert_allclose(draws.mean(), table["mean"], atol=5 * table["sd"].max() / np.sqrt(4000))
    np.testing.assert_allclose(draws.std(), table["sd"], rtol=0.08)
    np.testing.assert_allclose(draws.corr(), posterior.constant_correlations(), atol=0.08)


def test_means_and_samples_obey_the_law(model: ConstrainedGP) -> None:
    posterior = model.posterior(NEW)
    assert np.abs(posterior.residual()).max() < 1e-8
    near = model.posterior(np.linspace(1.0, 1.2, 41)[:, None])
    mean, step = near.mean[:, 0], 0.005
    r, K = near.constants()["mean"]
    slope = (mean[2:] - mean[:-2]) / (2 * step)
    np.testing.assert_allclose(slope, r * mean[1:-1] * (1 - mean[1:-1] / K), atol=2e-3)
    draws = near.sample(3, random_state=2)[:, :, 0]
    slopes = (draws[:, 2:] - draws[:, :-2]) / (2 * step)
    growing = slopes / draws[:, 1:-1]
    # Growth per head falls linearly with n: r - r n / K, each draw with constants of its own.
    for one, n in zip(growing, draws[:, 1:-1], strict=True):
        line = np.polyfit(n, one, 1)
        np.testing.assert_allclose(one, np.polyval(line, n), atol=2e-2)
        assert line[0] < 0


def test_law_between_the_points_is_reported(model: ConstrainedGP) -> None:
    assert model.fit_report_["law_between_points"][LAW] < 3e-3
    assert model.fit_report_.strategy == "Collocated"
    assert model.fit_report_.status == "converged"


def test_a_point_does_not_depend_on_the_others(model: ConstrainedGP) -> None:
    whole, one = model.posterior(NEW), model.posterior(NEW[7:8])
    np.testing.assert_allclose(one.mean, whole.mean[7:8], rtol=1e-9)
    np.testing.assert_allclose(one.std, whole.std[7:8], rtol=1e-7)
    covariance = whole.covariance()
    np.testing.assert_allclose(np.sqrt(np.diagonal(covariance)), whole.std[:, 0], rtol=1e-6)
    draws = whole.sample(3000, random_state=3)[:, :, 0]
    np.testing.assert_allclose(draws.std(axis=0), whole.std[:, 0], rtol=0.15)


def test_order_of_rows_and_units_do_not_matter(model: ConstrainedGP) -> None:
    X, Y = measured(1)
    order = np.random.default_rng(5).permutation(len(X))
    mixed = ConstrainedGP(LAW, outputs=["n"], inputs=["t"], constants=UNKNOWN).fit(X[order], Y[order])
    np.testing.assert_allclose(mixed.predict(NEW), model.predict(NEW), rtol=1e-8)
    other = ConstrainedGP(LAW, outputs=["n"], inputs=["t"], constants=UNKNOWN).fit(60.0 * X, 1e3 * Y)
    np.testing.assert_allclose(other.predict(60.0 * NEW), 1e3 * model.predict(NEW), rtol=2e-3)
    scaled = other.posterior(60.0 * NEW).constants()["mean"].to_numpy() * [60.0, 1e-3]
    np.testing.assert_allclose(scaled, model.posterior(NEW).constants()["mean"], rtol=1e-2)


def test_saved_models_predict_the_same(model: ConstrainedGP, tmp_path: Path) -> None:
    model.save(tmp_path / "growth.sumgp")
    again = sumgp.load(tmp_path / "growth.sumgp")
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
    np.testing.assert_array_equal(again.posterior(NEW).constants(), model.posterior(NEW).constants())


def test_a_state_that_was_never_measured_follows_from_the_law() -> None:
    """z'' = -z as two first-order laws that no potential solves; the velocity is never measured."""
    t = np.linspace(0.0, 6.0, 15)
    Y = np.column_stack([np.sin(t) + 0.05 * np.random.default_rng(0).standard_normal(15), np.full(15, np.nan)])
    model = ConstrainedGP(["d(z, t) = v", "d(v, t) = -k*z"], outputs=["z", "v"], inputs=["t"], constants={"k": "unknown"})
    posterior = model.fit(t[:, None], Y).posterior(np.linspace(0, 6, 25)[:, None])
    assert np.sqrt(np.mean((posterior.mean[:, 1] - np.cos(np.linspace(0, 6, 25))) ** 2)) < 0.08
    low, high = posterior.constants().loc["k", ["lower", "upper"]]
    assert low < 1.0 < high


def test_plug_in_has_one_component_and_known_noise_is_kept() -> None:
    model = fitted(uncertainty="plug-in", noise=0.08)
    assert len(model.fitted_.components) == 1
    np.testing.assert_allclose(np.sqrt(model.fitted_.components[0].noise) * model.scaling_.y_scale, 0.08, rtol=1e-6)


def test_rows_that_a_curve_meets_exactly_do_not_hide_their_noise() -> None:
    """Twelve rows whose most probable noise without the law is zero: a search that starts there keeps to them."""
    t = np.linspace(0.0, 5.0, 12)
    n = growth(TRUE, t) + 0.05 * np.random.default_rng(0).standard_normal(12)
    model = ConstrainedGP(LAW, outputs=["n"], inputs=["t"], constants=UNKNOWN, kernel="rbf").fit(t, n)
    assert model.fit_report_.status == "converged"
    table = model.posterior(NEW).constants()
    assert np.all((table["lower"] < TRUE[:2]) & (TRUE[:2] < table["upper"]))


SPIKES = ["d(V, t) = c*(V - V**3/3 + R)", "d(R, t) = -(V - a + b*R)/c"]  # FitzHugh-Nagumo


def spikes(p: np.ndarray, t: np.ndarray) -> np.ndarray:
    a, b, c = p[:3]
    solved = solve_ivp(
        lambda _, y: [c * (y[0] - y[0] ** 3 / 3 + y[1]), -(y[0] - a + b * y[1]) / c],
        (t[0], t[-1]),
        p[3:],
        t_eval=t,
        method="LSODA",
        rtol=1e-7,
        atol=1e-8,
    )
    return solved.y.T


def test_sharp_turns_are_resolved_and_intervals_are_as_long_as_those_of_least_squares() -> None:
    """A prior that is too smooth for the spikes, or spans too few directions, moved b by more than its sd."""
    t, true, sd = np.linspace(0.0, 10.0, 21), np.array([0.2, 0.2, 3.0, -1.0, 1.0]), 0.2
    Y = spikes(true, t) + sd * np.random.default_rng(1002).standard_normal((21, 2))
    model = ConstrainedGP(SPIKES, outputs=["V", "R"], inputs=["t"], constants=dict.fromkeys("abc", "unknown"))
    table = model.fit(t[:, None], Y).posterior(t[:3, None]).constants()
    fit = least_squares(lambda p: (spikes(p, t) - Y).ravel(), true, diff_step=1e-4, x_scale=np.maximum(np.abs(true), 0.1))
    noise = np.sqrt(np.sum(fit.fun**2) / (42 - 5))
    best = noise * np.sqrt(np.diagonal(np.linalg.inv(fit.jac.T @ fit.jac)))[:3]
    assert np.all(np.abs(table["mean"] - fit.x[:3]) < 0.3 * best)
    np.testing.assert_allclose(table["sd"], best, rtol=0.15)
    assert model.fit_report_.status == "converged"


def test_a_search_along_a_curved_valley_arrives() -> None:
    """An epidemic of which only the infected are counted: the law bends along the ridge of its two rates."""

    def epidemic(p: np.ndarray, t: np.ndarray) -> np.ndarray:
        b, g = p
        return solve_ivp(
            lambda _, y: [-b * y[0] * y[1], (b * y[0] - g) * y[1]], (0, 50), [0.99, 0.01], t_eval=t, rtol=1e-8
        ).y.T

    t = np.linspace(0.0, 50.0, 30)
    Y = epidemic(np.array([0.5, 0.2]), t) + 0.01 * np.random.default_rng(1).standard_normal((30, 2))
    Y[:, 0] = np.nan
    laws = ["d(S, t) = -b*S*I", "d(I, t) = b*S*I - g*I"]
    model = ConstrainedGP(laws, outputs=["S", "I"], inputs=["t"], constants=dict.fromkeys("bg", "unknown")).fit(
        t[:, None], Y
    )
    assert model.fit_report_.status == "converged"
    table = model.posterior(t[:2, None]).constants()
    assert np.all((table["lower"] < [0.5, 0.2]) & (table["upper"] > [0.5, 0.2]))


def test_between_the_points_an_rbf_keeps_the_law() -> None:
    assert max(fitted(kernel="rbf").fit_report_["law_between_points"].values()) < 1e-4


@pytest.mark.parametrize("seed", [1000, 1002])
def test_points_are_added_until_it_does(seed: int) -> None:
    """Growth that saturates: with the points of the lengthscale alone the law is missed by 1.2e-4 and 1.3e-4."""
    t = np.linspace(0.0, 10.0, 20)
    n = 5.0 / (1.0 + (5.0 / 0.3 - 1.0) * np.exp(-0.8 * t)) + 0.2 * np.random.default_rng([seed, 92]).standard_normal(20)
    settings = {"outputs": ["n"], "inputs": ["t"], "constants": {"r": "unknown", "K": "unknown"}, "kernel": "rbf"}
    model = ConstrainedGP("d(n, t) = r*n*(1 - n/K)", **settings).fit(t, n)
    assert max(model.fit_report_["law_between_points"].values()) < 1e-4


@pytest.mark.parametrize(
    ("laws", "open_"),
    [
        (["d(x, t) = v", "d(v, t) = -x"], False),
        (["d(x, t) = v*x"], True),
        (["d(x, t) = v*x", "2*d(x, t) = 2*v*x"], True),
        (["d(x, t) = v*x", "x**2 + v**2 = 1"], False),
        (["d(x, t) = v*x", "v = x +- 0.1"], True),
    ],
    ids=str,
)
def test_laws_that_leave_a_function_open_are_told_from_those_that_leave_numbers(laws: list[str], open_: bool) -> None:
    """Only where numbers alone are open is the prior released."""
    t = np.linspace(0.0, 2.0, 12)
    Y = np.column_stack([np.sin(t + 0.5), np.cos(t + 0.5)]) + 0.05 * np.random.default_rng(0).standard_normal((12, 2))
    model = ConstrainedGP(laws, outputs=["x", "v"], inputs=["t"], strategy=sumgp.Collocated())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SumGPWarning)
        bases = model.fit(t[:, None], Y).fitted_.components[0].bases
    assert all((basis.release == 1.0) == open_ for basis in bases)


def test_constants_that_the_range_hardly_tells_apart_are_named() -> None:
    """Cooling seen for a third of its time constant: rate and ambient temperature can make up for each other."""
    t = np.linspace(0.0, 1.2, 12)
    Y = 20.0 + 60.0 * np.exp(-0.3 * t) + np.random.default_rng(1001).standard_normal(12)
    model = ConstrainedGP("d(T, t) = -k*(T - A)", outputs=["T"], inputs=["t"], constants={"k": "unknown", "A": "unknown"})
    with pytest.warns(SumGPWarning, match="give the value of one of them"):
        model.fit(t[:, None], Y)
    assert model.fit_report_["open_constants"]


def test_constants_that_nothing_determines_are_named() -> None:
    X, Y = measured(0)
    law = "d(n, t) = (r + q)*n*(1 - n/K)"
    with pytest.warns(SumGPWarning, match="'q'"):
        ConstrainedGP(law, outputs=["n"], inputs=["t"], constants={**UNKNOWN, "q": "unknown"}).fit(X, Y)


def test_a_wrong_law_is_not_called_converged() -> None:
    t = np.linspace(0.0, 6.0, 25)
    Y = (np.sin(2 * t) + 0.05 * np.random.default_rng(1).standard_normal(25))[:, None]
    with pytest.warns(SumGPWarning, match="better without the law"):
        model = ConstrainedGP("d(n, t) = r*n", outputs=["n"], inputs=["t"], constants={"r": "unknown"}).fit(t[:, None], Y)
    assert model.fit_report_.status != "converged"


def test_rows_without_measurements_continue_the_law() -> None:
    """Growth measured up to 2.5, forecast to 5 by a row of NaN at the end."""
    X, Y = measured(1, rows=25, noise=0.02)
    X, Y = np.vstack([X[:13], [[5.0]]]), np.vstack([Y[:13], [[np.nan]]])
    posterior = ConstrainedGP(LAW, outputs=["n"], inputs=["t"], constants=UNKNOWN).fit(X, Y).posterior(NEW)
    best = least_squares(lambda p: growth(p, X[:13, 0]) - Y[:13, 0], TRUE).x
    lower, upper = posterior.interval()
    assert np.abs(posterior.mean[:, 0] - growth(best, NEW[:, 0])).max() < 0.05
    assert np.all((lower[:, 0] < growth(TRUE, NEW[:, 0])) & (growth(TRUE, NEW[:, 0]) < upper[:, 0]))


def test_a_search_that_does_not_settle_ends_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sumgp.strategies.collocation_path.MOST_WORK", 1.0)
    with pytest.warns(SumGPWarning, match="still change with shorter lengthscales"):
        model = fitted()
    assert len(model.fit_report_["candidate_weights"]) == 1
    assert "still change" in model.fit_report_.status


@pytest.mark.parametrize(
    ("more", "error", "phrase"),
    [
        ({"kernel": Matern(nu=0.5)}, DataError, "first derivatives"),
        ({"strategy": sumgp.Conditioned()}, ConstraintError, "laws with derivatives"),
        ({"strategy": sumgp.Projected()}, ConstraintError, "laws with derivatives"),
        ({"strategy": sumgp.Transformed()}, ConstraintError, "laws with derivatives"),
        ({"solver": sumgp.Markov()}, ConstraintError, "with solver=None"),
    ],
)
def test_what_cannot_be_done_says_what_to_use_instead(more: dict[str, Any], error: type[Exception], phrase: str) -> None:
    with pytest.raises(error, match=phrase):
        fitted(**more)


def test_data_columns_are_refused() -> None:
    model = ConstrainedGP("d(n, t) = g*n", outputs=["n"], inputs=["t"], constants={"g": "g"})
    with pytest.raises(ConstraintError, match="function of the inputs"):
        model.fit(pd.DataFrame({"t": np.arange(5.0), "g": np.ones(5)}), pd.DataFrame({"n": np.arange(5.0)}))


def test_without_the_law_nothing_is_imposed() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fitted(strategy=sumgp.Unconstrained())
    assert model.posterior(NEW).residual().shape == (21, 0)
