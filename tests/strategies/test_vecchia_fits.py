"""solver=Vecchia(): laws, gaps, noise, files, refusals, and when it is chosen."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared, Matern

import sumgp
from sumgp import ConstrainedGP, Dense, LinearConstraint, SumGPWarning, Transformed, Unconstrained, Vecchia
from sumgp.errors import ConstraintError, DataError
from sumgp.estimator import preparation
from sumgp.solvers import Automatic
from sumgp.solvers.vecchia import LatentField, LatentMarginals, map_bytes, solver
from sumgp.strategies import Asked, choose_map_solver, vecchia_fits
from sumgp.strategies.vecchia_component import VecchiaComponent

SHARES = "a + b + c = 1"
NAMES = ["a", "b", "c"]
AT = np.random.default_rng(9).uniform(size=(40, 2))


def field(x: np.ndarray, seed: int) -> np.ndarray:
    """A sum of waves of a length of about a third."""
    rng = np.random.default_rng(seed)
    waves, phases = rng.standard_normal((2, 40)) / 0.3, rng.uniform(0, 2 * np.pi, 40)
    return np.cos(x @ waves + phases) @ rng.standard_normal(40) / np.sqrt(20)


def shares(x: np.ndarray) -> np.ndarray:
    a, b = field(x, 0), field(x, 1)
    return np.column_stack([a, 0.5 * a + b, 1.0 - 1.5 * a - b])


def sphere(x: np.ndarray) -> np.ndarray:
    a, b = field(x, 0), field(x, 1)
    return np.column_stack([np.cos(a) * np.cos(b), np.cos(a) * np.sin(b), np.sin(a)])


def data(truth: Any, N: int = 250, sd: float = 0.1, seed: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(N, 2))
    f = truth(x)
    return x, f + sd * rng.standard_normal(f.shape)


# For tests that look at what a fit does with its data, not at the choice of a kernel or the average over several.
QUICK: dict[str, Any] = {"solver": Vecchia(), "kernel": Matern([1.0, 1.0], nu=2.5), "uncertainty": "plug-in"}


@pytest.fixture(scope="module")
def fitted_shares() -> ConstrainedGP:
    return ConstrainedGP(SHARES, outputs=NAMES, solver=Vecchia()).fit(*data(shares))


def rmse(gp: ConstrainedGP, truth: Any) -> float:
    return float(np.sqrt(np.mean((gp.predict(AT) - truth(AT)) ** 2)))


def test_linear_law_holds_in_means_and_samples_and_the_report_says_how(fitted_shares: ConstrainedGP) -> None:
    posterior = fitted_shares.posterior(AT)
    assert np.max(np.abs(posterior.residual())) < 1e-12
    np.testing.assert_allclose(posterior.sample(20).sum(axis=2), 1.0, atol=1e-12)
    lower, upper = posterior.interval()
    assert np.mean((lower <= shares(AT)) & (shares(AT) <= upper)) > 0.85
    assert fitted_shares.fit_report_.status == "converged"
    assert fitted_shares.fit_report_["solver"].startswith("Vecchia")
    assert "solver: Vecchia" in str(fitted_shares.fit_report_)


def test_noise_covariance_between_outputs_is_found() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(1000, 2))
    R = 0.04 * np.array([[1.0, 0.8, 0.0], [0.8, 1.0, 0.0], [0.0, 0.0, 1.0]])
    y = shares(x) + rng.standard_normal((1000, 3)) @ np.linalg.cholesky(R).T
    gp = ConstrainedGP(SHARES, outputs=NAMES, **QUICK).fit(x, y)
    found = np.asarray(gp.fit_report_["noise_covariance"]) * np.outer(gp.scaling_.y_scale, gp.scaling_.y_scale)
    np.testing.assert_allclose(found, R, atol=0.008)


def test_measurements_of_closed_rows_have_the_noise_that_was_learned() -> None:
    """Noise of very different size along the law's plane: independent noise, conditioned on the law, is too small."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(400, 2))
    noise = 0.3 * rng.standard_normal((400, 1)) * [1.0, -1.0, 0.0] + 0.03 * rng.standard_normal((400, 1)) * [0.0, 1.0, -1.0]
    gp = ConstrainedGP(SHARES, outputs=NAMES, **QUICK).fit(x, shares(x) + noise)
    assert gp.fit_report_["closed_data"]
    seen = gp.posterior(AT).observed()
    added = seen.std**2 - gp.posterior(AT).std ** 2
    np.testing.assert_allclose(np.sqrt(added.mean(axis=0)), [0.3, 0.3, 0.03], rtol=0.15)
    draws = gp.posterior(AT[:1]).observed().sample(4000, random_state=0)[:, 0]
    np.testing.assert_allclose(draws.sum(axis=1), 1.0, atol=1e-9)
    np.testing.assert_allclose(draws.std(axis=0), seen.std[0], rtol=0.08)
    block = seen.covariance()[:3, :3]
    np.testing.assert_allclose(np.sqrt(np.diag(block)), seen.std[0], rtol=1e-6)


