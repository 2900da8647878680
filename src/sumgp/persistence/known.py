"""The classes that may stand in a model file: frozen dataclasses of the package itself, by name."""

from __future__ import annotations

from dataclasses import is_dataclass
from types import ModuleType

from sumgp import data
from sumgp.constraints import base as constraint_base
from sumgp.constraints import sums
from sumgp.inference import law_solve
from sumgp.solvers import choice, weights
from sumgp.strategies import base, component, conditioned, linearized, projected, unconstrained
from sumgp.transforms import branched, elementary, periodic

MODULES = (
    data,
    constraint_base,
    sums,
    elementary,
    branched,
    periodic,
    law_solve,
    weights,
    choice,
    base,
    component,
    conditioned,
    linearized,
    projected,
    unconstrained,
)


def public_dataclasses(module: ModuleType) -> dict[str, type]:
    """Dataclasses that a module defines itself and does not hide."""
    found = {name: value for name, value in vars(module).items() if isinstance(value, type) and is_dataclass(value)}
    return {name: value for name, value in found.items() if value.__module__ == module.__name__ and not name.startswith("_")}


CLASSES: dict[str, type] = {name: value for module in MODULES for name, value in public_dataclasses(module).items()}
