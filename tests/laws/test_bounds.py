"""Bounds as objects, whether they can be met, and points moved into them within a law."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from sumgp import Bounds, ConstraintError, FunctionConstraint, LinearConstraint
from sumgp.laws import AllOf, BoundedLaw, bind_constraint, check_bounds

X = np.linspace(0.0, 1.0, 5)[:, None]


def bound(constraint, outputs=("a", "b", "c"), extras=()):
    return bind_constraint(constraint, outputs, ("t",), extras)


def test_numbers_mappings_and_functions():
    both = bound(Bounds({"a": 0.0, "c": lambda x: x[:, 0]}, {"a": 1.0, "b": np.inf}))
    limits = both.bounds.limits(X)
    assert both.law is None
    assert np.array_equal(limits.lower[:, 0], np.zeros(5))
    assert np.array_equal(limits.lower[:, 2], X[:, 0])
    assert np.all(np.isinf(limits.lower[:, 1]))
    assert np.all(limits.upper[:, 0] == 1.0)
    assert np.all(np.isinf(limits.upper[:, 1:]))
    assert both.bounds.labels == ("a >= 0", "c >= b(x)", "a <= 1")


def test_bounds_stand_beside_a_law():
    both = bound(AllOf([LinearConstraint([1.0, 1.0, 1.0], 1.0), Bounds(lower=0)]))
    assert both.law.labels == ("1*a + 1*b + 1*c = 1",)
    assert both.bounds.labels == ("a >= 0", "b >= 0", "c >= 0")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Bounds(), "lower=, upper= or both"),
        (lambda: Bounds("a >= 0"), "numbers or functions of X"),
        (lambda: bound(Bounds({"d": 0})), "outputs among"),
        (lambda: bound(Bounds({"a": lambda x: x[:2, 0]})).bounds.limits(X), "one per row"),
        (lambda: bound(Bounds({"a": lambda x: 1 / (x[:, 0] - 1)})).bounds.limits(X), "not a finite number at x = [1.0]"),
    ],
)
def test_what_is_no_bound_is_refused(make, words):
    with np.errstate(divide="ignore"), pytest.raises(ConstraintError, match=words.replace("[", r"\[")):
        make()


def test_an_impossible_set_is_refused_and_the_conflict_named():
    both = bound(AllOf([LinearConstraint([1.0, 1.0, 1.0], 1.0), Bounds({"a": 0.7, "b": 0.6, "c": -5.0}, {"c": 9.0})]))
    check_bounds(both.bounds, both.law, X)
    both = bound(AllOf([LinearConstraint([1.0, 1.0, 1.0], 1.0), Bounds({"a": 0.7, "b": 0.6, "c": 0.0}, {"a": 9.0})]))
    with pytest.raises(ConstraintError, match=r"no outputs meet 'a >= 0\.7', 'b >= 0\.6', 'c >= 0' and") as error:
        check_bounds(both.bounds, both.law, X)
    assert "a <= 9" not in str(error.value)
    assert "1*a + 1*b + 1*c = 1" in str(error.value)


def test_an_impossible_place_is_found_among_many():
    x = np.arange(997)[:, None] / 996
    both = bound(Bounds({"a": 0.0}, {"a": lambda x: np.where(np.abs(x[:, 0] - 0.5) < 1e-9, -1.0, 1.0 + x[:, 0])}))
    with pytest.raises(ConstraintError, match=r"'a >= 0' and 'a <= b\(x\)' together at x = \[0.5\]"):
        check_bounds(both.bounds, None, x)


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_bounds_that_meet_in_a_point_can_be_met(unit):
    both = bound(AllOf([LinearConstraint([1.0, 1.0, 1.0], 0.6 * unit), Bounds(lower=0.2 * unit)]))
    check_bounds(both.bounds, both.law, X)
    both = bound(AllOf([LinearConstraint([1.0, 1.0, 1.0], 0.6 * unit), Bounds(lower=0.2001 * unit)]))
    with pytest.raises(ConstraintError):
        check_bounds(both.bounds, both.law, X)


def circle(f, x):
    return f[:, 0] ** 2 + f[:, 1] ** 2 - 1.0


def product(f, x):
    return f[:, 0] * f[:, 1] - f[:, 2]


def moved(residual, bounds, f, sds, refuge=None, outputs=("a", "b", "c")):
    both = bound(AllOf([FunctionConstraint(residual), bounds]), outputs[: f.shape[1]])
    x = np.zeros((len(f), 1))
    return BoundedLaw(both.bounds, both.law).moved(f, x, both.bounds.limits(x), sds, refuge)


def test_points_of_a_curved_law_move_to_the_nearest_within_bounds():
    """Against a general solver: the first steps lead close to the nearest point, not quite to it."""
    rng = np.random.default_rng(3)
    sds = np.array([0.3, 0.5, 0.4])
    f = rng.normal(0.3, 0.5, (30, 3))
    f[:, 2] = f[:, 0] * f[:, 1]
    found = moved(product, Bounds(lower=0), f, sds)
    assert found.met.all()
    assert found.points.min() >= 0.0
    assert np.abs(product(found.points, None)).max() < 1e-15
    for start, point in zip(f, found.points, strict=True):
        best = min(
            minimize(
                lambda p, start=start: np.sum(((p - start) / sds) ** 2),
                guess,
                bounds=[(0, None)] * 3,
                constraints=[{"type": "eq", "fun": lambda p: p[0] * p[1] - p[2]}],
                method="SLSQP",
                options={"ftol": 1e-12},
            ).fun
            for guess in (np.maximum(start, 0), np.maximum(start, 0) + 0.1)
        )
        assert np.sum(((point - start) / sds) ** 2) <= 1.5 * best + 1e-3


def test_another_branch_of_the_law_is_reached():
    """z**2 = 1 with z >= 0: no step leads from -1 to 1, its mirror image does."""
    found = moved(lambda f, x: f[:, 0] ** 2 - 1.0, Bounds(lower=0), np.array([[-1.0], [-0.2]]), np.ones(1))
    assert found.met.all()
    assert np.allclose(found.points, 1.0, atol=1e-15)


def test_a_bound_that_touches_the_law():
    """b <= 1 holds on the circle anyway; b >= 1 leaves one point of it."""
    angle = np.linspace(-1.0, 1.0, 11)
    f = np.stack([np.sin(angle), np.cos(angle)], axis=1)
    above = moved(circle, Bounds(None, {"b": 1.0}), f, np.ones(2))
    assert above.met.all()
    assert np.abs(above.points - f).max() < 1e-15
    touching = moved(circle, Bounds({"b": 1.0}), f, np.ones(2))
    assert touching.met.all()
    assert np.all(touching.points[:, 1] >= 1.0)
    assert np.abs(touching.points - [0.0, 1.0]).max() < 1e-4


def test_a_law_out_of_reach_of_the_bounds_is_told():
    f = np.array([[0.6, 0.8]])
    assert not moved(circle, Bounds({"a": 2.0}), f, np.ones(2)).met.any()


def test_a_draw_that_cannot_reach_the_law_starts_from_its_refuge():
    """From the far side of a pole there is no way; from the refuge there is."""

    def law(f, x):
        return np.arctan(20 * (f[:, 0] - 0.9))

    far = np.array([[-30.0]])
    assert np.allclose(moved(law, Bounds({"a": 0.0}), far, np.ones(1), np.array([[0.9]])).points, 0.9)
