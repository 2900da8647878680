"""A rigid triangle that moves in the plane (section 4.2, appendix C.5): three lengths couple six coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sumgp.laws import FunctionConstraint
from sumgp_studies.experiments.problem import Cell, Dataset, Lengths, Problem, measured

CORNERS = np.array([[4.0, 4.0], [8.0, 4.0], [8.4, 6.0]])
EDGES = ((0, 1), (0, 2), (1, 2))
OUTPUTS = ("p1_x", "p1_y", "p2_x", "p2_y", "p3_x", "p3_y")


def edge_lengths() -> np.ndarray:
    """(3,) lengths of the edges 12, 13, 23."""
    return np.array([np.linalg.norm(CORNERS[i] - CORNERS[j]) for i, j in EDGES])


def squared_length_errors(f: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(n, 3) squared distance of two corners minus its known value, for coordinates f (n, 6)."""
    corners = f.reshape(len(f), 3, 2)
    squares = [np.sum((corners[:, i] - corners[:, j]) ** 2, axis=1) for i, j in EDGES]
    return np.stack(squares, axis=1) - edge_lengths() ** 2


def squared_length_slopes(f: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(n, 3, 6) derivative of ``squared_length_errors`` by the coordinates."""
    corners = f.reshape(len(f), 3, 2)
    slopes = np.zeros((len(f), 3, 3, 2))
    for row, (i, j) in enumerate(EDGES):
        slopes[:, row, i] = 2.0 * (corners[:, i] - corners[:, j])
        slopes[:, row, j] = -slopes[:, row, i]
    return slopes.reshape(len(f), 3, 6)


@dataclass(frozen=True)
class Triangle(Problem):
    """Z = R(rotation alpha) (Z0 + d) + d with d = cos(2 alpha) / 2, alpha in [0, 5].

    The paper's text rotates by alpha, the program behind its table by alpha / 2: ``rotation`` is 1/2 by default.
    """

    rotation: float = 0.5

    name = "triangle"
    title = "Triangle in the plane"
    number = 2
    cells = (Cell(1e-4), Cell(1e-3), Cell(1e-2))
    default_methods = ("unconstrained", "projected", "linearized", "gram", "gram-unconstrained")

    def truth(self, alpha: np.ndarray) -> np.ndarray:
        """(n, 6) coordinates p1_x, p1_y, p2_x, ... at the poses (n,)."""
        angle = self.rotation * alpha
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        shift = 0.5 * np.cos(2.0 * alpha)[:, None, None]
        return (np.einsum("ijn,nkj->nki", turn, CORNERS[None] + shift) + shift).reshape(len(alpha), 6)

    def dataset(self, cell: Cell, seed: int) -> Dataset:
        train, test = np.linspace(0.0, 5.0, 20), np.linspace(0.0, 5.0, 100)
        names = [(f"L{i + 1}{j + 1}", f"p{i + 1}", f"p{j + 1}") for i, j in EDGES]
        formula = "; ".join(f"({a}_x - {b}_x)**2 + ({a}_y - {b}_y)**2 = {length}**2" for length, a, b in names)
        lengths = edge_lengths()
        return Dataset(
            X_train=train[:, None],
            Y_train=measured(self.truth(train), cell, self.generator(cell, seed)),
            X_test=test[:, None],
            F_test=self.truth(test),
            outputs=OUTPUTS,
            inputs=("alpha",),
            constraint=FunctionConstraint(squared_length_errors, squared_length_slopes, rows=3),
            formula=formula,
            constants={name: float(value) for (name, _, _), value in zip(names, lengths, strict=True)},
            groups=(OUTPUTS,),
            lengths=Lengths(
                points=(OUTPUTS[:2], OUTPUTS[2:4], OUTPUTS[4:]),
                edges=EDGES,
                lengths=tuple(lengths.tolist()),
                anchors=((4.0, 4.0),),
            ),
        )
