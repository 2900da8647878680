"""A linear law in unit-free outputs: its rows and its right sides, as the task covariance sees them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sumgp.data import Scaling
from sumgp.laws.law import SumLaw


@dataclass(frozen=True)
class RightSides:
    """(S(x) - shift) / size for the kept rows of a law: its right sides (n, R) in unit-free outputs."""

    law: SumLaw
    keep: tuple[int, ...]
    shift: np.ndarray
    size: np.ndarray

    def __call__(self, x_law: np.ndarray) -> np.ndarray:
        """(n, R) right sides at law inputs in the user's units."""
        return (self.law.S(x_law)[:, list(self.keep)] - self.shift) / self.size


def unit_free_rows(F: np.ndarray, scaling: Scaling) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """F in unit-free outputs with rows of length one, the rows' sizes, and F times the outputs' shifts."""
    scaled = F * scaling.y_scale
    size = np.linalg.norm(scaled, axis=1)
    return scaled / size[:, None], size, F @ scaling.y_shift
