"""Position and velocity of a spring: energy conserved (section 4.1, appendix C.1), or decaying (appendices A.2, C.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sumgp.laws import SumConstraint, Term
from sumgp.transforms import Square
from sumgp_studies.experiments.problem import Cell, Dataset, Family, Problem, grid, measured


@dataclass(frozen=True)
class HarmonicOscillator(Problem):
    """z = a(t) sin(omega t), v = dz/dt with a(t) = z0 exp(-b t / 2m) and k/2 z^2 + m/2 v^2 = E(t), z0 = sqrt(2 E(0) / k).

    omega^2 = omega0^2 - (b / 2m)^2, as in the paper's text; the authors' program uses another frequency where b is not zero.
    """

    energy: float = 0.8
    mass: float = 1.0
    omega0: float = 1.0
    damping: float = 0.0  # b

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
        decay = self.damping / (2.0 * self.mass)
        omega = np.sqrt(self.omega0**2 - decay**2)
        amplitude = np.sqrt(2.0 * self.energy / self.stiffness) * np.exp(-decay * t)
        z = amplitude * np.sin(omega * t)
        return np.column_stack([z, amplitude * omega * np.cos(omega * t) - decay * z])

    def delayed(self, delay: np.ndarray, X: np.ndarray) -> np.ndarray:
        """(n, 2) the motion of this energy that starts later by ``delay`` (1,): nothing else is left open."""
        return self.truth(X[:, 0] - delay[0])

    def energy_at(self, X: np.ndarray) -> np.ndarray:
        """(n,) energy E(t) at inputs (n, 1)."""
        z, v = self.truth(X[:, 0]).T
        return self.stiffness / 2 * z**2 + self.mass / 2 * v**2

    def dataset(self, cell: Cell, seed: int) -> Dataset:
        return self.observed_with(cell, self.generator(cell, seed))

    def observed_with(self, cell: Cell, generator: np.random.Generator) -> Dataset:
        """The data set whose noise and missing entries come from the given random numbers."""
        t_train, t_test = np.linspace(0.0, 10.0, 20), np.linspace(-0.1, 10.0, 100)
        terms = [Term("z", self.stiffness / 2, Square()), Term("v", self.mass / 2, Square())]
        total = self.energy_at if self.damping else self.energy
        return Dataset(
            X_train=t_train[:, None],
            Y_train=measured(self.truth(t_train), cell, generator),
            X_test=t_test[:, None],
            F_test=self.truth(t_test),
            outputs=("z", "v"),
            inputs=("t",),
            constraint=SumConstraint(terms, total),
            formula="k/2*z**2 + m/2*v**2 = E",
            constants={"k": self.stiffness, "m": self.mass, "E": total},
            motion="d(z, t) = v",
            family=None if self.damping else Family(self.delayed, (0.0,)),
        )


@dataclass(frozen=True)
class DampedOscillator(HarmonicOscillator):
    """The same with damping: the energy decays, so the total of the law varies with time."""

    damping: float = 0.1

    name = "damped_oscillator"
    title = "Damped harmonic oscillator"
    number = 4
