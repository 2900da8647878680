"""Priors over several outputs: kernels, task covariances, noise, and the law's place in them."""

from sumgp.priors.candidates import Candidate, default_candidates, given_candidate
from sumgp.priors.multitask import Hyperparameters, MultitaskPrior, TaskLaw
from sumgp.priors.noise import NoiseModel, read_noise
from sumgp.priors.nullspace import nullspace_basis, nullspace_task
from sumgp.priors.tasks import FullTask, LowRankTask, OneOutputTask, TaskCovariance

__all__ = [
    "Candidate",
    "FullTask",
    "Hyperparameters",
    "LowRankTask",
    "MultitaskPrior",
    "NoiseModel",
    "OneOutputTask",
    "TaskCovariance",
    "TaskLaw",
    "default_candidates",
    "given_candidate",
    "nullspace_basis",
    "nullspace_task",
    "read_noise",
]
