"""Rows that kernels of large maps are compared on."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.spatial import cKDTree
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from sumgp.solvers.vecchia.covariance import LatentKernels, ScaledCovariance
from sumgp.solvers.vecchia.mixing import Found, LengthPrior, MixedObjective, MixedRows, search_near
from sumgp.solvers.vecchia.search import KEPT_RANGE, SearchEnd, least_theta, spread_rows


@pytest.mark.parametrize(("N", "count"), [(1_100, 1_024), (20_000, 2_048), (100_000, 2_048)])
def test_rows_for_the_comparison_have_pairs_at_all_distances(N: int, count: int) -> None:
    x = np.random.default_rng(0).uniform(size=(N, 2))
    rows = spread_rows(x, count)
    assert len(np.unique(rows)) == len(rows)
    assert abs(len(rows) - count) < 0.01 * count
    tree = cKDTree(x[rows])
    edges = np.geomspace(2.0 / np.sqrt(N), 0.5, 9)
    within = np.array([tree.count_neighbors(tree, edge) for edge in edges]) / len(rows)
    assert np.all(np.diff(within) > 1.0)  # a row has another between each edge and the next


@pytest.mark.parametrize("x", [np.zeros((5_000, 2)), np.linspace(0.0, 1.0, 5_000)[:, None]])
def test_rows_for_the_comparison_of_odd_places(x: np.ndarray) -> None:
    assert len(np.unique(spread_rows(x, 1_024))) == 1_024


class _Bowl(SimpleNamespace):
    """|x|^2 for 100 rows."""

    rows = SimpleNamespace(x=np.zeros((100, 1)))

    def bounds(self) -> list[tuple[float, float]]:
        return [(-10.0, 10.0)] * 3

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        return float(x @ x), 2.0 * x


def test_a_search_that_its_curvature_misled_does_not_end_as_converged() -> None:
    bowl: Any = _Bowl()
    far_too_long = Found(np.array([1.0, 2.0, 3.0]), 0.0, "", 0, 1e8 * np.eye(3))
    found = search_near(bowl, far_too_long, 25, 0.05)
    assert found.status == "converged"
    assert found.value < 0.1  # 1400 at the start


def test_terms_of_long_range_keep_it_on_all_rows() -> None:
    kernel = Matern([0.1, 0.2], nu=1.5) + ConstantKernel(2.0) * Matern([1.0, 3.0], nu=1.5)
    rows = MixedRows(np.zeros((5, 2)), np.zeros((5, 1)), np.ones(5), np.eye(1))
    prior = LengthPrior(*(np.zeros(5) for _ in range(3)))
    objective = MixedObjective(rows, LatentKernels((ScaledCovariance(kernel),)), ((),), prior)
    end = SearchEnd(objective, Found(np.append(kernel.theta, [0.0, 1.0]), 0.0, "", 0, np.eye(7)))
    least = least_theta(end)
    np.testing.assert_array_equal(least[:3], -np.inf)
    np.testing.assert_allclose(np.exp(least[3:]), KEPT_RANGE * np.array([1.0, 3.0]))
    low = np.array(MixedObjective(rows, objective.kernels, ((),), prior, least).bounds())[:, 0]
    np.testing.assert_allclose(low[3:5], least[3:])
    np.testing.assert_allclose(low[:3], np.array(objective.bounds())[:3, 0])
