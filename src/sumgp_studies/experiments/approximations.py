"""Comparison of approximate inference (appendix A.4): the oscillator again, with every engine of the transformed GP."""

from __future__ import annotations

from dataclasses import dataclass, field

from sumgp_studies.experiments.oscillators import HarmonicOscillator
from sumgp_studies.experiments.problem import Cell, Dataset, Problem, grid

ENGINES = ("gaussian", "moments", "laplace", "variational", "ep")


@dataclass(frozen=True)
class Approximations(Problem):
    """The harmonic oscillator's data, drawn anew; only the methods differ."""

    oscillator: HarmonicOscillator = field(default_factory=HarmonicOscillator)

    name = "approximations"
    title = "Approximate inference on the harmonic oscillator"
    number = 7
    cells = grid((0.05, 0.1), (0.0, 0.2))
    default_methods = ("unconstrained", "projected", *(f"transformed-{engine}" for engine in ENGINES))

    def dataset(self, cell: Cell, seed: int) -> Dataset:
        return self.oscillator.observed_with(cell, self.generator(cell, seed))
