"""Priors over several outputs: kernels, task covariances, noise, and the law's place in them."""

from sumgp.priors.candidates import Candidate, default_candidates, given_candidate
from sumgp.priors.kernels import KernelOnPoints, hyper_priors, leaves, lengthscale_mask
from sumgp.priors.multitask import Hyperparameters, MultitaskPrior, SchurConditioning, TaskLaw
from sumgp.priors.noise import SMALLEST, NoiseModel, read_noise
from sumgp.priors.nullspace import nullspace_basis, nullspace_task
from sumgp.priors.tasks import FullTask, LowRankTask, OneOutputTask, TaskCovariance

__all__ = [
    "SMALLEST",
    "Candidate",
    "FullTask",
    "Hyperparameters",
    "KernelOnPoints",
    "LowRankTask",
    "MultitaskPrior",
    "NoiseModel",
    "OneOutputTask",
    "SchurConditioning",
    "TaskCovariance",
    "TaskLaw",
    "default_candidates",
    "given_candidate",
    "hyper_priors",
    "leaves",
    "lengthscale_mask",
    "nullspace_basis",
    "nullspace_task",
    "read_noise",
]
