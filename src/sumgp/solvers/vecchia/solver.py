"""The solver that users give for many points in several inputs, and the memory that a fit of these takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sumgp.errors import DataError
from sumgp.numerics import available_bytes
from sumgp.priors import MultitaskPrior
from sumgp.solvers.dense import Dense, Evidence, Solver

NUMBER = 8  # bytes
WORKSPACE = 60e6  # bytes of blocks that are worked on together, whatever the rows
EXACT_ROWS = 1024  # of a map, up to which one factor for all of its rows costs less than nodes for each point
# Rows times latents up to which predictions are averaged over hyperparameters. With more this gains little: 600 and 1,000
# rows of two latents, 24 tuning maps, errors 1.001 times as large without, log densities of a value .001 lower, in a third
# of the time.
FEW_VALUES = 1024
MOST_DRAWS = 8  # that few values are averaged over


@dataclass(frozen=True)
class Vecchia(Solver):
    """Blocks of points given their nearest earlier neighbours: many points in several inputs, O(N).

    ``neighbours`` of each block of ``block`` points; predictions rest on ``nodes`` averages over the data, ever larger with
    their distance from the prediction point.
    """

    on_blocks: ClassVar[bool] = True

    neighbours: int = 64
    block: int = 32
    nodes: int = 112

    def __post_init__(self) -> None:
        for name, least in (("neighbours", 1), ("block", 1), ("nodes", 2)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
                raise DataError(name, f"a whole number of at least {least}", repr(value), "leave the default")

    def check(self, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray) -> None:
        check_map_memory(len(x), x.shape[1], y.shape[1], bool(np.isnan(y).any()))

    def evidence(self, prior: MultitaskPrior, x: np.ndarray, y: np.ndarray) -> Evidence:
        """That of a multitask prior, exact; fits of maps have their own parameters, see ``fit_map``."""
        return Dense().evidence(prior, x, y)


def map_bytes(n_rows: int, n_inputs: int, n_outputs: int, gaps: bool) -> float:
    """Upper estimate of what a fit and its predictions need beyond the data: rows and a tree of twice as many nodes.

    With gaps each node has a matrix over the latents; outputs one by one have a tree each. 100,000 rows of three outputs:
    220 MB estimated; without such trees 40 MB more than with 3,000 rows were measured. Few rows have factors instead.
    """
    if n_rows <= EXACT_ROWS and not gaps:  # latents and single outputs
        return NUMBER * n_rows * (MOST_DRAWS * FEW_VALUES + 2.0 * n_outputs * n_rows) + WORKSPACE
    carried = n_outputs * (n_outputs + 1) if gaps else n_outputs
    alone = n_outputs * (10.0 * n_inputs + 18.0) if n_outputs > 1 else 0.0
    return NUMBER * n_rows * (10.0 * n_inputs + 4.0 * carried + 14.0 * n_outputs + 12.0 + alone) + WORKSPACE


def check_map_memory(n_rows: int, n_inputs: int, n_outputs: int, gaps: bool) -> None:
    """Raise DataError if a fit would need more memory than there is."""
    needed, free = map_bytes(n_rows, n_inputs, n_outputs, gaps), available_bytes()
    if needed > free:
        raise DataError(
            f"memory: {n_rows} rows need about {needed / 1e9:.1f} GB, {free / 1e9:.1f} GB are available; "
            "fit parts of the region one by one"
        )
