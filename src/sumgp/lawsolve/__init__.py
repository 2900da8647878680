"""Conditioning a Gaussian on a nonlinear law at many points at once."""

from sumgp.lawsolve.collocation import (
    FINE_LEVELS,
    LEVELS,
    CollocationProblem,
    CollocationSolution,
    OutputWeights,
    data_weights,
    solve_collocation,
)
from sumgp.lawsolve.follow import follow_law
from sumgp.lawsolve.law_volume import law_volume
from sumgp.lawsolve.second_order import SecondOrder, second_order
from sumgp.lawsolve.solve import ENOUGH, FULL, LawSolution, law_evidences, least_misfit, solve_laws, solve_linear_law, turns
