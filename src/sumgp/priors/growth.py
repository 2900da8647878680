"""A kernel of functions that are larger at one side than at the other: as a factor of a smooth kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel

GROWTH_BOUNDS = (1e-6, 1e6)  # of the factor over one unit of an input, which is the inputs' range by default


class Growth(Kernel):
    """k(x, x') = prod_i factor_i^(x_i + x'_i): sizes are ``factor`` times as large one unit of each input further on.

    Times RBF, a field that decays away from its sources. Its means come to rest far from the data still; times a kernel
    with heavier tails they would grow.
    """

    def __init__(self, factor: Any = 1.0, factor_bounds: Any = GROWTH_BOUNDS) -> None:
        self.factor = factor
        self.factor_bounds = factor_bounds

    @property
    def hyperparameter_factor(self) -> Hyperparameter:
        """One factor an input."""
        return Hyperparameter("factor", "numeric", self.factor_bounds, len(np.atleast_1d(self.factor)))

    def __call__(self, X: np.ndarray, Y: np.ndarray | None = None, eval_gradient: bool = False) -> Any:
        """K (n, m), and on request its derivatives (n, n, p) by the logarithms of the factors."""
        X = np.atleast_2d(X)
        rates = np.broadcast_to(np.log(self.factor), X.shape[1:])
        here, there = np.exp(X @ rates), np.exp((X if Y is None else np.atleast_2d(Y)) @ rates)
        K = here[:, None] * there
        if not eval_gradient:
            return K
        if self.hyperparameter_factor.fixed:
            return K, np.empty((*K.shape, 0))
        sums = X[:, None, :] + X[None, :, :]
        if np.ndim(self.factor) == 0:
            sums = sums.sum(axis=2, keepdims=True)
        return K, K[:, :, None] * sums

    def diag(self, X: np.ndarray) -> np.ndarray:
        """(n,) K of each point with itself."""
        X = np.atleast_2d(X)
        return np.asarray(np.exp(2.0 * X @ np.broadcast_to(np.log(self.factor), X.shape[1:])))

    def is_stationary(self) -> bool:
        """No."""
        return False

    def __repr__(self) -> str:
        return f"Growth(factor=[{', '.join(f'{f:.3g}' for f in np.atleast_1d(self.factor))}])"
