"""Many fits in one call: the same numbers as one by one, in the order given, failures as rows."""

from __future__ import annotations

import os
import signal

import numpy as np
import pandas as pd
import pytest

from sumgp import ConstrainedGP, fit_many
from sumgp.errors import DataError

AT = np.linspace(0.0, 6.0, 7)
COLUMNS = ["status", "message", "log_evidence", "cpu_seconds", "mean", "lower", "upper"]


def model() -> ConstrainedGP:
    return ConstrainedGP("z**2/2 + v**2/2 = E", outputs=["z", "v"], constants={"E": 0.8}, uncertainty="plug-in", restarts=0)


def datasets(count: int = 4) -> list[tuple[np.ndarray, np.ndarray]]:
    """Oscillators of different phase, so that no row can be taken for another."""
    rng = np.random.default_rng(5)
    t = np.linspace(0.0, 6.0, 10)
    curves = [np.sqrt(1.6) * np.column_stack([np.sin(t + k), np.cos(t + k)]) for k in range(count)]
    return [(t, curve + 0.05 * rng.standard_normal(curve.shape)) for curve in curves]


def same_numbers(a: pd.DataFrame, b: pd.DataFrame) -> bool:
    arrays = all(np.array_equal(x, y) for name in ("mean", "lower", "upper") for x, y in zip(a[name], b[name], strict=True))
    return arrays and list(a.status) == list(b.status) and np.array_equal(a.log_evidence, b.log_evidence)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return fit_many(datasets(), model(), at=AT, jobs=1, progress=False)


def test_each_row_is_the_fit_of_its_data_set(table: pd.DataFrame) -> None:
    assert list(table.columns) == COLUMNS
    for row, (X, Y) in zip(table.itertuples(), datasets(), strict=True):
        gp = model().fit(X, Y)
        posterior = gp.posterior(AT)
        lower, upper = posterior.interval(0.95)
        np.testing.assert_array_equal(row.mean, posterior.mean)
        np.testing.assert_array_equal(row.lower, lower)
        np.testing.assert_array_equal(row.upper, upper)
        assert row.log_evidence == gp.fit_report_.log_evidence
        assert row.status == "converged"
        assert row.cpu_seconds > 0


def test_any_number_of_jobs_gives_the_same_numbers(table: pd.DataFrame) -> None:
    assert same_numbers(table, fit_many(datasets(), model(), at=AT, jobs=2, progress=False))
    assert not same_numbers(table, table[::-1])


def test_failures_are_rows_with_a_reason() -> None:
    good = datasets(2)
    nothing = (good[0][0], np.full((10, 2), np.nan))
    uneven = (good[0][0], good[0][1][:5])
    table = fit_many([good[0], nothing, uneven, good[1]], model(), at=AT, jobs=2, progress=False)
    assert list(table.status) == ["converged", "failed", "failed", "converged"]
    assert "DataError" in table.message[1]
    assert "only NaN" in table.message[1]
    assert table["mean"][1] is None
    assert np.isnan(table.log_evidence[2])
    assert table["mean"][3].shape == (len(AT), 2)


def test_where_to_predict() -> None:
    (X, Y), second = datasets(2)
    table = fit_many([(X, Y, AT[:3]), second], model(), jobs=1, progress=False)
    assert [len(m) for m in table["mean"]] == [3, len(X)]
    wide = fit_many([(X, Y)], model(), at=AT, level=0.99, jobs=1, progress=False)
    narrow = fit_many([(X, Y)], model(), at=AT, level=0.5, jobs=1, progress=False)
    assert np.all(wide.upper[0] - wide.lower[0] > narrow.upper[0] - narrow.lower[0])


def test_warnings_are_kept_in_the_row() -> None:
    X, Y = datasets(1)[0]
    far = fit_many([(X, Y + 5.0)], model(), at=AT, jobs=1, progress=False)
    assert far.message[0]


def test_wrong_data_sets_are_refused_before_any_work() -> None:
    with pytest.raises(DataError, match=r"datasets.*ndarray at position 1"):
        fit_many([datasets(1)[0], np.zeros(3)], model())


class Deadly:
    """Kills the process that reads it; harmless to hand over."""

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        os.kill(os.getpid(), signal.SIGKILL)
        return np.zeros(1)


def test_a_process_that_dies_is_a_failed_row(table: pd.DataFrame) -> None:
    sets = datasets()
    killed = fit_many([sets[0], (Deadly(), sets[1][1]), *sets[2:]], model(), at=AT, jobs=2, progress=False)
    assert list(killed.status == "failed") == [False, True, False, False]
    assert "died" in killed.message[1]
    assert same_numbers(killed.drop(1), table.drop(1))


def test_no_data_sets_give_an_empty_table() -> None:
    table = fit_many([], model(), progress=False)
    assert list(table.columns) == COLUMNS
    assert len(table) == 0
