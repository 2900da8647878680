"""Priors over several outputs: kernels, task covariances, noise, and the law's place in them."""

from sumgp.priors.alike import alike_lengths, several_lengths
from sumgp.priors.candidates import (
    LENGTH_STEP,
    MOST_OUTPUTS_ON_THEIR_OWN,
    Candidate,
    KernelFamily,
    Period,
    Reordered,
    canonical_order,
    default_candidates,
    given_candidate,
    kernel_name,
    map_candidates,
    output_families,
    potential_candidates,
    reordered,
    rougher_candidates,
    shown_period,
    start_at_rest,
    with_long_range,
)
from sumgp.priors.derivatives import KernelDerivatives, check_smooth, derivative_gram, smoothness
from sumgp.priors.growth import Growth
from sumgp.priors.kernels import HyperPrior, KernelOnPoints, hyper_priors, leaves, lengthscale_mask, local_lengthscales
from sumgp.priors.multitask import (
    ALIKE_NOISES,
    SMALLEST,
    Hyperparameters,
    MultitaskPrior,
    NoiseModel,
    SchurConditioning,
    TaskLaw,
    read_noise,
    read_weights,
)
from sumgp.priors.tasks import (
    FullTask,
    LowRankTask,
    OneOutputTask,
    TaskCovariance,
    nullspace_basis,
    student_around_mean,
)