def test_measurements_share_noise_where_rows_do_not_meet_the_law() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(400, 2))
    y = shares(x) + 0.2 * rng.standard_normal((400, 1)) + 0.05 * rng.standard_normal((400, 3))
    gp = ConstrainedGP(None, outputs=NAMES, **QUICK).fit(x, y)
    at = gp.posterior(AT[:1])
    added = np.cov((at.observed().sample(4000, random_state=0)[:, 0]).T) - np.cov(at.sample(4000, random_state=0)[:, 0].T)
    np.testing.assert_allclose(added, 0.04 + 0.0025 * np.eye(3), atol=0.012)
    np.testing.assert_allclose(at.observed().covariance() - at.covariance(), added, atol=0.012)


def test_a_trend_beside_short_waves_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(500, 2))
    short = np.linalg.cholesky(Matern(0.04, nu=1.5)(x) + 1e-9 * np.eye(500)) @ rng.standard_normal(500)
    y = (3.0 * np.sin(3.0 * x[:, 0]) + 3.0 * x[:, 1] + short)[:, None]
    gp = ConstrainedGP(solver=Vecchia(), uncertainty="plug-in").fit(x, y)
    assert gp.fit_report_["kernel"] == "Matern 3/2 + Matern 3/2"
    monkeypatch.setattr(vecchia_fits, "FURTHER_TERMS", 0)
    alone = ConstrainedGP(solver=Vecchia(), uncertainty="plug-in").fit(x, y)
    assert alone.fit_report_["kernel"] == "Matern 3/2"
    assert gp.fit_report_.log_evidence > alone.fit_report_.log_evidence + 5.0


def test_outputs_that_vary_over_different_distances_have_lengthscales_of_their_own(tmp_path: Path) -> None:
    """a varies over a quarter of the distances of b; with gaps, one kernel is shared."""

    def truth(x: np.ndarray) -> np.ndarray:
        a, b = field(4.0 * x, 0), field(x, 1)
        return np.column_stack([a, b, 1.0 - a - b])

    x, y = data(truth, 300, 0.3)
    gp = ConstrainedGP(SHARES, outputs=NAMES, solver=Vecchia(), uncertainty="plug-in").fit(x, y)
    assert gp.fit_report_["kernel"].endswith("for each latent its own")
    lengths = np.sort(gp.fit_report_["lengthscales"][:, 0])
    assert lengths[1] > 2.5 * lengths[0]
    gappy = y.copy()
    gappy[0, 0] = np.nan
    shared = ConstrainedGP(SHARES, outputs=NAMES, solver=Vecchia(), uncertainty="plug-in").fit(x, gappy)
    assert "own" not in shared.fit_report_["kernel"]
    posterior = gp.posterior(AT)
    assert np.max(np.abs(posterior.residual())) < 1e-12
    np.testing.assert_allclose(posterior.sample(3).sum(axis=2), 1.0, atol=1e-12)
    error = [np.sqrt(np.mean((model.predict(AT) - truth(AT))[:, 1] ** 2)) for model in (gp, shared)]
    assert error[0] < 0.9 * error[1]
    gp.save(tmp_path / "own.sumgp")
    np.testing.assert_array_equal(sumgp.load(tmp_path / "own.sumgp").predict(AT), gp.predict(AT))


def test_small_maps_are_averaged_over_hyperparameters_and_kernels() -> None:
    """Few noisy rows: draws differ, and their mixture is wider where they do; plugged-in ones are one component."""
    x, y = data(shares, 120, 0.5)
    gp = ConstrainedGP(SHARES, outputs=NAMES, solver=Vecchia()).fit(x, y)
    components = [component for component in gp.fitted_.components if isinstance(component, VecchiaComponent)]
    assert 2 <= len(components) <= 8
    assert gp.fitted_.weights.sum() == pytest.approx(1.0)
    assert gp.fit_report_.uncertainty == "integrated"
    assert gp.fit_report_["draws"] == len(components)
    each = np.stack([component.lengthscales()[0] for component in components])
    assert np.ptp(np.log(each[:, 0])) > 0.1
    assert np.max(np.abs(gp.posterior(AT).residual())) < 1e-12
    one = ConstrainedGP(SHARES, outputs=NAMES, solver=Vecchia(), uncertainty="plug-in").fit(x, y)
    assert len(one.fitted_.components) == 1
    assert np.mean(gp.posterior(AT).std) > np.mean(one.posterior(AT).std)


