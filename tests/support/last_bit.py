"""A CPU that rounds otherwise: ``pytest -p support.last_bit`` flips the last bit of what LAPACK gives.

Kernels of a CPU that is not at hand cannot be run. Their results differ from those at hand in the last bits; so do these.
The change is a function of the value, so that a run repeats itself to the last digit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import lapack

LAPACK = ("dpotrf", "dpotri", "dpotrs", "dtrtrs", "dgesv", "dpstrf")
NUMPY = ("cholesky", "eigh", "inv", "pinv", "solve", "svd")


def flipped(value: Any) -> Any:
    """Arrays with the last bit of each number other than zero flipped, everything else as it is."""
    if isinstance(value, tuple):
        parts = [flipped(part) for part in value]
        return tuple(parts) if type(value) is tuple else type(value)(*parts)  # NumPy's named results
    if not isinstance(value, np.ndarray) or value.dtype != np.float64:
        return value
    result = value.copy(order="K")
    bits = result.view(np.int64)
    bits[(result != 0.0) & np.isfinite(result)] ^= 1
    return result


def otherwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its results flipped."""

    def rounded(*args: Any, **options: Any) -> Any:
        return flipped(function(*args, **options))

    return rounded


for module, names in ((lapack, LAPACK), (np.linalg, NUMPY)):
    for name in names:
        setattr(module, name, otherwise(getattr(module, name)))
