"""Regression with Gaussian noise: dense, Kronecker, and in weight space; long series: ``markov``, maps: ``vecchia``."""

from sumgp.solvers.closed import ClosedEvidence, ClosedRows, closed_rows
from sumgp.solvers.dense import (
    Automatic,
    Dense,
    DenseEvidence,
    Evidence,
    JointGaussian,
    JointSum,
    Kronecker,
    KroneckerEvidence,
    Solver,
    fits_kronecker,
    squares,
)
from sumgp.solvers.functionals import SlopeOfOffset
from sumgp.solvers.independent import MANY_VALUES, IndependentOutputs, are_apart, independent_outputs
from sumgp.solvers.joint import given_linear_law
from sumgp.solvers.latent_evidence import LatentEvidence
from sumgp.solvers.markov import Markov
from sumgp.solvers.value_basis import MEAN_VARIANCE, ValueBasis
from sumgp.solvers.vecchia import Vecchia
from sumgp.solvers.weights import Taper, WeightPosterior, build_features, condition_on_data
