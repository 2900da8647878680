"""Cells of a row from the others: the correlation of rows, and noise that obeys the law, by hand and in coverage."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import norm

from sumgp import ConstrainedGP
from sumgp.data import Scaling
from sumgp.errors import SumGPWarning
from sumgp.laws import Imbalance, LinearConstraint
from sumgp.prediction.row_balance import Balance
from sumgp.prediction.row_cells import Rows, given_cells
from sumgp.prediction.row_correlation import ROWS_FOR_NONE, row_correlation, with_row_correlation
from sumgp.strategies import Cells, Fitted, LocalPosterior, OwnComponent
from sumgp.strategies.conditioned import ClosedComponent
from sumgp.strategies.left_out import LeftOut
from sumgp.strategies.stacking import shrunk_correlation


def test_complete_rows_by_hand() -> None:
    z = np.random.default_rng(1000).standard_normal((12, 3)) @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.3], [0.0, 0.0, 1.0]])
    unit = z / np.sqrt(np.mean(z**2, axis=0))
    whole = ROWS_FOR_NONE * 3 * np.eye(3) + unit.T @ unit
    sd = np.sqrt(np.diagonal(whole))
    assert row_correlation(z) == pytest.approx(whole / np.outer(sd, sd), abs=1e-12)


def test_partial_rows_count_and_empty_ones_do_not() -> None:
    z = np.random.default_rng(1001).multivariate_normal(np.zeros(3), [[1.0, 0.8, 0.0], [0.8, 1.0, 0.0], [0.0, 0.0, 1.0]], 40)
    z[::3, 1] = np.nan
    R = row_correlation(z)
    assert row_correlation(np.vstack([z, np.full((5, 3), np.nan)])) == pytest.approx(R, abs=1e-12)
    assert R[0, 1] > 0.6
    assert np.abs(R - row_correlation(z[~np.isnan(z[:, 1])])).max() > 1e-3


@dataclass(frozen=True)
class UnitOutputs(OwnComponent):
    """Outputs that are N(0, 1), noise included, in every row."""

    def alone(self, x: np.ndarray, cells: Cells) -> tuple[np.ndarray, np.ndarray]:
        shape = (len(x), self.n_outputs)
        return np.zeros(shape), np.ones(shape) - self.noise

    @staticmethod
    def local_posteriors(components: tuple[OwnComponent, ...], x: np.ndarray, x_law: np.ndarray) -> list[LocalPosterior]:
        T = components[0].n_outputs
        return [LocalPosterior(np.zeros((len(x), T)), np.tile(np.eye(T), (len(x), 1, 1)))] * len(components)


def held(seed: int, noise: float, estimated: bool) -> np.ndarray:
    """Nine values, the first the sum of the others, three of them hidden in every third of 70 rows: which of these cells the
    95 % intervals hold, with the correlation of rows, or (not ``estimated``) with that of single pairs of outputs."""
    rng = np.random.default_rng(seed)
    parts = rng.standard_normal((70, 3)) @ rng.standard_normal((3, 8)) + noise * rng.standard_normal((70, 8))
    values = np.column_stack([parts.sum(axis=1), parts])
    sizes, hidden = values.std(axis=0), np.zeros(values.shape, dtype=bool)
    for row in range(0, 70, 3):
        hidden[row, rng.choice(9, 3, replace=False)] = True
    truth, x = values / sizes, np.arange(70.0)[:, None]
    y = np.where(hidden, np.nan, truth)
    own = UnitOutputs((), np.eye(9), np.zeros(0), np.full(9, 0.5), 9, closed=True)
    fitted, freedom = with_row_correlation(Fitted((own,), np.ones(1)), x, y, True)
    if not estimated:
        pairs = shrunk_correlation(LeftOut(y, np.ones_like(y)))
        fitted, freedom = Fitted((replace(own, correlation=pairs),), np.ones(1)), np.inf
    law = LinearConstraint(np.array([-1.0, *np.ones(8)]) * sizes, 0.0).bind([f"y{t}" for t in range(9)], ["x"])
    seen = Imbalance(np.zeros(1), np.zeros(1), np.array([40]), np.ones(1, dtype=bool))
    balance = Balance(law, Scaling(np.zeros(1), np.ones(1), np.zeros(9), np.ones(9)), seen, np.zeros(0), np.zeros(0))
    found = given_cells(fitted, Rows(x, x, y, ~hidden), balance, True, freedom)
    sd = np.sqrt(np.maximum(np.einsum("ntt->nt", found.y_covariance), 0.0))
    return np.asarray((np.abs(found.y - truth) <= norm.ppf(0.975) * sd + 1e-9)[hidden])


def test_nine_closed_outputs_are_not_filled_too_surely() -> None:
    """Pairs of outputs one by one make a matrix that is no correlation, and the law is then very sure of what it says."""
    seeds = range(1000, 1008)
    assert np.mean([held(seed, 0.3, estimated=True) for seed in seeds]) > 0.92
    assert np.mean([held(seed, 0.3, estimated=False) for seed in seeds]) < 0.80
    assert 0.92 < np.mean([held(seed, 1.0, estimated=True) for seed in seeds]) < 0.98


@pytest.fixture(scope="module")
def closed() -> tuple[ConstrainedGP, np.ndarray, np.ndarray]:
    """A fit to a + b + c = 10 with noise 0.6 z of a, of which the law gives -0.3 z to b and to c."""
    t = np.linspace(0.0, 6.0, 60)
    z = np.random.default_rng(1002).standard_normal(60)
    a, b = 3.0 + np.sin(t), 3.0 + np.cos(1.3 * t)
    Y = np.column_stack([a, b, 10.0 - a - b]) + np.outer(z, [0.6, -0.3, -0.3])
    model = ConstrainedGP("a + b + c = 10", outputs=["a", "b", "c"], kernel="rbf", uncertainty="plug-in", restarts=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SumGPWarning)  # noise of b and c is no contradiction between law and data
        return model.fit(t, Y), t, Y


def test_measurements_have_the_noise_that_was_fitted(closed: tuple[ConstrainedGP, np.ndarray, np.ndarray]) -> None:
    """All noise is of one output's making: given that it obeys the law it would vanish, but every output has some."""
    gp, t, _ = closed
    posterior = gp.posterior(t[::7])
    noise = np.sqrt(posterior.observed().std ** 2 - posterior.std**2)
    assert noise[3] == pytest.approx([0.6, 0.3, 0.3], rel=0.3)
    draws = posterior.observed().sample(400, random_state=1)
    assert np.max(np.abs(draws.sum(axis=2) - 10.0)) < 1e-9
    assert draws[:, 3].std(axis=0) == pytest.approx(posterior.observed().std[3], rel=0.15)


