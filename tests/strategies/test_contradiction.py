"""Data that contradict a stated total, or a stated noise."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from test_estimator import plug_in

from sumgp import SumGPWarning


def test_rows_at_one_input_have_their_own_scatter() -> None:
    """Eight measurements of the same thing miss a + b = 1 by 0.02 with a standard error of about that size: no warning."""
    X = np.zeros((8, 1))
    Y = np.column_stack([np.full(8, 0.31), np.full(8, 0.71)]) + 0.1 * np.random.default_rng(1).standard_normal((8, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error", SumGPWarning)
        plug_in("a + b = 1", outputs=["a", "b"]).fit(X, Y)
    with pytest.warns(SumGPWarning, match="the data contradict the law 'a \\+ b = 3'") as caught:
        plug_in("a + b = 3", outputs=["a", "b"]).fit(X, Y)
    stated = float(str(caught[0].message).split("standard error of ")[1].split(";")[0])
    assert stated == pytest.approx(np.std(Y.sum(axis=1), ddof=1) / np.sqrt(8), rel=0.05)


@pytest.mark.parametrize(("noise", "said"), [(0.0, True), (0.01, True), (0.2, False), ("per-output", False)])
def test_repeats_that_differ_by_more_than_the_stated_noise_are_said(noise: object, said: bool) -> None:
    X = np.array([0.0, 1.0, 1.0, 2.0, 3.0])[:, None]
    Y = np.array([[0.1], [0.5], [0.8], [0.9], [1.0]])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        plug_in(None, outputs=["a"], noise=noise).fit(X, Y)
    texts = [str(w.message) for w in caught if issubclass(w.category, SumGPWarning)]
    assert any("rows at the same input differ from their mean in 'a' by 0.15" in text for text in texts) == said


def _on_circle(errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    t = np.linspace(0.0, 6.0, len(errors))
    return t[:, None], np.column_stack([np.cos(t), np.sin(t)]) + errors


def _correlated(correlation: float, rows: int = 60) -> np.ndarray:
    """(rows, 2) errors of size 0.1, an autoregression of first order."""
    fresh = np.random.default_rng(1004).standard_normal((rows, 2))
    errors = fresh.copy()
    for row in range(1, rows):
        errors[row] = correlation * errors[row - 1] + np.sqrt(1.0 - correlation**2) * fresh[row]
    return 0.1 * errors


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_errors_alike_in_neighbouring_rows_are_said_with_their_size(correlation: float) -> None:
    X, Y = _on_circle(_correlated(correlation))
    model = plug_in("x**2 + y**2 = 1", outputs=["x", "y"], inputs=["t"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        status = model.fit(X, Y).fit_report_["status"]
    found = [str(w.message) for w in caught if "similar errors" in str(w.message)]
    assert len(found) == int(correlation > 0)
    assert ("similar errors" in status) == bool(found)
    for text in found:
        sizes = [float(size) for size in text.split("noise=[")[1].split("]")[0].split(",")]
        np.testing.assert_allclose(sizes, 0.1, rtol=0.5)
        again = plug_in("x**2 + y**2 = 1", outputs=["x", "y"], inputs=["t"], noise=sizes)
        assert again.fit(X, Y).fit_report_["status"] == "converged"


def test_a_wrong_total_stands_in_the_status() -> None:
    X, Y = _on_circle(_correlated(0.0))
    with pytest.warns(SumGPWarning, match="the data contradict the law"):
        model = plug_in("x**2 + y**2 = 1.4", outputs=["x", "y"], inputs=["t"]).fit(X, Y)
    assert model.fit_report_["status"] == "converged, but the data contradict the law 'x**2 + y**2 = 1.4'"
