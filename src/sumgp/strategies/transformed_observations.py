"""From measurements to observations of latent tasks: likelihoods, noise in the right units, virtual measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from sumgp.likelihoods import GaussianLikelihood, Likelihood, likelihood_of_output, likelihood_of_transformed, stacked
from sumgp.priors.kernels import hyper_priors
from sumgp.priors.multitask import MultitaskPrior, TaskLaw
from sumgp.priors.noise import NoiseModel
from sumgp.priors.tasks import FullTask, LowRankTask, TaskCovariance
from sumgp.strategies.problem import FitProblem
from sumgp.strategies.transformed_data import LatentTasks
from sumgp.strategies.transformed_evidence import Observations, UnitFreeLikelihood
from sumgp.strategies.transformed_switches import Switch


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
        slopes = [_slope(task.transform.relaxed(s), reference[:, task.output]) for task, s in zip(tasks.tasks, plain.unit, strict=True)]
        return TaskNoise(NoiseModel(plain.model.groups, plain.model.reference, plain.model.known * (slopes * plain.unit / unit) ** 2), unit)
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


def _slope(transform: object, f: np.ndarray) -> float:
    return float(np.sqrt(np.mean(transform.derivative(f) ** 2)))  # type: ignore[attr-defined]


def observe(
    problem: FitProblem, tasks: LatentTasks, noise: TaskNoise, switches: Sequence[Switch], reference: np.ndarray, of_transformed: bool
) -> Observations:
    """All measured entries as observations of their tasks, then the virtual measurements.

    ``of_transformed`` takes h(y) as the datum (and leaves out what has none) instead of y itself.
    """
    data = problem.data
    build = likelihood_of_transformed if of_transformed else likelihood_of_output
    parts: list[Likelihood] = []
    points, numbers = [], []
    for number, task in enumerate(tasks.tasks):
        rows = np.flatnonzero(data.measured[:, task.output])
        if len(rows):
            y, sd = data.y[rows, task.output], np.full(len(rows), noise.unit[number])
            parts.append(build(y, sd, task.transform, reference[rows, task.output]))
            points.append(rows)
            numbers.append(np.full(len(rows), number))
    if switches:
        parts.append(GaussianLikelihood(np.array([s.value for s in switches]), np.array([s.sd for s in switches])))
        points.append(len(data.x) + np.arange(len(switches)))
        numbers.append(tasks.main[[s.output for s in switches]])
    task, point = np.concatenate(numbers), np.concatenate(points)
    x_law = np.vstack([data.x, *(s.x for s in switches)])
    virtual = point >= len(data.x)
    return Observations(
        x=problem.scaling.inputs(x_law),
        totals=tasks.right_sides(x_law),
        point=point,
        task=task,
        row=np.where(virtual, 0, point),
        virtual=virtual,
        noise_unit=noise.unit[task],
        likelihood=UnitFreeLikelihood(stacked(parts), tasks.shift[task], tasks.scale[task]),
    )


def task_prior(problem: FitProblem, tasks: LatentTasks, noise: NoiseModel, kernels: tuple[Kernel, ...], totals: np.ndarray) -> MultitaskPrior:
    """The multitask prior over the latent tasks with the law on its task covariance."""
    L = len(tasks.tasks)
    covariance: TaskCovariance = FullTask(L) if problem.rank is None else LowRankTask(L, problem.rank)
    return MultitaskPrior(
        kernels=kernels,
        kernel_priors=tuple(tuple(hyper_priors(k, problem.half_range)) for k in kernels),
        tasks=(covariance,),
        noise=noise,
        n_outputs=L,
        law=TaskLaw(tasks.F, tasks.noise, totals),
    )
