"""Rows on lines that lie further apart than a field varies say nothing of the lengthscale across them."""

from __future__ import annotations

import numpy as np
import pytest
from equivalence.small_problems import differences
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

import sumgp
from sumgp.hyperparameters.scan import gappy, row_spacing
from sumgp.priors.alike import alike_lengths, several_lengths

LINES, ROWS, LENGTH, NOISE = 3, 90, 0.1, 0.2


def on_lines(generator: np.random.Generator) -> np.ndarray:
    x = generator.uniform(size=(ROWS, 2))
    x[:, 1] = (generator.integers(0, LINES, ROWS) + 0.5) / LINES
    return x


def covered(solver: sumgp.solvers.Solver, seed: int) -> float:
    """Share of the true values over the whole map that 95 % intervals hold."""
    generator = np.random.default_rng(seed)
    x, asked = on_lines(generator), generator.uniform(size=(300, 2))
    K = RBF(LENGTH)(np.vstack([x, asked])) + 1e-8 * np.eye(ROWS + len(asked))
    field = np.linalg.cholesky(K) @ generator.standard_normal(len(K))
    y = field[:ROWS] + NOISE * generator.standard_normal(ROWS)
    gp = sumgp.ConstrainedGP(kernel=RBF([1.0, 1.0]), solver=solver, uncertainty="plug-in").fit(x, y)
    low, high = gp.posterior(asked).interval(0.95)
    truth = field[ROWS:, None]
    return float(np.mean((low < truth) & (truth < high)))


@pytest.mark.parametrize("solver", [sumgp.Dense(), sumgp.Vecchia()])
def test_intervals_between_the_lines_hold_the_field(solver: sumgp.solvers.Solver) -> None:
    """Held 79 and 80 %: the lengthscale across was as long as the rows allowed, up to three times too long."""
    assert np.mean([covered(solver, seed) for seed in range(1000, 1006)]) > 0.9


@pytest.mark.parametrize("n_inputs", [2, 3])
@pytest.mark.parametrize("rows", [12, 60, 600])
def test_only_lines_and_clusters_leave_gaps(rows: int, n_inputs: int) -> None:
    generator = np.random.default_rng(rows)
    scattered, lines = generator.uniform(size=(rows, n_inputs)), on_lines(generator)
    grid = np.stack(np.meshgrid(*[np.arange(5.0)] * n_inputs), axis=-1).reshape(-1, n_inputs)
    clusters = np.repeat(generator.uniform(size=(6, n_inputs)), 20, axis=0) + 0.01 * generator.uniform(size=(120, n_inputs))
    found = [gappy(x, row_spacing(x)) for x in (scattered, grid, lines, clusters)]
    assert found == [False, False, True, True]
    assert not gappy(scattered[:, :1], 1e-9)  # one input has no other that it could be like


def test_lengthscales_are_alike_within_each_kernel_only() -> None:
    kernel = RBF([1.0, 2.0]) + ConstantKernel(1.0) * Matern([1.0, 1.0], nu=1.5) + RBF(1.0)
    groups = several_lengths(kernel)
    assert [g.tolist() for g in groups] == [[0, 1], [3, 4]]
    here = np.array([0.3, -0.5, 2.0, 0.1, 0.4, 0.7])
    value, slope = alike_lengths(here, groups)
    np.testing.assert_allclose(slope, differences(lambda p: alike_lengths(p, groups)[0], here), atol=1e-6)
    assert value < alike_lengths(np.array([0.3, 0.3, 2.0, -1.0, -1.0, 0.7]), groups)[0] == 0.0
