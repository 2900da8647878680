"""Evidence of outputs that have nothing in common: the sum of those of each output alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sumgp.priors import MultitaskPrior, NoiseModel, OneOutputTask

if TYPE_CHECKING:
    from sumgp.solvers.dense import Evidence


def are_independent(prior: MultitaskPrior) -> bool:
    """Whether every term, every constant and the noise are of one output alone."""
    alone = all(task.speaks_of is not None for task in prior.tasks) and prior.mean_shape == "identity"
    return alone and prior.law is None and prior.latent is None and not prior.noise.closed


class IndependentEvidence:
    """log p(y | theta) for y (N, T) with NaN = missing; ``alone`` gives the evidence of one output at its rows."""

    def __init__(
        self,
        prior: MultitaskPrior,
        x: np.ndarray,
        y: np.ndarray,
        alone: Callable[[MultitaskPrior, np.ndarray, np.ndarray], Evidence],
    ) -> None:
        self.n_parameters = prior.n_parameters
        self.outputs: list[tuple[np.ndarray, Evidence]] = []  # with the positions in theta of their parameters
        for t, column in enumerate(y.T):
            rows = np.flatnonzero(~np.isnan(column))
            if len(rows):
                own, places = output_alone(prior, t, rows)
                self.outputs.append((places, alone(own, x[rows], column[rows, None])))

    def value(self, theta: np.ndarray) -> float:
        """log p(y | theta) alone."""
        return sum(evidence.value(theta[places]) for places, evidence in self.outputs)

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """log p(y | theta) and its gradient with respect to theta."""
        total, gradient = 0.0, np.zeros(self.n_parameters)
        for places, evidence in self.outputs:
            value, slope = evidence(theta[places])
            total += value
            gradient[places] += slope
        return total, gradient


def output_alone(prior: MultitaskPrior, t: int, rows: np.ndarray) -> tuple[MultitaskPrior, np.ndarray]:
    """The prior of output t at some of the rows, and the positions of its parameters among those of all."""
    noise = prior.noise.at(rows)
    own_noise = NoiseModel(
        ((0,),), noise.reference[[t]], None if noise.known is None else noise.known[:, [t]], row_factor=noise.row_factor
    )
    terms = [r for r, task in enumerate(prior.tasks) if task.speaks_of == t]
    places = [np.arange(part.start, part.stop) for r in terms for part in prior.slices[r]]
    if noise.known is None:
        group = next(i for i, outputs in enumerate(noise.groups) if t in outputs)
        places.append(np.array([prior.noise_slice.start + group]))
    own = replace(
        prior,
        kernels=tuple(prior.kernels[r] for r in terms),
        kernel_priors=tuple(prior.kernel_priors[r] for r in terms),
        tasks=tuple(OneOutputTask(1, 0) for _ in terms),
        noise=own_noise,
        n_outputs=1,
    )
    return own, np.concatenate(places)
