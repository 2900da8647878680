"""Differential laws that hold by construction: in means, draws and covariances, at any point."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

import sumgp
from sumgp.errors import ConstraintError, DataError
from sumgp.laws import FormulaConstraint, split_law

STEP = 1e-3


def oscillator(noise: float = 0.1, seed: int = 0, n: int = 20) -> tuple[np.ndarray, np.ndarray]:
    t = np.linspace(0.0, 10.0, n)[:, None]
    f = np.column_stack([np.sin(t), np.cos(t)])
    return t, f + noise * np.random.default_rng(seed).normal(size=f.shape)


def motion(law="d(z, t) = v", **settings) -> sumgp.ConstrainedGP:
    settings = {"uncertainty": "plug-in", **settings}
    return sumgp.ConstrainedGP(law, outputs=["z", "v"], inputs=["t"], **settings)


def slope(function, x: np.ndarray, column: int) -> np.ndarray:
    """Derivative by differences of fourth order."""
    step = np.zeros(x.shape[1])
    step[column] = STEP
    near, far = function(x + step) - function(x - step), function(x + 2 * step) - function(x - 2 * step)
    return (8.0 * near - far) / (12.0 * STEP)


@pytest.fixture(scope="module")
def fitted() -> sumgp.ConstrainedGP:
    t, y = oscillator()
    y[3:7, 0] = np.nan
    return motion(uncertainty="integrated").fit(t, y)


NEW = np.linspace(-1.0, 11.0, 7)[:, None]


def test_the_mean_is_its_derivative(fitted):
    mean = fitted.posterior(NEW).mean
    assert np.allclose(fitted.posterior(NEW).derivative("z", "t").mean, mean[:, 1], rtol=1e-10, atol=1e-10)
    assert np.allclose(slope(lambda x: fitted.posterior(x).mean, NEW, 0)[:, 0], mean[:, 1], atol=1e-6)
    assert np.abs(fitted.posterior(NEW).residual()).max() < 1e-10
    assert fitted.fit_report_.status == "converged"


def test_every_draw_is_its_derivative(fitted):
    """One joint draw on points beside each other, far apart and outside of the data."""
    step = 20 * STEP  # round-off of draws over a shorter one is more than the differences miss
    offsets = step * np.array([0.0, 1.0, -1.0, 2.0, -2.0])
    x = (NEW + offsets).reshape(-1, 1)
    draws = fitted.posterior(x).sample(3, random_state=1).reshape(3, len(NEW), 5, 2)
    z = draws[..., 0]
    differences = (8.0 * (z[:, :, 1] - z[:, :, 2]) - (z[:, :, 3] - z[:, :, 4])) / (12.0 * step)
    assert np.allclose(differences, draws[:, :, 0, 1], atol=1e-6)


def test_covariances_are_differentiated_too(fitted):
    offsets = STEP * np.array([0.0, 1.0, -1.0, 2.0, -2.0])
    x = (NEW[1:4] + offsets).reshape(-1, 1)
    joint = fitted.posterior(x).covariance().reshape(3, 5, 2, 3, 5, 2)
    z = joint[:, :, 0]
    differences = (8.0 * (z[:, 1] - z[:, 2]) - (z[:, 3] - z[:, 4])) / (12.0 * STEP)
    assert np.allclose(differences, joint[:, 0, 1], atol=1e-6)


def test_a_velocity_that_was_never_measured_follows_from_positions():
    t, y = oscillator(0.05)
    y[:, 1] = np.nan
    posterior = motion().fit(t, y).posterior(t[3:-3])
    assert np.sqrt(np.mean((posterior.mean[:, 1] - np.cos(t[3:-3, 0])) ** 2)) < 0.1


def test_energy_and_motion_leave_the_phase_alone():
    """Position and velocity with both laws: the error is that of a fit of the phase, the only thing left open."""
    t, y = oscillator(0.1, seed=2)
    new = np.linspace(0.0, 10.0, 50)[:, None]
    truth = np.column_stack([np.sin(new), np.cos(new)])
    both = motion(["d(z, t) = v", "z**2/2 + v**2/2 = E"], constants={"E": 0.5}).fit(t, y)
    phase = np.angle(np.mean((y[:, 1] + 1j * y[:, 0]) * np.exp(-1j * t[:, 0])))
    best = np.column_stack([np.sin(new + phase), np.cos(new + phase)])
    posterior = both.posterior(new)
    assert np.sqrt(np.mean((posterior.mean - best) ** 2)) < 0.3 * np.sqrt(np.mean((best - truth) ** 2)) + 2e-3
    assert np.abs(posterior.residual()[:, 1]).max() < 1e-10
    assert np.abs(posterior.residual()[:, 0]).max() < 1e-3


def test_units_do_not_matter():
    t, y = oscillator()
    plain = motion().fit(t, y).posterior(NEW)
    scaled = sumgp.ConstrainedGP("d(z, t) = 1e3*v", outputs=["z", "v"], inputs=["t"], uncertainty="plug-in")
    other = scaled.fit(1e-3 * t, y * [1.0, 1.0]).posterior(1e-3 * NEW)
    assert np.allclose(other.mean, plain.mean, atol=1e-5)
    assert np.allclose(other.std, plain.std, rtol=1e-3)


def test_the_order_of_outputs_does_not_matter():
    t, y = oscillator()
    plain = motion().fit(t, y).posterior(NEW)
    turned = sumgp.ConstrainedGP("d(z, t) = v", outputs=["v", "z"], inputs=["t"], uncertainty="plug-in").fit(t, y[:, ::-1])
    assert np.allclose(turned.posterior(NEW).mean[:, ::-1], plain.mean, atol=1e-6)


def flow(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points of a field with the stream function sin(x) cos(y + x / 2)."""
    x = np.random.default_rng(seed).uniform(-2.0, 2.0, (n, 2))
    a, b = x[:, 0], x[:, 1] + 0.5 * x[:, 0]
    u = -np.sin(a) * np.sin(b)
    v = -(np.cos(a) * np.cos(b) - 0.5 * np.sin(a) * np.sin(b))
    return x, np.column_stack([u, v])


