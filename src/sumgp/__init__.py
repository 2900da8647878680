"""Gaussian processes whose predictions obey a law."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sumgp.version import VERSION

if TYPE_CHECKING:
    from sumgp import datasets
    from sumgp.errors import ConstraintError, DataError, NumericalError, SumGPError, SumGPWarning
    from sumgp.estimator import ConstrainedGP
    from sumgp.files import load
    from sumgp.laws import (
        Bounds,
        Constraint,
        FunctionConstraint,
        LinearConstraint,
        SumConstraint,
        Term,
        Unknown,
        parse_constraint,
    )
    from sumgp.many import FitResult, PredictedMap, fit_many, predict_map
    from sumgp.paper_method import Transformed
    from sumgp.paper_method.engines import ExpectationPropagation, Gaussian, Laplace, MomentMatched, Variational
    from sumgp.reconciliation import Reconciled, reconcile
    from sumgp.solvers import Dense, Kronecker, Markov, Vecchia
    from sumgp.strategies import Collocated, Conditioned, Linearized, Projected, Unconstrained

__version__ = VERSION

# Module -> public names in it. A module is loaded when one of its names is first used: linear algebra and scikit-learn
# take seconds to load, and programs that only show a help page do not need them.
_HOMES = {
    "laws": (
        "Bounds", "Constraint", "FunctionConstraint", "LinearConstraint", "SumConstraint", "Term", "Unknown",
        "parse_constraint",
    ),
    "errors": ("ConstraintError", "DataError", "NumericalError", "SumGPError", "SumGPWarning"),
    "estimator": ("ConstrainedGP",),
    "paper_method.engines": ("ExpectationPropagation", "Gaussian", "Laplace", "MomentMatched", "Variational"),
    "many": ("FitResult", "PredictedMap", "fit_many", "predict_map"),
    "files": ("load",),
    "paper_method": ("Transformed",),
    "solvers": ("Dense", "Kronecker", "Markov", "Vecchia"),
    "reconciliation": ("Reconciled", "reconcile"),
    "strategies": ("Collocated", "Conditioned", "Linearized", "Projected", "Unconstrained"),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """A public name, from its module; kept, so that this runs once for each."""
    if name == "datasets":
        return import_module("sumgp.datasets")
    if name not in _HOME_OF:
        from difflib import get_close_matches

        near = "".join(f"; did you mean {other!r}?" for other in get_close_matches(name, __all__, n=1))
        raise AttributeError(f"module 'sumgp' has no attribute {name!r}{near}")
    value = getattr(import_module(f"sumgp.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """What editors and notebooks offer for completion."""
    return sorted({*globals(), *__all__})


__all__ = [
    "Bounds", "Collocated", "Conditioned", "ConstrainedGP", "Constraint", "ConstraintError", "DataError", "Dense",
    "ExpectationPropagation", "FitResult", "FunctionConstraint", "Gaussian", "Kronecker", "Laplace",
    "LinearConstraint", "Linearized", "Markov", "MomentMatched", "NumericalError", "PredictedMap", "Projected",
    "Reconciled", "SumConstraint", "SumGPError", "SumGPWarning", "Term", "Transformed", "Unconstrained", "Unknown",
    "Variational", "Vecchia", "datasets", "fit_many", "load", "parse_constraint", "predict_map", "reconcile",
]  # fmt: skip
