"""Public compositions over space: heavy metals of the Swiss Jura, texture of European farm soil."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from sumgp_studies.public.case import Case, Part

METALS = ("Cd", "Cu", "Pb", "Co", "Cr", "Ni", "Zn")
GEMAS_ROWS = 400
GEMAS_TEST = 300
PER_KILOMETRE = 1e-3  # from metres


def jura(folder: Path) -> Iterator[Case]:
    """Seven metals closed to 100; 259 rows to fit, 100 validation rows where only nickel and zinc are measured."""
    frame = pd.read_csv(folder / "compositions" / "jura.csv")
    values = frame[list(METALS)].to_numpy(float)
    shares = 100.0 * values / values.sum(axis=1, keepdims=True)
    x = frame[["X", "Y"]].to_numpy(float)
    out = frame["validation"].to_numpy() == 1
    laws = (" + ".join(METALS) + " = 100",)
    parts = (Part("validation", x[out], shares[out]),)
    yield Case("jura", "rows", x[~out], shares[~out], ("X", "Y"), METALS, laws, parts, bounds=("all >= 0",))


def gemas(folder: Path) -> Iterator[Case]:
    """Sand, silt and clay at 400 of 2,083 places, scored at 300 others, for two draws."""
    frame = pd.read_csv(folder / "compositions" / "gemas_texture.csv").dropna(subset=["sand", "silt", "clay"])
    x = frame[["Xcoord", "Ycoord"]].to_numpy(float) * PER_KILOMETRE
    y = frame[["sand", "silt", "clay"]].to_numpy(float)
    for seed in (0, 1):
        chosen = np.random.default_rng([seed, 27]).permutation(len(x))
        fit, test = chosen[:GEMAS_ROWS], chosen[GEMAS_ROWS : GEMAS_ROWS + GEMAS_TEST]
        parts = (Part("random", x[test], y[test]),)
        law = ("sand + silt + clay = 100",)
        outputs = ("sand", "silt", "clay")
        yield Case("gemas", str(seed), x[fit], y[fit], ("x_km", "y_km"), outputs, law, parts, bounds=("all >= 0",))
