"""Oscillations whose frequency or size changes along the input."""

from __future__ import annotations

import numpy as np

from families.family import Family, Function, Truth, columns, positive, wave

Generator = np.random.Generator


def _phase(generator: Generator, slow: float, fast: float) -> Function:
    """Phase of an oscillation of ``slow`` periods per unit at 0 and ``fast`` at 1."""
    start = generator.uniform(0.0, 2.0 * np.pi)
    return lambda x: start + 2.0 * np.pi * (slow * x[:, 0] + 0.5 * (fast - slow) * x[:, 0] ** 2)


def _circle(generator: Generator) -> Truth:
    phase = _phase(generator, 0.5, 4.0)
    return Truth(columns(lambda x: np.cos(phase(x)), lambda x: np.sin(phase(x))))


def _spiral(generator: Generator) -> Truth:
    phase, size = _phase(generator, 0.5, 3.0), positive(generator, 0.7, spread=0.3)
    f = columns(lambda x: size(x) * np.cos(phase(x)), lambda x: size(x) * np.sin(phase(x)), size)
    return Truth(f)


def _beat(generator: Generator) -> Truth:
    one, other = _phase(generator, 1.0, 3.0), _phase(generator, 3.0, 1.0)
    f = columns(lambda x: np.sin(one(x)), lambda x: np.sin(other(x)), lambda x: np.sin(one(x)) * np.sin(other(x)))
    return Truth(f)


def _modulated(generator: Generator) -> Truth:
    phase, drift = _phase(generator, 1.0, 4.0), wave(generator, 0.5)
    f = columns(lambda x: np.sin(phase(x)) + drift(x), lambda x: np.exp(0.5 * (np.sin(phase(x)) + drift(x))))
    return Truth(f)


FAMILIES = (
    Family("chirp on a circle", ("a**2 + b**2 = 1",), ("a", "b"), _circle, rows=40, noise=0.1),
    Family("chirp on a circle, many rows", ("a**2 + b**2 = 1",), ("a", "b"), _circle, rows=100, noise=0.2),
    Family("spiral", ("a**2 + b**2 = r**2",), ("a", "b", "r"), _spiral, rows=35, noise=0.1),
    Family("beat", ("a*b = c",), ("a", "b", "c"), _beat, rows=50, noise=0.1),
    Family("chirp and its exponential", ("b = exp(a/2)",), ("a", "b"), _modulated, rows=40, noise=0.1, scattered=True),
)
