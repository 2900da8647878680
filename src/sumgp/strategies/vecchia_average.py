"""Average over hyperparameters of a map: draws for all kernels that were fitted to all rows, by posterior density."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sumgp.errors import Status
from sumgp.hyperparameters import MapEstimate, integrate
from sumgp.solvers.vecchia import Fit, MapSearch, MixedObjective, SearchEnd
from sumgp.strategies.averaging import OUT_OF_REACH

DRAWS = 4  # at most twice as many are kept: each is a field to be predicted from


class DrawnFits(NamedTuple):
    """Sets of hyperparameters with their weights, and how many of them count."""

    fits: tuple[Fit, ...]
    weights: np.ndarray
    effective: float


class _LogPosterior(NamedTuple):
    """Minus the log posterior of all rows, as ``integrate`` asks for it."""

    objective: MixedObjective

    @property
    def prior(self) -> MixedObjective:
        """What knows the bounds."""
        return self.objective

    def value(self, parameters: np.ndarray) -> float:
        """At these parameters, of a prior that integrates to one whatever the number of parameters."""
        return len(self.objective.rows.x) * self.objective.value(parameters) + self.objective.prior.log_mass


def drawn_fits(search: MapSearch, random_state: int, draws: int = DRAWS) -> DrawnFits | None:
    """A few draws where rows are few, None elsewhere: many rows leave little doubt."""
    ends, N = _within_reach(search), len(search.best.objective.rows.x)
    if not search.few:
        return None
    maxima = [MapEstimate(end.found.parameters, end.found.value, Status.CONVERGED, ()) for end in ends]
    curvatures = [N * np.linalg.inv(end.found.metric) for end in ends]
    objectives: list[Any] = [_LogPosterior(end.objective) for end in ends]
    found = integrate(objectives, maxima, None, draws, random_state, curvatures)
    fits = tuple(ends[draw.candidate].fit(draw.theta) for draw in found.draws)
    return DrawnFits(fits, np.array([draw.weight for draw in found.draws]), found.effective)


def _within_reach(search: MapSearch) -> list[SearchEnd]:
    """The best kernels and those not far behind by Schwarz's criterion."""
    limit = search.best.criterion() + OUT_OF_REACH
    return [end for end in search.compared.values() if end.criterion() < limit]
