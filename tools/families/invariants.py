"""Motions that keep an energy or another invariant."""

from __future__ import annotations

import numpy as np

from families.family import Family, Truth, columns, motion, positive

Generator = np.random.Generator


def _lotka_volterra(generator: Generator) -> Truth:
    prey, hunters = generator.uniform(0.7, 1.6, 2)
    f = motion(lambda f: np.array([f[0] * (1.0 - f[1]), f[1] * (f[0] - 1.0)]), np.array([prey + 0.4, hunters]), 8.0)
    start = f(np.zeros((1, 1)))[0]
    return Truth(f, {"V": float(np.sum(start - np.log(start)))})


def _pendulum(generator: Generator) -> Truth:
    angle = float(generator.uniform(1.8, 2.7))
    f = motion(lambda f: np.array([f[1], -np.sin(f[0])]), np.array([angle, 0.0]), float(generator.uniform(8.0, 12.0)))
    return Truth(f, {"H": -np.cos(angle)})


def _duffing(generator: Generator) -> Truth:
    start = np.array([generator.uniform(0.1, 1.2), generator.uniform(0.4, 0.8)])
    f = motion(lambda f: np.array([f[1], f[0] - f[0] ** 3]), start, 8.0)
    return Truth(f, {"H": float(start[1] ** 2 / 2 + start[0] ** 4 / 4 - start[0] ** 2 / 2)})


def _morse(generator: Generator) -> Truth:
    start = np.array([0.0, generator.uniform(0.6, 1.1)])
    f = motion(lambda f: np.array([f[1], -2.0 * (1.0 - np.exp(-f[0])) * np.exp(-f[0])]), start, 7.0)
    return Truth(f, {"H": float(start[1] ** 2 / 2)})


def _oscillator(generator: Generator) -> Truth:
    size, phase, periods = generator.uniform(0.8, 1.5), generator.uniform(0.0, 6.3), generator.uniform(1.0, 2.0)
    turn = lambda x: 2.0 * np.pi * periods * x[:, 0] + phase  # noqa: E731
    return Truth(columns(lambda x: size * np.sin(turn(x)), lambda x: size * np.cos(turn(x))), {"E": "unknown"})


def _damped(generator: Generator) -> Truth:
    decay, phase = float(generator.uniform(1.0, 3.0)), generator.uniform(0.0, 6.3)
    size = lambda x: np.exp(-decay * x[:, 0])  # noqa: E731
    turn = lambda x: 9.0 * x[:, 0] + phase  # noqa: E731
    f = columns(lambda x: size(x) * np.sin(turn(x)), lambda x: size(x) * np.cos(turn(x)), lambda x: 0.5 * size(x) ** 2)
    return Truth(f)


def _henon_heiles(generator: Generator) -> Truth:
    start = np.concatenate([generator.uniform(-0.2, 0.2, 2), generator.uniform(0.15, 0.3, 2)])

    def slope(f: np.ndarray) -> np.ndarray:
        return np.array([f[2], f[3], -f[0] - 2.0 * f[0] * f[1], -f[1] - f[0] ** 2 + f[1] ** 2])

    x, y, u, v = start
    energy = 0.5 * (u**2 + v**2 + x**2 + y**2) + x**2 * y - y**3 / 3.0
    return Truth(motion(slope, start, 10.0), {"H": float(energy)})


def _relativistic(generator: Generator) -> Truth:
    momentum = positive(generator, 1.0, spread=0.6)
    return Truth(columns(momentum, lambda x: np.sqrt(1.0 + momentum(x) ** 2)))


FAMILIES = (
    Family("Lotka-Volterra", ("x - log(x) + y - log(y) = V",), ("x", "y"), _lotka_volterra, rows=20, noise=0.1),
    Family("large-angle pendulum", ("v**2/2 - cos(q) = H",), ("q", "v"), _pendulum, rows=20, noise=0.1),
    Family("large-angle pendulum, gaps", ("v**2/2 - cos(q) = H",), ("q", "v"), _pendulum, rows=30, noise=0.1, missing=0.3),
    Family("double well", ("v**2/2 + q**4/4 - q**2/2 = H",), ("q", "v"), _duffing, rows=20, noise=0.1),
    Family("Morse oscillator", ("v**2/2 + (1 - exp(-q))**2 = H",), ("q", "v"), _morse, rows=20, noise=0.05),
    Family("oscillator, unknown energy", ("z**2/2 + v**2/2 = E",), ("z", "v"), _oscillator, rows=20, noise=0.1),
    Family("damped oscillator", ("z**2/2 + v**2/2 = e",), ("z", "v", "e"), _damped, rows=20, noise=0.1, unequal=4.0),
    Family(
        "Henon-Heiles",
        ("u**2/2 + v**2/2 + x**2/2 + y**2/2 + x**2*y - y**3/3 = H",),
        ("x", "y", "u", "v"),
        _henon_heiles,
        rows=25,
        noise=0.1,
    ),
    Family("relativistic energy", ("e**2 = 1 + p**2",), ("p", "e"), _relativistic, rows=8, noise=0.05, unequal=4.0),
)
