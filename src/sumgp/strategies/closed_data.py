"""Whether the rows of a fit problem meet its law up to rounding, so that their noise obeys the law too."""

from __future__ import annotations

import numpy as np

from sumgp.laws import Imbalance, measured_imbalance
from sumgp.solvers import ClosedRows, closed_rows
from sumgp.strategies.problem import FitProblem


def closed_imbalance(problem: FitProblem) -> Imbalance | None:
    """How the rows meet the law, if they meet some row of it up to rounding; None where the noise was given or differs."""
    law = problem.law
    if law is None or law.unknowns or problem.noise.known is not None or problem.noise.row_factor is not None:
        return None
    found = measured_imbalance(law, problem.data, problem.scaling)
    return found if bool(np.any(found.closed & (law.noise == 0))) else None


def closed_law_rows(problem: FitProblem, F: np.ndarray, totals: np.ndarray, laws: np.ndarray) -> ClosedRows | None:
    """A linear law F (N, R, T), ``totals`` (N, R), unit-free, at rows that meet it; ``laws`` (R,) are its rows' own numbers.

    None where the data are not closed.
    """
    found = closed_imbalance(problem)
    if found is None:
        return None
    met = found.closed[laws] & (problem.law.noise[laws] == 0)  # type: ignore[union-attr]
    return closed_rows(problem.y, F * met[:, None], totals * met, found.misprints) if met.any() else None