def test_samples_have_the_moments_that_are_told(fitted_shares: ConstrainedGP) -> None:
    posterior = fitted_shares.posterior(AT[:6])
    draws = posterior.sample(4000, random_state=1)
    np.testing.assert_allclose(draws.mean(axis=0), posterior.mean, atol=5 * posterior.std.max() / np.sqrt(4000))
    np.testing.assert_allclose(draws.std(axis=0), posterior.std, rtol=0.08)
    joint = np.cov(draws.reshape(4000, -1).T)
    np.testing.assert_allclose(posterior.covariance(), joint, atol=0.1 * posterior.std.max() ** 2)


def test_like_dense_with_linear_law() -> None:
    """Same kernel, known noise: the task covariance is all that differs, and both learn it from the same rows."""
    x, y = data(shares, 100)
    kernel = RBF([1.0, 1.0])
    settings: dict[str, Any] = {"outputs": NAMES, "kernel": kernel, "noise": 0.1, "uncertainty": "plug-in"}
    ours = ConstrainedGP(SHARES, solver=Vecchia(), **settings).fit(x, y).posterior(AT)
    dense = ConstrainedGP(SHARES, solver=Dense(), **settings).fit(x, y).posterior(AT)
    assert np.sqrt(np.mean(((ours.mean - dense.mean) / dense.std) ** 2)) < 0.1
    np.testing.assert_allclose(ours.std, dense.std, rtol=0.1)


def test_nonlinear_law_point_by_point() -> None:
    x, y = data(sphere, 250, 0.2)
    gp = ConstrainedGP("a**2 + b**2 + c**2 = 1", outputs=NAMES, **QUICK).fit(x, y)
    plain = ConstrainedGP(None, outputs=NAMES, **QUICK).fit(x, y)
    posterior = gp.posterior(AT)
    assert np.max(np.abs(posterior.residual())) < 1e-9
    np.testing.assert_allclose(np.sum(posterior.sample(5) ** 2, axis=2), 1.0, atol=1e-9)
    assert rmse(gp, sphere) < rmse(plain, sphere)
    assert gp.fit_report_["law"] == "point by point"


def test_varying_coefficients_point_by_point() -> None:
    law = LinearConstraint(lambda x: np.stack([np.ones(len(x)), 1.0 + x[:, 0]], axis=1)[:, None, :], 1.0)
    x, _ = data(shares)
    a = field(x, 0)
    y = np.column_stack([a, (1.0 - a) / (1.0 + x[:, 0])]) + 0.1 * np.random.default_rng(0).standard_normal((len(x), 2))
    posterior = ConstrainedGP(law, **QUICK).fit(x, y).posterior(AT)
    assert np.max(np.abs(posterior.residual())) < 1e-10


def test_totals_that_vary_with_the_inputs() -> None:
    law = LinearConstraint([[1.0, 1.0]], lambda x: 3.0 * x[:, :1])
    x, _ = data(shares)
    a = field(x, 0)
    y = np.column_stack([a, 3.0 * x[:, 0] - a]) + 0.1 * np.random.default_rng(0).standard_normal((len(x), 2))
    gp = ConstrainedGP(law, **QUICK).fit(x, y)
    assert np.max(np.abs(gp.posterior(AT).residual())) < 1e-12
    truth = np.column_stack([field(AT, 0), 3.0 * AT[:, 0] - field(AT, 0)])
    assert float(np.sqrt(np.mean((gp.predict(AT) - truth) ** 2))) < 0.1


