"""ConstrainedGP: bad input in words, laws of every kind kept, invariances, reports."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

from sumgp import (
    Conditioned,
    ConstrainedGP,
    ConstraintError,
    DataError,
    Kronecker,
    LinearConstraint,
    Linearized,
    Projected,
    SumGPWarning,
    Unconstrained,
    Unknown,
)

X = np.linspace(0.0, 5.0, 12)
ASKED = np.linspace(-1.0, 7.0, 9)
BUDGET = LinearConstraint([1.0, 1.0, 1.0], 1.0)


def outputs(seed: int = 0, sd: float = 0.05) -> np.ndarray:
    """Three outputs that add up to one, with noise."""
    true = np.column_stack([np.sin(X), np.cos(X), 1.0 - np.sin(X) - np.cos(X)])
    return true + sd * np.random.default_rng(seed).standard_normal(true.shape)


def plug_in(constraint: Any = None, **more: Any) -> ConstrainedGP:
    """A quick fit: one kernel, one search."""
    return ConstrainedGP(constraint, **{"kernel": RBF(), "uncertainty": "plug-in", "restarts": 0, **more})


Y = outputs()
NEVER = np.column_stack([Y[:, :2], np.full(12, np.nan)])


def with_value(value: Any, row: int = 1, column: int = 1) -> np.ndarray:
    changed = Y.copy()
    changed[row, column] = value
    return changed


BAD: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "NaN in X": ({"X": np.r_[np.nan, X[1:]]}, DataError, r"^X: .*row 0; drop that row"),
    "infinity in X": ({"X": np.r_[X[:-1], np.inf]}, DataError, r"^X: .*row 11; drop that row"),
    "infinity in Y": ({"Y": with_value(-np.inf)}, DataError, r"^Y: .*infinity in row 1, output 'y2'; write NaN"),
    "lengths": ({"Y": Y[1:]}, DataError, r"^Y: expected 12 rows as in X, got 11 rows"),
    "nothing measured": ({"Y": Y * np.nan}, DataError, r"^Y: .*at least one measured value"),
    "never measured, no law": (
        {"Y": NEVER, "constraint": None},
        ConstraintError,
        r"'y3' was never measured and no law determines it",
    ),
    "never measured, outside the law": (
        {"Y": NEVER, "constraint": LinearConstraint([1.0, 1.0, 0.0])},
        ConstraintError,
        r"'y3' was never measured and no law determines it",
    ),
    "columns of F": ({"constraint": LinearConstraint([1.0, 1.0])}, ConstraintError, r"^F: expected 3 columns"),
    "zero row in F": (
        {"constraint": LinearConstraint([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])},
        ConstraintError,
        r"^F: row 2 has only zeros",
    ),
    "contradictory rows": (
        {"constraint": LinearConstraint([[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]], [1.0, 3.0])},
        ConstraintError,
        r"'2\*y1 \+ 2\*y2 \+ 2\*y3 = 3' contradicts '1\*y1 \+ 1\*y2 \+ 1\*y3 = 1'",
    ),
    "contradictory rows, any strategy": (
        {"constraint": LinearConstraint([[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]], [1.0, 3.0]), "strategy": Projected()},
        ConstraintError,
        "contradicts",
    ),
    "contradictory at one input": (
        {
            "constraint": LinearConstraint(
                lambda x: np.stack(
                    [np.tile([1.0, 1.0, 1.0], (len(x), 1)), np.tile([1.0, 1.0, 1.0], (len(x), 1)) * (x > 4.9)], axis=1
                ),
                lambda x: np.column_stack([np.ones(len(x)), np.where(x[:, 0] > 4.9, 2.0, 0.0)]),
            )
        },
        ConstraintError,
        r"no outputs meet .* at x = \[5.0\] \(row 11\)",
    ),
    "total that is NaN": (
        {"constraint": LinearConstraint([1, 1, 1], lambda x: np.full(len(x), np.nan))},
        ConstraintError,
        "not finite at x = ",
    ),
    "text in X": ({"X": np.array(list("abcdefghijkl"))}, DataError, r"^X: expected numbers"),
    "text in Y": ({"Y": np.full((12, 3), "a")}, DataError, r"^Y: expected numbers"),
    "white noise": ({"kernel": RBF() + RBF(), "noise": "loud"}, DataError, "^noise: expected"),
    "no kernel in the list": ({"kernel": []}, DataError, "^kernel: expected at least one"),
    "kernel of unknown name": ({"kernel": "matern"}, DataError, "^kernel: expected one of rbf, matern12"),
    "uncertainty": ({"uncertainty": "both"}, DataError, "^uncertainty: expected 'integrated' or 'plug-in'"),
    "strategy of unknown name": ({"strategy": "best"}, DataError, "^strategy: expected one of collocated, conditioned"),
    "strategy class": ({"strategy": Conditioned}, DataError, "^strategy: expected a strategy object"),
    "solver of unknown name": ({"solver": "fast"}, DataError, "^solver: expected one of dense"),
    "rank too large": ({"rank": 4}, DataError, "^rank: expected a number from 0 to 3"),
    "rank in words": ({"rank": "full"}, DataError, "^rank: expected a whole number"),
    "negative restarts": ({"restarts": -1}, DataError, "^restarts: expected a whole number"),
    "seed in words": ({"random_state": "a"}, DataError, "^random_state: expected a whole number"),
    "a number as law": ({"constraint": 3}, ConstraintError, "^constraint: expected a formula"),
    "no law in the list": ({"constraint": []}, ConstraintError, "^constraint: expected a formula"),
    "names of outputs": ({"outputs": ["a", "b"]}, DataError, r"^Y: expected 2 column\(s\)"),
    "groups": ({"groups": [["y1", "q"]]}, DataError, "^groups: expected names among"),
    "strategy without a law": (
        {"constraint": None, "strategy": Projected()},
        ConstraintError,
        r"^strategy: Projected\(\) needs a law",
    ),
    "nonlinear law, linear strategy": (
        {"constraint": "y1**2 + y2**2 = 1", "strategy": Conditioned()},
        ConstraintError,
        r"use Linearized\(\)",
    ),
    "Kronecker with known noise": (
        {"noise": 0.1, "solver": Kronecker()},
        DataError,
        r"needs one kernel term.*use Dense\(\)",
    ),
    "Kronecker with an unknown total": (
        {"constraint": LinearConstraint([1, 1, 1], Unknown()), "solver": Kronecker()},
        DataError,
        r"use Dense\(\)",
    ),
    "law of other outputs": (
        {"constraint": LinearConstraint([1, 1]).bind(("p", "q"), ("x",))},
        ConstraintError,
        "bind it to these",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_our_own_error_in_words(name: str) -> None:
    arguments, kind, message = BAD[name]
    inputs, targets = arguments.get("X", X), arguments.get("Y", Y)
    choices = {"constraint": BUDGET, "kernel": None, **{k: v for k, v in arguments.items() if k not in ("X", "Y")}}
    with pytest.raises(kind, match=message):
        plug_in(**choices).fit(inputs, targets)


def test_predicting_before_fitting_and_with_other_columns() -> None:
    gp = plug_in(BUDGET)
    with pytest.raises(NotFittedError, match=r"call fit\(X, Y\)"):
        gp.predict(ASKED)
    gp.fit(X, Y)
    with pytest.raises(DataError, match="X has 2 features, but ConstrainedGP is expecting 1"):
        gp.predict(np.ones((3, 2)))
    with pytest.raises(DataError, match="row 1"):
        gp.predict([0.0, np.nan])
    with pytest.raises(DataError, match="at most one"):
        gp.predict(ASKED, return_std=True, return_cov=True)
    with pytest.raises(DataError, match="level"):
        gp.posterior(ASKED).interval(1.0)


WORKS: dict[str, dict[str, Any]] = {
    "duplicate inputs with other values": {"X": np.repeat(X[::2], 2)},
    "one row": {"X": X[:1], "Y": Y[:1]},
    "one value": {"X": X[:1], "Y": np.array([[0.3, np.nan, np.nan]])},
    "a constant output": {"Y": np.column_stack([Y[:, 0], np.full(12, 2.0), -1.0 - Y[:, 0]])},
    "all outputs constant": {"Y": np.tile([0.2, 0.3, 0.5], (12, 1))},
    "outputs that are multiples": {"constraint": None, "Y": Y[:, :1] * np.array([1.0, 2.0, -1.0])},
    "zero noise": {"noise": 0.0},
    "noise far above the signal": {"noise": 1e3},
    "noise of each entry": {"noise": np.full((12, 3), 0.05)},
    "shared noise": {"noise": "shared"},
    "rows without a measurement": {"Y": np.where((np.arange(12) % 3 == 0)[:, None], np.nan, Y)},
    "nearly all missing": {"Y": np.where(np.arange(36).reshape(12, 3) % 9 == 0, Y, np.nan)},
    "identical inputs": {"X": np.full(12, 3.0)},
    "a nearly singular kernel": {"kernel": RBF(1e3, "fixed")},
    "a non-stationary kernel": {"kernel": DotProduct() + Matern(nu=1.5)},
    "low rank": {"rank": 1},
    "rank zero": {"rank": 0},
    "laws that fix everything": {"constraint": LinearConstraint(np.eye(3), [0.0, 1.0, 2.0])},
    "a law that is never active": {"constraint": LinearConstraint([1, 1, 1], 1.0, where=lambda x: x[:, 0] < -9)},
    "coordinates in one group": {"groups": [["y1", "y2", "y3"]]},
}


@pytest.mark.filterwarnings("ignore::sumgp.SumGPWarning")
@pytest.mark.parametrize("name", WORKS)
def test_difficult_data_work(name: str) -> None:
    arguments = WORKS[name]
    choices = {"constraint": BUDGET, "kernel": None, **{k: v for k, v in arguments.items() if k not in ("X", "Y")}}
    gp = plug_in(**choices).fit(arguments.get("X", X), arguments.get("Y", Y))
    posterior = gp.posterior(ASKED)
    assert np.all(np.isfinite(posterior.mean))
    assert np.all(np.isfinite(posterior.std))
    assert np.all(np.isfinite(posterior.sample(3)))
    assert np.max(np.abs(posterior.residual()), initial=0.0) < 1e-12


def test_redundant_rows_are_dropped_and_named() -> None:
    twice = LinearConstraint([[1.0, 1.0, 1.0], [0.5, 0.5, 0.5], [1.0, -1.0, 0.0]], [1.0, 0.5, 0.2])
    gp = plug_in(twice).fit(X, Y)
    assert gp.fit_report_["dropped_rows"] == ["0.5*y1 + 0.5*y2 + 0.5*y3 = 0.5"]
    once = plug_in(LinearConstraint([[1.0, 1.0, 1.0], [1.0, -1.0, 0.0]], [1.0, 0.2])).fit(X, Y)
    np.testing.assert_allclose(gp.predict(ASKED), once.predict(ASKED), rtol=1e-12)
    assert np.max(np.abs(gp.posterior(ASKED).residual())) < 1e-14


def test_rows_that_differ_only_in_a_tiny_unit_are_not_redundant() -> None:
    """In the user's units both rows look alike; with the outputs' sizes they do not."""
    law = LinearConstraint([[1e12, 1e-12, 0.0], [1e12, -1e-12, 0.0]], [1.0, 0.2])
    units = np.array([1e-12, 1e12, 1.0])
    gp = plug_in(law).fit(X, Y * units)
    assert gp.fit_report_["dropped_rows"] == []
    assert np.max(np.abs(gp.posterior(ASKED).residual())) < 1e-10


def test_an_output_never_measured_is_what_the_law_says() -> None:
    gp = plug_in(BUDGET).fit(X, NEVER)
    mean, std = gp.predict(X, return_std=True)
    np.testing.assert_allclose(mean[:, 2], 1.0 - mean[:, :2].sum(axis=1), atol=1e-12)
    true = 1.0 - np.sin(X) - np.cos(X)
    assert np.sqrt(np.mean((mean[:, 2] - true) ** 2)) < 0.08
    assert np.mean(np.abs(mean[:, 2] - true) < 3.0 * std[:, 2]) > 0.9
    covariance = gp.posterior(X[4:5]).covariance()
    assert covariance[2, 2] == pytest.approx(covariance[:2, :2].sum(), rel=1e-9)


def test_a_law_on_part_of_the_inputs_is_kept_there_only() -> None:
    gp = plug_in(LinearConstraint([1.0, 1.0, 1.0], 1.0, where=lambda x: x[:, 0] < 2.5)).fit(X, outputs(sd=0.2))
    x = np.linspace(0.0, 5.0, 21)
    total = gp.predict(x).sum(axis=1)
    assert np.max(np.abs(total[x < 2.5] - 1.0)) < 1e-8
    assert np.max(np.abs(total[x > 3.0] - 1.0)) > 1e-3
    samples = gp.posterior(x).sample(20).sum(axis=2)
    assert np.max(np.abs(samples[:, x < 2.5] - 1.0)) < 1e-8
    assert np.std(samples[:, x > 3.0]) > 1e-2


def test_a_soft_law_holds_up_to_its_noise() -> None:
    """Between no law and an exact one, and never wider than the law's own error."""
    y = outputs(sd=0.3)
    widths, misses = [], []
    for sd in (1e-6, 0.05, 100.0):
        posterior = plug_in(LinearConstraint([1.0, 1.0, 1.0], 1.0, noise=sd), noise=0.3).fit(X, y).posterior(X)
        T = 3
        joint = posterior.covariance().reshape(12, T, 12, T)
        widths.append(np.sqrt(np.mean([joint[i, :, i, :].sum() for i in range(12)])))
        misses.append(np.sqrt(np.mean((posterior.mean.sum(axis=1) - 1.0) ** 2)))
    assert widths[0] < 2e-6
    assert misses[0] < 2e-6
    assert 0.01 < widths[1] <= 0.05
    assert widths[2] > 0.1
    assert misses[0] < misses[1] < misses[2]


