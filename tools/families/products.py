"""Outputs that are products of others."""

from __future__ import annotations

import numpy as np

from families.family import Family, Truth, columns, positive, wave

Generator = np.random.Generator


def _two(generator: Generator) -> Truth:
    a, b = wave(generator), wave(generator)
    return Truth(columns(a, b, lambda x: a(x) * b(x)))


def _three(generator: Generator) -> Truth:
    a, b, c = positive(generator), positive(generator), wave(generator)
    return Truth(columns(a, b, c, lambda x: a(x) * b(x) * c(x)))


def _circuit(generator: Generator) -> Truth:
    current, resistance = positive(generator), float(generator.uniform(1.0, 5.0))
    f = columns(lambda x: resistance * current(x), current, lambda x: resistance * current(x) ** 2)
    return Truth(f, {"R": resistance})


def _boyle(generator: Generator) -> Truth:
    volume, product = positive(generator, spread=0.6), float(generator.uniform(1.0, 10.0))
    return Truth(columns(lambda x: product / volume(x), volume), {"C": product})


def _power(generator: Generator) -> Truth:
    forces, speeds = [wave(generator) for _ in range(2)], [wave(generator) for _ in range(2)]
    return Truth(columns(*forces, *speeds, lambda x: forces[0](x) * speeds[0](x) + forces[1](x) * speeds[1](x)))


FAMILIES = (
    Family("product", ("a*b = c",), ("a", "b", "c"), _two, rows=20, noise=0.1),
    Family("product, few rows", ("a*b = c",), ("a", "b", "c"), _two, rows=8, noise=0.05),
    Family(
        "product of three", ("a*b*c = d",), ("a", "b", "c", "d"), _three, rows=25, noise=0.1, unequal=4.0, scattered=True
    ),
    Family("circuit", ("u = R*i", "p = u*i"), ("u", "i", "p"), _circuit, rows=12, noise=0.1),
    Family("constant product", ("p*v = C",), ("p", "v"), _boyle, rows=10, noise=0.1, unequal=4.0),
    Family("constant product, five rows", ("p*v = C",), ("p", "v"), _boyle, rows=5, noise=0.03),
    Family("power of a force", ("f*u + g*v = p",), ("f", "g", "u", "v", "p"), _power, rows=30, noise=0.15, missing=0.1),
)
