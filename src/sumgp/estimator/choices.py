"""Short names of kernels, strategies and solvers, the same in Python and on the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sklearn.gaussian_process.kernels import RBF, Matern, RationalQuadratic

from sumgp.errors import DataError, worded
from sumgp.paper_method import Transformed
from sumgp.solvers import Dense, Kronecker, Markov, Vecchia
from sumgp.strategies import Conditioned, Linearized, Projected, Unconstrained

KERNELS: Mapping[str, Callable[[], Any]] = {
    "rbf": RBF,
    "matern12": lambda: Matern(nu=0.5),
    "matern32": lambda: Matern(nu=1.5),
    "matern52": lambda: Matern(nu=2.5),
    "rational-quadratic": lambda: RationalQuadratic(alpha=2.0, alpha_bounds="fixed"),
}
STRATEGIES: Mapping[str, Callable[[], Any]] = {
    "conditioned": Conditioned,
    "linearized": Linearized,
    "projected": Projected,
    "transformed": Transformed,
    "unconstrained": Unconstrained,
}
SOLVERS: Mapping[str, Callable[[], Any]] = {
    "dense": Dense,
    "kronecker": Kronecker,
    "markov": Markov,
    "vecchia": Vecchia,
}


def kernel_named(value: Any, argument: str = "kernel") -> Any:
    """A kernel by its short name; several joined with + are terms with task covariances of their own.

    What is no text is given back as it is, here and below.
    """
    if not isinstance(value, str):
        return value
    made = [_made(part, KERNELS, argument, "join several with +") for part in value.split("+")]
    return made[0] if len(made) == 1 else made


def strategy_named(value: Any, argument: str = "strategy") -> Any:
    """A strategy by its name."""
    return _made(value, STRATEGIES, argument, "leave it out to have it chosen") if isinstance(value, str) else value


def solver_named(value: Any, argument: str = "solver") -> Any:
    """A solver by its name."""
    return _made(value, SOLVERS, argument, "leave it out to have it chosen") if isinstance(value, str) else value


def with_named_choices(model: Any) -> Any:
    """An estimator of the same settings with objects in place of names such as "linearized"."""
    made = {
        "kernel": kernel_named(model.kernel),
        "strategy": strategy_named(model.strategy),
        "solver": solver_named(model.solver),
    }
    return type(model)(**{**model.get_params(deep=False), **made})


def _made(text: str, makers: Mapping[str, Callable[[], Any]], argument: str, remedy: str) -> Any:
    """The object of this name; case, underscores and a pair of brackets at the end do not matter."""
    name = text.strip().lower().replace("_", "-").removesuffix("()")
    if name not in makers:
        raise DataError(worded(argument, f"one of {', '.join(makers)}", repr(text), remedy))
    return makers[name]()
