"""Where the value of each symbol of a formula is found: a column of f, a column of x, or a function of the inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import sympy

from sumgp.errors import ConstraintError, worded
from sumgp.laws.formula.functions import Array, Program
from sumgp.laws.formula.tree import Names


@dataclass(frozen=True)
class Variables:
    """``unknown`` are the columns of f, ``inputs`` the first columns of x, ``extras`` its last ones.

    ``extra_columns`` are the names of the data columns that ``extras`` stand for, in the order of x.
    """

    unknown: tuple[sympy.Symbol, ...]
    inputs: tuple[sympy.Symbol, ...]
    extras: tuple[sympy.Symbol, ...]
    extra_columns: tuple[str, ...]
    functions: Mapping[sympy.Symbol, Callable[[np.ndarray], np.ndarray]]

    @cached_property
    def places(self) -> dict[sympy.Symbol, int]:
        """Columns of f by their symbols: comparing symbols one by one takes longer than the formula."""
        return {symbol: place for place, symbol in enumerate(self.unknown)}

    def values(self, symbols: Sequence[sympy.Symbol], f: np.ndarray | None, x: np.ndarray) -> dict[sympy.Symbol, np.ndarray]:
        """(n,) values of the asked symbols at f (n, C) and x (n, D + extras)."""
        n_inputs = x.shape[1] - len(self.extras)
        found = {}
        for symbol in symbols:
            if f is not None and symbol in self.places:
                found[symbol] = f[:, self.places[symbol]]
            elif symbol in self.functions:
                found[symbol] = self._called(symbol, x[:, :n_inputs])
            else:
                found[symbol] = self._column(symbol, x, n_inputs)
        return found

    def _column(self, symbol: sympy.Symbol, x: np.ndarray, n_inputs: int) -> np.ndarray:
        if n_inputs < len(self.inputs):
            needed = ", ".join((*(s.name for s in self.inputs), *self.extra_columns))
            got = f"{x.shape[1]} column(s)"
            raise ConstraintError(worded("X", f"the columns {needed}", got, f"the law needs the value of {symbol.name!r}"))
        return x[:, self.inputs.index(symbol) if symbol in self.inputs else n_inputs + self.extras.index(symbol)]

    def _called(self, symbol: sympy.Symbol, x: np.ndarray) -> np.ndarray:
        values = np.asarray(self.functions[symbol](x), dtype=float)
        if values.size not in (1, len(x)):
            raise ConstraintError(
                f"constants[{symbol.name!r}]: expected {len(x)} values from the function of X, got shape {values.shape}; "
                "return one value per row of X"
            )
        return np.broadcast_to(values.reshape(-1), (len(x),))


def read_variables(names: Names, used: frozenset[sympy.Symbol]) -> Variables:
    """The variables of laws that use these symbols; unknown constants and data columns that no law uses are left out."""
    unknowns = [name for name in names.unknowns if sympy.Symbol(name) in used]
    columns: dict[str, sympy.Symbol] = {}
    for name, column in names.columns.items():
        symbol = names.meaning(name)
        if column not in names.inputs and symbol in used:
            columns[column] = symbol
    return Variables(
        unknown=tuple(sympy.Symbol(name) for name in (*names.varying, *unknowns)),
        inputs=tuple(sympy.Symbol(name) for name in names.inputs),
        extras=tuple(columns.values()),
        extra_columns=tuple(columns),
        functions={sympy.Symbol(name): function for name, function in names.functions.items()},
    )


@dataclass(frozen=True)
class InputFunction:
    """Expressions of the inputs alone: x -> (n, *shape)."""

    program: Program
    variables: Variables
    shape: tuple[int, ...]

    def __call__(self, x: np.ndarray) -> np.ndarray:
        results = self.program.run(self.variables.values(self.program.symbols, None, x))
        stacked = np.empty((len(x), len(self.program.rows)))
        for column, row in enumerate(self.program.rows):
            stacked[:, column] = results[row]
        return stacked.reshape(len(x), *self.shape)


@dataclass(frozen=True)
class RowFunctions:
    """Expressions of outputs and inputs: residual, Jacobian and magnitude of R laws at f (n, C) and x."""

    program: Program
    variables: Variables

    def residual(self, f: np.ndarray, x: np.ndarray) -> np.ndarray:
        """(n, R) left minus right side."""
        results = self._results(f, x)
        values = np.empty((len(f), len(self.program.rows)))
        for row, step in enumerate(self.program.rows):
            values[:, row] = results[step]
        return values

    def jacobian(self, f: np.ndarray, x: np.ndarray) -> np.ndarray:
        """(n, R, C) derivative by outputs and unknown constants."""
        results = self._results(f, x)
        values = np.zeros((len(f), len(self.program.rows), len(self.variables.unknown)))
        for row in range(len(self.program.rows)):
            for symbol, slope in self.program.gradient(row, results).items():
                values[:, row, self.variables.places[symbol]] = slope
        return values

    def magnitude(self, f: np.ndarray, x: np.ndarray) -> np.ndarray:
        """(n, R) largest absolute value among the additive terms of each row."""
        results = self._results(f, x)
        values = np.zeros((len(f), len(self.program.rows)))
        for row, terms in enumerate(self.program.terms):
            for term in terms:
                values[:, row] = np.maximum(values[:, row], np.abs(results[term]))
        return values

    def _results(self, f: np.ndarray, x: np.ndarray) -> list[Array]:
        return self.program.run(self.variables.values(self.program.symbols, f, x))
