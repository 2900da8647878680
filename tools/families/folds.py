"""Laws that one output meets in several ways for given others: squares, sines, cubics."""

from __future__ import annotations

import numpy as np

from families.family import Family, Truth, columns, wave

Generator = np.random.Generator


def _square(generator: Generator) -> Truth:
    a = wave(generator)
    return Truth(columns(a, lambda x: a(x) ** 2))


def _sine(generator: Generator) -> Truth:
    a, size = wave(generator, 0.6), float(generator.uniform(1.5, 3.0))
    return Truth(columns(lambda x: size * a(x), lambda x: np.sin(size * a(x))))


def _circle(generator: Generator) -> Truth:
    angle, speed = wave(generator, 0.6), float(generator.uniform(2.0, 9.0))
    turn = lambda x: speed * x[:, 0] + angle(x)  # noqa: E731
    return Truth(columns(lambda x: np.cos(turn(x)), lambda x: np.sin(turn(x))))


def _cubic(generator: Generator) -> Truth:
    a = wave(generator)
    return Truth(columns(a, lambda x: a(x) ** 3 - a(x)))


def _doubled_angle(generator: Generator) -> Truth:
    a, b = wave(generator), wave(generator)
    return Truth(columns(a, b, lambda x: a(x) ** 2 - b(x) ** 2, lambda x: 2.0 * a(x) * b(x)))


def _valley(generator: Generator) -> Truth:
    angle = wave(generator, 0.8)
    return Truth(columns(angle, lambda x: 1.0 - np.cos(angle(x))))


FAMILIES = (
    Family("square", ("b = a**2",), ("a", "b"), _square, rows=15, noise=0.1),
    Family("sine of an output", ("b = sin(a)",), ("a", "b"), _sine, rows=25, noise=0.1, unequal=4.0),
    Family("circle", ("a**2 + b**2 = 1",), ("a", "b"), _circle, rows=18, noise=0.1),
    Family("circle, noisy", ("a**2 + b**2 = 1",), ("a", "b"), _circle, rows=40, noise=0.4, scattered=True),
    Family("circle, six rows", ("a**2 + b**2 = 1",), ("a", "b"), _circle, rows=6, noise=0.02),
    Family("cubic fold", ("b = a**3 - a",), ("a", "b"), _cubic, rows=20, noise=0.1),
    Family(
        "doubled angle",
        ("a**2 - b**2 = u", "2*a*b = w"),
        ("a", "b", "u", "w"),
        _doubled_angle,
        rows=20,
        noise=0.1,
        unequal=4.0,
    ),
    Family("valley", ("h = 1 - cos(q)",), ("q", "h"), _valley, rows=12, noise=0.1, missing=0.15),
)
