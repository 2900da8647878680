"""The methods that are compared, by name: each fits a data set and gives a posterior at new inputs."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from sumgp.errors import SumGPError
from sumgp.laws import AllOf, FormulaConstraint
from sumgp_studies.experiments.baselines import PointPrediction, interpolated
from sumgp_studies.experiments.problem import Dataset

MOVING = (
    "harmonic_oscillator",
    "free_fall",
    "damped_oscillator",
    "double_pendulum",
)  # one output is the derivative of another
ONE_PARAMETER = ("harmonic_oscillator", "free_fall")  # law and motion together leave the time of the start open


@dataclass(frozen=True)
class Settings:
    """What a run may choose: "integrated" or "plug-in" hyperparameters, and the seed of random choices in a fit."""

    uncertainty: str = "integrated"
    random_state: int = 0


@dataclass(frozen=True)
class Fitted:
    """A fitted method: ``predict(X)`` gives a posterior with ``mean`` (n, T), ``interval(level)`` and ``observed()``."""

    predict: Callable[[np.ndarray], Any]
    status: str


class Method(ABC):
    """One row of a table. Concrete methods are frozen dataclasses, so that they travel to other processes."""

    name: str

    @abstractmethod
    def fit(self, dataset: Dataset, settings: Settings) -> Fitted:
        """Learn from the training data; raises an error if that fails."""

    def suits(self, experiment: str) -> bool:
        """True if the method can be used in this experiment."""
        return True


@dataclass(frozen=True)
class EstimatorMethod(Method):
    """``ConstrainedGP`` with one strategy; ``engine`` names the inference of the transformed outputs.

    ``further_laws`` adds the data set's further laws, ``motion`` its differential law, which stands alone without ``law``;
    ``one_noise`` says that all outputs have the same, as least squares is told; ``couples`` that laws may join outputs
    in one term.
    """

    name: str
    strategy: str
    engine: str = ""
    further_laws: bool = False
    motion: bool = False
    law: bool = True
    one_noise: bool = False
    couples: bool = True

    def fit(self, dataset: Dataset, settings: Settings) -> Fitted:
        # Imported here so that problems, records and reports can be read without loading the estimator.
        from sumgp.estimator import ConstrainedGP

        constraint = dataset.constraint
        if self.further_laws and dataset.further_constraint is not None:
            constraint = AllOf([constraint, dataset.further_constraint])
        if self.motion:
            rest = [dataset.with_motion or constraint] if self.law else []
            constraint = AllOf([FormulaConstraint(dataset.motion), *rest])
        gp = ConstrainedGP(
            constraint,
            outputs=list(dataset.outputs),
            inputs=list(dataset.inputs),
            noise="shared" if self.one_noise else "per-output",
            strategy=self.strategy_object(),
            uncertainty=settings.uncertainty,
            groups=None if dataset.groups is None else [list(group) for group in dataset.groups],
            random_state=settings.random_state,
        )
        gp.fit(dataset.X_train, dataset.Y_train)
        return Fitted(gp.posterior, str(gp.fit_report_.status))

    def strategy_object(self) -> Any:
        """The strategy this method stands for, e.g. ``Transformed(inference=Laplace())``."""
        import sumgp

        if not self.engine:
            return getattr(sumgp, self.strategy)()
        return getattr(sumgp, self.strategy)(inference=getattr(sumgp, self.engine)())

    def suits(self, experiment: str) -> bool:
        if self.further_laws:
            return experiment == "double_pendulum"
        if self.one_noise:
            return experiment in ONE_PARAMETER
        if self.motion:
            return experiment in MOVING
        return self.couples or experiment != "triangle"


@dataclass(frozen=True)
class GramMethod(Method):
    """The paper's treatment of lengths: a GP on pairwise products, with the law (GP-c) or without it (GP-tr)."""

    name: str
    constrained: bool

    def fit(self, dataset: Dataset, settings: Settings) -> Fitted:
        from sumgp_studies import gram

        fitted = gram.fit_gram(dataset, self.constrained, settings.uncertainty, settings.random_state)
        return Fitted(fitted.posterior, str(fitted.status))

    def suits(self, experiment: str) -> bool:
        return experiment == "triangle"


@dataclass(frozen=True)
class Interpolation(Method):
    """Straight lines or a cubic spline through the measured values."""

    name: str
    smooth: bool

    def fit(self, dataset: Dataset, settings: Settings) -> Fitted:
        def predict(X: np.ndarray) -> PointPrediction:
            return PointPrediction(interpolated(dataset.X_train, dataset.Y_train, X, self.smooth))

        return Fitted(predict, "interpolated")


@dataclass(frozen=True)
class LeastSquares(Method):
    """The true formula, its few open parameters fitted from a start at the truth: a near lower bound of the error."""

    name: str

    def fit(self, dataset: Dataset, settings: Settings) -> Fitted:
        family, measured = dataset.family, ~np.isnan(dataset.Y_train)
        assert family is not None

        def misfit(parameters: np.ndarray) -> np.ndarray:
            return (family.outputs(parameters, dataset.X_train) - dataset.Y_train)[measured]

        found = least_squares(misfit, family.truth)
        return Fitted(lambda X: PointPrediction(family.outputs(found.x, X)), "converged" if found.success else found.message)

    def suits(self, experiment: str) -> bool:
        return experiment in ONE_PARAMETER


def all_methods() -> dict[str, Method]:
    """Every method by name, in the order of the tables."""
    methods: tuple[Method, ...] = (
        Interpolation("linear-interpolation", smooth=False),
        Interpolation("cubic-spline", smooth=True),
        EstimatorMethod("unconstrained", "Unconstrained"),
        EstimatorMethod("projected", "Projected"),
        EstimatorMethod("transformed-gaussian", "Transformed", "Gaussian", couples=False),
        EstimatorMethod("transformed-moments", "Transformed", "MomentMatched", couples=False),
        EstimatorMethod("transformed-laplace", "Transformed", "Laplace", couples=False),
        EstimatorMethod("transformed-variational", "Transformed", "Variational", couples=False),
        EstimatorMethod("transformed-ep", "Transformed", "ExpectationPropagation", couples=False),
        GramMethod("gram-unconstrained", constrained=False),
        GramMethod("gram", constrained=True),
        EstimatorMethod("linearized", "Linearized"),
        EstimatorMethod("linearized+lengths", "Linearized", further_laws=True),
        EstimatorMethod("derivative", "Linearized", motion=True, law=False),
        EstimatorMethod("linearized+derivative", "Linearized", motion=True),
        EstimatorMethod("linearized+derivative+noise", "Linearized", motion=True, one_noise=True),
        LeastSquares("least-squares"),
    )
    return {method.name: method for method in methods}


def order(name: str) -> tuple[int, str]:
    """Sorting key: the order of ``all_methods``, then unknown names; a setting in parentheses is ignored first."""
    names = list(all_methods())
    bare = name.split(" (")[0]
    return (names.index(bare) if bare in names else len(names), name)


def method_named(name: str) -> Method:
    """The method of that name; an unknown name is an error that suggests the nearest one."""
    methods = all_methods()
    if name not in methods:
        near = difflib.get_close_matches(name, methods, n=1)
        remedy = f"did you mean {near[0]!r}?" if near else "see the list"
        raise SumGPError("method", f"one of {', '.join(methods)}", repr(name), remedy)
    return methods[name]
