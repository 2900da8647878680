"""Kepler's problem in the plane and in space."""

from __future__ import annotations

import numpy as np

from families.family import Family, Function, Truth, motion

Generator = np.random.Generator
PERIODS = 1.2


def _attraction(dimension: int) -> Function:
    """Slope of (position, velocity) under the attraction of a unit mass at the origin."""

    def slope(f: np.ndarray) -> np.ndarray:
        position, velocity = f[:dimension], f[dimension:]
        return np.concatenate([velocity, -position / np.linalg.norm(position) ** 3])

    return slope


def _plane(generator: Generator) -> Truth:
    """An orbit from its far point, of eccentricity up to .5 and period 2 pi."""
    eccentricity, angle = generator.uniform(0.0, 0.5), generator.uniform(0.0, 2.0 * np.pi)
    away, along = np.array([np.cos(angle), np.sin(angle)]), np.array([-np.sin(angle), np.cos(angle)])
    speed = np.sqrt((1.0 - eccentricity) / (1.0 + eccentricity))
    start = np.concatenate([(1.0 + eccentricity) * away, speed * along])
    f = motion(_attraction(2), start, 2.0 * np.pi * PERIODS)
    return Truth(f, {"H": -0.5, "L": float((1.0 + eccentricity) * speed)})


def _space(generator: Generator) -> Truth:
    plane = _plane(generator)
    rotation = np.linalg.qr(generator.standard_normal((3, 3)))[0]
    rotation = rotation * np.linalg.det(rotation)

    def turned(x: np.ndarray) -> np.ndarray:
        f = plane.function(x)
        return np.hstack([f[:, :2] @ rotation[:, :2].T, f[:, 2:] @ rotation[:, :2].T])

    momentum = plane.constants["L"] * rotation[:, 2]
    return Truth(turned, {"H": -0.5, "A": momentum[0], "B": momentum[1], "C": momentum[2]})


ENERGY = "u**2/2 + v**2/2 - 1/sqrt(x**2 + y**2) = H"
MOMENTUM = "x*v - y*u = L"
IN_SPACE = (
    "u**2/2 + v**2/2 + w**2/2 - 1/sqrt(x**2 + y**2 + z**2) = H",
    "y*w - z*v = A",
    "z*u - x*w = B",
    "x*v - y*u = C",
)
FAMILIES = (
    Family("orbit, energy", (ENERGY,), ("x", "y", "u", "v"), _plane, rows=25, noise=0.05),
    Family("orbit, angular momentum", (MOMENTUM,), ("x", "y", "u", "v"), _plane, rows=25, noise=0.1),
    Family("orbit, both", (ENERGY, MOMENTUM), ("x", "y", "u", "v"), _plane, rows=25, noise=0.05),
    Family("orbit in space", IN_SPACE, ("x", "y", "z", "u", "v", "w"), _space, rows=30, noise=0.03),
)
