"""Cells of gaps by interpolation: lines by hand, its share where it is right and where it is wrong, what it leaves alone."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
import pytest

from sumgp import ConstrainedGP
from sumgp.prediction import completion, row_interpolation
from sumgp.prediction.row_cells import Rows, given_cells
from sumgp.prediction.row_correlation import with_row_correlation
from sumgp.prediction.row_interpolation import interpolated
from sumgp.strategies import Fitted
from sumgp.strategies.own_outputs import own_component

N, GAP = 70, np.arange(30, 37)
LAW, NAMES = "a + b + c + d = 100", ["a", "b", "c", "d"]
X = np.arange(float(N))


@dataclass(frozen=True)
class Table:
    """Values (N, 4) that add up to 100, and which are hidden: two outputs in a gap, and one row elsewhere."""

    values: np.ndarray
    hidden: np.ndarray

    @property
    def y(self) -> np.ndarray:
        return np.where(self.hidden, np.nan, self.values)


def table(walks: bool, seed: int = 1000) -> Table:
    """Random walks of which c follows a, or smooth waves."""
    rng = np.random.default_rng(seed)
    if walks:
        a, b, c = np.cumsum(rng.standard_normal((N, 3)), axis=0).T
        c = 0.9 * a + 0.3 * c
    else:
        a, b, c = (np.sin(X / length) for length in (3.0, 4.0, 5.0))
    values = np.column_stack([a, b, c, 100.0 - a - b - c])
    hidden = np.zeros(values.shape, dtype=bool)
    hidden[GAP, :2] = True
    hidden[50, :2] = True
    return Table(values, hidden)


def fit(case: Table) -> ConstrainedGP:
    return ConstrainedGP(LAW, outputs=NAMES, inputs=["x"], uncertainty="plug-in", restarts=0).fit(X, case.y)


def own_fill(gp: ConstrainedGP, case: Table) -> tuple[row_interpolation.Beside | None, list[np.ndarray]]:
    """Interpolation, and cells (N, 4) that outputs with kernels of their own are filled with beside it and alone."""
    posterior, y = gp._table(X, case.y)
    rows = Rows(gp.scaling_.inputs(posterior.x), posterior.x, gp.scaling_.outputs(y), ~case.hidden)
    own = own_component(gp._problem(X, case.y, print)[0])
    assert own is not None
    fitted, freedom = with_row_correlation(Fitted((own,), np.ones(1)), rows.inputs, rows.y, True)
    balance = completion._balance(posterior)
    found = interpolated(fitted, rows, rows, balance, freedom)
    fills = [given_cells(fitted, rows, balance, True, freedom, beside).y for beside in (found, None)]
    return found, [gp.scaling_.restore(fill) for fill in fills]


@pytest.fixture(scope="module")
def walks() -> tuple[ConstrainedGP, Table]:
    case = table(walks=True)
    return fit(case), case


def test_lines_between_the_nearest_cells(walks: tuple[ConstrainedGP, Table]) -> None:
    case = walks[1]
    rows = Rows(X[:, None], X[:, None], case.y, ~case.hidden)
    lines = row_interpolation._line(rows, GAP)
    before, after = case.values[GAP[0] - 1], case.values[GAP[-1] + 1]
    part = (np.arange(len(GAP)) + 1.0)[:, None] / (len(GAP) + 1.0)
    np.testing.assert_allclose(lines, before + part * (after - before), atol=1e-12)


def test_walks_that_follow_each_other_are_filled_better(walks: tuple[ConstrainedGP, Table]) -> None:
    """What c does within the gap tells of a; one row from its neighbours it tells little."""
    gp, case = walks
    found, (new, old) = own_fill(gp, case)
    assert found is not None
    assert np.all(found.share[GAP] > 0.3)
    assert found.share[50] == 0.0  # its neighbours were measured
    for cells in (gp.scaling_.restore(found.y)[GAP], new):
        np.testing.assert_allclose(cells.sum(axis=1), 100.0, atol=1e-9)
    np.testing.assert_allclose(gp.scaling_.restore(found.y)[GAP, 2:], case.values[GAP, 2:], atol=1e-9)
    errors = [np.sqrt(np.mean((fill - case.values)[GAP, :2] ** 2)) for fill in (new, old)]
    assert errors[0] < 0.9 * errors[1]
    np.testing.assert_array_equal(new[50], old[50])


def test_completion_takes_it_up(monkeypatch: pytest.MonkeyPatch, walks: tuple[ConstrainedGP, Table]) -> None:
    """Its share of the weight of own outputs, in mean and interval; measured cells stay."""
    gp, case = walks
    own = own_component(gp._problem(X, case.y, print)[0])
    assert own is not None
    both = deepcopy(gp)
    both.fitted_ = replace(
        gp.fitted_, components=(*gp.fitted_.components, own), weights=np.append(0.2 * gp.fitted_.weights, 0.8)
    )
    new = both.completion(X, case.y)
    order = np.random.default_rng(0).permutation(N)
    np.testing.assert_allclose(both.completion(X[order], case.y[order]).mean, new.mean[order], rtol=1e-9)
    monkeypatch.setattr(completion, "interpolated", lambda *given: None)
    old = both.completion(X, case.y)
    assert np.all(np.abs(new.mean - old.mean)[GAP, 0] > 1e-3)
    np.testing.assert_array_equal(new.mean[~case.hidden], case.values[~case.hidden])
    np.testing.assert_allclose(new.mean.sum(axis=1), 100.0, atol=1e-9)


def test_smooth_waves_are_not_interpolated() -> None:
    case = table(walks=False)
    found, _ = own_fill(fit(case), case)
    assert found is None or found.share.max() < 0.05


def test_few_complete_rows_say_nothing(walks: tuple[ConstrainedGP, Table]) -> None:
    """Without five complete runs, at the ends of the table, and at new rows there is no interpolation."""
    gp, case = walks
    thinned = case.hidden.copy()
    thinned[np.arange(N) % 3 > 0, 3] = True
    few = Table(case.values, thinned)
    assert own_fill(fit(few), few)[0] is None
    posterior, new = gp._table(X[GAP] + 0.5, case.y[GAP])
    rows = Rows(gp.scaling_.inputs(posterior.x), posterior.x, gp.scaling_.outputs(new), np.zeros(new.shape, dtype=bool))
    data = Rows(gp.scaling_.inputs(X[:, None]), X[:, None], gp.scaling_.outputs(case.y), ~case.hidden)
    assert interpolated(posterior.fitted, rows, data, completion._balance(posterior), np.inf) is None
