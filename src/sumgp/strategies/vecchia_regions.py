"""Regions of a map whose rows are further from what their neighbours say than one noise and one roughness allow."""

from __future__ import annotations

import numpy as np

from sumgp.data import DIFFERENT, FEWEST_OF_A_GROUP, group_medians
from sumgp.errors import doubted
from sumgp.solvers.vecchia import SearchEnd, leaf_order
from sumgp.strategies.problem import FitProblem

MOST_REGIONS, ROWS_OF_REGION = 16, 100  # leaves of a k-d tree, with about as many rows at least
TOO_NARROW = 1.2  # times the spread of all regions, in the root mean square: intervals of 95 % then hold 90 % there


def unlike_regions(problem: FitProblem, end: SearchEnd, loading: np.ndarray, complete: np.ndarray) -> str:
    """A status where an output varies far more in one region than in another, also warned of; empty elsewhere.

    ``loading`` (T, q) of the outputs, ``complete`` (N,) the rows that were searched. Surprises of rows are independent and
    alike under the model: the chance of a false alarm is 1e-4 for each output with 16 regions, less with fewer (2e6 draws).
    """
    x, y = problem.data.x[complete], problem.data.y[complete]
    count = min(MOST_REGIONS, len(x) // ROWS_OF_REGION)
    if count < 2:
        return ""
    size = -(-len(x) // count)
    order = leaf_order(problem.x[complete] / problem.half_range, size)
    regions = [order[start : start + size] for start in range(0, len(x), size)]
    limit = DIFFERENT ** np.sqrt(FEWEST_OF_A_GROUP / min(map(len, regions)))
    surprises = end.objective.surprises(end.found.parameters) @ loading.T
    for t, name in enumerate(problem.data.output_names):
        spread = group_medians(np.abs(surprises[:, t]), y[:, t], regions)
        ratio = float(spread.max() / spread.min())
        if ratio > limit and spread.max() > TOO_NARROW * np.sqrt(np.mean(spread**2)):
            places = [np.array2string(x[regions[k]].mean(axis=0), precision=3) for k in (spread.argmax(), spread.argmin())]
            words = f"the noise or roughness of {name!r} differs {ratio:.2g}-fold between regions, and one serves all rows"
            return doubted(
                words,
                f": intervals are too narrow around x = {places[0]}, where it is largest, and too wide around "
                f"{places[1]}; give noise= an array with the shape of Y, or sample_weight= as 1 / its variance; "
                "where it is not the noise that differs, fit the regions one by one",
            )
    return ""