def test_a_field_without_divergence():
    new, truth = flow(100, 1)
    settings = {"outputs": ["u", "v"], "inputs": ["x", "y"], "uncertainty": "plug-in"}
    squares = []
    for seed in (10, 0):
        x, f = flow(30, seed)
        y = f + 0.1 * np.random.default_rng(seed + 2).normal(size=f.shape)
        with_law = sumgp.ConstrainedGP("d(u, x) + d(v, y) = 0", **settings).fit(x, y)
        without = sumgp.ConstrainedGP(None, **settings).fit(x, y)
        squares.append([np.mean((gp.predict(new) - truth) ** 2) for gp in (with_law, without)])
    error, error_without = np.sqrt(np.mean(squares, axis=0))
    assert error < 0.8 * error_without
    divergence = slope(with_law.predict, new[:20], 0)[:, 0] + slope(with_law.predict, new[:20], 1)[:, 1]
    assert np.abs(divergence).max() < 1e-6
    assert np.abs(with_law.posterior(new).residual()).max() < 1e-10


def test_sums_beside_derivatives_are_eliminated_together():
    """a + b = c is linear and homogeneous: it needs no points either."""
    law = FormulaConstraint(["d(a, t) = b", "a + b = c"]).bind(["a", "b", "c"], ["t"])
    split = split_law(law)
    assert split is not None
    assert split.rest is None
    t = np.linspace(0.0, 3.0, 12)[:, None]
    f = np.column_stack([np.sin(t), np.cos(t), np.sin(t) + np.cos(t)])
    gp = sumgp.ConstrainedGP(["d(a, t) = b", "a + b = c"], outputs=["a", "b", "c"], inputs=["t"], uncertainty="plug-in")
    gp.fit(t, f + 0.05 * np.random.default_rng(0).normal(size=f.shape))
    assert np.abs(gp.posterior(t + 0.1).residual()).max() < 1e-10


@pytest.mark.parametrize("laws", [["d(a, t) = b", "a + c = 4"], ["d(a, t) = b + 2", "a + c = 4"]])
def test_constant_totals_are_no_obstacle(laws):
    """A constant that meets the totals is subtracted; what remains is homogeneous."""
    split = split_law(FormulaConstraint(laws).bind(["a", "b", "c"], ["t"]))
    assert split is not None
    assert split.rest is None
    t = np.linspace(0.0, 3.0, 12)[:, None]
    gp = sumgp.ConstrainedGP(laws, outputs=["a", "b", "c"], inputs=["t"], uncertainty="plug-in")
    rate = np.cos(t) - (2.0 if "2" in laws[0] else 0.0)
    f = np.column_stack([np.sin(t), rate, 4.0 - np.sin(t)])
    posterior = gp.fit(t, f + 0.05 * np.random.default_rng(0).normal(size=f.shape)).posterior(t + 0.1)
    assert np.abs(posterior.residual()).max() < 1e-10
    assert np.abs(slope(gp.predict, t, 0)[:, 0] - gp.predict(t)[:, 1] - (2.0 if "2" in laws[0] else 0.0)).max() < 1e-6
    assert np.sqrt(np.mean((gp.predict(t) - f) ** 2)) < 0.05


