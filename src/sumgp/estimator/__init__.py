"""ConstrainedGP, what it accepts, and what it reports."""

from sumgp.estimator.choices import KERNELS, STRATEGIES, kernel_named, strategy_named
from sumgp.estimator.constrained_gp import ConstrainedGP
from sumgp.estimator.fit_report import FitReport
from sumgp.estimator.preparation import as_constraint, default_strategy

__all__ = [
    "KERNELS",
    "STRATEGIES",
    "ConstrainedGP",
    "FitReport",
    "as_constraint",
    "default_strategy",
    "kernel_named",
    "strategy_named",
]
