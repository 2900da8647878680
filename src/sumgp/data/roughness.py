"""How values vary along the inputs: columns of a law that are erratic."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from sumgp.data.table import Data

# Share of a column's variance that neighbouring rows do not tell. A sine seen eight times a period has 0.06, noise has 1.
ROUGH = 0.1
FELT = 0.1  # sds of the outputs by which a column moves them: jumps that are smaller are no more than noise
FEWEST_ROWS = 8  # with fewer, neighbours tell too little about smooth columns


def seen_by_kernels(data: Data, effects: np.ndarray) -> int:
    """Number of leading columns of ``data.x`` that kernels need: the inputs, and the law's columns where one is rough.

    ``effects`` (E,): how far each of these moves the outputs, in their standard deviations.

    In ``k*a + b = 2`` with a column k that jumps from row to row, a and b cannot both be smooth along the inputs. They
    can be smooth functions of the inputs and k.
    """
    D = data.n_inputs
    rough = [
        effect > FELT and roughness(data.x[:, :D], column) > ROUGH
        for column, effect in zip(data.x[:, D:].T, effects, strict=True)
    ]
    return data.x.shape[1] if any(rough) else D


def roughness(x: np.ndarray, values: np.ndarray) -> float:
    """Mean squared error of predicting each of ``values`` (N,) from its neighbours in x (N, D), 1 for white noise.

    One input: linear interpolation between the two neighbours, with weights w and 1 - w, whose error has the variance
    1 + w^2 + (1 - w)^2 for white noise of variance one. Several: the mean of the D + 1 nearest rows.
    """
    variance = float(np.var(values))
    if len(values) < FEWEST_ROWS or variance == 0.0:
        return 0.0
    if x.shape[1] == 1:
        order = np.lexsort((values, x[:, 0]))
        t, v = x[order, 0], values[order]
        span = t[2:] - t[:-2]
        w = np.where(span > 0, (t[1:-1] - t[:-2]) / np.where(span > 0, span, 1.0), 0.5)
        missed, expected = v[1:-1] - (1.0 - w) * v[:-2] - w * v[2:], 1.0 + w**2 + (1.0 - w) ** 2
    else:
        scaled = x / np.where(np.ptp(x, axis=0) > 0, np.ptp(x, axis=0), 1.0)
        count = x.shape[1] + 1
        _, near = cKDTree(scaled).query(scaled, k=count + 1)
        missed, expected = values - values[near[:, 1:]].mean(axis=1), np.full(len(values), 1.0 + 1.0 / count)
    return float(np.mean(missed**2 / expected)) / variance
