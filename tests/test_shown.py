"""What a notebook or a prompt shows of models, reports and posteriors: short, and tables where HTML is shown."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern

import sumgp


@pytest.fixture(scope="module")
def fitted() -> sumgp.ConstrainedGP:
    x = np.linspace(0.0, 1.0, 8)
    Y = np.column_stack([x, 1.0 - x]) + 0.05 * np.random.default_rng(1).standard_normal((8, 2))
    return sumgp.ConstrainedGP("a + b = 1", outputs=["a", "b"], inputs=["t<1>"], uncertainty="plug-in").fit(x, Y)


def test_posterior(fitted: sumgp.ConstrainedGP) -> None:
    posterior = fitted.posterior(np.linspace(0.0, 1.0, 300))
    assert repr(posterior) == "Posterior(300 points of t<1>: a, b)"
    assert "measurements" in repr(posterior.observed())
    page = posterior._repr_html_()
    assert page.count("<tr") == 6
    assert "t<1>" not in page
    assert "a_lower" in page
    assert len(page) < 5000
    assert "measurements" in posterior.observed()._repr_html_()


def test_fit_report(fitted: sumgp.ConstrainedGP) -> None:
    report = fitted.fit_report_
    assert len(repr(report)) < 200
    assert "strategy: Conditioned" in str(report)
    assert "Conditioned" in report._repr_html_()
    assert "<table" in report._repr_html_()


def test_estimator(fitted: sumgp.ConstrainedGP) -> None:
    assert len(repr(fitted)) < 300
    shown = fitted._repr_mimebundle_()
    assert shown["text/plain"] == repr(fitted)
    assert "16 of 16 values measured" in shown["text/html"]
    assert "a + b = 1" in shown["text/html"]
    assert "t&lt;1&gt;" in shown["text/html"]
    assert len(shown["text/html"]) < 5000
    assert "not fitted" in sumgp.ConstrainedGP("a = 1")._repr_html_()


@pytest.mark.parametrize(
    ("setting", "name", "made"),
    [
        ("strategy", "linearized", sumgp.Linearized),
        ("strategy", "Linearized()", sumgp.Linearized),
        ("strategy", "projected", sumgp.Projected),
        ("kernel", "matern32", None),
        ("kernel", "rbf + matern52", None),
        ("kernel", "rational_quadratic", None),
        ("solver", "markov", None),
        ("solver", "dense", None),
    ],
)
def test_names_of_the_command_line_are_valid_in_python(setting: str, name: str, made: type | None) -> None:
    x = np.linspace(0.0, 1.0, 8)
    Y = np.column_stack([x, 1.0 - x]) + 0.05 * np.random.default_rng(1).standard_normal((8, 2))
    settings = {"kernel": "matern32" if name == "markov" else None, setting: name}
    gp = sumgp.ConstrainedGP("a + b = 1", outputs=["a", "b"], uncertainty="plug-in", restarts=0, **settings).fit(x, Y)
    assert getattr(gp, setting) == name
    assert np.abs(gp.posterior(x).residual()).max() < 1e-9
    if made is not None:
        assert isinstance(gp.strategy_, made)
    if name == "matern32":
        again = sumgp.ConstrainedGP(
            "a + b = 1", uncertainty="plug-in", restarts=0, outputs=["a", "b"], kernel=Matern(nu=1.5)
        )
        np.testing.assert_array_equal(again.fit(x, Y).predict(x), gp.predict(x))


def test_named_choices_are_saved_and_loaded(tmp_path) -> None:
    x = np.linspace(0.0, 1.0, 8)
    gp = sumgp.ConstrainedGP(kernel="matern32", solver="dense", uncertainty="plug-in", restarts=0).fit(x, x**2)
    gp.save(tmp_path / "m.sumgp")
    again = sumgp.load(tmp_path / "m.sumgp")
    assert (again.kernel, again.solver) == ("matern32", "dense")
    np.testing.assert_array_equal(again.predict(x), gp.predict(x))


@pytest.mark.parametrize(
    ("setting", "wrong", "valid"),
    [("strategy", "linear", "linearized"), ("kernel", "matern", "matern52"), ("solver", "fast", "kronecker")],
)
def test_wrong_names_list_the_valid_ones(setting: str, wrong: str, valid: str) -> None:
    with pytest.raises(sumgp.DataError, match=f"{setting}: expected one of .*{valid}.*got '{wrong}'"):
        sumgp.ConstrainedGP("a + b = 1", **{setting: wrong}).fit(np.arange(3.0), np.ones((3, 2)))
