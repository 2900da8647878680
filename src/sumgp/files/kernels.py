"""scikit-learn kernels as JSON: class name and parameters of the known ones, nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels as library

from sumgp.errors import DataError

LEAVES = ("RBF", "Matern", "RationalQuadratic", "ExpSineSquared", "DotProduct", "ConstantKernel")
PAIRS = ("Sum", "Product")


def write_kernel(kernel: library.Kernel) -> dict[str, Any]:
    """Class and parameters; DataError for kernels of the user's own."""
    name = type(kernel).__name__
    if type(kernel) is not getattr(library, name, None) or name not in (*LEAVES, *PAIRS, "Exponentiation"):
        raise DataError(
            f"kernel: {name} cannot be stored; use kernels of scikit-learn ({', '.join(LEAVES)}, sums and products)"
        )
    if name in PAIRS:
        return {"class": name, "k1": write_kernel(kernel.k1), "k2": write_kernel(kernel.k2)}
    if name == "Exponentiation":
        return {"class": name, "kernel": write_kernel(kernel.kernel), "exponent": float(kernel.exponent)}
    return {"class": name, "parameters": {key: _plain(value) for key, value in kernel.get_params(deep=False).items()}}


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value
    return np.asarray(value, dtype=float).tolist()


def read_kernel(node: Any, depth: int = 0) -> library.Kernel:
    """The kernel again; DataError for anything that ``write_kernel`` does not write."""
    name = node.get("class") if isinstance(node, dict) else None
    try:
        if depth > 30:
            raise DataError("kernel: nested too deeply; the file is damaged")
        if name in PAIRS:
            return getattr(library, name)(read_kernel(node["k1"], depth + 1), read_kernel(node["k2"], depth + 1))
        if name == "Exponentiation":
            return library.Exponentiation(read_kernel(node["kernel"], depth + 1), float(node["exponent"]))
        if name in LEAVES:
            made = getattr(library, name)()
            wanted = made.get_params(deep=False)
            if set(node["parameters"]) != set(wanted):
                raise DataError(f"kernel: {name} has the parameters {sorted(wanted)}, the file others; it is damaged")
            return getattr(library, name)(**{key: _parameter(key, value) for key, value in node["parameters"].items()})
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"kernel: {name} is described incompletely ({error}); the file is damaged") from error
    raise DataError(f"kernel: {name!r} is none of {', '.join((*LEAVES, *PAIRS))}; the file is damaged or hostile")


def _parameter(key: str, value: Any) -> Any:
    """A number, an array of numbers, or the word "fixed" for bounds."""
    if value == "fixed" and key.endswith("_bounds"):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, list):
        try:
            numbers = np.array(value, dtype=float)
        except (TypeError, ValueError) as error:
            raise DataError(f"kernel: {key} is not made of numbers; the file is damaged") from error
        return (float(numbers[0]), float(numbers[1])) if numbers.shape == (2,) and key.endswith("_bounds") else numbers
    raise DataError(f"kernel: {key} is {value!r:.40}, expected numbers; the file is damaged")
