"""The package's frozen dataclasses and kernels as JSON and back: fixed lists of classes, each field checked by its type."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Callable as AbstractCallable
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from sklearn.gaussian_process import kernels as library
from sklearn.gaussian_process.kernels import Kernel

from sumgp import data, laws, lawsolve, paper_method, solvers, strategies, transforms
from sumgp.errors import DataError
from sumgp.laws import Law, SumLaw, UnitFreeLaw, split_law
from sumgp.priors import Growth

MARK = "$"  # key that says what a JSON object stands for
DEEPEST = 40  # levels of nesting: far more than models have, far below where Python gives up


@dataclass
class Writer:
    """Turns values into JSON, keeping arrays aside; an array used twice is kept once."""

    law: Law | None
    arrays: list[np.ndarray] = field(default_factory=list)
    _numbers: dict[int, int] = field(default_factory=dict)

    def write(self, value: Any) -> Any:
        """JSON for a value, DataError for what has no place in a file."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {MARK: "float", "value": repr(value)}
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, (list, tuple)):
            items = [self.write(item) for item in value]
            return items if isinstance(value, list) else {MARK: "tuple", "items": items}
        if isinstance(value, Mapping):
            return {MARK: "dict", "items": [[str(key), self.write(item)] for key, item in value.items()]}
        if isinstance(value, slice):
            return {MARK: "slice", "ends": [value.start, value.stop]}
        if isinstance(value, Kernel):
            return {MARK: "kernel", "kernel": write_kernel(value)}
        return self._object(value)

    def _array(self, value: np.ndarray) -> dict[str, Any]:
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self.arrays)
            self.arrays.append(value)
        return {MARK: "array", "number": self._numbers[id(value)]}

    def _is_own(self, law: Law) -> bool:
        """The model's law, or one over other columns with the same right sides, which are all that is asked of it."""
        own = self.law
        return law is own or (isinstance(law, SumLaw) and isinstance(own, SumLaw) and law.total is own.total)

    def _object(self, value: Any) -> dict[str, Any]:
        name = type(value).__name__
        if isinstance(value, Law):
            if not self._is_own(value):
                raise DataError("save: the model refers to a law other than its own; it cannot be stored")
            return {MARK: "law"}
        if isinstance(value, UnitFreeLaw):
            # The law itself is made again from the formula; only sizes are stored.
            sizes = {key: self.write(getattr(value, key)) for key in ("shift", "scale", "row_scale")}
            return {MARK: "UnitFreeLaw", **sizes}
        kind = type(value)
        if not is_known(kind):
            raise DataError(f"save: {name} objects cannot be stored; give a formula or numbers instead of Python code")
        return {MARK: name, **{f.name: self.write(getattr(value, f.name)) for f in fields(kind)}}


