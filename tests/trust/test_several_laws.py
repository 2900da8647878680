"""Several true laws at once: the joint posterior may be far too sure of itself, and the average over tapers must notice."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import sumgp

LAWS = [
    "(u**2+v**2+w**2)/2 - 1/sqrt(x**2+y**2+z**2) = E",
    "y*w - z*v = Lx",
    "z*u - x*w = Ly",
    "x*v - y*u = Lz",
]


def orbit(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, float]]:
    """40 rows of one and a half turns of a tilted ellipse with 3 % noise and a gap, and its true values at 120 times."""
    generator = np.random.default_rng([seed, 6])
    e, tilt, node = generator.uniform(0.1, 0.5), generator.uniform(0.2, 1.0), generator.uniform(0.0, 6.0)
    turn = np.array([[np.cos(node), -np.sin(node), 0], [np.sin(node), np.cos(node), 0], [0, 0, 1]])
    turn = turn @ np.array([[1, 0, 0], [0, np.cos(tilt), -np.sin(tilt)], [0, np.sin(tilt), np.cos(tilt)]])
    r, v = turn @ np.array([1.0 - e, 0.0, 0.0]), turn @ np.array([0.0, np.sqrt((1.0 + e) / (1.0 - e)), 0.0])
    end = 3.0 * np.pi

    def motion(t: float, s: np.ndarray) -> np.ndarray:
        return np.concatenate([s[3:], -s[:3] / np.sum(s[:3] ** 2) ** 1.5])

    options = {"dense_output": True, "rtol": 1e-11, "atol": 1e-11}
    truth = solve_ivp(motion, (0.0, end), np.concatenate([r, v]), **options).sol
    t = np.sort(np.concatenate([generator.uniform(0.0, 0.45 * end, 21), generator.uniform(0.6 * end, end, 19)]))
    Y = truth(t).T
    Y = Y + 0.03 * Y.std(axis=0) * generator.standard_normal(Y.shape)
    momentum = np.cross(r, v)
    constants = {"E": 0.5 * v @ v - 1.0 / np.linalg.norm(r), **dict(zip(["Lx", "Ly", "Lz"], momentum, strict=True))}
    dense = np.linspace(0.0, end, 120)
    return t, Y, dense, truth(dense).T, constants


@pytest.mark.parametrize("seed", [1000, 1001])
def test_an_orbit_with_energy_and_angular_momentum(seed: int) -> None:
    """Joint conditioning covers 70 and 35 % of the truths of these two."""
    t, Y, dense, truth, constants = orbit(seed)
    choices = {"outputs": list("xyzuvw"), "inputs": ["t"], "constants": constants, "uncertainty": "plug-in"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gp = sumgp.ConstrainedGP(LAWS, **choices).fit(t, Y)
    posterior = gp.posterior(dense)
    lower, upper = posterior.interval()
    assert gp.fit_report_["taper"] is not None
    assert np.mean((lower <= truth) & (truth <= upper)) > 0.78
    assert np.sqrt(np.mean((posterior.mean - truth) ** 2)) < 0.0105


def test_weights_of_the_tapers_are_those_of_the_components() -> None:
    """Where left-out rows do not tell, the joint posterior has most of the weight and the report says so."""
    t = np.linspace(0.0, 6.0, 15)
    Y = np.stack([np.sin(t), np.cos(t)], axis=1) + 0.1 * np.random.default_rng(2).standard_normal((15, 2))
    gp = sumgp.ConstrainedGP("z**2 + v**2 = 1", outputs=["z", "v"]).fit(t, Y)
    weights = gp.fit_report_["taper_weights"]
    assert sum(weights.values()) == pytest.approx(1.0)
    assert max(weights, key=weights.get) == "None"
    tapers = [c.conditioning.taper for c in gp.fitted_.components]
    assert np.mean([taper is None for taper in tapers]) == pytest.approx(weights["None"], abs=0.1)
