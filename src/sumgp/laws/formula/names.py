"""What the names in a formula stand for: outputs, inputs, constants, indexed families and points."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from sumgp.errors import ConstraintError, worded
from sumgp.laws.columns import Derivative
from sumgp.laws.constraint import Unknown
from sumgp.laws.formula.hints import unknown_name

if TYPE_CHECKING:
    import sympy

UNKNOWN = "unknown"
BUILT_IN = {"pi": Fraction(math.pi), "π": Fraction(math.pi), "e": Fraction(math.e)}
COORDINATES = (("_x", "_y", "_z"), ("x", "y", "z"), ("1", "2", "3"), ("_1", "_2", "_3"))

Constant = float | str | Callable


@dataclass(frozen=True)
class Names:
    """Every name a formula may use; names of the user hide the built-in ``pi`` and ``e``.

    ``columns`` maps a constant to the data column that gives its value, ``functions`` to a function of X. ``derivatives``
    are those that the formula mentions, by the names ``read_derivatives`` gives them.
    """

    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    numbers: Mapping[str, Fraction]
    unknowns: tuple[str, ...]
    columns: Mapping[str, str]
    functions: Mapping[str, Callable]
    derivatives: Mapping[str, Derivative] = field(default_factory=dict)

    @property
    def varying(self) -> tuple[str, ...]:
        """Outputs and their derivatives: the columns of a law that vary with the inputs."""
        return (*self.outputs, *self.derivatives)

    @property
    def known(self) -> tuple[str, ...]:
        """All of them, outputs first."""
        named = (*self.outputs, *self.inputs, *self.numbers, *self.unknowns, *self.columns, *self.functions, *BUILT_IN)
        return tuple(dict.fromkeys(named))

    def symbol(self, name: str) -> str | None:
        """The name of the symbol behind a name, None where it stands for a number or nothing."""
        if name in self.varying or name in self.inputs or name in self.unknowns or name in self.functions:
            return name
        if name not in self.columns:
            return None
        # Constants that name the same column are one symbol, so that the algebra sees them as equal.
        column = self.columns[name]
        first = next(other for other, target in self.columns.items() if target == column)
        return column if column in self.inputs else first

    def number(self, name: str) -> Fraction | None:
        """The exact number behind a name that is no symbol, None where there is none."""
        return None if self.symbol(name) is not None else self.numbers.get(name, BUILT_IN.get(name))

    def meaning(self, name: str) -> sympy.Expr | None:
        """The symbol or exact number behind a name, None where it is unknown."""
        import sympy

        symbol, value = self.symbol(name), self.number(name)
        if symbol is not None:
            return sympy.Symbol(symbol)
        return None if value is None else sympy.Rational(value.numerator, value.denominator)

    def family(self, name: str) -> dict[int, str]:
        """Names ``name1, name2, ...`` or ``name_1, name_2, ...`` by their index, ascending; empty if there are none."""
        for pattern in (rf"{re.escape(name)}([0-9]+)", rf"{re.escape(name)}_([0-9]+)"):
            found = {int(m[1]): other for other in self.known if (m := re.fullmatch(pattern, other))}
            if found:
                return dict(sorted(found.items()))
        return {}

    def coordinates(self, points: Sequence[str]) -> list[tuple[str, ...]] | None:
        """Names of the two or three coordinates of each point, all in the first style that fits every point."""
        known = set(self.known)
        for style in COORDINATES:
            found = [tuple(point + suffix for suffix in style if point + suffix in known) for point in points]
            planar = [(point + style[0], point + style[1]) for point in points]
            fits = all(names[:2] == pair for names, pair in zip(found, planar, strict=True))
            if fits and len({len(names) for names in found}) == 1:
                return found
        return None

    def unknown_name(self, name: str) -> str:
        """The message for a name that stands for nothing."""
        return unknown_name(name, [n for n in self.known if n not in BUILT_IN])


def read_constants(constants: Mapping[str, object] | None) -> dict[str, Constant]:
    """Check the constants and bring them to numbers, "unknown", column names or functions."""
    checked: dict[str, Constant] = {}
    for name, value in (constants or {}).items():
        if not isinstance(name, str) or not name:
            raise ConstraintError(worded("constants", "names as keys", repr(name), 'write {"E": 0.8}'))
        if isinstance(value, Unknown):
            checked[name] = UNKNOWN
        elif isinstance(value, str) and value:
            checked[name] = value
        elif (number := _finite_number(value)) is not None:
            checked[name] = number
        elif callable(value):
            checked[name] = value
        else:
            remedy = 'give a finite number, "unknown", the name of a data column, or a function of X'
            raise ConstraintError(worded(f"constants[{name!r}]", "a constant", repr(value)[:60], remedy))
    return checked


def _finite_number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if abs(number) < 1e300 else None


def read_names(outputs: Sequence[str], inputs: Sequence[str], constants: Mapping[str, Constant]) -> Names:
    """Sort the names by what they stand for; a name that stands for two things is refused."""
    if isinstance(outputs, str) or isinstance(inputs, str):
        raise ConstraintError(worded("outputs, inputs", "lists of names", "one string", 'write outputs=["z", "v"]'))
    taken: dict[str, str] = {}
    for kind, group in (("output", outputs), ("input", inputs), ("constant", constants)):
        for name in group:
            if name in taken:
                raise ConstraintError(f"formula: {name!r} is named twice, as {taken[name]} and as {kind}; rename one")
            taken[name] = kind
    for name, value in constants.items():
        if isinstance(value, str) and value != UNKNOWN and value in outputs:
            raise ConstraintError(f"constants[{name!r}]: {value!r} is an output; write {value!r} itself in the formula")
    return Names(
        outputs=tuple(outputs),
        inputs=tuple(inputs),
        numbers={name: Fraction(repr(value)) for name, value in constants.items() if isinstance(value, float)},
        unknowns=tuple(name for name, value in constants.items() if isinstance(value, str) and value == UNKNOWN),
        columns={name: value for name, value in constants.items() if isinstance(value, str) and value != UNKNOWN},
        functions={name: value for name, value in constants.items() if callable(value)},
    )
