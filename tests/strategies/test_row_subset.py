"""Large data sets: hyperparameters from some of the rows are those of all rows, and predictions use all of them."""

from __future__ import annotations

import numpy as np
import pytest

import sumgp
from sumgp.strategies import averaging, few_rows


def series(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    x = np.linspace(0.0, 6.0, rows)
    Y = np.column_stack([np.sin(2 * x), 1.0 - np.sin(2 * x)]) + 0.1 * np.random.default_rng(seed).standard_normal((rows, 2))
    return x, Y


def fitted(x: np.ndarray, Y: np.ndarray, law: str | None) -> sumgp.ConstrainedGP:
    return sumgp.ConstrainedGP(law, outputs=["a", "b"], inputs=["x"], uncertainty="plug-in", restarts=0).fit(x, Y)


@pytest.mark.parametrize("law", [None, "a + b = 1"])
def test_same_answer_as_from_all_rows(law: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    x, Y = series(160)
    new = np.linspace(0.0, 6.0, 50)
    whole = fitted(x, Y, law).posterior(new)
    monkeypatch.setattr(averaging, "LARGEST_INTEGRATED", 100)
    monkeypatch.setattr(few_rows, "THINNED_ENTRIES", 120)
    thin = fitted(x, Y, law).posterior(new)
    # Complete data: the last steps are taken on all rows, so only the optimiser's own tolerance is left.
    assert np.max(np.abs(thin.mean - whole.mean) / whole.std) < 0.5
    assert thin.std == pytest.approx(whole.std, rel=0.3)
    assert not np.array_equal(thin.mean, whole.mean)


def test_rows_without_improvement_still_use_all_data(monkeypatch: pytest.MonkeyPatch) -> None:
    x, Y = series(200)
    Y[::7, 0] = np.nan
    new = np.linspace(0.0, 6.0, 50)
    monkeypatch.setattr(averaging, "LARGEST_INTEGRATED", 100)
    monkeypatch.setattr(few_rows, "THINNED_ENTRIES", 120)
    monkeypatch.setattr(few_rows, "LARGEST_DENSE", 100)
    mean = fitted(x, Y, None).predict(new)
    truth = np.column_stack([np.sin(2 * new), 1.0 - np.sin(2 * new)])
    # 60 rows alone would leave an error of about 0.1 / sqrt(60 / 8) = 0.037.
    assert np.sqrt(np.mean((mean - truth) ** 2)) < 0.03


def test_rarely_measured_outputs_keep_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    x, Y = series(400)
    Y[5:, 1] = np.nan
    monkeypatch.setattr(averaging, "LARGEST_INTEGRATED", 10**9)
    problem, _ = sumgp.ConstrainedGP(None)._problem(x, Y, lambda stage: None)
    rows = few_rows.chosen_rows(problem)
    assert set(range(5)) <= set(rows.tolist())
    assert len(rows) < 250
    assert np.array_equal(rows, few_rows.chosen_rows(problem))
