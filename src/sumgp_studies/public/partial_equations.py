"""Sets of DAE-HardNet with a differential equation in two inputs: heat in a rod, and Greenberg's equation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from sumgp_studies.public.case import Case, Part, noisy_draws
from sumgp_studies.public.equations import NOISES, drawn_rows

ROWS = 40
COOLED = 0.7  # end of the times used of the heat equation: by then the rod is cold
HEAT_LAW = "d(y1, t) = d(y1, x1, 2)"
GREENBERG_LAW = "d(y1, x1, 2) - 5*d(y1, x2) + y1 = x1*x2**2*(x2 - 15)"


def heat(folder: Path) -> Iterator[Case]:
    """Temperature of a rod over time and place; nobody is told that its ends are kept cold."""
    yield from _noisy(folder, "heat", ("t", "x1"), HEAT_LAW, COOLED)


def greenberg(folder: Path) -> Iterator[Case]:
    """A linear equation of second order with a known right side."""
    yield from _noisy(folder, "pde_greenberg", ("x1", "x2"), GREENBERG_LAW, np.inf)


def _noisy(folder: Path, name: str, inputs: tuple[str, str], law: str, end: float) -> Iterator[Case]:
    """40 rows drawn from the stored solution, for each noise; scored at 300 others."""
    frame = pd.read_csv(folder / "dae" / f"{name}.csv")
    frame = frame[frame[inputs[0]] < end]
    x, truth = frame[list(inputs)].to_numpy(float), frame[["y1"]].to_numpy(float)
    for drawn in noisy_draws(NOISES, 27):
        fit, test, y = drawn_rows(truth, ROWS, drawn)
        yield Case(
            name, drawn.label, x[fit], y, inputs, ("y1",), (), (Part(drawn.label, x[test], truth[test]),),
            latent=True, sizes=truth.std(axis=0), own_laws=(law,),
        )  # fmt: skip
