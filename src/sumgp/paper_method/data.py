"""Latent tasks of the paper's method: which functions a Gaussian process learns, and the law that is linear in them.

The tasks are the terms h(f) of the law, then the outputs outside the law, then auxiliary outputs f themselves where h
has several branches (and they are learnt again). Tasks are unit-free: (h(f) - shift) / scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sumgp.data import Data, Scaling
from sumgp.errors import ConstraintError
from sumgp.laws import RightSides, SumLaw, TaskRows, task_rows
from sumgp.transforms import Identity, Transform

LARGEST_RELEARNT = 6  # tasks beyond which auxiliary outputs are not learnt again: their covariances would outgrow the data


@dataclass(frozen=True)
class Task:
    """One latent function: ``transform`` of the output at position ``output``, unit-free by shift and scale."""

    output: int
    transform: Transform
    shift: float
    scale: float


@dataclass(frozen=True)
class LatentTasks:
    """Tasks with the linear law F u = S(x) that holds between them; the first ``n_terms`` are the law's terms."""

    tasks: tuple[Task, ...]
    n_terms: int
    n_outputs: int
    F: np.ndarray  # (R, L) unit-free, rows of length one
    noise: np.ndarray  # (R,)
    right_sides: RightSides
    dropped_rows: tuple[str, ...]

    @cached_property
    def outputs(self) -> np.ndarray:
        """(L,) output of each task."""
        return np.array([task.output for task in self.tasks])

    @cached_property
    def shift(self) -> np.ndarray:
        """(L,) shifts."""
        return np.array([task.shift for task in self.tasks])

    @cached_property
    def scale(self) -> np.ndarray:
        """(L,) scales."""
        return np.array([task.scale for task in self.tasks])

    @cached_property
    def has_auxiliary(self) -> bool:
        """True unless an output with several branches was left without an auxiliary task."""
        return all(t.transform.monotone or np.sum(self.outputs == t.output) > 1 for t in self.tasks)

    @cached_property
    def main(self) -> np.ndarray:
        """(T,) the task that an output is recovered from: its term in the law, or itself."""
        return np.array([int(np.flatnonzero(self.outputs == t)[0]) for t in range(self.n_outputs)])


def law_terms(law: SumLaw) -> tuple[list[tuple[int, Transform]], np.ndarray]:
    """Distinct (output, transform) pairs and their coefficients (R, M); ConstraintError where this method does not apply."""
    if law.unknowns:
        raise ConstraintError(
            f"strategy: Transformed() needs known totals, but {', '.join(law.unknowns)} is to be estimated; use Linearized()"
        )
    if not law.has_constant_coefficients:
        raise ConstraintError(
            "strategy: Transformed() needs constant coefficients that hold for all inputs, but those of this law vary with "
            "x; use Linearized()"
        )
    terms = list(dict.fromkeys(law.columns))
    coefficients = np.zeros((law.n_rows, len(terms)))
    for position, column in enumerate(law.columns):
        coefficients[:, terms.index(column)] += np.asarray(law.coefficients)[:, position]
    used = np.any(coefficients != 0, axis=0)
    terms, coefficients = [term for term, u in zip(terms, used, strict=True) if u], coefficients[:, used]
    seen = [output for output, _ in terms]
    twice = [law.outputs[output] for output in dict.fromkeys(seen) if seen.count(output) > 1]
    if twice:
        raise ConstraintError(
            f"strategy: Transformed() needs each output in one kind of term, but {twice[0]!r} enters the law through "
            "several; use Linearized()"
        )
    return terms, coefficients


def latent_tasks(law: SumLaw, data: Data, scaling: Scaling, reference: np.ndarray, relearn: bool | None) -> LatentTasks:
    """The tasks for a law; ``reference`` (N, T) are estimates of the outputs at the training rows, in the user's units.

    ``relearn`` None learns auxiliary outputs again unless there would be too many tasks.
    """
    terms, coefficients = law_terms(law)
    outside = [t for t in range(len(law.outputs)) if t not in [output for output, _ in terms]]
    auxiliary = [output for output, transform in terms if not transform.monotone]
    if relearn is None:
        relearn = len(terms) + len(outside) + len(auxiliary) <= LARGEST_RELEARNT
    plain = [*outside, *(auxiliary if relearn else [])]
    tasks = [_scaled_task(output, transform, scaling, reference) for output, transform in terms]
    tasks += [_scaled_task(output, Identity(), scaling, reference) for output in plain]
    rows = _linear_law(law, data, coefficients, tasks)
    return LatentTasks(tuple(tasks), len(terms), len(law.outputs), rows.F, rows.noise, rows.right_sides, rows.dropped)


def _scaled_task(output: int, transform: Transform, scaling: Scaling, reference: np.ndarray) -> Task:
    shift, scale = float(scaling.y_shift[output]), float(scaling.y_scale[output])
    if transform.is_identity:
        return Task(output, transform, shift, scale)
    # Estimates instead of data: noise near a pole or an edge (log of a small number) would set the scale.
    values = transform.relaxed(max(abs(shift), scale)).value(reference[:, output])
    spread = float(np.std(values))
    if not spread > 1e-8 * float(np.max(np.abs(values))):
        around = transform.relaxed(max(abs(shift), scale)).value(shift + scale * np.linspace(-1.0, 1.0, 9))
        values, spread = around, float(np.std(around))
    return Task(output, transform, float(np.mean(values)), spread if spread > 0 else 1.0)


def _linear_law(law: SumLaw, data: Data, coefficients: np.ndarray, tasks: Sequence[Task]) -> TaskRows:
    """Unit-free rows over all tasks, without rows that repeat others."""
    padded = np.zeros((law.n_rows, len(tasks)))
    padded[:, : coefficients.shape[1]] = coefficients
    linear = SumLaw(
        outputs=tuple(f"task {i}" for i in range(len(tasks))),
        labels=law.labels,
        noise=law.noise,
        columns=tuple((i, Identity()) for i in range(len(tasks))),
        coefficients=padded,
        total=law.total,
    )
    units = Scaling(np.zeros(0), np.zeros(0), np.array([t.shift for t in tasks]), np.array([t.scale for t in tasks]))
    return task_rows(linear, data, units)
