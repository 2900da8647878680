"""Linear algebra and numerical tools that know nothing of laws or data."""

from sumgp.numerics.linear_algebra import (
    REMEDY,
    SchurConditioning,
    add_square,
    available_bytes,
    backtrack,
    bisected,
    check_memory,
    cholesky,
    cholesky_inverse,
    limited_threads,
    mirrored,
    neighbour_correlation,
    pivoted_cholesky,
    root,
    schur_condition,
    solve_cholesky,
    solve_lower,
    spectral_root,
    symmetric,
    symmetric_root,
    threads_for,
    triangular_inverse,
    whiten,
)
from sumgp.numerics.nearest import Nearest, Polyhedra, nearest_points
from sumgp.numerics.parallel import Lost, spread
from sumgp.numerics.quadrature import LOG_2PI, Bracket, bracketed_roots, normal_rule, standard_normal
from sumgp.numerics.shifted import shifted_forms
