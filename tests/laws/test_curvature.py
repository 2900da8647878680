"""What a curved law adds to a Gaussian in its tangent: closed forms on a circle, draws elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import sumgp
from sumgp.laws import FunctionConstraint
from sumgp.laws.geometry import UnitFreeLaw, bend, project
from sumgp.strategies.weight_component import Unprojected, moved_onto_law

RADIUS = 1.5


def law(residual: object, n_outputs: int, rows: int = 1) -> UnitFreeLaw:
    names = [f"f{i}" for i in range(n_outputs)]
    bound = FunctionConstraint(residual).bind(names, ["x"])
    return UnitFreeLaw(bound, np.zeros(n_outputs), np.ones(n_outputs), np.ones(rows))


def circle() -> UnitFreeLaw:
    return law(lambda f, x: (f[:, 0] ** 2 + f[:, 1] ** 2 - RADIUS**2)[:, None], 2)


def test_at_the_turning_point_of_a_circle() -> None:
    """z = r - t^2 / (2 r): mean -s^2 / (2 r), variance s^4 / (2 r^2); v has no bend."""
    s = 0.2
    point = np.array([[RADIUS, 0.0]])
    gain = np.array([[[0.5 / RADIUS], [0.0]]])  # J^T (J J^T)^-1 with J = (2 r, 0)
    found = bend(circle(), point, np.diag([0.0, s**2])[None], gain, np.zeros((1, 1)))
    np.testing.assert_allclose(found.shift, [[-(s**2) / (2 * RADIUS), 0.0]], rtol=1e-6)
    np.testing.assert_allclose(found.variance, [[s**4 / (2 * RADIUS**2), 0.0]], rtol=1e-6)
    np.testing.assert_allclose(found.size, [[np.sqrt(0.75) * s**2 / RADIUS, 0.0]], rtol=1e-6)


def test_a_flat_law_does_not_bend() -> None:
    flat = law(lambda f, x: (f[:, 0] + 2 * f[:, 1])[:, None], 2)
    found = bend(flat, np.zeros((1, 2)), np.array([[[4.0, -2.0], [-2.0, 1.0]]]), np.full((1, 2, 1), 0.3), np.zeros((1, 1)))
    np.testing.assert_allclose(found.size, 0.0, atol=1e-8)


def test_two_curved_laws_of_four_outputs_against_projected_draws() -> None:
    surface = law(lambda f, x: np.stack([f[:, 0] ** 2 + f[:, 1] ** 2 - 1.0, f[:, 2] - f[:, 0] * f[:, 3]], axis=1), 4, 2)
    x = np.zeros((1, 1))
    start = project(surface, np.array([[0.6, 0.8, 0.3, 0.5]]), np.eye(4)[None], x)
    A, small = start.projectors[0], 0.03
    covariance = small**2 * A @ A.T
    found = bend(surface, start.points, covariance[None], start.gain, x)
    values, vectors = np.linalg.eigh(covariance)
    generator = np.random.default_rng(0)
    e = generator.standard_normal((40_000, 4))
    t = np.vstack([e, -e]) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T  # pairs: the tangent's own mean cancels
    n = len(t)
    metric, inputs = np.broadcast_to(np.eye(4), (n, 4, 4)), np.broadcast_to(x, (n, 1))
    c = project(surface, start.points + t, metric, inputs).points - start.points - t
    scale = found.size.max()
    np.testing.assert_allclose(c.mean(axis=0), found.shift[0], atol=0.03 * scale)
    np.testing.assert_allclose(c.std(axis=0), np.sqrt(found.variance[0]), atol=0.04 * scale)


def test_intervals_at_a_turning_point_stay_within_what_the_law_allows() -> None:
    """An oscillator at rest: in the tangent z would be known exactly; its interval opens inwards, never beyond."""
    t = np.linspace(0.0, 6.0, 15)
    generator = np.random.default_rng(3)
    Y = np.stack([np.sin(t), np.cos(t)], axis=1) + 0.2 * generator.standard_normal((15, 2))
    gp = sumgp.ConstrainedGP("z**2 + v**2 = 1", outputs=["z", "v"], uncertainty="plug-in", restarts=0).fit(t, Y)
    posterior = gp.posterior(np.linspace(0.0, 6.0, 200))
    lower, upper = posterior.interval()
    turning = int(np.argmax(posterior.mean[:100, 0]))
    _, covariance = posterior.fitted.components[0].marginals(posterior.scaling.inputs(posterior.x), posterior.x)
    in_tangent = np.sqrt(covariance[turning, 0, 0]) * posterior.scaling.y_scale[0]
    assert posterior._marginals.drawn[turning]
    assert upper[turning, 0] <= 1.0 + 1e-9
    assert upper[turning, 0] - lower[turning, 0] > 1.5 * in_tangent
    assert posterior.std[turning, 0] > in_tangent


def test_the_same_intervals_each_time_they_are_asked() -> None:
    t = np.linspace(0.0, 6.0, 12)
    Y = np.stack([np.sin(t), np.cos(t)], axis=1)
    gp = sumgp.ConstrainedGP("z**2 + v**2 = 1", outputs=["z", "v"], uncertainty="plug-in", restarts=0, noise=0.1).fit(t, Y)
    first, second = gp.posterior(t).interval(0.8), gp.posterior(t).interval(0.8)
    np.testing.assert_array_equal(first, second)
    wide = gp.posterior(t).interval(0.99)
    assert np.all(wide[0] <= first[0])
    assert np.all(wide[1] >= first[1])


@pytest.mark.parametrize("strategy", [sumgp.Projected(), sumgp.Linearized()])
def test_a_new_measurement_is_wider_than_the_curve(strategy: object) -> None:
    t = np.linspace(0.0, 6.0, 12)
    Y = np.stack([np.sin(t), np.cos(t)], axis=1) + 0.1 * np.random.default_rng(0).standard_normal((12, 2))
    gp = sumgp.ConstrainedGP(
        "z**2 + v**2 = 1", outputs=["z", "v"], strategy=strategy, uncertainty="plug-in", restarts=0
    ).fit(t, Y)
    posterior = gp.posterior(t)
    curve, measured = posterior.interval(), posterior.observed().interval()
    assert np.all(measured[1] - measured[0] > curve[1] - curve[0])


def test_a_bend_beyond_all_numbers_is_what_the_data_leave_open() -> None:
    """exp(a) + b = 2 with an a that is hardly known: a standard deviation away the exponential overflows."""
    steep = law(lambda f, x: np.exp(f[:, :1]) + f[:, 1:] - 2.0, 2)
    covariance = np.array([[[1e6, -1e6], [-1e6, 1e6]]])
    free = Unprojected(np.array([[0.0, 1.0]]), covariance, covariance + np.eye(2), np.full((1, 2), 1e6))
    found = moved_onto_law(steep, free, np.zeros((1, 1)))
    assert found.curved is not None
    np.testing.assert_array_equal(found.curved.bend.shift, 0.0)
    np.testing.assert_array_equal(found.curved.bend.variance, 1e6)
