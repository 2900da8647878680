"""The classes that may stand in a model file: public frozen dataclasses of the package's own parts, by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType

from sumgp import data, laws, lawsolve, paper_method, solvers, strategies, transforms

PACKAGES = (data, transforms, laws, solvers, lawsolve, strategies, paper_method)
SYNTAX = "sumgp.laws.formula.tree"  # parts of a text, which is stored as it was written


def modules() -> Iterator[ModuleType]:
    """The modules whose classes make up a fitted model."""
    for package in PACKAGES:
        for found in walk_packages(package.__path__, package.__name__ + "."):
            if found.name != SYNTAX:
                yield import_module(found.name)


def is_known(kind: type) -> bool:
    """True for a class that ``known_classes`` has, told from the class alone: writing loads no further module."""
    inside = any(kind.__module__.startswith(package.__name__ + ".") for package in PACKAGES)
    inside = inside and kind.__module__ != SYNTAX
    return inside and not kind.__name__.startswith("_") and is_dataclass(kind) and kind.__dataclass_params__.frozen  # type: ignore[attr-defined]


def public_dataclasses(module: ModuleType) -> dict[str, type]:
    """Frozen dataclasses that a module defines itself and does not hide."""
    found = {name: value for name, value in vars(module).items() if isinstance(value, type) and is_dataclass(value)}
    return {
        name: value
        for name, value in found.items()
        if value.__module__ == module.__name__ and not name.startswith("_") and value.__dataclass_params__.frozen  # type: ignore[attr-defined]
    }


@cache
def known_classes() -> dict[str, type]:
    """Name -> class; a name that two parts use is in neither's favour and cannot be stored."""
    result: dict[str, type] = {}
    twice: set[str] = set()
    for module in modules():
        for name, value in public_dataclasses(module).items():
            twice |= {name} & set(result)
            result[name] = value
    return {name: value for name, value in result.items() if name not in twice}