def test_gaps_are_used_where_only_some_outputs_are_measured() -> None:
    """Two thirds of the rows hold one output only: predictions from all entries are better than from complete rows."""
    x, y = data(shares, 300, 0.3)
    rng = np.random.default_rng(0)
    gappy = y.copy()
    single = rng.permutation(300)[:200]
    gappy[single] = np.nan
    gappy[single, single % 3] = y[single, single % 3]
    gp = ConstrainedGP(SHARES, outputs=NAMES, **QUICK).fit(x, gappy)
    complete = ~np.isnan(gappy).any(axis=1)
    less = ConstrainedGP(SHARES, outputs=NAMES, **QUICK).fit(x[complete], gappy[complete])
    assert np.max(np.abs(gp.posterior(AT).residual())) < 1e-12
    assert rmse(gp, shares) < 0.9 * rmse(less, shares)
    assert np.all(gp.posterior(AT).std.mean(axis=0) < less.posterior(AT).std.mean(axis=0))
    assert gp.fit_report_["complete_rows"] == 100


def test_known_noise_of_each_row_is_believed() -> None:
    x, f = data(shares, 300, 0.0)
    rng = np.random.default_rng(1)
    sd = np.where(rng.uniform(size=(300, 1)) < 0.5, 0.02, 1.0) * [1.0, 1.3, 0.8] * rng.uniform(0.9, 1.1, (300, 3))
    y = f + sd * rng.standard_normal(f.shape)
    told = ConstrainedGP(SHARES, outputs=NAMES, **QUICK, noise=sd).fit(x, y)
    untold = ConstrainedGP(SHARES, outputs=NAMES, **QUICK).fit(x, y)
    assert rmse(told, shares) < 0.6 * rmse(untold, shares)


def test_known_noise_that_is_not_alike_for_all_outputs_is_refused() -> None:
    x, y = data(shares, 100)
    sd = np.where(np.random.default_rng(1).uniform(size=y.shape) < 0.5, 0.02, 1.0)
    with pytest.raises(DataError, match="sample_weight="):
        ConstrainedGP(SHARES, outputs=NAMES, solver=Vecchia(), noise=sd).fit(x, y)


def test_weights_of_rows() -> None:
    x, y = data(lambda x: field(x, 0)[:, None], 400, 0.1)
    bad = np.arange(400) % 2 == 0
    y[bad] += 2.0 * np.random.default_rng(0).standard_normal((200, 1))
    gp = ConstrainedGP(**QUICK).fit(x, y, sample_weight=np.where(bad, 0.0025, 1.0))
    clean = ConstrainedGP(**QUICK).fit(x[~bad], y[~bad])
    truth = field(AT, 0)
    error = [float(np.sqrt(np.mean((m.predict(AT) - truth) ** 2))) for m in (gp, clean)]
    assert error[0] < 1.2 * error[1]


def test_exact_data_with_near_duplicates() -> None:
    """No noise, pairs of rows 1e-9 apart, outputs that depend on each other exactly without a law that says so."""
    x = np.random.default_rng(0).uniform(size=(200, 2))
    x = np.concatenate([x, x + 1e-9])
    f = shares(x)
    gp = ConstrainedGP(None, outputs=NAMES, solver=Vecchia(), uncertainty="plug-in").fit(x, f)
    assert rmse(gp, shares) < 0.05
    posterior = gp.posterior(AT)
    assert np.all(np.isfinite(posterior.std))
    assert np.all(posterior.std > 0)
    np.testing.assert_allclose(gp.predict(x[:20]), f[:20], atol=5e-3)


def test_saved_and_loaded_it_predicts_the_same(tmp_path: Path, fitted_shares: ConstrainedGP) -> None:
    fitted_shares.save(tmp_path / "map.sumgp")
    again = sumgp.load(tmp_path / "map.sumgp")
    np.testing.assert_array_equal(again.predict(AT), fitted_shares.predict(AT))
    np.testing.assert_array_equal(again.posterior(AT).std, fitted_shares.posterior(AT).std)
    assert again.solver == Vecchia()


def test_order_of_rows_and_outputs_makes_no_difference_that_matters(fitted_shares: ConstrainedGP) -> None:
    x, y = data(shares)
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(x))
    shuffled = ConstrainedGP(SHARES, outputs=NAMES, solver=Vecchia()).fit(x[rows], y[rows])
    np.testing.assert_array_equal(shuffled.predict(AT), fitted_shares.predict(AT))
    turned = ConstrainedGP(SHARES, outputs=NAMES[::-1], solver=Vecchia()).fit(x, y[:, ::-1])
    assert np.max(np.abs(turned.predict(AT)[:, ::-1] - fitted_shares.predict(AT)) / fitted_shares.posterior(AT).std) < 0.1


