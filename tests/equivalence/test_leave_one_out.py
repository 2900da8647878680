"""The closed form of leave-one-row-out densities equals refitting without the row."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from equivalence.held import HeldProblem
from equivalence.test_joint_and_short_cut import ROUGH, data
from scipy.stats import multivariate_normal

from sumgp import Conditioned, ConstrainedGP, LinearConstraint, Unconstrained
from sumgp.strategies import Strategy
from sumgp.strategies.left_out import Known, RowNoise, TrainingRows, component_left_out, left_out
from sumgp.strategies.problem import FitProblem

THETA = np.array([0.2, -0.1, 0.3, 0.4, -0.5, 0.2])
CASES: dict[str, tuple[LinearConstraint | None, Strategy]] = {
    "no law": (None, Unconstrained()),
    "law": (LinearConstraint([1.0, 1.0, 1.0], 2.0), Conditioned()),
}


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("name", CASES)
def test_closed_form_equals_refitting_without_the_row(name: str, missing: float) -> None:
    law, strategy = CASES[name]
    x, Y = data(missing)
    Y[3] = np.nan
    gp = ConstrainedGP(law, kernel=ROUGH, noise=[0.05, 0.1, 0.2], uncertainty="plug-in", restarts=0)
    whole, _ = gp._problem(x, Y, lambda stage: None)
    problem = HeldProblem(**{f.name: getattr(whole, f.name) for f in fields(FitProblem)}, theta=THETA)
    component, noise = strategy.fit(problem).components[0], RowNoise.of(problem.priors("task")[0], THETA, len(Y))
    rows = TrainingRows(problem.x, problem.data.x, problem.y)
    closed = float(np.sum(component_left_out(component, rows, noise).log_density))
    total = 0.0
    for i, row in enumerate(problem.y):
        seen = ~np.isnan(row)
        # The row stays with nothing measured in it, so that units and input range are those of the whole.
        without = np.where(np.arange(len(Y))[:, None] == i, np.nan, Y)
        left_out = strategy.fit(replace(problem, data=replace(problem.data, y=without))).components[0]
        mean, covariance = left_out.marginals(problem.x[i : i + 1], problem.data.x[i : i + 1])
        predictive = covariance[0] + np.diag(problem.noise.known[i])
        if seen.any():
            total += float(multivariate_normal.logpdf(row[seen], mean[0][seen], predictive[np.ix_(seen, seen)]))
    assert closed == pytest.approx(total, rel=1e-7)


def test_round_off_beside_hardly_any_noise_leaves_numbers() -> None:
    """A posterior variance below zero, as round-off makes it, counts as zero: a logarithm of a number below zero."""
    y = np.array([[1.0, 2.0]])
    known = Known(y - 1e-7, -1e-12 * np.eye(2)[None])
    found = left_out(y, known, RowNoise(np.full((1, 2), 1e-14)), [np.array([0])], 1.07)
    exact = left_out(y, Known(known.mean, np.zeros((1, 2, 2))), RowNoise(np.full((1, 2), 1e-14)), [np.array([0])], 1.07)
    np.testing.assert_allclose(found.log_density, exact.log_density)
    np.testing.assert_allclose(found.variance, 1e-14)
