"""Free fall (appendices A.1, C.3): height enters the energy linearly, velocity as a square."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sumgp.laws import SumConstraint, Term
from sumgp.transforms import Square
from sumgp_studies.experiments.problem import Cell, Dataset, Family, Problem, grid, measured


@dataclass(frozen=True)
class FreeFall(Problem):
    """z = v0 t - g/2 t^2, v = v0 - g t, both divided by ``scale`` a; the law m g z + (m/2) a v^2 = E / a.

    Noise, outputs, errors and the law's total are all in the scaled units, as in the published table.
    """

    energy: float = 200.0
    mass: float = 1.0
    gravity: float = 9.81
    scale: float = 20.0

    name = "free_fall"
    title = "Free fall"
    number = 3
    cells = grid((0.05, 0.1, 0.3), (0.0, 0.3))

    def truth(self, t: np.ndarray) -> np.ndarray:
        """(n, 2) scaled height and velocity at times (n,)."""
        v0 = np.sqrt(2.0 * self.energy / self.mass)
        return np.column_stack([v0 * t - self.gravity / 2 * t**2, v0 - self.gravity * t]) / self.scale

    def delayed(self, delay: np.ndarray, X: np.ndarray) -> np.ndarray:
        """(n, 2) the fall of this energy that starts later by ``delay`` (1,): nothing else is left open."""
        return self.truth(X[:, 0] - delay[0])

    def dataset(self, cell: Cell, seed: int) -> Dataset:
        t_train, t_test = np.linspace(0.0, 6.0, 20), np.linspace(-0.1, 6.0, 100)
        total = self.energy / self.scale
        terms = [Term("z", self.mass * self.gravity), Term("v", self.mass / 2 * self.scale, Square())]
        return Dataset(
            X_train=t_train[:, None],
            Y_train=measured(self.truth(t_train), cell, self.generator(cell, seed)),
            X_test=t_test[:, None],
            F_test=self.truth(t_test),
            outputs=("z", "v"),
            inputs=("t",),
            constraint=SumConstraint(terms, total),
            formula="m*g*z + m/2*a*v**2 = E",
            constants={"m": self.mass, "g": self.gravity, "a": self.scale, "E": total},
            motion="d(z, t) = v",
            family=Family(self.delayed, (0.0,)),
        )
