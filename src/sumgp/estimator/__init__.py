"""ConstrainedGP, what it accepts, and what it reports."""

from sumgp.estimator.constrained_gp import ConstrainedGP
from sumgp.estimator.fit_report import FitReport
from sumgp.estimator.preparation import KERNELS, STRATEGIES, as_constraint, default_strategy, kernel_named, strategy_named
