"""What every combination must give: finite numbers, ordered intervals, predictions on the law."""

from __future__ import annotations

from typing import Any

import numpy as np
from conformance.laws import PATTERNS, LawKind, X
from sklearn.gaussian_process.kernels import Kernel

from sumgp import ConstrainedGP
from sumgp.strategies import Strategy


def estimator(strategy: Strategy | None, law: LawKind, kernel: Kernel | None = None, solver: Any = None) -> ConstrainedGP:
    choices = {"uncertainty": "plug-in", "restarts": 0, "kernel": kernel, "solver": solver, **law.choices}
    return ConstrainedGP(law.constraint, strategy=strategy, **choices)


def data(law: LawKind, pattern: str) -> np.ndarray:
    """Measurements (9, T) of the law's curves with a little noise and the pattern's gaps."""
    curves = law.curves(X)
    return PATTERNS[pattern](curves + 0.03 * np.random.default_rng(7).standard_normal(curves.shape))


def violation(posterior: Any, f: np.ndarray) -> float:
    """Largest residual of outputs f (n, T), relative to the largest term of its row, where the law holds exactly."""
    law, x = posterior.law, posterior.x
    hard = law.active(x) & (law.noise == 0)
    g, size = law.residual(f, x), np.maximum(law.magnitude(f, x), 1e-300)
    return float(np.max(np.where(hard, np.abs(g) / size, 0.0)))


def check_numbers(posterior: Any) -> None:
    """Finite means, standard deviations, samples and intervals."""
    lower, upper = posterior.interval()
    for values in (posterior.mean, posterior.std, posterior.sample(3), lower, upper):
        assert np.all(np.isfinite(values))
    assert np.all(posterior.std >= 0)
    assert np.all(lower <= upper)


def check_on_law(posterior: Any) -> None:
    """Mean and samples obey the law."""
    if not posterior.law.unknowns:
        assert violation(posterior, posterior.mean) < 1e-9
        assert max(violation(posterior, draw) for draw in posterior.sample(3)) < 1e-8
    assert np.max(np.abs(posterior.residual()[:, posterior.law.noise == 0]), initial=0.0) < 1e-8
