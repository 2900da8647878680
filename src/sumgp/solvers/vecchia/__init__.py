"""Many points in several inputs: conditionals of blocks on earlier neighbours, predictions from a tree of averages."""

from sumgp.solvers.vecchia.blocks import BlockGroup, make_blocks
from sumgp.solvers.vecchia.covariance import ScaledCovariance, elementary, has_elementary_form
from sumgp.solvers.vecchia.evidence import LatentEvidence, Latents, latent_evidence
from sumgp.solvers.vecchia.predict import LatentField, LatentMarginals

__all__ = [
    "BlockGroup",
    "LatentEvidence",
    "LatentField",
    "LatentMarginals",
    "Latents",
    "ScaledCovariance",
    "elementary",
    "has_elementary_form",
    "latent_evidence",
    "make_blocks",
]
