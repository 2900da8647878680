"""What a curved law rules out although its tangent leaves it open, against integrals and on a damped oscillator."""

from __future__ import annotations

import numpy as np
import pytest
from support.law_solves import solve_law

from sumgp import ConstrainedGP, FunctionConstraint
from sumgp.laws.geometry import UnitFreeLaw
from sumgp.lawsolve import second_order
from sumgp_studies.experiments.oscillators import DampedOscillator
from sumgp_studies.experiments.problem import Cell
from sumgp_studies.metrics import rmse


def parabola(f: np.ndarray, x: np.ndarray) -> np.ndarray:
    return f[:, 1] - f[:, 0] ** 2


@pytest.mark.parametrize("centre", [0.0, 0.6])
def test_moments_equal_those_of_an_integral(centre: float) -> None:
    """a ~ N(centre, 1), b ~ N(0, 0.5^2), b = a^2: the tangent at a = 0 says nothing of a, the law does."""
    bound = FunctionConstraint(parabola).bind(("a", "b"), ("x",))
    law = UnitFreeLaw(bound, np.zeros(2), np.ones(2), np.ones(1))
    root, x = np.diag([1.0, 0.5])[None], np.zeros((1, 1))
    solution = solve_law(law, x, np.array([[centre, 0.0]]), np.diag([1.0, 0.25]), tolerance=1e-10)
    found = second_order(law, x, root, solution)
    rows = (solution.J[0] @ root[0]).T
    gain = np.column_stack([rows / solution.factor[0, 0], found.drop])
    a = np.linspace(-6.0, 6.0, 20_001)
    density = np.exp(-0.5 * (a - centre) ** 2 - 0.5 * a**4 / (0.25 + solution.variances[0]))
    mean = np.average(a, weights=density)
    sd = np.sqrt(np.average((a - mean) ** 2, weights=density))
    given_tangent = np.sqrt(1.0 - rows[0, 0] ** 2 / solution.factor[0, 0] ** 2)
    assert sd < 0.9 * given_tangent
    assert np.sqrt(1.0 - np.sum(gain[0] ** 2)) == pytest.approx(sd, rel=0.15)
    # The other output follows the tangent at the mode, so a part of the way is left.
    assert abs(solution.f[0, 0] + found.shift[0] - mean) <= 0.35 * abs(solution.f[0, 0] - mean) + 1e-9


def test_a_decaying_energy_tells_the_phase() -> None:
    """In the tangent the phase is open as for a constant energy: an error of 0.005 with an sd of 0.013."""
    data = DampedOscillator().dataset(Cell(0.1, 0.0), 1000)
    laws = [data.motion, data.constraint]
    model = ConstrainedGP(laws, outputs=["z", "v"], inputs=["t"], uncertainty="plug-in", restarts=0)
    posterior = model.fit(data.X_train, data.Y_train).posterior(data.X_test)
    assert rmse(posterior.mean, data.F_test) < 0.0025
    assert np.sqrt(np.mean(posterior.std**2)) < 0.011
