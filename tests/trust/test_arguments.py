"""Arguments that were misread, or ignored, without a word."""

import os

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics import r2_score
from sklearn.model_selection import cross_val_score

import sumgp
from sumgp import Conditioned, ConstrainedGP, DataError, Linearized, Markov, SumGPWarning
from sumgp.laws import FormulaConstraint
from sumgp.strategies import averaging as mixture

T = np.linspace(0.0, 3.0, 12)
Y = np.column_stack([np.sin(T), 1.0 - np.sin(T)]) + 0.01 * np.random.default_rng(0).standard_normal((12, 2))


def quick(law="a + b = 1", **settings):
    return ConstrainedGP(law, outputs=["a", "b"], **{"uncertainty": "plug-in", "restarts": 0, **settings})


@pytest.mark.parametrize("solver", [42, "no such solver", Linearized(), object()])
def test_a_solver_that_is_none(solver):
    with pytest.raises(DataError, match="solver"):
        quick(solver=solver).fit(T, Y)


X_FRAME, Y_FRAME = pd.DataFrame({"t": T}), pd.DataFrame(Y, columns=["a", "b"])


def test_tables_with_rows_in_two_orders_are_refused():
    shuffled = Y_FRAME.sample(frac=1.0, random_state=0)
    with pytest.raises(DataError, match=r"same row labels in two orders \('0' in X and '\d+' in Y.*Y.loc\[X.index\]"):
        quick().fit(X_FRAME, shuffled)
    with pytest.raises(DataError, match="two orders"):
        quick().fit(X_FRAME, Y_FRAME).score(X_FRAME, shuffled)
    assert quick().fit(X_FRAME, shuffled.loc[X_FRAME.index]).score(X_FRAME, Y_FRAME) > 0.99


def test_tables_with_other_labels_are_paired_by_position_with_a_warning():
    with pytest.warns(SumGPWarning, match="row labels differ.*paired by position"):
        quick().fit(X_FRAME, Y_FRAME.set_index(pd.Index(range(5, 17))))


def test_equal_labels_and_arrays_are_not_warned_of(recwarn):
    quick().fit(X_FRAME, Y_FRAME)
    quick().fit(X_FRAME, Y)
    assert [w for w in recwarn if issubclass(w.category, SumGPWarning)] == []


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"restarts": 5}, "restarts=5"),
        ({"strategy": Conditioned(draws=48)}, "draws=48"),
        ({"strategy": Linearized(taper=1.0)}, "taper=1.0"),
    ],
)
def test_settings_that_markov_ignores(setting, words):
    with pytest.warns(SumGPWarning, match=f"Markov.. ignores {words}"):
        ConstrainedGP("a + b = 1", outputs=["a", "b"], solver=Markov(), **setting).fit(T, Y)


def test_markov_with_defaults_is_not_warned_of(recwarn):
    ConstrainedGP("a + b = 1", outputs=["a", "b"], solver=Markov()).fit(T, Y)
    assert [w for w in recwarn if issubclass(w.category, SumGPWarning)] == []


@pytest.mark.parametrize(("asked", "made"), [(2, 1), (3, 3)])
def test_restarts_that_are_asked_for_are_made(asked, made):
    """Six outputs have more than 25 hyperparameters, where the default is one further start."""
    wide = np.column_stack([np.sin(T + i) for i in range(6)]) + 0.1 * np.random.default_rng(0).standard_normal((12, 6))
    model = ConstrainedGP(uncertainty="plug-in", restarts=asked).fit(T, wide)
    starts = max(len(candidate["starts"]) for candidate in model.fit_report_["candidates"])
    assert starts == 1 + made


@pytest.mark.parametrize("law", ["a + b = 1", FormulaConstraint("a + b = 1"), [FormulaConstraint("a + b = 1")]])
def test_a_constant_that_no_formula_uses(law):
    with pytest.warns(SumGPWarning, match="no formula uses 'k', 'm'"):
        quick(law, constants={"k": 1.0, "m": "unknown"}).fit(T, Y)


def test_constants_in_sums_and_norms_are_used(recwarn):
    formula = "w1*a1 + w2*a2 = 1"
    for law in (formula, "sum(w*a) = 1"):
        ConstrainedGP(law, outputs=["a1", "a2"], constants={"w1": 1, "w2": 1}, uncertainty="plug-in", restarts=0).fit(T, Y)
    assert [w for w in recwarn if issubclass(w.category, SumGPWarning)] == []


@pytest.mark.parametrize("value", [1e151, -1e200])
def test_values_whose_squares_are_no_doubles(value):
    changed = Y.copy()
    changed[4, 1] = value
    with pytest.raises(DataError, match=r"Y: expected values of at most 1e\+150 in size.*row 4; change the units"):
        quick().fit(T, changed)
    with pytest.raises(DataError, match="X: expected values of at most"):
        quick().fit(np.where(T == 0, value, T), Y)


def test_a_model_path_that_is_no_file(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in ("/dev/zero", pipe, tmp_path):
        with pytest.raises(DataError, match="expected a model file, got a folder or device"):
            sumgp.load(path)


def test_scores_count_measured_entries():
    gaps = Y.copy()
    gaps[2, 0] = gaps[5:7, 1] = np.nan
    model = quick().fit(T, gaps)
    mean = model.predict(T)
    expected = [r2_score(gaps[seen, t], mean[seen, t]) for t, seen in enumerate(~np.isnan(gaps.T))]
    assert np.isclose(model.score(T, gaps), np.mean(expected), rtol=1e-12)
    assert np.isclose(model.score(T, Y), r2_score(Y, mean), rtol=1e-12)
    weight = np.linspace(1.0, 2.0, 12)
    assert np.isclose(model.score(T, Y, weight), r2_score(Y, mean, sample_weight=weight), rtol=1e-12)
    scores = cross_val_score(quick(), T[:, None], gaps, cv=3)
    assert np.all(np.isfinite(scores))
    with pytest.raises(DataError, match="only NaN"):
        model.score(T, np.full_like(Y, np.nan))


@pytest.mark.parametrize("solver", [None, Markov()], ids=["dense", "Markov"])
def test_bands_are_as_wide_with_one_value_more(solver, monkeypatch):
    """Above so many values hyperparameters are plugged in; the bands keep the widening that averages have."""
    monkeypatch.setattr(mixture, "LARGEST_INTEGRATED", 29)
    t = np.linspace(0.0, 8.0, 30)
    y = np.sin(t) + 0.1 * np.random.default_rng(0).standard_normal(30)
    kernel = Matern(length_scale=1.0, nu=2.5)
    models = [ConstrainedGP(kernel=kernel, solver=solver, uncertainty=u).fit(t, y) for u in ("integrated", "plug-in")]
    wide, narrow = (model.posterior(t[::5]) for model in models)
    assert np.allclose(wide.std, mixture.WIDENING * narrow.std, rtol=1e-6)
    assert np.allclose(wide.mean, narrow.mean, rtol=1e-9)
    assert np.allclose(np.diag(wide.covariance()), wide.std.ravel() ** 2, rtol=1e-6)
    spreads = [posterior.sample(50).std(axis=0) for posterior in (wide, narrow)]
    assert np.allclose(spreads[0], mixture.WIDENING * spreads[1], rtol=1e-6)
