"""What runs on every case, by the name it has in tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sumgp_studies.public.case import Case
from sumgp_studies.public.methods import METHODS, Predict, independent
from sumgp_studies.public.packages import gpboost_outputs, gpytorch_multitask, has_package, suits_gpytorch
from sumgp_studies.public.rivals import is_composition, log_ratios, rough_processes, solved_equation

OURS = ("law", "no law")


@dataclass(frozen=True)
class Competitor:
    """How a case is fitted, and which cases it can be asked to."""

    fit: Callable[[Case], Predict]
    suits: Callable[[Case], bool] = lambda case: True


# All but ours and log-ratios are moved onto the laws that hold between the outputs of a row.
COMPETITORS: dict[str, Competitor] = {
    "law": Competitor(METHODS["law"]),
    "no law": Competitor(METHODS["no law"]),
    "scikit-learn RBF": Competitor(METHODS["scikit-learn"]),
    "scikit-learn Matern 3/2": Competitor(lambda case: independent(case, rough_processes)),
    "spline": Competitor(METHODS["spline"]),
    "log-ratio GP": Competitor(log_ratios, is_composition),
    "GPBoost": Competitor(lambda case: independent(case, gpboost_outputs), lambda case: has_package("gpboost")),
    "GPyTorch multitask": Competitor(lambda case: independent(case, gpytorch_multitask), suits_gpytorch),
    "least squares on the solved equation": Competitor(
        lambda case: independent(case, solved_equation), lambda case: case.system is not None
    ),
}