@dataclass
class Reader:
    """Turns JSON back into values; ``law`` is the bound law that stored parts refer to."""

    arrays: list[np.ndarray]
    law: Law | None = None
    _unit_free: dict[bytes, UnitFreeLaw] = field(default_factory=dict)

    def read(self, node: Any, depth: int = 0) -> Any:
        """The value of a node, or DataError."""
        if depth > DEEPEST:
            raise DataError("model file: nested too deeply; it is damaged")
        if node is None or isinstance(node, (bool, int, float, str)):
            return node
        if isinstance(node, list):
            return [self.read(item, depth + 1) for item in node]
        if not isinstance(node, dict) or not isinstance(node.get(MARK), str):
            raise DataError("model file: an entry of unknown kind; it is damaged")
        mark = node[MARK]
        try:
            reader = self._special().get(mark)
            return self._object(mark, node, depth) if reader is None else reader(node, depth)
        except (KeyError, IndexError, TypeError, OverflowError) as error:
            raise DataError(
                f"model file: {mark!r:.40} is incomplete ({type(error).__name__}: {error}); it is damaged"
            ) from error

    def _special(self) -> dict[str, Callable[[dict[str, Any], int], Any]]:
        return {
            "array": lambda node, depth: self.arrays[_index(node["number"])],
            "float": lambda node, depth: {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[node["value"]],
            "tuple": lambda node, depth: tuple(self.read(item, depth + 1) for item in node["items"]),
            "dict": lambda node, depth: {str(key): self.read(item, depth + 1) for key, item in node["items"]},
            "slice": lambda node, depth: slice(*(_index(end) for end in node["ends"])),
            "kernel": lambda node, depth: read_kernel(node["kernel"]),
            "law": lambda node, depth: self._own_law(),
            "UnitFreeLaw": self._unit_free_law,
        }

    def _own_law(self) -> Law:
        if self.law is None:
            raise DataError("model file: a part refers to a law that the file does not have; it is damaged")
        return self.law

    def _imposed_law(self, columns: Any) -> Law:
        """The law, or the rest of it where some rows hold by construction: it has fewer columns."""
        law = self._own_law()
        split = split_law(law)
        eliminated = split is not None and split.rest is not None and np.shape(columns) != (law.n_columns,)
        return split.rest if eliminated else law  # type: ignore[union-attr, return-value]

    def _unit_free_law(self, node: dict[str, Any], depth: int) -> UnitFreeLaw:
        shift, scale, row_scale = (self.read(node[key], depth + 1) for key in ("shift", "scale", "row_scale"))
        law = self._imposed_law(shift)
        for value, length in ((shift, law.n_columns), (scale, law.n_columns), (row_scale, law.n_rows)):
            if not isinstance(value, np.ndarray) or value.shape != (length,) or not np.all(np.isfinite(value)):
                raise DataError("model file: the numbers of columns and rows of the law are not those of the stored sizes")
        key = shift.tobytes() + scale.tobytes() + row_scale.tobytes()
        if key not in self._unit_free:
            relaxed = law.relaxed(np.maximum(np.abs(shift), scale))
            self._unit_free[key] = UnitFreeLaw(relaxed, shift, scale, row_scale)
        return self._unit_free[key]

    def _object(self, mark: str, node: dict[str, Any], depth: int) -> Any:
        kind = known_classes().get(mark)
        if kind is None:
            raise DataError(f"model file: {mark!r:.40} is not part of a model; the file is damaged or of a later version")
        names = [f.name for f in fields(kind)]
        # Fields with a default may have come after the file was written.
        needed = {f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING}
        if not {MARK, *needed} <= set(node) <= {MARK, *names}:
            raise DataError(f"model file: {mark} does not have the fields {names}; it is damaged or of another version")
        values = {name: self.read(node[name], depth + 1) for name in names if name in node}
        hints = get_type_hints(kind)
        for name, value in values.items():
            if not matches(value, hints[name]):
                raise DataError(f"model file: {mark}.{name} is of the wrong type ({type(value).__name__}); it is damaged")
        return kind(**values)


def _index(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise IndexError(value)
    return value


def matches(value: Any, hint: Any) -> bool:
    """True if a value read from a file fits a field's declared type; functions fit only as stored objects."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(matches(value, option) for option in arguments)
    if hint is None or hint is type(None):
        return value is None
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        inner = arguments[:1] * len(value) if arguments[-1] is Ellipsis else arguments
        return len(inner) == len(value) and all(matches(item, kind) for item, kind in zip(value, inner, strict=True))
    if origin is AbstractCallable or hint is AbstractCallable:
        return is_dataclass(value) and callable(value)
    if origin is not None:
        return isinstance(value, origin) if isinstance(origin, type) else value in arguments
    if getattr(hint, "_is_protocol", False):
        return is_dataclass(value)
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


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
    """Classes of a module's own that models may hold."""
    own = {name: value for name, value in vars(module).items() if isinstance(value, type)}
    return {name: kind for name, kind in own.items() if kind.__module__ == module.__name__ and is_known(kind)}


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


LEAVES: dict[str, type[Kernel]] = {
    kind.__name__: kind
    for kind in (
        library.RBF, library.Matern, library.RationalQuadratic, library.ExpSineSquared, library.DotProduct,
        library.ConstantKernel, Growth,
    )
}  # fmt: skip
PAIRS: dict[str, type[Kernel]] = {"Sum": library.Sum, "Product": library.Product}
POWER = library.Exponentiation.__name__


def write_kernel(kernel: library.Kernel) -> dict[str, Any]:
    """Class and parameters; DataError for kernels of the user's own."""
    name = type(kernel).__name__
    if type(kernel) is not {**LEAVES, **PAIRS, POWER: library.Exponentiation}.get(name):
        raise DataError(
            f"kernel: {name} cannot be stored; use kernels of scikit-learn ({', '.join(LEAVES)}, sums and products)"
        )
    if name in PAIRS:
        return {"class": name, "k1": write_kernel(kernel.k1), "k2": write_kernel(kernel.k2)}
    if name == POWER:
        return {"class": name, "kernel": write_kernel(kernel.kernel), "exponent": float(kernel.exponent)}
    return {"class": name, "parameters": {key: _plain(value) for key, value in kernel.get_params(deep=False).items()}}


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value
    return np.asarray(value, dtype=float).tolist()


def read_kernel(node: Any, depth: int = 0) -> library.Kernel:
    """The kernel again; DataError for anything that ``write_kernel`` does not write."""
    name = node.get("class") if isinstance(node, dict) else None
    try:
        if depth > 30:
            raise DataError("kernel: nested too deeply; the file is damaged")
        if name in PAIRS:
            return PAIRS[name](read_kernel(node["k1"], depth + 1), read_kernel(node["k2"], depth + 1))
        if name == POWER:
            return library.Exponentiation(read_kernel(node["kernel"], depth + 1), float(node["exponent"]))
        if name in LEAVES:
            wanted = LEAVES[name]().get_params(deep=False)
            if set(node["parameters"]) != set(wanted):
                raise DataError(f"kernel: {name} has the parameters {sorted(wanted)}, the file others; it is damaged")
            return LEAVES[name](**{key: _parameter(key, value) for key, value in node["parameters"].items()})
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"kernel: {name} is described incompletely ({error}); the file is damaged") from error
    raise DataError(f"kernel: {name!r} is none of {', '.join((*LEAVES, *PAIRS))}; the file is damaged or hostile")


def _parameter(key: str, value: Any) -> Any:
    """A number, an array of numbers, or the word "fixed" for bounds."""
    if value == "fixed" and key.endswith("_bounds"):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, list):
        try:
            numbers = np.array(value, dtype=float)
        except (TypeError, ValueError) as error:
            raise DataError(f"kernel: {key} is not made of numbers; the file is damaged") from error
        return (float(numbers[0]), float(numbers[1])) if numbers.shape == (2,) and key.endswith("_bounds") else numbers
    raise DataError(f"kernel: {key} is {value!r:.40}, expected numbers; the file is damaged")
