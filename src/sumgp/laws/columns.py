"""The columns a law is a function of: [outputs | derivatives | unknown constants], and errors of soft laws after them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sumgp.data import Scaling

HIGHEST_ORDER = 2  # of a derivative in a law; kernels give derivatives of twice that order


@dataclass(frozen=True)
class Derivative:
    """The column d^|a| f_output / dx^a: ``orders`` is the multi-index a (D,), ``name`` how it is called in reports."""

    output: int
    orders: tuple[int, ...]
    name: str = field(default="", compare=False)

    @property
    def order(self) -> int:
        """|a|, the number of times that the output is differentiated."""
        return sum(self.orders)

    def scale(self, scaling: Scaling) -> float:
        """Size of the derivative, in the user's units, where that of unit-free functions is one."""
        return float(scaling.y_scale[self.output] / np.prod(scaling.x_scale ** np.array(self.orders)))


def derivative_name(output: str, inputs: Sequence[str], orders: Sequence[int]) -> str:
    """d(z, t), d(z, t, 2) or d(z, x, y)."""
    parts = [name if order == 1 else f"{name}, {order}" for name, order in zip(inputs, orders, strict=True) if order]
    return f"d({', '.join([output, *parts])})"


def varying_columns(derivatives: Sequence[Derivative], scaling: Scaling) -> tuple[np.ndarray, np.ndarray]:
    """Shift and scale (T + derivatives,) that bring outputs and their derivatives into the user's units."""
    shift = np.concatenate([scaling.y_shift, np.zeros(len(derivatives))])
    return shift, np.concatenate([scaling.y_scale, [d.scale(scaling) for d in derivatives]])
