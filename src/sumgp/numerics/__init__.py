"""Linear algebra and numerical tools that know nothing of laws or data."""

from sumgp.numerics.linear_algebra import (
    SchurConditioning,
    SymmetricExponential,
    add_square,
    cholesky,
    cholesky_inverse,
    mirrored,
    pivoted_cholesky,
    schur_condition,
    solve_cholesky,
    solve_lower,
    symmetric_exponential,
    symmetric_root,
)
from sumgp.numerics.memory import check_memory
from sumgp.numerics.nearest import Nearest, Polyhedra, nearest_points
from sumgp.numerics.parallel import Lost, spread
from sumgp.numerics.quadrature import normal_rule, standard_normal
from sumgp.numerics.scratch import Fresh, Scratch
from sumgp.numerics.small_matrices import REMEDY, root, symmetric, transposed, whiten
from sumgp.numerics.threads import limited_threads, threads_for

__all__ = [
    "REMEDY",
    "Fresh",
    "Lost",
    "Nearest",
    "Polyhedra",
    "SchurConditioning",
    "Scratch",
    "SymmetricExponential",
    "add_square",
    "check_memory",
    "cholesky",
    "cholesky_inverse",
    "limited_threads",
    "mirrored",
    "nearest_points",
    "normal_rule",
    "pivoted_cholesky",
    "root",
    "schur_condition",
    "solve_cholesky",
    "solve_lower",
    "spread",
    "standard_normal",
    "symmetric",
    "symmetric_exponential",
    "symmetric_root",
    "threads_for",
    "transposed",
    "whiten",
]