def test_totals_that_no_constant_meets_hold_at_points():
    """d(a, t) = 2 has straight lines as solutions, and a = d(b, t) + 1 = d(c, t) + 2 no constants."""
    assert split_law(FormulaConstraint("d(a, t) = 2").bind(["a", "b"], ["t"])) is None
    both = FormulaConstraint(["a - d(b, t) = 1", "a - d(c, t) = 2"]).bind(["a", "b", "c"], ["t"])
    assert split_law(both) is None


def test_offsets_are_no_obstacle():
    """A position far from zero, a velocity whose mean is not zero: the shift of the outputs is not in the law."""
    t = np.linspace(0.0, 10.0, 25)[:, None]
    f = np.column_stack([1e4 + 5.0 * t + np.sin(t), 5.0 + np.cos(t)])
    gp = motion().fit(t, f + 0.05 * np.random.default_rng(0).normal(size=f.shape))
    assert np.sqrt(np.mean((gp.predict(t) - f) ** 2)) < 0.05
    assert np.abs(gp.posterior(NEW).residual()).max() < 1e-9


def test_rough_kernels_are_refused():
    t, y = oscillator()
    with pytest.raises(DataError, match="first derivatives"):
        motion(kernel=Matern(nu=0.5)).fit(t, y)
    assert np.all(np.isfinite(motion(kernel=Matern(nu=1.5)).fit(t, y).predict(NEW)))


def test_outputs_that_nothing_determines_are_refused():
    t, y = oscillator()
    table = np.column_stack([y, np.full(len(y), np.nan)])
    gp = sumgp.ConstrainedGP("d(z, t) = v", outputs=["z", "v", "w"], inputs=["t"], uncertainty="plug-in")
    with pytest.raises(ConstraintError, match="'w' was never measured"):
        gp.fit(t, table)


def test_models_are_stored(fitted, tmp_path):
    fitted.save(tmp_path / "motion.sumgp")
    again = sumgp.load(tmp_path / "motion.sumgp")
    assert np.array_equal(again.predict(NEW), fitted.predict(NEW))
    t, y = oscillator()
    both = motion(["d(z, t) = v", "z**2/2 + v**2/2 = E"], constants={"E": 0.5}, kernel=RBF()).fit(t, y)
    both.save(tmp_path / "both.sumgp")
    assert np.array_equal(sumgp.load(tmp_path / "both.sumgp").predict(NEW), both.predict(NEW))


def test_a_total_that_varies_leaves_the_other_rows_plain():
    energy = {"E": lambda X: np.exp(-X[:, 0])}
    split = split_law(FormulaConstraint(["d(z, t) = v", "z**2 + v**2 = E"], energy).bind(["z", "v"], ["t"]))
    assert split is not None
    assert split.eliminated == (0,)
    assert split.rest is not None
    assert split.rest.residual(np.array([[1.0, 2.0]]), np.array([[0.0]])) == pytest.approx(4.0)


@pytest.mark.parametrize("law", ["d(z, t) = v", ["d(z, t) = v", "z**2/2 + v**2/2 = E"]], ids=["motion", "and energy"])
def test_a_law_that_the_data_contradict_is_named(law):
    """A velocity per minute, not per second: the fit must not look like any other."""
    t, y = oscillator(0.05)
    constants = {"E": 0.5} if isinstance(law, list) else None
    right = motion(law, constants=constants).fit(t, y)
    assert right.fit_report_.status == "converged"
    with pytest.warns(sumgp.SumGPWarning, match="contradict the law with derivatives"):
        wrong = motion("d(z, t) = v/60").fit(t, y)
    assert "contradict" in wrong.fit_report_.status


def test_no_independent_outputs_are_averaged_in():
    """An average over hyperparameters keeps the derivative relation: outputs of their own kernels would break it."""
    t, y = oscillator(0.1)
    both = motion(["d(z, t) = v", "z**2/2 + v**2/2 = E"], constants={"E": 0.5}, uncertainty="integrated").fit(t, y)
    assert np.abs(both.posterior(NEW[1:-1]).residual()[:, 0]).max() < 1e-3
    assert "kinds" not in both.fit_report_.details
