"""Sets from published simulators: a distillation column, a pooling problem; noise and gaps are added on top."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from sumgp_studies.public.case import Case, NoisyDraw, Part, noisy_draws

DISTILLATION_ROWS = 60
POOLING_ROWS = 80
TEST_ROWS = 300
MISSING = 0.3  # share of entries, in the noisy cases
NOISES = (0.0, 0.01, 0.03, 0.10)  # of each output's standard deviation
DISTILLATION_LAWS = (
    "y1 + y2 = x1 + x2",
    "y1*y3 + y2*y6 = 0.697616946*x1",
    "y1*y4 + y2*y7 = 0.302383054*x1",
    "y3 + y4 = 1",
    "y6 + y7 + y8 = 1",
    "y9 = x3*y1",
)
# The fourth reads y1*y2 + y1*y3 = 3*x1 + x2; with the first inserted it is linear, and so are the two inequalities.
POOLING_LAWS = ("y2 + y3 = x1 + x2", "y2 + y4 = x3", "y3 + y5 = x4", "(x1 + x2)*y1 = 3*x1 + x2")
POOLING_BOUNDS = (
    "all >= 0",
    "(3*x1 + x2)/(x1 + x2)*y2 + 2*y4 <= 2.5*x3",
    "(3*x1 + x2)/(x1 + x2)*y3 + 2*y5 <= 1.5*x4",
)


def distillation(folder: Path) -> Iterator[Case]:
    """Three inputs, eight outputs, six laws; the ninth output, y5, is about 1e-20 everywhere and left out."""
    frame = pd.read_csv(folder / "distillation" / "distillation.csv")
    outputs = ("y1", "y2", "y3", "y4", "y6", "y7", "y8", "y9")
    x, truth = frame[["x1", "x2", "x3"]].to_numpy(float), frame[list(outputs)].to_numpy(float)
    for drawn in noisy_draws(NOISES, 24):
        chosen = drawn.generator.permutation(len(x))
        fit, test = chosen[:DISTILLATION_ROWS], chosen[DISTILLATION_ROWS : DISTILLATION_ROWS + TEST_ROWS]
        y = _measured(truth[fit], truth.std(axis=0), drawn)
        parts = (Part(drawn.label, x[test], truth[test]),)
        yield Case(
            "distillation", drawn.label, x[fit], y, ("x1", "x2", "x3"), outputs, DISTILLATION_LAWS, parts,
            latent=True, sizes=truth.std(axis=0), bounds=("all >= 0",),
        )  # fmt: skip


def pooling(folder: Path) -> Iterator[Case]:
    """Four inputs, five outputs, four laws; one output is free and partly random, so errors have a floor."""
    frame = pd.read_csv(folder / "pooling" / "pooling.csv")
    inputs, outputs = ("x1", "x2", "x3", "x4"), ("y1", "y2", "y3", "y4", "y5")
    x, values = frame[list(inputs)].to_numpy(float), frame[list(outputs)].to_numpy(float)
    sizes = values.std(axis=0)
    for drawn in noisy_draws(NOISES, 25):
        chosen = drawn.generator.permutation(len(x))
        fit, test = chosen[:POOLING_ROWS], chosen[POOLING_ROWS : POOLING_ROWS + TEST_ROWS]
        y = _measured(values[fit], sizes, drawn)
        # What is scored was drawn at random given x: a new value, which in noisy cases has no noise of measuring.
        parts = (Part(drawn.label, x[test], values[test]),)
        yield Case(
            "pooling", drawn.label, x[fit], y, inputs, outputs, POOLING_LAWS, parts,
            sizes=sizes, bounds=POOLING_BOUNDS,
        )  # fmt: skip


def _measured(truth: np.ndarray, sizes: np.ndarray, drawn: NoisyDraw) -> np.ndarray:
    """Values with noise relative to each output's size; entries are lost only where there is noise."""
    y = truth + drawn.noise * sizes * drawn.generator.standard_normal(truth.shape)
    lost = drawn.generator.random(truth.shape) < (MISSING if drawn.noise else 0.0)
    lost[lost.all(axis=1)] = False
    return np.where(lost, np.nan, y)
