"""Reactions, populations and epidemics: sums kept, and equilibria."""

from __future__ import annotations

import numpy as np

from families.family import Family, Truth, columns, motion, positive, wave

Generator = np.random.Generator


def _chain(generator: Generator, species: int) -> Truth:
    """First-order reactions one after the other, all of the first species at the start."""
    rates = generator.uniform(1.0, 5.0, species - 1)

    def slope(f: np.ndarray) -> np.ndarray:
        flow = rates * f[:-1]
        return np.append(-flow, 0.0) + np.append(0.0, flow)

    return Truth(motion(slope, np.eye(species)[0], 2.0))


def _binding(generator: Generator) -> Truth:
    """Free ligand a, free receptor b and complex c in equilibrium."""
    constant, total, ligand = float(generator.uniform(0.3, 1.0)), 1.0, positive(generator, spread=0.6)
    complexed = lambda x: total * ligand(x) / (constant + ligand(x))  # noqa: E731
    return Truth(columns(ligand, lambda x: total - complexed(x), complexed), {"K": constant, "B": total})


def _dimer(generator: Generator) -> Truth:
    monomer, constant = positive(generator, spread=0.5), float(generator.uniform(0.3, 2.0))
    dimer = lambda x: monomer(x) ** 2 / constant  # noqa: E731
    return Truth(columns(monomer, dimer, lambda x: monomer(x) + 2.0 * dimer(x)), {"K": constant})


def _epidemic(generator: Generator) -> Truth:
    reproduction, seed = float(generator.uniform(2.0, 4.0)), 0.02
    f = motion(
        lambda f: np.array([-reproduction * f[0] * f[1], reproduction * f[0] * f[1] - f[1], f[1]]),
        np.array([1.0 - seed, seed, 0.0]),
        8.0,
    )
    return Truth(f, {"R": reproduction, "C": 1.0 - np.log(1.0 - seed) / reproduction})


def _composition(generator: Generator, parts: int) -> Truth:
    weights = [wave(generator) for _ in range(parts)]

    def shares(x: np.ndarray) -> np.ndarray:
        amounts = np.exp(np.stack([0.6 * w(x) for w in weights], axis=1))
        return amounts / amounts.sum(axis=1, keepdims=True)

    return Truth(shares)


def _arrhenius(generator: Generator) -> Truth:
    warmth, energy = wave(generator), float(generator.uniform(2.0, 4.0))
    kelvin = lambda x: 1.0 + 0.15 * warmth(x)  # noqa: E731
    return Truth(columns(kelvin, lambda x: np.exp(energy - energy / kelvin(x))), {"E": energy})


EIGHT = tuple("abcdefgh")
FAMILIES = (
    Family("reaction chain", ("a + b + c = 1",), ("a", "b", "c"), lambda g: _chain(g, 3), rows=10, noise=0.1),
    Family("chain of six species", (" + ".join(EIGHT[:6]) + " = 1",), EIGHT[:6], lambda g: _chain(g, 6), rows=20, noise=0.1),
    Family(
        "binding", ("a*b = K*c", "b + c = B"), ("a", "b", "c"), _binding, rows=15, noise=0.1, unequal=4.0, scattered=True
    ),
    Family("dimer", ("m**2 = K*d", "m + 2*d = n"), ("m", "d", "n"), _dimer, rows=12, noise=0.15),
    Family(
        "epidemic", ("s + i + r = 1", "s + i - log(s)/R = C"), ("s", "i", "r"), _epidemic, rows=20, noise=0.1, unequal=4.0
    ),
    Family("eight parts", (" + ".join(EIGHT) + " = 1",), EIGHT, lambda g: _composition(g, 8), rows=15, noise=0.1),
    Family("reaction rate", ("k = exp(E - E/T)",), ("T", "k"), _arrhenius, rows=10, noise=0.1),
)
