"""SymPy expressions to vectorised NumPy, with exact derivatives: a list of elementary steps, walked by our own loop.

Equal subexpressions become one step, so they are evaluated once for all rows. Derivatives follow the chain rule
backwards through the same steps, which serves the exact and the continued functions alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
import sympy

from sumgp.errors import ConstraintError
from sumgp.laws.formula.algebra import FUNCTIONS, as_float
from sumgp.laws.formula.edges import SCALARS, PowerFunction, Scalar, continued_function, continued_power
from sumgp.laws.formula.intervals import Interval, image
from sumgp.laws.formula.tree import Names

Array = np.ndarray | np.float64
Values = Mapping[sympy.Symbol, Array]


@dataclass(frozen=True)
class Step:
    """One elementary operation on the results of earlier steps.

    ``kind`` is number, symbol, sum, product or scalar; ``content`` the number, the symbol or the function of one
    variable; ``active`` tells whether the result depends on a symbol that is differentiated.
    """

    kind: str
    arguments: tuple[int, ...] = ()
    content: Any = None
    active: bool = False


@dataclass(frozen=True)
class Program:
    """Steps in an order in which each follows its arguments; ``rows`` are the steps that hold the results.

    ``terms`` are the steps of each row's additive terms, ``reach`` the steps each row depends on, last first.
    """

    steps: tuple[Step, ...]
    rows: tuple[int, ...]
    terms: tuple[tuple[int, ...], ...]
    reach: tuple[tuple[int, ...], ...]

    @property
    def symbols(self) -> tuple[sympy.Symbol, ...]:
        """The symbols whose values are needed."""
        return tuple(step.content for step in self.steps if step.kind == "symbol")

    def run(self, values: Values) -> list[Array]:
        """The result of every step."""
        results: list[Array] = []
        with np.errstate(all="ignore"):
            for step in self.steps:
                results.append(_result(step, results, values))
        return results

    def stacked(self, results: Sequence[Array], n: int) -> np.ndarray:
        """(n, rows) values of the rows."""
        values = np.empty((n, len(self.rows)))
        for row, step in enumerate(self.rows):
            values[:, row] = results[step]
        return values

    def gradient(self, row: int, results: Sequence[Array]) -> dict[sympy.Symbol, Array]:
        """Derivative of one row by each symbol it depends on, from the results of ``run``."""
        gradient: dict[sympy.Symbol, Array] = {}
        weights: dict[int, Array] = {self.rows[row]: np.float64(1.0)}
        with np.errstate(all="ignore"):
            for position in self.reach[row]:
                step = self.steps[position]
                weight = weights.pop(position)
                if step.kind == "symbol":
                    gradient[step.content] = weight
                    continue
                for argument, slope in zip(step.arguments, _slopes(step, results), strict=True):
                    if self.steps[argument].active:
                        part = weight if slope is None else weight * slope
                        weights[argument] = weights[argument] + part if argument in weights else part
        return gradient


def compile_rows(
    rows: Sequence[sympy.Expr],
    active: Sequence[sympy.Symbol],
    sizes: Mapping[sympy.Symbol, float] | None = None,
    measured: Sequence[sympy.Expr] | None = None,
) -> Program:
    """The program for several expressions; steps that depend on ``active`` symbols can be differentiated.

    With ``sizes``, typical ones of each active symbol, functions are continued beyond their domain.
    ``measured`` are the expressions whose additive terms give each row's magnitude, the rows themselves by default.
    """
    compiler = _Compiler(frozenset(active), sizes)
    ends = tuple(compiler.position(row) for row in rows)
    sums = rows if measured is None else measured
    terms = tuple(tuple(compiler.position(term) for term in sympy.Add.make_args(row)) for row in sums)
    steps = tuple(compiler.steps)
    return Program(steps, ends, terms, tuple(_reach(steps, end) for end in ends))


class _Compiler:
    """Collects steps; equal expressions share one."""

    def __init__(self, active: frozenset[sympy.Symbol], sizes: Mapping[sympy.Symbol, float] | None) -> None:
        self.active = active
        self.sizes = sizes
        self.steps: list[Step] = []
        self.positions: dict[sympy.Expr, int] = {}
        self.images: dict[sympy.Expr, Interval] = {}

    def position(self, expression: sympy.Expr) -> int:
        if expression not in self.positions:
            step = self.step(expression)
            self.steps.append(step)
            self.positions[expression] = len(self.steps) - 1
        return self.positions[expression]

    def step(self, expression: sympy.Expr) -> Step:
        if expression.is_Rational:
            return Step("number", content=_number(expression))
        if expression.is_Symbol:
            return Step("symbol", content=expression, active=expression in self.active)
        if type(expression) is FUNCTIONS["power"] and not expression.args[1].is_Rational:
            base, exponent = expression.args
            return self.step(FUNCTIONS["exp"](exponent * FUNCTIONS["log"](base)))
        if expression.is_Add or expression.is_Mul:
            arguments = tuple(self.position(argument) for argument in expression.args)
            kind = "sum" if expression.is_Add else "product"
            return Step(kind, arguments, active=any(self.steps[i].active for i in arguments))
        argument = self.position(expression.args[0])
        active = self.steps[argument].active
        return Step("scalar", (argument,), self.scalar(expression, active), active)

    def scalar(self, expression: sympy.Expr, active: bool) -> Scalar:
        """The function of one variable; continued only where it depends on outputs, because a coefficient that is
        undefined at an input must stay visible."""
        exponent = _exponent(expression)
        if self.sizes is None or not active:
            return SCALARS[type(expression).__name__] if exponent is None else PowerFunction(exponent)
        argument = expression.args[0]
        size = typical_size(argument, self.sizes)
        values = image(argument, self.images)
        if exponent is None:
            return continued_function(type(expression).__name__, size, values)
        return continued_power(exponent, size, values)


def typical_size(expression: sympy.Expr, sizes: Mapping[sympy.Symbol, float]) -> float:
    """Rough size of an expression; of a sum the smallest term counts, so that a continuation begins late, not early."""
    if expression.is_Rational:
        return abs(as_float(expression))
    if expression.is_Symbol:
        return sizes.get(expression, 1.0)
    inner = [typical_size(argument, sizes) for argument in expression.args]
    if expression.is_Add:
        return min(inner)
    if expression.is_Mul:
        return float(np.prod(inner))
    exponent = _exponent(expression)
    if exponent is None and type(expression) is FUNCTIONS["power"]:
        exponent = inner[1]  # K**n with n unknown: the 1e-9 of a concentration K is no zero
    if exponent is not None:
        return float(np.clip(np.float64(inner[0]) ** exponent, 1e-100, 1e100))
    return inner[0] if type(expression) is FUNCTIONS["abs"] else 1.0


def _exponent(expression: sympy.Expr) -> float | None:
    """The constant exponent of a power, None for any other function."""
    if expression.is_Pow:
        return float(int(expression.exp))
    if type(expression) is FUNCTIONS["sqrt"]:
        return 0.5
    if type(expression) is FUNCTIONS["power"] and expression.args[1].is_Rational:
        return as_float(expression.args[1])
    return None


def _number(expression: sympy.Rational) -> np.float64:
    value = as_float(expression)
    if not np.isfinite(value):
        raise ConstraintError("formula: a coefficient is too large for a floating-point number; change the units")
    return np.float64(value)


def _reach(steps: Sequence[Step], end: int) -> tuple[int, ...]:
    """Active steps that a result depends on, last first."""
    found = {end} if steps[end].active else set()
    for position in range(end, -1, -1):
        if position in found:
            found.update(i for i in steps[position].arguments if steps[i].active)
    return tuple(sorted(found, reverse=True))


def _result(step: Step, results: Sequence[Array], values: Values) -> Array:
    if step.kind == "scalar":
        return step.content.value(results[step.arguments[0]])
    if step.kind == "number":
        return step.content
    if step.kind == "symbol":
        return values[step.content]
    combine: Callable = np.add if step.kind == "sum" else np.multiply
    return reduce(combine, [results[i] for i in step.arguments])


def _slopes(step: Step, results: Sequence[Array]) -> Sequence[Array | None]:
    """Derivative of a step by each of its arguments; None = one."""
    if step.kind == "sum":
        return [None] * len(step.arguments)
    arguments = [results[i] for i in step.arguments]
    if step.kind == "scalar":
        return [step.content.derivative(arguments[0])]
    if len(arguments) == 2:
        return arguments[::-1]
    # Products of all others from both sides: dividing the whole product by one factor would fail at zero.
    one: Array = np.float64(1.0)
    before, after = [one], [one]
    for left, right in zip(arguments[:-1], arguments[:0:-1], strict=True):
        before.append(before[-1] * left)
        after.append(after[-1] * right)
    return [a * b for a, b in zip(before, reversed(after), strict=True)]


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
            raise ConstraintError("X", f"the columns {needed}", got, f"the law needs the value of {symbol.name!r}")
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
        return self.program.stacked(results, len(x)).reshape(len(x), *self.shape)


@dataclass(frozen=True)
class RowFunctions:
    """Expressions of outputs and inputs: residual, Jacobian and magnitude of R laws at f (n, C) and x."""

    program: Program
    variables: Variables

    def residual(self, f: np.ndarray, x: np.ndarray) -> np.ndarray:
        """(n, R) left minus right side."""
        return self.program.stacked(self._results(f, x), len(f))

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
