"""Priors over several outputs: kernels, task covariances, noise, and the law's place in them."""

from sumgp.priors.candidates import (
    Candidate,
    Period,
    Reordered,
    canonical_order,
    default_candidates,
    given_candidate,
    nullspace_basis,
    nullspace_task,
    reordered,
    rougher_candidates,
    shown_period,
)
from sumgp.priors.kernels import HyperPrior, KernelOnPoints, hyper_priors, leaves, lengthscale_mask, local_lengthscales
from sumgp.priors.multitask import (
    SMALLEST,
    Hyperparameters,
    MultitaskPrior,
    NoiseModel,
    SchurConditioning,
    TaskLaw,
    read_noise,
    read_weights,
)
from sumgp.priors.tasks import FullTask, LowRankTask, OneOutputTask, TaskCovariance

__all__ = [
    "SMALLEST",
    "Candidate",
    "FullTask",
    "HyperPrior",
    "Hyperparameters",
    "KernelOnPoints",
    "LowRankTask",
    "MultitaskPrior",
    "NoiseModel",
    "OneOutputTask",
    "Period",
    "Reordered",
    "SchurConditioning",
    "TaskCovariance",
    "TaskLaw",
    "canonical_order",
    "default_candidates",
    "given_candidate",
    "hyper_priors",
    "leaves",
    "lengthscale_mask",
    "local_lengthscales",
    "nullspace_basis",
    "nullspace_task",
    "read_noise",
    "read_weights",
    "reordered",
    "rougher_candidates",
    "shown_period",
]
