"""Directions, rotations and rigid bodies."""

from __future__ import annotations

import numpy as np

from families.family import Family, Truth, columns, wave

Generator = np.random.Generator


def on_sphere(generator: Generator, dimension: int, n_inputs: int = 1) -> Truth:
    """A smooth path or field on the unit sphere."""
    parts, offset = [wave(generator, 0.8, n_inputs) for _ in range(dimension)], generator.standard_normal(dimension)
    offset = 1.5 * offset / np.linalg.norm(offset)

    def unit(x: np.ndarray) -> np.ndarray:
        f = 0.7 * np.stack([p(x) for p in parts], axis=1) + offset
        return f / np.linalg.norm(f, axis=1, keepdims=True)

    return Truth(unit)


def _frame(generator: Generator) -> Truth:
    """Two columns of a rotation matrix: Euler angles that vary smoothly."""
    angles = [wave(generator, 0.6) for _ in range(3)]

    def columns_of_rotation(x: np.ndarray) -> np.ndarray:
        a, b, c = (w(x) for w in angles)
        one = [np.cos(a) * np.cos(b), np.sin(a) * np.cos(b), -np.sin(b)]
        other = [
            np.cos(a) * np.sin(b) * np.sin(c) - np.sin(a) * np.cos(c),
            np.sin(a) * np.sin(b) * np.sin(c) + np.cos(a) * np.cos(c),
            np.cos(b) * np.sin(c),
        ]
        return np.stack([*one, *other], axis=1)

    return Truth(columns_of_rotation)


def _rod(generator: Generator) -> Truth:
    x0, y0, angle = wave(generator), wave(generator), wave(generator, 0.8)
    f = columns(x0, y0, lambda x: x0(x) + np.cos(2.0 * angle(x)), lambda x: y0(x) + np.sin(2.0 * angle(x)))
    return Truth(f)


def _arm(generator: Generator) -> Truth:
    p, q = wave(generator, 0.6), wave(generator, 0.6)
    f = columns(p, q, lambda x: np.cos(p(x)) + np.cos(q(x)), lambda x: np.sin(p(x)) + np.sin(q(x)))
    return Truth(f)


def _chain_of_rods(generator: Generator) -> Truth:
    """Four joints in a chain of three rods of unit length."""
    x0, y0, angles = wave(generator, 0.7), wave(generator, 0.7), [wave(generator, 0.7) for _ in range(3)]

    def joints(x: np.ndarray) -> np.ndarray:
        places = [np.stack([x0(x), y0(x)], axis=1)]
        for angle in angles:
            places.append(places[-1] + np.stack([np.cos(angle(x)), np.sin(angle(x))], axis=1))
        return np.hstack(places)

    return Truth(joints)


JOINTS = ("a_x", "a_y", "b_x", "b_y", "c_x", "c_y", "d_x", "d_y")
FRAME = ("a**2 + b**2 + c**2 = 1", "d**2 + e**2 + f**2 = 1", "a*d + b*e + c*f = 0")
FAMILIES = (
    Family("direction", ("a**2 + b**2 + c**2 = 1",), ("a", "b", "c"), lambda g: on_sphere(g, 3), rows=15, noise=0.1),
    Family(
        "quaternion",
        ("a**2 + b**2 + c**2 + d**2 = 1",),
        ("a", "b", "c", "d"),
        lambda g: on_sphere(g, 4),
        rows=20,
        noise=0.15,
        groups=(("a", "b", "c", "d"),),
    ),
    Family("rotation matrix", FRAME, tuple("abcdef"), _frame, rows=20, noise=0.1),
    Family("rod", ("norm(a, b) = 1",), JOINTS[:4], _rod, rows=20, noise=0.1),
    Family(
        "robot arm",
        ("x = cos(p) + cos(q)", "y = sin(p) + sin(q)"),
        ("p", "q", "x", "y"),
        _arm,
        rows=15,
        noise=0.1,
        unequal=4.0,
    ),
    Family(
        "chain of three rods",
        ("norm(a, b) = 1", "norm(b, c) = 1", "norm(c, d) = 1"),
        JOINTS,
        _chain_of_rods,
        rows=20,
        noise=0.1,
    ),
)
