"""Many points in several inputs: conditionals of blocks on earlier neighbours, predictions from a tree of averages."""

from sumgp.solvers.vecchia.blocks import BlockGroup, leaf_order, make_blocks
from sumgp.solvers.vecchia.covariance import LatentKernels, ScaledCovariance, elementary, has_elementary_form
from sumgp.solvers.vecchia.evidence import LatentEvidence, Latents, latent_evidence
from sumgp.solvers.vecchia.mixing import LEAST_NOISE, MEAN_VARIANCE, LengthPrior, MixedObjective, MixedRows
from sumgp.solvers.vecchia.outputs import (
    KnownNoise,
    LinearRows,
    OutputModel,
    OutputRows,
    RowInformation,
    incomplete_information,
    known_information,
    output_rows,
)
from sumgp.solvers.vecchia.predict import LatentField, LatentMarginals, SeparateFields
from sumgp.solvers.vecchia.search import (
    Fit,
    KernelChoice,
    MapSearch,
    SearchEnd,
    fit_map,
    kernel_title,
    spread_rows,
)
from sumgp.solvers.vecchia.solver import Vecchia, check_map_memory, map_bytes
