"""Which data go to blocks with neighbours: more rows than dense algebra can take in reasonable time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from sumgp.data import Data
from sumgp.errors import DataError
from sumgp.laws import Law
from sumgp.solvers import Vecchia
from sumgp.solvers.vecchia import has_elementary_form
from sumgp.strategies.interface import Strategy

# Measured entries above which blocks with neighbours are chosen. Two inputs, three outputs that sum to one, CPU seconds of
# fit and 500 predictions, dense / blocks: 1,500 entries .../..., 3,000 entries .../...
LARGE_MAP = 3000
LEAST_COMPLETE = 0.2  # share of the rows in which every output is measured, for an automatic choice
FEWEST_COMPLETE = 300


def choose_map_solver(solver: Any, kernel: Any, strategy: Strategy | None, data: Data, law: Law | None) -> Any:
    """``solver``, or Vecchia() where none is given, the data are many and all that is asked for can be had from it."""
    possible = strategy is None or strategy.takes_long_series
    if isinstance(solver, Vecchia) and not possible:
        name = type(strategy).__name__
        raise DataError(f"solver: Vecchia() does not work with strategy={name}(); use Linearized(), or another solver")
    if solver is not None or not possible or int(data.measured.sum()) <= LARGE_MAP:
        return solver
    if data.n_inputs == 1 and kernel is None:
        return solver
    kernels = [] if kernel is None else list(kernel) if isinstance(kernel, Sequence) else [kernel]
    suited = len(kernels) < 2 and all(isinstance(k, Kernel) and has_elementary_form(k) for k in kernels)
    lawful = law is None or not (law.unknowns or np.any(law.noise > 0))
    complete = int(data.measured.all(axis=1).sum())
    enough = complete >= max(FEWEST_COMPLETE, LEAST_COMPLETE * len(data.x))
    return Vecchia() if suited and lawful and enough else None
