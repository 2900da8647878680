"""Non-square nonlinearities (appendices A.3, C.4): log f1 + sin f2 = C(x), with a total that varies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sumgp.laws import SumConstraint, Term
from sumgp.transforms import Log, Sin
from sumgp_studies.experiments.problem import Cell, Dataset, Problem, grid, measured


def truth(x: np.ndarray) -> np.ndarray:
    """(n, 2) the two outputs at inputs (n,): two bumps above 0.2, and a cubic."""
    bumps = 2.0 * np.exp(-5.0 * (x - 1.0) ** 2) + np.exp(-5.0 * (x + 1.0) ** 2) + 0.2
    return np.column_stack([bumps, -(x**3) / 2.0])


def total(X: np.ndarray) -> np.ndarray:
    """(n,) C(x) = log f1 + sin f2 of the true outputs at inputs (n, 1)."""
    f = truth(X[:, 0])
    return np.log(f[:, 0]) + np.sin(f[:, 1])


@dataclass(frozen=True)
class LogSine(Problem):
    """f1 = 2 exp(-5 (x-1)^2) + exp(-5 (x+1)^2) + 0.2, f2 = -x^3 / 2 on [-1.2, 2]."""

    name = "log_sine"
    title = "Logarithm and sine"
    number = 5
    cells = grid((0.05, 0.1, 0.15), (0.0, 0.2))

    def dataset(self, cell: Cell, seed: int) -> Dataset:
        x_train, x_test = np.linspace(-1.2, 2.0, 20), np.linspace(-1.2, 2.0, 100)
        return Dataset(
            X_train=x_train[:, None],
            Y_train=measured(truth(x_train), cell, self.generator(cell, seed)),
            X_test=x_test[:, None],
            F_test=truth(x_test),
            outputs=("f1", "f2"),
            inputs=("x",),
            constraint=SumConstraint([Term("f1", 1.0, Log()), Term("f2", 1.0, Sin())], total),
            formula="log(f1) + sin(f2) = C",
            constants={"C": total},
        )
