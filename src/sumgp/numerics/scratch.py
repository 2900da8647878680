"""Memory that a computation which is repeated fills again and again.

Large arrays are mapped anew by the system each time they are asked for, and filled with zeros: over long series that
takes as long as the arithmetic on them.
"""

from __future__ import annotations

import numpy as np


class Scratch:
    """Named arrays, kept for the next call. What was computed in them is overwritten then: keep no views of it."""

    def __init__(self) -> None:
        self._arrays: dict[str, np.ndarray] = {}

    def empty(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """The array of this name, its contents undefined."""
        known = self._arrays.get(name)
        if known is None or known.shape != shape:
            known = self._arrays[name] = np.empty(shape)
        return known


class Fresh(Scratch):
    """A new array each time: for results that are kept."""

    def empty(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        return np.empty(shape)
