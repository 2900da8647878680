"""Studies around the library: the paper's experiments, speed comparison, and their reports."""

from sumgp_studies.gram_matrix import Gram

__all__ = [
    "Gram",
]