def test_outputs_in_other_units(fitted_shares: ConstrainedGP) -> None:
    x, y = data(shares)
    scaled = ConstrainedGP("a/1000 + b + c = 1", outputs=NAMES, solver=Vecchia()).fit(x, y * [1000.0, 1.0, 1.0])
    np.testing.assert_allclose(scaled.predict(AT) / [1000.0, 1.0, 1.0], fitted_shares.predict(AT), atol=1e-3)


REFUSED = {
    "unknown constant": ({"constraint": "a + b + c = E", "constants": {"E": "unknown"}}, "solver=Dense"),
    "soft law": ({"constraint": LinearConstraint([[1.0, 1.0, 1.0]], 1.0, noise=0.1)}, "solver=Dense"),
    "derivatives": ({"constraint": "d(a, x1) + a*b*c = 0", "inputs": ["x1", "x2"]}, "Dense"),
    "several terms": ({"kernel": [RBF(1.0), Matern(1.0)]}, "Dense"),
    "other kernel": ({"kernel": ExpSineSquared()}, "Dense"),
    "transformed": ({"constraint": "a**2 + b**2 + c**2 = 1", "strategy": Transformed()}, "Linearized"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_cannot_do_is_refused_with_the_alternative(name: str) -> None:
    settings, alternative = REFUSED[name]
    x, y = data(shares, 60)
    with pytest.raises((DataError, ConstraintError), match=alternative):
        ConstrainedGP(**{"constraint": SHARES, "outputs": NAMES, "solver": Vecchia(), **settings}).fit(x, y)


def test_outputs_never_measured_together_are_refused() -> None:
    x, y = data(shares, 200)
    y[:, 2] = np.nan
    with pytest.raises(DataError, match="leave it out and compute it from the law"):
        ConstrainedGP(SHARES, outputs=NAMES, solver=Vecchia()).fit(x, y)
    y[:, 2] = shares(x)[:, 2]
    y[np.arange(200), np.arange(200) % 3] = np.nan
    with pytest.raises(DataError, match="complete rows"):
        ConstrainedGP(SHARES, outputs=NAMES, solver=Vecchia()).fit(x, y)


def test_settings_are_checked() -> None:
    with pytest.raises(DataError, match="neighbours"):
        Vecchia(neighbours=0)
    with pytest.raises(DataError, match="nodes"):
        Vecchia(nodes=1.5)  # type: ignore[arg-type]


def test_chosen_for_large_maps_only(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = data(shares, 400)
    gp = ConstrainedGP(SHARES, outputs=NAMES, uncertainty="plug-in").fit(x, y)
    assert gp.fit_report_["solver"].startswith("Vecchia")
    facts = ConstrainedGP(SHARES, outputs=NAMES, kernel=RBF(1.0), solver=Dense())._problem(x, y, print)[0]
    laws = {"soft": LinearConstraint([[1.0, 1.0, 1.0]], 1.0, noise=0.1).bind(tuple(NAMES), ("x1", "x2")), "hard": facts.law}
    data_ = facts.data
    assert choose_map_solver(Asked(Automatic()), data_, laws["hard"]) == Vecchia()
    assert choose_map_solver(Asked(Automatic(), RBF(1.0), Unconstrained()), data_, None) == Vecchia()
    assert choose_map_solver(Asked(Automatic()), data_, laws["soft"]) == Automatic()
    assert choose_map_solver(Asked(Automatic(), [RBF(1.0), RBF(2.0)]), data_, None) == Automatic()
    assert choose_map_solver(Asked(Automatic(), strategy=Transformed()), data_, None) == Automatic()
    assert (
        choose_map_solver(Asked(Automatic(), noise=np.outer(np.arange(1, 401), [1.0, 2.0, 3.0])), data_, None) == Vecchia()
    )
    unlike = np.where(np.arange(1200).reshape(400, 3) % 2 == 0, 0.1, 1.0)
    assert choose_map_solver(Asked(Automatic(), noise=unlike), data_, None) == Automatic()
    assert choose_map_solver(Asked(Automatic(), rank=1), data_, None) == Automatic()
    assert choose_map_solver(Asked(Dense()), data_, None) == Dense()
    own, model = ConstrainedGP(SHARES, outputs=NAMES, kernel=RBF(1.0)), ConstrainedGP(SHARES, outputs=NAMES)
    assert preparation.choose_solver(own, data_, laws["hard"], None)[0] == Automatic()
    curved = ConstrainedGP("a**2 + b**2 + c**2 = 1", outputs=NAMES, solver=Dense())._problem(x, sphere(x), print)[0].law
    coupled = ConstrainedGP("a*b + c = 1", outputs=NAMES, solver=Dense())._problem(x, sphere(x), print)[0].law
    assert preparation.choose_solver(model, data_, curved, None)[0] == Automatic()
    assert preparation.choose_solver(model, data_, coupled, None)[0] == Automatic()
    few = data_.at(np.arange(210))
    assert preparation.choose_solver(model, few, laws["hard"], None)[0] == Vecchia()  # no slower than larger maps
    assert preparation.choose_solver(model, data_.at(np.arange(190)), laws["hard"], None)[0] == Automatic()
    monkeypatch.setattr(preparation, "PLAIN_MAP", 1200)
    assert preparation.choose_solver(model, data_, laws["hard"], None)[0] == Automatic()


def test_one_input_without_a_state_space(monkeypatch: pytest.MonkeyPatch) -> None:
    t = np.linspace(0.0, 20.0, 500)
    y = np.sin(t) + 0.1 * np.random.default_rng(0).standard_normal(500)
    monkeypatch.setattr(preparation, "LARGE_MAP", 400)
    gp = ConstrainedGP(kernel=RBF(1.0), uncertainty="plug-in").fit(t, y)
    assert gp.fit_report_["solver"].startswith("Vecchia")
    assert np.sqrt(np.mean((gp.predict(t) - np.sin(t)) ** 2)) < 0.03


def test_kernels_that_leave_dense_algebra_alone_are_named_where_it_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wave times a RationalQuadratic over 5,000 rows did not end within minutes, without a word."""
    monkeypatch.setattr(vecchia_fits, "SLOW_ROWS", 400)
    few = sumgp.data.Data(np.arange(401.0)[:, None], np.zeros((401, 2)), ("t",), ("a", "b"))
    wave = ExpSineSquared() * RBF()
    with pytest.warns(SumGPWarning, match=r"dense algebra over 401 rows.*use Matern"):
        assert choose_map_solver(Asked(Automatic(), wave), few, None) == Automatic()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        choose_map_solver(Asked(Automatic(), wave), few.at(np.arange(400)), None)


def test_settings_without_effect_are_named() -> None:
    x, y = data(lambda x: field(x, 0)[:, None], 100)
    with pytest.warns(SumGPWarning, match=r"Vecchia\(\) ignores restarts=7, rank=1"):
        ConstrainedGP(solver="vecchia", restarts=7, rank=1).fit(x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ConstrainedGP(solver="vecchia").fit(x, y)


def test_memory_is_known_in_advance(monkeypatch: pytest.MonkeyPatch) -> None:
    assert map_bytes(100_000, 2, 3, False) < 0.3e9
    assert map_bytes(200_000, 2, 3, True) > map_bytes(100_000, 2, 3, True) > map_bytes(100_000, 2, 3, False)
    monkeypatch.setattr(solver, "available_bytes", lambda: 1e6)
    with pytest.raises(DataError, match="parts of the region"):
        ConstrainedGP(SHARES, outputs=NAMES, solver=Vecchia()).fit(*data(shares, 60))


def test_a_field_that_changes_between_the_rows_is_said_to_be_taken_for_noise(fitted_shares: ConstrainedGP) -> None:
    x, y = data(lambda at: field(100.0 * at, 0)[:, None], N=300)
    with pytest.warns(SumGPWarning, match="the variation of 'a' is taken for noise"):
        gp = ConstrainedGP(None, outputs=["a"], solver=Vecchia(), uncertainty="plug-in").fit(x, y)
    assert gp.fit_report_["status"].startswith("converged, but the variation of 'a'")
    assert fitted_shares.fit_report_["status"] == "converged"


def test_many_points_are_predicted_once_for_means_and_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    gp = ConstrainedGP(SHARES, outputs=NAMES, solver=Vecchia(), kernel=Matern(0.3, nu=1.5), uncertainty="plug-in")
    gp.fit(*data(shares))
    asked: list[int] = []
    marginals = LatentField.marginals

    def counted(field: LatentField, points: np.ndarray) -> LatentMarginals:
        asked.append(len(points))
        return marginals(field, points)

    monkeypatch.setattr(LatentField, "marginals", counted)
    monkeypatch.setattr("sumgp.prediction.posterior.DRAWN_AT_ONCE", 7)
    posterior = gp.posterior(AT)
    told = (posterior.mean, *posterior.interval(), posterior.std, *posterior.observed().interval())
    assert all(np.isfinite(part).all() for part in told)
    assert len(asked) == 1