def test_an_unknown_total_is_estimated_with_its_uncertainty() -> None:
    gp = plug_in(LinearConstraint([1.0, 1.0, 1.0], Unknown("budget"))).fit(X, Y)
    posterior = gp.posterior(ASKED)
    row = posterior.constants().loc["budget"]
    standard_error = np.std(Y.sum(axis=1), ddof=1) / np.sqrt(12)
    assert row["mean"] == pytest.approx(1.0, abs=4.0 * standard_error)
    assert 0.2 * standard_error < row["sd"] < 3.0 * standard_error
    assert row["lower"] < row["mean"] < row["upper"]
    np.testing.assert_allclose(posterior.mean.sum(axis=1), row["mean"], atol=1e-9)
    totals = posterior.sample(200).sum(axis=2)
    np.testing.assert_allclose(totals, totals[:, :1] * np.ones((1, 9)), atol=1e-8)
    assert np.std(totals[:, 0]) == pytest.approx(row["sd"], rel=0.25)


def test_closed_data_are_recognised() -> None:
    closed = outputs()
    closed[:, 2] = 1.0 - closed[:, :2].sum(axis=1)
    gp = plug_in(BUDGET).fit(X, closed)
    assert gp.fit_report_["closed_data"] is True
    assert plug_in(BUDGET).fit(X, Y).fit_report_["closed_data"] is False
    # The third part adds nothing: leaving it out gives the same model of the others.
    noise = gp.fitted_.components[0].noise
    assert np.all(np.isfinite(noise))
    assert np.max(np.abs(gp.posterior(ASKED).residual())) < 1e-12


