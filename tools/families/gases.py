"""Equations of state."""

from __future__ import annotations

import numpy as np

from families.family import Family, Truth, columns, positive, wave

Generator = np.random.Generator
GAMMA = 1.4  # ratio of specific heats of a gas of two atoms


def _ideal(generator: Generator, n_inputs: int = 1) -> Truth:
    volume, warmth = positive(generator, 1.0, n_inputs, 0.3), wave(generator, 1.0, n_inputs)
    kelvin = lambda x: 300.0 + 20.0 * warmth(x)  # noqa: E731
    return Truth(columns(lambda x: 8.314 * kelvin(x) / volume(x), volume, kelvin), {"R": 8.314})


def _adiabatic(generator: Generator) -> Truth:
    volume, constant = positive(generator, spread=0.5), float(generator.uniform(1.0, 3.0))
    return Truth(columns(lambda x: constant / volume(x) ** GAMMA, volume), {"C": constant, "G": GAMMA})


def _van_der_waals(generator: Generator) -> Truth:
    volume, warmth = positive(generator, spread=0.3), wave(generator)
    kelvin = lambda x: 1.0 + 0.1 * warmth(x)  # noqa: E731
    pressure = lambda x: kelvin(x) / (volume(x) - 0.1) - 0.3 / volume(x) ** 2  # noqa: E731
    return Truth(columns(pressure, volume, kelvin))


def _vapour(generator: Generator) -> Truth:
    warmth, size = wave(generator), float(generator.uniform(5.0, 12.0))
    celsius = lambda x: 15.0 + size * warmth(x)  # noqa: E731
    return Truth(columns(celsius, lambda x: 6.11 * np.exp(17.6 * celsius(x) / (243.0 + celsius(x)))))


def _partial_pressures(generator: Generator) -> Truth:
    a, b, c = (positive(generator) for _ in range(3))
    return Truth(columns(a, b, c, lambda x: a(x) + b(x) + c(x)))


FAMILIES = (
    Family("ideal gas", ("p*V = R*T",), ("p", "V", "T"), _ideal, rows=15, noise=0.1, unequal=4.0),
    Family("ideal gas, many rows", ("p*V = R*T",), ("p", "V", "T"), _ideal, rows=80, noise=0.3, scattered=True),
    Family("ideal gas in space", ("p*V = R*T",), ("p", "V", "T"), lambda g: _ideal(g, 3), rows=60, noise=0.1, n_inputs=3),
    Family("adiabatic gas", ("p*V**G = C",), ("p", "V"), _adiabatic, rows=10, noise=0.1),
    Family(
        "van der Waals", ("(p + 0.3/V**2)*(V - 0.1) = T",), ("p", "V", "T"), _van_der_waals, rows=15, noise=0.1, unequal=4.0
    ),
    Family("vapour pressure", ("e = 6.11*exp(17.6*T/(243 + T))",), ("T", "e"), _vapour, rows=8, noise=0.1),
    Family("partial pressures", ("a + b + c = p",), ("a", "b", "c", "p"), _partial_pressures, rows=12, noise=0.2),
)
