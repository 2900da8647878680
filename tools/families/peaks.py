"""Narrow features on a flat ground: spectral lines, doses, fronts."""

from __future__ import annotations

import numpy as np

from families.family import Family, Function, Truth, columns, positive

Generator = np.random.Generator


def _line(generator: Generator, narrowest: float, widest: float) -> Function:
    """A Gaussian peak of unit height somewhere in the middle."""
    centre, width = generator.uniform(0.25, 0.75), generator.uniform(narrowest, widest)
    return lambda x: np.exp(-0.5 * ((x[:, 0] - centre) / width) ** 2)


def _absorption(generator: Generator) -> Truth:
    line, height = _line(generator, 0.05, 0.1), float(generator.uniform(1.0, 2.0))
    return Truth(columns(lambda x: height * line(x), lambda x: np.exp(-height * line(x))))


def _overlap(generator: Generator) -> Truth:
    one, other = _line(generator, 0.08, 0.2), _line(generator, 0.08, 0.2)
    return Truth(columns(one, other, lambda x: (0.2 + one(x)) * (0.2 + other(x))), {"C": 0.2})


def _saturation(generator: Generator) -> Truth:
    dose, half = _line(generator, 0.06, 0.12), float(generator.uniform(0.2, 0.6))
    return Truth(columns(dose, lambda x: dose(x) / (half + dose(x))), {"K": half})


def _front(generator: Generator) -> Truth:
    centre, width, total = generator.uniform(0.3, 0.7), generator.uniform(0.04, 0.08), positive(generator, 0.5, spread=0.2)
    share = lambda x: 1.0 / (1.0 + np.exp(-(x[:, 0] - centre) / width))  # noqa: E731
    return Truth(columns(share, total, lambda x: share(x) * total(x)))


def _resonance(generator: Generator) -> Truth:
    centre, width = generator.uniform(0.35, 0.65), generator.uniform(0.08, 0.15)
    detuning = lambda x: (x[:, 0] - centre) / width  # noqa: E731
    real, imaginary = (lambda x: detuning(x) / (1.0 + detuning(x) ** 2)), (lambda x: 1.0 / (1.0 + detuning(x) ** 2))
    return Truth(columns(real, imaginary))


FAMILIES = (
    Family("absorption line", ("t = exp(-a)",), ("a", "t"), _absorption, rows=30, noise=0.05),
    Family("overlapping peaks", ("(C + a)*(C + b) = c",), ("a", "b", "c"), _overlap, rows=30, noise=0.1),
    Family("saturation", ("v*(K + s) = s",), ("s", "v"), _saturation, rows=30, noise=0.1, scattered=True),
    Family("front", ("s*n = c",), ("s", "n", "c"), _front, rows=30, noise=0.1, unequal=4.0),
    Family("resonance circle", ("a**2 + (b - 1/2)**2 = 1/4",), ("a", "b"), _resonance, rows=25, noise=0.1),
)