def test_a_stated_total_that_the_data_contradict_is_warned_of() -> None:
    with pytest.warns(SumGPWarning, match=r"contradict the law '1\*y1 .* = 3'.*miss it by -[12]\."):
        plug_in(LinearConstraint([1.0, 1.0, 1.0], 3.0)).fit(X, Y)


def test_no_warning_where_the_data_agree(recwarn: pytest.WarningsRecorder) -> None:
    plug_in(BUDGET).fit(X, Y)
    assert not [w for w in recwarn if issubclass(w.category, SumGPWarning)]


def test_extrapolation_returns_to_the_prior_mean_and_keeps_the_law() -> None:
    gp = plug_in(BUDGET, kernel=RBF(1.0, "fixed"), noise=0.05).fit(X, Y)
    far = gp.posterior([100.0, 200.0])
    assert np.max(np.abs(far.residual())) < 1e-12
    # Both are the marginalised constant mean: equal, near the data's mean, and as uncertain as the prior.
    np.testing.assert_allclose(far.mean[0], far.mean[1], atol=1e-10)
    np.testing.assert_allclose(far.mean[0], Y.mean(axis=0), atol=0.5)
    near = gp.posterior(X).std
    assert np.all(far.std[0] > 5.0 * near.max(axis=0))


@pytest.mark.parametrize(
    "strategy", [Conditioned(), Conditioned(joint=True), Linearized(), Projected(), Unconstrained()], ids=repr
)
def test_a_point_does_not_depend_on_the_others_asked(strategy: Any) -> None:
    gp = plug_in(BUDGET, strategy=strategy).fit(X, Y)
    together = gp.posterior(np.concatenate([ASKED, X, [3.3]]))
    for i in (0, 4, 8, 21):
        alone = gp.posterior(together.x[i : i + 1])
        np.testing.assert_allclose(alone.mean[0], together.mean[i], atol=1e-6 * np.min(together.std[i]))
        np.testing.assert_allclose(alone.std[0], together.std[i], rtol=1e-6)


