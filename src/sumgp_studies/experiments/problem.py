"""What an experiment is: a problem with cells (noise, share of missing outputs) that makes seeded data sets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sumgp.laws import Constraint, Law
from sumgp_studies import metrics


@dataclass(frozen=True)
class Cell:
    """One column of a published table: noise standard deviation and probability that an output is not measured."""

    noise: float | None = None
    missing: float | None = None

    def label(self) -> str:
        """Short text for table heads."""
        parts = [] if self.noise is None else [f"noise {self.noise:g}"]
        if self.missing is not None:
            parts.append(f"{self.missing:.0%} missing")
        return ", ".join(parts) or "all data"


@dataclass(frozen=True)
class Lengths:
    """Points whose coordinates are outputs, and the lengths between them: ``edges`` (i, j) with ``lengths`` (edges,).

    ``points`` names the outputs of each point, e.g. (("p1_x", "p1_y"), ...); ``anchors`` (k, dimension) are further
    points of known position, used by methods that work on pairwise products.
    """

    points: tuple[tuple[str, ...], ...]
    edges: tuple[tuple[int, int], ...]
    lengths: tuple[float, ...]
    anchors: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Family:
    """The true formula: ``outputs(parameters, X)`` gives (n, T), the data come from the parameters ``truth``."""

    outputs: Callable[[np.ndarray, np.ndarray], np.ndarray]
    truth: tuple[float, ...]


@dataclass(frozen=True)
class Dataset:
    """Training data X (N, D), Y (N, T) with NaN = not measured, test inputs and true outputs, and the law.

    ``scored_constraint`` is the law against which the violation is measured, where it differs from the law that is
    fitted (a total estimated from more data); ``further_constraint`` holds more laws that a method may add, ``motion`` a
    differential one, ``with_motion`` what is imposed together with it if not the law itself. ``family``: all functions
    that obey the law and the motion, for least squares.
    ``truth_is_measured`` says that ``F_test`` holds noisy measurements instead of the noise-free truth.
    """

    X_train: np.ndarray
    Y_train: np.ndarray
    X_test: np.ndarray
    F_test: np.ndarray
    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    constraint: Constraint
    formula: str
    constants: Mapping[str, Any] = field(default_factory=dict)
    groups: tuple[tuple[str, ...], ...] | None = None
    scored_constraint: Constraint | None = None
    further_constraint: Constraint | None = None
    further_formula: str = ""
    motion: str = ""  # differential law that the outputs obey too, as a formula
    with_motion: Constraint | None = None
    family: Family | None = None
    lengths: Lengths | None = None
    truth_is_measured: bool = False
    note: str = ""

    def law(self) -> Law:
        """The fitted law, bound to this data set's outputs and inputs."""
        return self.constraint.bind(self.outputs, self.inputs)

    def violations(self, mean: np.ndarray) -> dict[str, float]:
        """Mean |g| of predictions (n, T) at the test inputs, under the names used in records.

        ``violation`` is measured against the scored law, ``violation_own`` against the fitted one,
        ``violation_length`` is the mean error of the lengths themselves.
        """
        own = metrics.violation(self.law().residual(mean, self.X_test))
        scores = {"violation": own}
        if self.scored_constraint is not None:
            scored = self.scored_constraint.bind(self.outputs, self.inputs)
            scores = {"violation": metrics.violation(scored.residual(mean, self.X_test)), "violation_own": own}
        if self.lengths is not None:
            scores["violation_length"] = metrics.violation(length_errors(mean, self.outputs, self.lengths))
        return scores


def length_errors(f: np.ndarray, outputs: tuple[str, ...], lengths: Lengths) -> np.ndarray:
    """(n, edges) distance of the two ends minus the stated length; an edge end of -1 is the origin."""
    where = {name: column for column, name in enumerate(outputs)}
    points = [f[:, [where[name] for name in point]] for point in lengths.points]
    origin = np.zeros_like(points[0])
    ends = [(points[i] if i >= 0 else origin, points[j] if j >= 0 else origin) for i, j in lengths.edges]
    return np.stack([np.linalg.norm(a - b, axis=1) for a, b in ends], axis=1) - np.asarray(lengths.lengths)


class Problem(ABC):
    """An experiment of the paper. Concrete problems are frozen dataclasses of their physical parameters."""

    name: str
    title: str
    number: int  # part of every seed, so it never changes
    cells: tuple[Cell, ...]
    default_methods: tuple[str, ...] = ("unconstrained", "projected", "transformed-laplace", "linearized")

    @abstractmethod
    def dataset(self, cell: Cell, seed: int) -> Dataset:
        """The data set of this seed: the same arguments always give the same numbers."""

    def source(self) -> str:
        """Where the data come from, in words for the report."""
        return "simulated as in the paper"

    def comparable(self) -> bool:
        """True if the data are of the paper's kind, so that published numbers may stand beside ours."""
        return True

    def generator(self, cell: Cell, seed: int) -> np.random.Generator:
        """Random numbers of one data set, independent of all others."""
        return np.random.default_rng([seed, self.cells.index(cell), self.number])


def measured(truth: np.ndarray, cell: Cell, generator: np.random.Generator) -> np.ndarray:
    """Truth (N, T) plus Gaussian noise, with entries removed independently (NaN) as the cell says.

    Noise and removal are always drawn, so that two cells of one seed differ only where they should.
    """
    noisy = truth + (cell.noise or 0.0) * generator.standard_normal(truth.shape)
    dropped = generator.random(truth.shape) < (cell.missing or 0.0)
    return np.where(dropped, np.nan, noisy)


def grid(noises: tuple[float, ...], missing: tuple[float, ...]) -> tuple[Cell, ...]:
    """All combinations, in the order of the published tables: by missing share, then by noise."""
    return tuple(Cell(noise, share) for share in missing for noise in noises)
