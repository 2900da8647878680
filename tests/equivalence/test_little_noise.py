"""Rows left out of a fit that has hardly any noise: as the ways of stacking tell of them, and fitted without these rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import sumgp
from sumgp.laws import unit_free_law
from sumgp.strategies.averaging import WIDENING
from sumgp.strategies.left_out import RowNoise, TrainingRows
from sumgp.strategies.stacking import Question, _ways, blocks_of
from sumgp.strategies.weight_component import plain_component

X = np.linspace(0.0, 1.0, 24)[:, None]
Y = np.column_stack([np.sin(5.0 * X[:, 0]), np.cos(4.0 * X[:, 0])])
Y = np.column_stack([Y, Y[:, 0] * Y[:, 1]])


@pytest.mark.parametrize("law", [None, "c = a*b"])
def test_left_out_values_are_those_of_a_fit_without_them(law: str | None) -> None:
    gp = sumgp.ConstrainedGP([law] if law else None, outputs=list("abc"), inputs=["x"], kernel=RBF(0.15))
    problem, _ = gp._problem(X, np.where(np.arange(24)[:, None] == [3, -1, -1], np.nan, Y), lambda stage: None, None)
    prior = problem.priors("identity")[0]
    theta = prior.start()
    theta[prior.noise_slice] = np.log(1e-4)
    onto = None if law is None else unit_free_law(problem.law, problem.data, problem.scaling)
    component = plain_component(problem, prior, theta, onto).widened(WIDENING)
    rows, noise = TrainingRows(problem.x, problem.data.x, problem.y), RowNoise.learnt(problem.noise, component.noise, 24)
    blocks = blocks_of(problem.x)
    one, several = _ways(component, rows, noise, Question(blocks, False, law is not None))
    for found, block in ((one, np.array([10])), (several, blocks[1])):
        y = problem.data.y.copy()
        y[block] = np.nan
        without = plain_component(replace(problem, data=replace(problem.data, y=y)), prior, theta)
        # A law at each point alone is not taken back from a block: that is scored before it.
        without = replace(without.widened(WIDENING), law=onto if len(block) == 1 else None)
        mean, covariance = without.marginals(problem.x[block], problem.data.x[block])
        assert found.residual[block] == pytest.approx(problem.y[block] - mean, abs=1e-5)
        assert found.variance[block] == pytest.approx(np.einsum("ntt->nt", covariance) + component.noise, rel=1e-3)
    assert np.isnan(one.residual[3]).tolist() == [True, False, False]