def test_cells_tell_of_the_noise_of_others(closed: tuple[ConstrainedGP, np.ndarray, np.ndarray]) -> None:
    """Of a new row a is measured, with noise +0.6: b and c have -0.3 each; as one normal distribution of a row."""
    gp, t, _ = closed
    component = gp.fitted_.components[0]
    assert isinstance(component, ClosedComponent)
    N, T = component.noise_covariance, 3
    x = gp.scaling_.inputs(t[30:31, None] + 0.03)
    m, V = component.marginals(x, t[30:31, None] + 0.03)
    y = np.array([[m[0, 0] + 0.8, np.nan, np.nan]])
    rows = Rows(x, t[30:31, None] + 0.03, y, np.zeros((1, T), dtype=bool))
    found = given_cells(Fitted((component,), np.ones(1)), rows)
    total = V[0] + N
    gain = total[1:, 0] / total[0, 0]
    assert found.y[0, 1:] == pytest.approx(m[0, 1:] + 0.8 * gain, abs=1e-9)
    assert found.y_covariance[0, 1:, 1:] == pytest.approx(total[1:, 1:] - np.outer(gain, total[0, 1:]), abs=1e-9)
    filled = gp.posterior(
        t[30:31] + 0.03, given=[[gp.posterior(t[30:31] + 0.03).mean[0, 0] + 0.6, np.nan, np.nan]]
    ).observed()
    free = gp.posterior(t[30:31] + 0.03).mean[0]
    assert filled.mean[0, 1:] - free[1:] == pytest.approx([-0.3, -0.3], abs=0.06)