def test_fit_report_reads_as_attributes_keys_and_text() -> None:
    report = ConstrainedGP(BUDGET).fit(X, Y).fit_report_
    assert report.status in ("converged", "step limit")
    assert report["strategy"] == report.strategy == "Conditioned"
    assert report["effective_sample_size"] > 1.0
    assert np.isfinite(report.log_evidence)
    assert "log evidence" in str(report)
    assert all({"kernel", "objective", "status", "starts"} <= set(c) for c in report["candidates"])
    with pytest.raises(KeyError):
        report["no such key"]


def test_names_come_from_frames_and_columns_are_taken_by_name() -> None:
    frame = pd.DataFrame({"t": X, "unused": X})
    table = pd.DataFrame(Y, columns=["a", "b", "c"])
    gp = plug_in("a + b + c = 1", inputs=["t"]).fit(frame, table)
    assert gp.posterior(frame).output_names == ("a", "b", "c")
    shuffled = plug_in("a + b + c = 1", inputs=["t"], outputs=["c", "a", "b"]).fit(frame, table)
    np.testing.assert_allclose(shuffled.predict(frame), gp.predict(frame)[:, [2, 0, 1]], atol=1e-5)


def test_a_total_given_by_a_column_is_needed_at_prediction_too() -> None:
    total = 1.0 + 0.1 * X
    frame = pd.DataFrame({"t": X, "budget": total})
    y = pd.DataFrame(outputs() + (total - 1.0)[:, None] / 3.0, columns=["a", "b", "c"])
    gp = plug_in("a + b + c = E", constants={"E": "budget"}).fit(frame, y)
    asked = pd.DataFrame({"t": [0.5, 6.0], "budget": [7.0, -2.0]})
    np.testing.assert_allclose(gp.predict(asked).sum(axis=1), [7.0, -2.0], atol=1e-9)
    np.testing.assert_allclose(gp.predict(asked.to_numpy()), gp.predict(asked))
    with pytest.raises(DataError, match="no column 'budget'"):
        gp.predict(asked[["t"]])
    with pytest.raises(DataError, match=r"the law needs \['budget'\] at prediction"):
        gp.predict([[0.5]])
