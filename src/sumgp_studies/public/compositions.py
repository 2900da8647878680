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
HALF_GAP, FEWEST_IN_GAP, GAP_DRAWS = 250.0, 60, 4  # km, places, squares
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


def _texture(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Places (n, 2) in km, sand, silt and clay (n, 3)."""
    frame = pd.read_csv(folder / "compositions" / "gemas_texture.csv").dropna(subset=["sand", "silt", "clay"])
    return frame[["Xcoord", "Ycoord"]].to_numpy(float) * PER_KILOMETRE, frame[["sand", "silt", "clay"]].to_numpy(float)


def _texture_case(name: str, seed: int, rows: tuple[np.ndarray, np.ndarray], parts: tuple[Part, ...]) -> Case:
    law = ("sand + silt + clay = 100",)
    return Case(name, str(seed), *rows, ("x_km", "y_km"), ("sand", "silt", "clay"), law, parts, bounds=("all >= 0",))


def gemas(folder: Path) -> Iterator[Case]:
    """Sand, silt and clay at 400 of 2,083 places, scored at 300 others, for two draws."""
    x, y = _texture(folder)
    for seed in (0, 1):
        chosen = np.random.default_rng([seed, 27]).permutation(len(x))
        fit, test = chosen[:GEMAS_ROWS], chosen[GEMAS_ROWS : GEMAS_ROWS + GEMAS_TEST]
        yield _texture_case("gemas", seed, (x[fit], y[fit]), (Part("random", x[test], y[test]),))


def gemas_gap(folder: Path) -> Iterator[Case]:
    """All places but 300 and a square of 500 km around one of them with 60 places or more, for four draws."""
    x, y = _texture(folder)
    for seed in range(GAP_DRAWS):
        generator = np.random.default_rng([seed, 28])
        gap = np.zeros(len(x), dtype=bool)
        while gap.sum() < FEWEST_IN_GAP:
            gap = np.all(np.abs(x - x[generator.integers(len(x))]) < HALF_GAP, axis=1)
        others = generator.permutation(np.flatnonzero(~gap))
        test, fit = others[:GEMAS_TEST], others[GEMAS_TEST:]
        parts = (Part("gap", x[gap], y[gap]), Part("random", x[test], y[test]))
        yield _texture_case("gemas, all rows", seed, (x[fit], y[fit]), parts)
