"""The paper's toy problem (section 4.1, appendix C.1): position and velocity of a spring, energy conserved."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sumgp.laws import SumConstraint, Term
from sumgp.transforms import Square
from sumgp_studies.experiments.problem import Cell, Dataset, Family, Problem, grid, measured


@dataclass(frozen=True)
class HarmonicOscillator(Problem):
    """z = z0 sin(omega0 t), v = z0 omega0 cos(omega0 t) with k/2 z^2 + m/2 v^2 = E, z0 = sqrt(2 E / k)."""

    energy: float = 0.8
    mass: float = 1.0
    omega0: float = 1.0

    name = "harmonic_oscillator"
    title = "Harmonic oscillator"
    number = 1
    cells = grid((0.05, 0.1, 0.3), (0.0, 0.2))

    @property
    def stiffness(self) -> float:
        """k = m omega0^2."""
        return self.mass * self.omega0**2

    def truth(self, t: np.ndarray) -> np.ndarray:
        """(n, 2) position and velocity at times (n,)."""
        amplitude = np.sqrt(2.0 * self.energy / self.stiffness)
        return np.column_stack([amplitude * np.sin(self.omega0 * t), amplitude * self.omega0 * np.cos(self.omega0 * t)])

    def delayed(self, delay: np.ndarray, X: np.ndarray) -> np.ndarray:
        """(n, 2) the motion of this energy that starts later by ``delay`` (1,): nothing else is left open."""
        return self.truth(X[:, 0] - delay[0])

    def dataset(self, cell: Cell, seed: int) -> Dataset:
        return self.observed_with(cell, self.generator(cell, seed))

    def observed_with(self, cell: Cell, generator: np.random.Generator) -> Dataset:
        """The data set whose noise and missing entries come from the given random numbers."""
        t_train, t_test = np.linspace(0.0, 10.0, 20), np.linspace(-0.1, 10.0, 100)
        terms = [Term("z", self.stiffness / 2, Square()), Term("v", self.mass / 2, Square())]
        return Dataset(
            X_train=t_train[:, None],
            Y_train=measured(self.truth(t_train), cell, generator),
            X_test=t_test[:, None],
            F_test=self.truth(t_test),
            outputs=("z", "v"),
            inputs=("t",),
            constraint=SumConstraint(terms, self.energy),
            formula="k/2*z**2 + m/2*v**2 = E",
            constants={"k": self.stiffness, "m": self.mass, "E": self.energy},
            motion="d(z, t) = v",
            family=Family(self.delayed, (0.0,)),
        )
