"""A law with a derivative, an algebraic law and a bound in one text: all of them in means, intervals, samples and files."""

from __future__ import annotations

import numpy as np
import pytest

import sumgp
from sumgp.laws import split_law

TEXT = "d(z, t) = v; k/2*z**2 + m/2*v**2 = E; z >= -1.2"
RADIUS = np.sqrt(1.6)  # of the curve in (z, v)


@pytest.fixture(scope="module")
def oscillator() -> sumgp.ConstrainedGP:
    t = np.linspace(0.0, 9.0, 20)
    curve = RADIUS * np.column_stack([np.sin(t), np.cos(t)])
    y = curve + 0.1 * np.random.default_rng(0).standard_normal(curve.shape)
    constants = {"k": 1.0, "m": 1.0, "E": 0.8}
    gp = sumgp.ConstrainedGP(TEXT, outputs=["z", "v"], inputs=["t"], constants=constants, uncertainty="plug-in")
    return gp.fit(t, y)


def test_bound_and_energy_hold_and_the_slope_is_near(oscillator: sumgp.ConstrainedGP) -> None:
    t = np.linspace(0.0, 9.0, 40)
    posterior = oscillator.posterior(t)
    samples = posterior.sample(20, random_state=1)
    for z in (posterior.mean[:, 0], posterior.interval(0.95)[0][:, 0], samples[:, :, 0]):
        assert z.min() >= -1.2
    energy = 0.5 * np.sum(samples**2, axis=2)
    assert np.max(np.abs(energy - 0.8)) < 1e-9
    free = posterior.mean[:, 0] > -1.1
    slope = posterior.derivative("z", "t").mean
    assert np.max(np.abs(slope - posterior.mean[:, 1])[free]) < 0.02
    assert np.sqrt(np.mean((posterior.mean[free, 0] - RADIUS * np.sin(t[free])) ** 2)) < 0.05


def test_the_same_after_saving(oscillator: sumgp.ConstrainedGP, tmp_path) -> None:  # type: ignore[no-untyped-def]
    oscillator.save(tmp_path / "m.sumgp")
    t = np.linspace(0.0, 9.0, 7)
    again = sumgp.load(tmp_path / "m.sumgp").posterior(t)
    np.testing.assert_array_equal(again.mean, oscillator.posterior(t).mean)
    np.testing.assert_array_equal(again.interval()[0], oscillator.posterior(t).interval()[0])


def test_a_bound_has_no_error() -> None:
    with pytest.raises(sumgp.ConstraintError, match="a bound without an error"):
        sumgp.parse_constraint("a >= 0 +- 1", ["a"])


def test_a_law_of_products_is_left_over_without_its_derivatives() -> None:
    law = sumgp.parse_constraint(["d(a, t) = b", "log(a)*b + c = 1"], ["a", "b", "c"], ["t"])
    split = split_law(law)
    assert split is not None
    assert split.rest is not None
    assert split.rest.derivatives == ()
    f, x = np.array([[2.0, 3.0, 0.5], [0.7, -1.0, 4.0]]), np.zeros((2, 1))
    expected = np.log(f[:, 0]) * f[:, 1] + f[:, 2] - 1.0
    for rest in (split.rest, split.rest.relaxed(np.ones(3))):
        np.testing.assert_allclose(rest.residual(f, x)[:, 0], expected, rtol=1e-12)
        slopes = np.column_stack([f[:, 1] / f[:, 0], np.log(f[:, 0]), np.ones(2)])
        np.testing.assert_allclose(rest.jacobian(f, x)[:, 0], slopes, rtol=1e-9)
        assert rest.magnitude(f, x).shape == (2, 1)


def test_laws_without_a_potential_together_are_not_split() -> None:
    assert split_law(sumgp.parse_constraint(["d(z, t) = v", "d(v, t) = -z"], ["z", "v"], ["t"])) is None


def test_new_measurements_obey_a_bound_on_a_sum_without_a_law() -> None:
    t = np.linspace(0.0, 1.0, 25)
    y = np.column_stack([np.minimum(2.0 + np.sin(6 * t), 2.6), 1.0 + 0.3 * np.cos(6 * t)])
    y = y + 0.05 * np.random.default_rng(2).standard_normal(y.shape)
    top = float(y.sum(axis=1).max()) + 1e-6
    gp = sumgp.ConstrainedGP(f"a + b <= {top!r}", outputs=["a", "b"], inputs=["t"], uncertainty="plug-in").fit(t, y)
    samples = gp.posterior(t).observed().sample(200, random_state=0)
    assert samples.sum(axis=2).max() <= top + 1e-12
    assert samples.sum(axis=2).max() > top - 1e-3
