"""A law that is met on many branches: predictions stay on one that the data support."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.integrate import solve_ivp

import sumgp
from sumgp.laws import FormulaConstraint
from sumgp.laws.geometry import UnitFreeLaw, project


def pendulum(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
    """About 20 noisy rows of a pendulum at large angles, and its true values at 100 times."""
    generator = np.random.default_rng([seed, 44])
    start = generator.uniform(2.0, 3.0)
    n, end = int(generator.integers(16, 25)), generator.uniform(8.0, 20.0)
    t, dense = np.sort(generator.uniform(0.0, end, n)), np.linspace(0.0, end, 100)
    options = {"dense_output": True, "rtol": 1e-9, "atol": 1e-9}
    truth = solve_ivp(lambda t, s: [s[1], -np.sin(s[0])], (0.0, end), [start, 0.0], **options).sol
    noise = generator.choice([0.05, 0.1, 0.2])
    return t, truth(t).T + noise * generator.standard_normal((n, 2)), dense, truth(dense).T, float(-np.cos(start))


def test_no_prediction_on_a_branch_without_data() -> None:
    t, Y, dense, _, H = pendulum(1022)
    gp = sumgp.ConstrainedGP("v**2/2 - cos(q) = H", outputs=["q", "v"], constants={"H": H})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = gp.fit(t, Y).posterior(dense)
    inputs = posterior.scaling.inputs(posterior.x)
    angles = [posterior.scaling.restore(c.marginals(inputs, posterior.x)[0])[:, 0] for c in posterior.fitted.components]
    # The data lie between -pi and pi, and without the law the angle is known within 1.5 everywhere.
    assert np.abs(angles).max() < 8.0
    assert posterior.std.max() < 2.5
    assert np.abs(np.stack(posterior.interval())).max() < 9.0


def test_a_point_near_the_top_is_not_thrown_round_the_circle() -> None:
    """At q = 3.1 the slope is 0.04: Newton's step alone leads eight radians away."""
    bound = FormulaConstraint("v**2/2 - cos(q) = 0.65").bind(["q", "v"], ["t"])
    law = UnitFreeLaw(bound, np.zeros(2), np.ones(2), np.ones(1))
    for q in np.linspace(2.9, 3.4, 26):
        found = project(law, np.array([[q, 0.05]]), np.diag([0.25, 0.01])[None], np.zeros((1, 1)))
        assert found.unmet[0] < 1e-12
        assert abs(found.points[0, 0] - q) < 1.5
