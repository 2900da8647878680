"""Left-out rows of maps in the report: those of the same hyperparameters given all rows but one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern

from sumgp import ConstrainedGP, Vecchia
from sumgp.report.scores import leave_one_out

LAW, NAMES, N = "a + b + c = 1", ["a", "b", "c"], 100  # rows: fewer than the nodes of a prediction, which is then exact


def rows(closed: bool, gaps: bool) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(N, 2))
    a, b = np.sin(5 * x[:, 0]), np.cos(4 * x[:, 1])
    f = np.column_stack([a, 0.5 * a + b, 1.0 - 1.5 * a - b])
    noise = 0.2 * rng.standard_normal((N, 3)) @ np.array([[1.0, 0.9, 0.0], [0.0, 0.4, 0.1], [0.0, 0.0, 1.0]])
    y = f + noise - (noise.mean(axis=1, keepdims=True) if closed else 0.0)
    if gaps:
        y[::7, 1] = np.nan
    return x, y


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("law", [LAW, None])
def test_noise_that_outputs_share(law: str | None, closed: bool, gaps: bool) -> None:
    x, y = rows(closed, gaps)
    kernel = Matern(0.5, nu=1.5)
    gp = ConstrainedGP(law, outputs=NAMES, solver=Vecchia(), kernel=kernel, uncertainty="plug-in").fit(x, y)
    found = leave_one_out(gp).standardised
    whole: Any = gp.fitted_.components[0]
    inputs, outputs = gp.scaling_.inputs(x), gp.scaling_.outputs(y)
    for i in (0, 3, 49):
        field = whole.field
        kept = np.any(field.x != inputs[i], axis=1)  # fits put rows into an order of their own
        fewer = replace(field, x=field.x[kept], precision=field.precision[kept], pulled=field.pulled[kept])
        mean, covariance = replace(whole, field=fewer).marginals(inputs[[i]], x[[i]])
        sd = np.sqrt(np.diagonal(covariance[0] + whole.noise_covariance))
        np.testing.assert_allclose(found[i], (outputs[i] - mean[0]) / sd, rtol=1e-3, atol=1e-3)
