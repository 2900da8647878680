"""Latent tasks of the paper's method, and what was observed of them: likelihoods, noise in the right units.

The tasks are the terms h(f) of the law, then the outputs outside the law, then auxiliary outputs f themselves where h
has several branches (and they are learnt again). Tasks are unit-free: (h(f) - shift) / scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from sumgp.data import Data, Scaling
from sumgp.errors import ConstraintError
from sumgp.laws import RightSides, SumLaw, TaskRows, task_rows
from sumgp.paper_method.evidence import Observations
from sumgp.paper_method.likelihoods import Likelihood, StackedLikelihood, likelihood_of_output, likelihood_of_transformed
from sumgp.paper_method.switches import Switch
from sumgp.priors import FullTask, LowRankTask, MultitaskPrior, NoiseModel, TaskCovariance, TaskLaw, hyper_priors
from sumgp.strategies import FitProblem
from sumgp.transforms import Identity, Square, Transform

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


FEW_FACTORS = 2  # rank of the task covariance besides its diagonal, where a full one has more parameters than data can tell


@dataclass(frozen=True, eq=False)
class TaskNoise:
    """Noise of the tasks: ``model`` gives unit-free variances, ``unit`` (L,) what one of them means for a likelihood."""

    model: NoiseModel
    unit: np.ndarray


def noise_of_outputs(problem: FitProblem, tasks: LatentTasks) -> TaskNoise:
    """Every task of an output sees that output's noise, in units of the output."""
    own, outputs = problem.noise, tasks.outputs
    groups = tuple(tuple(np.flatnonzero(np.isin(outputs, group)).tolist()) for group in own.groups)
    known = None if own.known is None else own.known[:, outputs]
    return TaskNoise(NoiseModel(groups, own.reference[outputs], known), problem.scaling.y_scale[outputs])


def noise_of_transforms(problem: FitProblem, tasks: LatentTasks, reference: np.ndarray) -> TaskNoise:
    """Standard regression on h(y): transformed tasks have a noise of their own, one per group of outputs.

    Known noise of the outputs becomes that of h(y) by the root mean square slope of h at ``reference`` (N, T).
    """
    plain = noise_of_outputs(problem, tasks)
    curved = np.array([not task.transform.is_identity for task in tasks.tasks])
    unit = np.where(curved, tasks.scale, plain.unit)
    if plain.model.known is not None:
        slopes = np.array(
            [_slope(t.transform.relaxed(s), reference[:, t.output]) for t, s in zip(tasks.tasks, plain.unit, strict=True)]
        )
        known = plain.model.known * (slopes * plain.unit / unit) ** 2
        return TaskNoise(NoiseModel(plain.model.groups, plain.model.reference, known), unit)
    groups, relative = [], plain.model.reference.copy()
    for group in plain.model.groups:
        for kind in (False, True):
            members = [i for i in group if curved[i] == kind]
            if members:
                groups.append(tuple(members))
            if members and kind:
                # One standard deviation in the units of the transforms, about the size of each.
                relative[members] = np.exp(np.mean(np.log(tasks.scale[members]))) / tasks.scale[members]
    return TaskNoise(NoiseModel(tuple(groups), relative), unit)


def _slope(transform: Transform, f: np.ndarray) -> float:
    return float(np.sqrt(np.mean(transform.derivative(f) ** 2)))


class Datum(Enum):
    """What is taken as measured of each entry."""

    OUTPUT = "y itself"
    TRANSFORMED = "h(y), with the noise that y has; what has none is left out"
    PLAIN = "h(y), with Gaussian noise of its own, as in standard regression"


