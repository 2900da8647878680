"""Laws at the points of a plane or of space: two and three inputs."""

from __future__ import annotations

import numpy as np

from families.family import Family, Truth, columns, positive, wave
from families.rotations import on_sphere

Generator = np.random.Generator


def _product(generator: Generator) -> Truth:
    a, b = wave(generator, 0.6, 2), wave(generator, 0.6, 2)
    return Truth(columns(a, b, lambda x: a(x) * b(x)))


def _bernoulli(generator: Generator) -> Truth:
    u, v, head = wave(generator, 0.6, 2), wave(generator, 0.6, 2), 3.0
    return Truth(columns(u, v, lambda x: head - 0.5 * (u(x) ** 2 + v(x) ** 2)), {"B": head})


def _speed(generator: Generator) -> Truth:
    parts = [wave(generator, 0.4, 3) for _ in range(2)]
    up = lambda x: 2.0 + 0.5 * parts[0](x[:, ::-1])  # noqa: E731
    return Truth(columns(*parts, up, lambda x: np.sqrt(parts[0](x) ** 2 + parts[1](x) ** 2 + up(x) ** 2)))


def _soil(generator: Generator) -> Truth:
    weights = [wave(generator, 0.6, 2) for _ in range(3)]

    def shares(x: np.ndarray) -> np.ndarray:
        amounts = np.exp(np.stack([0.7 * w(x) for w in weights], axis=1))
        return 100.0 * amounts / amounts.sum(axis=1, keepdims=True)

    return Truth(shares)


def _flow(generator: Generator) -> Truth:
    depth, speed = positive(generator, 0.5, 2, 0.3), positive(generator, 0.5, 2, 0.3)
    return Truth(columns(depth, speed, lambda x: speed(x) / np.sqrt(9.81 * depth(x))), {"g": 9.81})


FAMILIES = (
    Family("product in the plane", ("a*b = c",), ("a", "b", "c"), _product, rows=50, noise=0.1, n_inputs=2),
    Family(
        "Bernoulli in the plane", ("p + (u**2 + v**2)/2 = B",), ("u", "v", "p"), _bernoulli, rows=40, noise=0.1, n_inputs=2
    ),
    Family("speed in space", ("u**2 + v**2 + w**2 = s**2",), ("u", "v", "w", "s"), _speed, rows=60, noise=0.1, n_inputs=3),
    Family("soil in the plane", ("a + b + c = 100",), ("a", "b", "c"), _soil, rows=60, noise=0.2, n_inputs=2),
    Family("Froude number", ("F = v/sqrt(g*h)",), ("h", "v", "F"), _flow, rows=30, noise=0.1, unequal=4.0, n_inputs=2),
    Family(
        "direction in the plane",
        ("a**2 + b**2 + c**2 = 1",),
        ("a", "b", "c"),
        lambda g: on_sphere(g, 3, 2),
        rows=40,
        noise=0.15,
        n_inputs=2,
    ),
)
