"""Which time series go to the state-space form, and with which kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.gaussian_process.kernels import Kernel, Matern

from sumgp.errors import DataError, worded
from sumgp.solvers import Markov
from sumgp.solvers.markov import markov_terms
from sumgp.strategies.interface import Strategy

LONG_SERIES = 3000  # measured entries of a time series above which the state-space form is chosen


def choose_solver(solver: Any, kernel: Any, strategy: Strategy | None, n_inputs: int, n_measured: int) -> tuple[Any, Any]:
    """Solver and kernel: a time series too long for dense algebra goes to the state-space form, automatically or if asked.

    Without a kernel of the user's it is then a Matern 5/2.
    """
    kernels = [] if kernel is None else list(kernel) if isinstance(kernel, Sequence) else [kernel]
    suited = n_inputs == 1 and all(isinstance(k, Kernel) and _has_markov_terms(k) for k in kernels)
    asked = isinstance(solver, Markov)
    if asked and n_inputs != 1:
        raise DataError(worded("solver", "one input for Markov()", f"{n_inputs} inputs", "use Dense() or leave solver=None"))
    possible = strategy is None or strategy.takes_long_series
    if asked and not possible:
        name = type(strategy).__name__
        raise DataError(f"solver: Markov() does not work with strategy={name}(); use Linearized() or another solver")
    automatic = solver is None and suited and n_measured > LONG_SERIES and possible
    if not (asked or automatic):
        return solver, kernel
    terms = [term for k in kernels for term in markov_terms(k)] or [Matern(nu=2.5)]
    return Markov(), terms


def _has_markov_terms(kernel: Kernel) -> bool:
    try:
        markov_terms(kernel)
    except DataError:
        return False
    return True
