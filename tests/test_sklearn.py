"""scikit-learn's interface: its own checks, parameters, pipelines, searches."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, Matern
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from test_estimator import ASKED, BUDGET, X, Y, plug_in

from sumgp import Conditioned, ConstrainedGP, Linearized

EXPECTED = {
    "check_fit1d": "inputs of shape (N,) are accepted on purpose: one input, such as time, is the common case",
    "check_sample_weight_equivalence_on_dense_data": (
        "a row of weight two is one measurement with half the variance, not two equal ones, which would tell of small noise"
    ),
}


# Warnings about few effective draws and skipped checks are not what is tested here.
@pytest.mark.filterwarnings("ignore::sumgp.SumGPWarning", "ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learns_own_checks() -> None:
    """One kernel and one search: these are checks of an interface, in some two hundred fits."""
    gp = ConstrainedGP(kernel=RBF(), restarts=0, uncertainty="plug-in")
    results = check_estimator(gp, expected_failed_checks=EXPECTED, on_fail=None, on_skip=None)
    failed = {r["check_name"]: str(r["exception"])[:200] for r in results if r["status"] == "failed"}
    assert failed == {}
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(EXPECTED)
    assert sum(r["status"] == "passed" for r in results) > 40


def test_parameters_can_be_read_set_and_cloned() -> None:
    gp = ConstrainedGP(BUDGET, kernel=Matern(nu=1.5), strategy=Conditioned(), noise=0.1, outputs=["a", "b", "c"])
    parameters = gp.get_params(deep=False)
    assert parameters["noise"] == 0.1
    assert parameters["kernel"] is gp.kernel
    assert gp.get_params()["kernel__nu"] == 1.5
    copy = clone(gp)
    assert copy.get_params(deep=False).keys() == parameters.keys()
    assert copy.strategy == Conditioned()
    copy.set_params(noise="shared", kernel__nu=2.5, strategy=Linearized(taper=None))
    assert (copy.noise, copy.kernel.nu, copy.strategy.taper) == ("shared", 2.5, None)
    assert gp.kernel.nu == 1.5


def test_fitting_leaves_the_parameters_alone() -> None:
    kernel = RBF()
    gp = plug_in(BUDGET, kernel=kernel)
    before = {**gp.get_params(deep=False)}
    gp.fit(X, Y)
    assert gp.get_params(deep=False) == before
    assert kernel == RBF()


def test_a_clone_fits_to_the_same_numbers() -> None:
    gp = plug_in(BUDGET)
    np.testing.assert_array_equal(gp.fit(X, Y).predict(ASKED), clone(gp).fit(X, Y).predict(ASKED))


def test_a_pipeline_keeps_the_law() -> None:
    model = make_pipeline(StandardScaler(), plug_in("a + b + c = 1", outputs=["a", "b", "c"]))
    mean = model.fit(X[:, None], Y).predict(ASKED[:, None])
    np.testing.assert_allclose(mean.sum(axis=1), 1.0, atol=1e-12)
    plain = plug_in("a + b + c = 1", outputs=["a", "b", "c"]).fit(X[:, None], Y).predict(ASKED[:, None])
    np.testing.assert_allclose(mean, plain, atol=1e-6)


def test_cross_validation_scores_are_those_of_fits_by_hand() -> None:
    gp = plug_in(BUDGET)
    scores = cross_val_score(gp, X[:, None], Y, cv=3)
    held = np.arange(4)
    rest = np.setdiff1d(np.arange(12), held)
    predicted = gp.fit(X[rest], Y[rest]).predict(X[held])
    r2 = 1.0 - np.sum((Y[held] - predicted) ** 2, axis=0) / np.sum((Y[held] - Y[held].mean(axis=0)) ** 2, axis=0)
    assert scores.shape == (3,)
    assert scores[0] == pytest.approx(np.mean(r2), rel=1e-9)


def test_a_grid_search_finds_the_better_kernel() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 6.0, (30, 1))
    y = np.column_stack([np.sin(x[:, 0]), 1.0 - np.sin(x[:, 0])]) + 0.02 * rng.standard_normal((30, 2))
    grid = {"kernel": [RBF(1.5, "fixed"), RBF(1e-3, "fixed")]}
    search = GridSearchCV(plug_in("a + b = 1", outputs=["a", "b"]), grid, cv=3).fit(x, y)
    assert search.best_params_["kernel"].length_scale == 1.5
    assert search.best_score_ > 0.5
    np.testing.assert_allclose(search.predict(x).sum(axis=1), 1.0, atol=1e-12)
