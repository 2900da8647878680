"""What runs on every case, by the name it has in tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sumgp_studies.public.case import Case
from sumgp_studies.public.methods import METHODS, Predict, independent
from sumgp_studies.public.rivals import gpytorch_multitask, has_gpytorch, is_composition, log_ratios, rough_processes

OURS = ("law", "no law")


@dataclass(frozen=True)
class Competitor:
    """How a case is fitted, and which cases it can be asked to."""

    fit: Callable[[Case], Predict]
    suits: Callable[[Case], bool] = lambda case: True


COMPETITORS: dict[str, Competitor] = {
    "law": Competitor(METHODS["law"]),
    "no law": Competitor(METHODS["no law"]),
    "scikit-learn RBF + projection": Competitor(METHODS["scikit-learn"]),
    "scikit-learn Matern + projection": Competitor(lambda case: independent(case, rough_processes)),
    "spline + projection": Competitor(METHODS["spline"]),
    "log-ratio GP": Competitor(log_ratios, is_composition),
    "GPyTorch multitask + projection": Competitor(
        lambda case: independent(case, gpytorch_multitask), lambda case: has_gpytorch() and case.y.size <= 800
    ),
}
