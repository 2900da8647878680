"""Priors over several outputs: kernels, task covariances, noise, and the law's place in them."""

from sumgp.priors.multitask import Hyperparameters, MultitaskPrior, TaskLaw
from sumgp.priors.noise import NoiseModel, read_noise
from sumgp.priors.nullspace import nullspace_basis, nullspace_task
from sumgp.priors.tasks import FullTask, LowRankTask, TaskCovariance

__all__ = [
    "FullTask",
    "Hyperparameters",
    "LowRankTask",
    "MultitaskPrior",
    "NoiseModel",
    "TaskCovariance",
    "TaskLaw",
    "nullspace_basis",
    "nullspace_task",
    "read_noise",
]