def observe(
    problem: FitProblem,
    tasks: LatentTasks,
    noise: TaskNoise,
    switches: Sequence[Switch],
    reference: np.ndarray,
    datum: Datum,
) -> Observations:
    """All measured entries as observations of their tasks, and the virtual measurements.

    Noise is Gaussian on y, so that only there (or where h(y) has Gaussian noise) the square root of a likelihood is that of
    more noise.
    """
    data = problem.data
    of_transformed = datum is not Datum.OUTPUT
    rooted = datum is not Datum.TRANSFORMED
    point, task = _measured_entries(data, tasks)
    virtual = np.repeat([False, True], [len(point), len(switches)])
    output = tasks.outputs[task]
    y = np.concatenate([data.y[point, output], [s.value for s in switches]])
    sd = np.concatenate([noise.unit[task], [s.sd for s in switches]])
    at = np.concatenate([reference[point, output], np.zeros(len(switches))])
    task = np.concatenate([task, tasks.main[[s.output for s in switches]]]).astype(int)
    point = np.concatenate([point, len(data.x) + np.arange(len(switches))])
    measured = sum(int(data.measured[:, t].sum()) for t in np.unique(output))
    build = likelihood_of_transformed if of_transformed else likelihood_of_output
    parts: list[Likelihood] = []
    places = _alike(tasks, task, virtual)
    for place in places:
        # Virtual measurements are Gaussian ones of the task itself, and in one group with all that are.
        transform = Identity() if virtual[place[0]] else tasks.tasks[task[place[0]]].transform
        parts.append(build(y[place], sd[place], transform, at[place]))
    x_law = np.vstack([data.x, *(s.x for s in switches)])
    return Observations(
        x=problem.scaling.inputs(x_law),
        totals=tasks.right_sides(x_law),
        point=point,
        task=task,
        row=np.where(virtual, 0, point),
        virtual=virtual,
        noise_unit=noise.unit[task],
        likelihood=StackedLikelihood(tuple(parts), places, tasks.shift[task], tasks.scale[task]),
        share=measured / max(len(output), 1),
        twice=np.concatenate([_used_again(tasks)[task[~virtual]] & rooted, np.zeros(len(switches), dtype=bool)]),
    )


def _used_again(tasks: LatentTasks) -> np.ndarray:
    """(L,) whether a task's output has another task."""
    return np.array([np.sum(tasks.outputs == output) > 1 for output in tasks.outputs])


def _measured_entries(data: Data, tasks: LatentTasks) -> tuple[np.ndarray, np.ndarray]:
    """Row and task of each measured entry, task by task."""
    rows = [np.flatnonzero(data.measured[:, task.output]) for task in tasks.tasks]
    return np.concatenate(rows), np.repeat(np.arange(len(rows)), [len(r) for r in rows])


def _alike(tasks: LatentTasks, task: np.ndarray, virtual: np.ndarray) -> tuple[np.ndarray, ...]:
    """Positions of observations that one likelihood serves: Gaussian ones, squares, and each other task on its own."""
    groups: dict[object, list[int]] = {}
    for position, (number, is_virtual) in enumerate(zip(task, virtual, strict=True)):
        transform = tasks.tasks[number].transform
        key: object = number
        if is_virtual or transform.is_identity:
            key = "plain"
        elif isinstance(transform, Square):
            key = transform
        groups.setdefault(key, []).append(position)
    return tuple(np.array(places) for places in groups.values())


def task_prior(
    problem: FitProblem, tasks: LatentTasks, noise: NoiseModel, kernels: tuple[Kernel, ...], totals: np.ndarray
) -> MultitaskPrior:
    """The multitask prior over the latent tasks with the law on its task covariance."""
    L = len(tasks.tasks)
    rank = FEW_FACTORS if problem.rank is None and L > LARGEST_RELEARNT else problem.rank
    covariance: TaskCovariance = FullTask(L) if rank is None else LowRankTask(L, rank)
    return MultitaskPrior(
        kernels=kernels,
        kernel_priors=tuple(tuple(hyper_priors(k, problem.half_range)) for k in kernels),
        tasks=(covariance,),
        noise=noise,
        n_outputs=L,
        law=TaskLaw(tasks.F, tasks.noise, totals),
    )
