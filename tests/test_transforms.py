"""Transforms: round trips on every branch, derivatives against differences, critical points, relaxation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sumgp.errors import ConstraintError
from sumgp.transforms import (
    Absolute,
    Affine,
    Cos,
    CustomTransform,
    Exp,
    Identity,
    Log,
    Power,
    Sin,
    Square,
    Tan,
    Transform,
)


def cubic(f: np.ndarray) -> np.ndarray:
    return f**3 - 3.0 * f


def cubic_slope(f: np.ndarray) -> np.ndarray:
    return 3.0 * f**2 - 3.0


CUBIC = CustomTransform(cubic, cubic_slope, cuts=(-1.0, 1.0), name="cubic")
ROOT = CustomTransform(np.sqrt, lambda f: 0.5 / np.sqrt(f), domain=(0.0, np.inf), image=(0.0, np.inf), name="sqrt")
EVERYWHERE: list[Transform] = [
    Identity(),
    Affine(-2.0, 3.0),
    Square(),
    Power(1),
    Power(3),
    Power(4),
    Power(5),
    Absolute(),
    Exp(),
    Sin(),
    Cos(),
    Tan(),
    CUBIC,
]
ALL = [*EVERYWHERE, Log(), ROOT]
names = [t.label("z") for t in ALL]


def inside(transform: Transform) -> np.ndarray:
    """Points of the domain that keep 0.05 away from critical points, where an inverse cannot be well conditioned."""
    points = np.linspace(-7.3, 7.1, 301)
    points = points[points > transform.domain[0] + 1e-3]
    for point in transform.critical_points(-8.0, 8.0):
        points = points[np.abs(points - point) > 0.05]
    return points


@pytest.mark.parametrize("transform", ALL, ids=names)
def test_round_trip_on_every_branch(transform: Transform) -> None:
    f = inside(transform)
    back = transform.inverse(transform.value(f), transform.branch_of(f))
    slope = np.abs(transform.derivative(f))
    # Round-off of the value (and of f itself, for multiples of pi) divided by the slope is the best any inverse can do.
    best = 4.0 * np.finfo(float).eps * (np.abs(transform.value(f)) / np.maximum(slope, 1e-300) + 2.0 * np.abs(f))
    away = slope > 0
    assert np.all(np.abs(back - f)[away] <= best[away] + 1e-15)


@pytest.mark.parametrize("transform", ALL, ids=names)
def test_inverse_stays_on_its_branch_and_reproduces_the_value(transform: Transform) -> None:
    f = inside(transform)
    value = transform.value(f)
    back = transform.inverse(value, transform.branch_of(f))
    assert np.array_equal(transform.branch_of(back), transform.branch_of(f))
    for number in np.unique(transform.branch_of(f)):
        lo, hi = transform.branch_interval(int(number))
        chosen = back[transform.branch_of(f) == number]
        assert np.all((chosen >= lo) & (chosen <= hi))
    np.testing.assert_allclose(transform.value(back), value, rtol=2e-13, atol=2e-14)


@pytest.mark.parametrize("transform", ALL, ids=names)
def test_derivatives_equal_differences(transform: Transform) -> None:
    f = inside(transform)
    f = f[np.abs(f) > 0.05]
    step = 1e-5
    first = (transform.value(f + step) - transform.value(f - step)) / (2 * step)
    second = (transform.derivative(f + step) - transform.derivative(f - step)) / (2 * step)
    np.testing.assert_allclose(transform.derivative(f), first, rtol=3e-6, atol=1e-8)
    np.testing.assert_allclose(transform.second_derivative(f), second, rtol=3e-6, atol=1e-7)


@pytest.mark.parametrize("transform", [t for t in ALL if t.is_continuous], ids=lambda t: t.label("z"))
def test_slope_changes_sign_at_critical_points_and_nowhere_else(transform: Transform) -> None:
    points = transform.critical_points(-7.0, 7.0)
    left, right = transform.derivative(points - 1e-3), transform.derivative(points + 1e-3)
    assert np.all(left * right < 0)
    grid = np.linspace(-7.0, 7.0, 4001)
    grid = grid[grid > transform.domain[0]]
    slope = transform.derivative(grid)
    changes = np.sum(slope[:-1] * slope[1:] < 0) + np.sum(slope == 0) * (len(points) > 0)
    assert changes == len(points)


def test_critical_points_lie_between_neighbouring_branches() -> None:
    np.testing.assert_allclose(Sin().critical_points(-5.0, 5.0), np.array([-1.5, -0.5, 0.5, 1.5]) * np.pi)
    np.testing.assert_allclose(Cos().critical_points(-4.0, 7.0), np.array([-1.0, 0.0, 1.0, 2.0]) * np.pi)
    np.testing.assert_allclose(Square().critical_points(-1.0, 1.0), [0.0])
    assert Square().critical_points(0.5, 1.0).size == 0
    for transform in (Sin(), Cos(), Tan(), Square(), CUBIC):
        for point in transform.critical_points(-8.0, 8.0):
            below, above = transform.branch_of(np.array([point - 1e-6, point + 1e-6]))
            assert above == below + 1
            assert transform.branch_interval(int(below))[1] == pytest.approx(point)
            assert transform.branch_interval(int(above))[0] == pytest.approx(point)


@pytest.mark.parametrize(
    ("free", "restricted", "number"),
    [
        (Square(), Square(branch="positive"), 0),
        (Square(), Square(branch="negative"), -1),
        (Power(4), Power(4, branch="negative"), -1),
        (Absolute(), Absolute(branch="positive"), 0),
        (Sin(), Sin(branch=1), 1),
        (Cos(), Cos(branch=-2), -2),
        (Tan(), Tan(branch=3), 3),
    ],
)
def test_restriction_to_one_branch(free: Transform, restricted: Transform, number: int) -> None:
    values = np.linspace(0.05, 0.95, 7)
    assert not free.monotone
    assert restricted.monotone
    assert restricted.critical_points(-20.0, 20.0).size == 0
    assert restricted.domain == free.branch_interval(number)
    np.testing.assert_array_equal(restricted.inverse(values), free.inverse(values, number))
    np.testing.assert_array_equal(restricted.inverse(values, -7), free.inverse(values, number))
    assert np.all(restricted.branch_of(np.linspace(-9, 9, 5)) == number)
    assert restricted != free


def test_inverse_clips_to_the_image() -> None:
    np.testing.assert_allclose(Square().inverse(np.array([-0.3]), 0), [0.0])
    np.testing.assert_allclose(Sin().inverse(np.array([1.2, -1.7]), 1), [0.5 * np.pi, 1.5 * np.pi])
    assert np.isfinite(Exp().inverse(np.array([-1.0]))).all()


def test_several_branches_need_a_number() -> None:
    with pytest.raises(ConstraintError, match=r"branch: expected a branch number .* f\*\*2 has several inverses"):
        Square().inverse(np.array([4.0]))
    np.testing.assert_allclose(Square().inverse(np.array([4.0, 4.0]), np.array([-1, 0])), [-2.0, 2.0])
    with pytest.raises(ConstraintError, match="expected -1 to 0, got 5"):
        Square().branch_interval(5)


@pytest.mark.parametrize("scale", [0.5, 2.0])
@pytest.mark.parametrize("transform", [Log(), ROOT], ids=lambda t: t.label("z"))
def test_relaxation_is_smooth_and_changes_nothing_inside(transform: Transform, scale: float) -> None:
    relaxed = transform.relaxed(scale)
    edge = 1e-3 * scale
    f = np.geomspace(edge * 1.001, 50.0, 40)
    np.testing.assert_array_equal(relaxed.value(f), transform.value(f))
    np.testing.assert_array_equal(relaxed.second_derivative(f), transform.second_derivative(f))
    tiny = 1e-9 * edge
    ends = np.array([edge - tiny, edge + tiny])
    assert np.ptp(relaxed.value(ends)) <= 3 * tiny * transform.derivative(np.array(edge))
    assert np.ptp(relaxed.derivative(ends)) <= 1e-6 * transform.derivative(np.array(edge))
    beyond = np.array([-3.0, -0.2, 0.0, 0.5 * edge])
    assert np.all(np.isfinite(relaxed.value(beyond)))
    np.testing.assert_allclose(np.diff(relaxed.value(beyond)), relaxed.derivative(beyond)[0] * np.diff(beyond))
    np.testing.assert_allclose(relaxed.inverse(relaxed.value(beyond), 0), beyond, atol=1e-12)
    assert relaxed.domain == (-np.inf, np.inf)
    assert relaxed.image[0] == -np.inf


@pytest.mark.parametrize("transform", EVERYWHERE, ids=lambda t: t.label("z"))
def test_transforms_defined_everywhere_are_their_own_relaxation(transform: Transform) -> None:
    assert transform.relaxed(1.0) is transform
    assert np.all(np.isfinite(transform.value(np.linspace(-5, 5, 11))))


def test_log_outside_its_domain_gives_nan_without_a_warning() -> None:
    values = Log().value(np.array([-1.0, 0.0, 1.0]))
    assert np.isnan(values[0])
    assert values[1] == -np.inf
    assert values[2] == 0.0
    assert np.isnan(Log().derivative(np.array([-1.0]))).all()


def test_custom_domain_gives_nan_outside() -> None:
    assert np.isnan(ROOT.value(np.array([-1.0]))).all()
    np.testing.assert_allclose(ROOT.inverse(np.array([3.0])), [9.0], rtol=1e-14)


def test_custom_branch_that_does_not_reach_the_value_gives_its_nearer_end() -> None:
    np.testing.assert_allclose(CUBIC.inverse(np.array([5.0, -5.0]), 1), [-1.0, 1.0])


def test_custom_inverse_function_is_used() -> None:
    marked = CustomTransform(np.sinh, np.cosh, inverse_function=lambda value, branch: np.arcsinh(value) + 100.0 * branch)
    np.testing.assert_allclose(marked.inverse(np.sinh(np.array([1.0, 2.0]))), [1.0, 2.0])


@given(st.floats(-30.0, 30.0), st.sampled_from([Sin(), Cos(), Square(), CUBIC, Tan()]))
def test_branch_numbers_agree_with_intervals(f: float, transform: Transform) -> None:
    lo, hi = transform.branch_interval(int(transform.branch_of(np.array(f))))
    assert lo - 1e-12 <= f <= hi + 1e-12


def test_words_and_equality() -> None:
    assert Square().label("z") == "z**2"
    assert Power(3).label("z") == "z**3"
    assert Affine(2.0, -1.0).label("z") == "(2*z - 1)"
    assert "two branches" in Square().describe()
    assert "positive branch only" in Square(branch="positive").describe()
    assert "odd multiples of pi/2" in Sin().describe()
    assert Square() == Square(branch=None)
    assert Power(3) != Power(5)
    assert len({Square(), Square(), Sin()}) == 2
    assert Identity().is_identity
    assert Affine(1.0, 0.0).is_identity
    assert not Square().is_identity


@pytest.mark.parametrize(
    "make",
    [
        lambda: Square(branch="up"),  # type: ignore[arg-type]
        lambda: Power(0),
        lambda: Power(2.5),  # type: ignore[arg-type]
        lambda: Power(3, branch="positive"),
        lambda: Affine(0.0, 1.0),
        lambda: Affine(np.nan),
    ],
)
def test_bad_arguments_are_refused_with_advice(make) -> None:
    with pytest.raises(ConstraintError, match=r"expected .* got .*; "):
        make()
