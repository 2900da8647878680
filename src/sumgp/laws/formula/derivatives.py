"""Derivatives in a formula: d(z, t), d(z, t, 2), d(z, x, y), also as diff, Derivative and dz/dt.

Each becomes a name of its own in the syntax tree, so that algebra and programs see one more column. Sums, products and
powers inside d(...) are differentiated by their rules first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sumgp.laws.columns import HIGHEST_ORDER, Derivative, derivative_name
from sumgp.laws.formula.hints import Place
from sumgp.laws.formula.tree import Call, Equation, Name, Names, Node, Number, Power, Product, Sum, children

FUNCTIONS = ("d", "diff", "Derivative")
_ABOVE = re.compile(r"d([2-9]?)(.+)")  # dz, d2z
_BELOW = re.compile(r"d(.+?)([2-9]?)")  # dt, dt2


def read_derivatives(equations: Sequence[Equation], names: Names) -> tuple[tuple[Equation, ...], Names]:
    """The equations with a name in place of each derivative, and the names with these added."""
    reader = _Reader(names, {})
    read = tuple(replace(e, left=reader.read(e.left), right=reader.read(e.right)) for e in equations)
    return read, replace(names, derivatives=reader.found)


def differentiating_inputs(node: Node) -> tuple[str, ...]:
    """Names after the first argument of d(...) in a syntax tree: they can only be inputs."""
    own: tuple[str, ...] = ()
    if isinstance(node, Call) and node.function in FUNCTIONS:
        own = tuple(argument.name for argument in node.arguments[1:] if isinstance(argument, Name))
    return own + tuple(name for child in children(node) for name in differentiating_inputs(child))


def quotient_names(names: Sequence[str], outputs: Sequence[str], inputs: Sequence[str]) -> set[str]:
    """Those of the names that make derivatives such as dz/dt together."""
    pairs = [(above, below, reading) for above in names for below in names for reading in _readings(above, below)]
    return {n for above, below, (_, z, t) in pairs if z in outputs and t in inputs for n in (above, below)}


@dataclass(frozen=True)
class _Reader:
    """The walk; ``found`` collects the derivatives met by their names."""

    names: Names
    found: dict[str, Derivative]

    def read(self, node: Node) -> Node:
        """The node without calls of d(...)."""
        match node:
            case Call() if node.function in FUNCTIONS and not self._is_product(node):
                return self.derivative(node)
            case Call():
                return replace(node, arguments=tuple(self.read(argument) for argument in node.arguments))
            case Sum():
                return replace(node, terms=tuple((sign, self.read(term)) for sign, term in node.terms))
            case Product():
                factors = self.with_quotients(node).factors
                return replace(node, factors=tuple((sign, self.read(factor)) for sign, factor in factors))
            case Power():
                return replace(node, base=self.read(node.base), exponent=self.read(node.exponent))
            case _:
                return node

    def _is_product(self, node: Call) -> bool:
        """d(z + v) where d is a constant: the usual message on products without * is the right one."""
        return len(node.arguments) == 1 and node.function in self.names.known

    def derivative(self, node: Call) -> Node:
        if len(node.arguments) < 2:
            inputs = ", ".join(self.names.inputs) or "t"
            raise node.place.error(f"{node.function}(...) takes an output and an input, e.g. d(z, {inputs.split(', ')[0]})")
        value = self.read(node.arguments[0])
        for variable in self.variables(node.arguments[1:]):
            slope = self.slope(value, variable)
            value = Number(Fraction(0), node.place) if slope is None else slope
        return value

    def variables(self, arguments: Sequence[Node]) -> list[str]:
        """The inputs by which to differentiate, one after the other: t, 2 is t twice."""
        result: list[str] = []
        for argument in arguments:
            if isinstance(argument, Name):
                if argument.name not in self.names.inputs:
                    raise argument.place.error(self._no_input(argument.name))
                result.append(argument.name)
            elif isinstance(argument, Number) and result and argument.value.denominator == 1 and argument.value >= 1:
                if argument.value > HIGHEST_ORDER:
                    raise argument.place.error(_too_high(int(argument.value)))
                result += [result[-1]] * (int(argument.value) - 1)
            else:
                raise argument.place.error("expected an input, or after it how often to differentiate: d(z, t, 2)")
        return result

    def _no_input(self, name: str) -> str:
        kind = "an output" if name in self.names.outputs else "a constant" if name in self.names.known else "no known name"
        if not self.names.inputs:
            return f"derivatives are taken by inputs, and none is named; name them: inputs=[{name!r}], --inputs {name}"
        listed = ", ".join(self.names.inputs)
        return f"{name!r} is {kind}, and derivatives are taken by inputs; write one of {listed}"

    def slope(self, node: Node, variable: str) -> Node | None:
        """Derivative of a tree by an input; None where it is zero."""
        match node:
            case Number():
                return None
            case Name():
                return self.slope_of_name(node, variable)
            case Sum():
                slopes = [(sign, self.slope(term, variable)) for sign, term in node.terms]
                terms = tuple((sign, slope) for sign, slope in slopes if slope is not None)
                return Sum(terms, node.place) if terms else None
            case Product():
                return self.slope_of_product(node, variable)
            case Power():
                return self.slope_of_power(node, variable)
            case Call():
                if all(self.slope(argument, variable) is None for argument in node.arguments):
                    return None
                raise node.place.error(
                    f"{node.function}(...) cannot stand inside a derivative; apply the chain rule, or make it an output"
                )

    def slope_of_name(self, node: Name, variable: str) -> Node | None:
        name = node.name
        if name in self.found or name in self.names.outputs:
            return self.column(name, variable, node.place)
        if name == variable or self.names.symbol(name) == variable:
            return Number(Fraction(1), node.place)
        if name in self.names.inputs or name in self.names.unknowns or self.names.number(name) is not None:
            return None
        if self.names.symbol(name) is not None:
            raise node.place.error(f"{name!r} is given by data, so its derivative is not known; make it an output")
        raise node.place.error(self.names.unknown_name(name))

    def column(self, name: str, variable: str, place: Place) -> Name:
        """The derivative of an output, or of a derivative, as a column."""
        inputs = self.names.inputs
        known = self.found.get(name, Derivative(0, (0,) * len(inputs)))
        output = known.output if name in self.found else self.names.outputs.index(name)
        orders = tuple(order + (other == variable) for order, other in zip(known.orders, inputs, strict=True))
        if sum(orders) > HIGHEST_ORDER:
            raise place.error(_too_high(sum(orders)))
        label = derivative_name(self.names.outputs[output], inputs, orders)
        if label in self.names.known:
            raise place.error(f"{label!r} is the name of something else too; rename that")
        self.found[label] = Derivative(output, orders, label)
        return Name(label, place)

    def slope_of_product(self, node: Product, variable: str) -> Node | None:
        terms: list[tuple[int, Node]] = []
        for i, (sign, factor) in enumerate(node.factors):
            slope = self.slope(factor, variable)
            if slope is None:
                continue
            others = [*node.factors[:i], *node.factors[i + 1 :]]
            # (1/a)' = -a'/a^2
            more = [(1, slope)] if sign == 1 else [(1, slope), (-1, factor), (-1, factor)]
            terms.append((sign, Product((*others, *more), node.place)))
        return Sum(tuple(terms), node.place) if terms else None

    def slope_of_power(self, node: Power, variable: str) -> Node | None:
        inner = self.slope(node.base, variable)
        if self.slope(node.exponent, variable) is not None:
            raise node.place.error("a varying exponent cannot stand inside a derivative; apply the chain rule")
        if inner is None:
            return None
        less = Sum(((1, node.exponent), (-1, Number(Fraction(1), node.place))), node.place)
        lower: Node = Power(node.base, less, node.place)
        if isinstance(node.exponent, Number):
            lower = Power(node.base, Number(node.exponent.value - 1, node.place), node.place)
        return Product(((1, node.exponent), (1, lower), (1, inner)), node.place)

    def with_quotients(self, node: Product) -> Product:
        """d(z, t) for dz/dt and d(z, t, 2) for d2z/dt2, where these names stand for nothing else."""
        factors: list[tuple[int, Node]] = []
        for sign, factor in node.factors:
            above = factors[-1][1] if factors and factors[-1][0] == 1 and sign == -1 else None
            merged = None if above is None or not isinstance(factor, Name) else self.quotient(above, factor)
            if merged is None:
                factors.append((sign, factor))
            else:
                factors[-1] = (1, merged)
        return replace(node, factors=tuple(factors))

    def quotient(self, above: Node, below: Name) -> Node | None:
        if isinstance(above, Sum) and len(above.terms) == 1:
            inner = self.quotient(above.terms[0][1], below)
            return None if inner is None else replace(above, terms=((above.terms[0][0], inner),))
        known = self.names.known
        if not isinstance(above, Name) or above.name in known or below.name in known:
            return None
        place = Place(above.place.text, above.place.start, below.place.end)
        for order, output, variable in _readings(above.name, below.name):
            if output in self.names.outputs and variable in self.names.inputs:
                times = Number(Fraction(order), place)
                return Call("d", (Name(output, above.place), Name(variable, below.place), times), place)
        return None


def _readings(above: str, below: str) -> list[tuple[int, str, str]]:
    """Order, output and input that dz/dt may mean: first order before higher ones, since names may begin with digits."""
    result = []
    if above.startswith("d") and below.startswith("d"):
        result.append((1, above[1:], below[1:]))
        up, down = _ABOVE.fullmatch(above), _BELOW.fullmatch(below)
        if up and down and up[1] and up[1] == down[2]:
            result.append((int(up[1]), up[2], down[1]))
    return result


def _too_high(order: int) -> str:
    return (
        f"a derivative of order {order}; formulas take orders up to {HIGHEST_ORDER}. "
        "Give a lower derivative as an output of its own that is never measured: d(z, t) = v"
    )
