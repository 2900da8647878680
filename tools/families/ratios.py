"""Outputs that are ratios or sums of reciprocals."""

from __future__ import annotations

import numpy as np

from families.family import Family, Truth, columns, positive, wave

Generator = np.random.Generator


def _ratio(generator: Generator) -> Truth:
    a, b = wave(generator), positive(generator)
    return Truth(columns(a, b, lambda x: a(x) / b(x)))


def _lens(generator: Generator) -> Truth:
    focus, excess = 1.0, positive(generator, spread=0.5)
    return Truth(columns(lambda x: focus + excess(x), lambda x: focus + focus**2 / excess(x)), {"F": focus})


def _parallel(generator: Generator) -> Truth:
    a, b = positive(generator), positive(generator)
    return Truth(columns(a, b, lambda x: a(x) * b(x) / (a(x) + b(x))))


def _mass_fraction(generator: Generator) -> Truth:
    salt, water = positive(generator, spread=0.6), positive(generator, spread=0.3)
    return Truth(columns(salt, water, lambda x: salt(x) / (salt(x) + water(x))))


def _density(generator: Generator) -> Truth:
    mass, radius = positive(generator, 1.5), positive(generator, 1.5, spread=0.2)
    return Truth(columns(mass, radius, lambda x: mass(x) / radius(x) ** 3))


FAMILIES = (
    Family("ratio", ("a/b = c",), ("a", "b", "c"), _ratio, rows=20, noise=0.1, scattered=True),
    Family("lens", ("1/a + 1/b = 1/F",), ("a", "b"), _lens, rows=12, noise=0.1),
    Family("parallel resistors", ("1/a + 1/b = 1/c",), ("a", "b", "c"), _parallel, rows=15, noise=0.15),
    Family("mass fraction", ("s/(s + w) = m",), ("s", "w", "m"), _mass_fraction, rows=40, noise=0.2),
    Family("density of a ball", ("m/r**3 = d",), ("m", "r", "d"), _density, rows=15, noise=0.05, unequal=4.0),
)
