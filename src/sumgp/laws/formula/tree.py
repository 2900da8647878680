"""Syntax trees of laws: what the parser makes of a text, before its names mean anything."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sumgp.laws.formula.places import Place


@dataclass(frozen=True)
class Number:
    """A number, kept exact."""

    value: Fraction
    place: Place


@dataclass(frozen=True)
class Name:
    """An output, input or constant."""

    name: str
    place: Place


@dataclass(frozen=True)
class Sum:
    """Terms with their sign, +1 or -1."""

    terms: tuple[tuple[int, Node], ...]
    place: Place


@dataclass(frozen=True)
class Product:
    """Factors with their exponent, +1 or -1."""

    factors: tuple[tuple[int, Node], ...]
    place: Place


@dataclass(frozen=True)
class Power:
    """base ** exponent."""

    base: Node
    exponent: Node
    place: Place


@dataclass(frozen=True)
class Call:
    """function(arguments)."""

    function: str
    arguments: tuple[Node, ...]
    place: Place


Node = Number | Name | Sum | Product | Power | Call


@dataclass(frozen=True)
class Equation:
    """left = right, with the text it was read from."""

    left: Node
    right: Node
    text: str


def mentioned(node: Node) -> tuple[str, ...]:
    """Names that occur in a syntax tree, in the order of the text, function names aside."""
    return tuple(dict.fromkeys(leaf.name for leaf in names_in(node)))


def names_in(node: Node) -> tuple[Name, ...]:
    """Every name of a syntax tree with its place, in the order of the text."""
    if isinstance(node, Name):
        return (node,)
    return tuple(leaf for child in children(node) for leaf in names_in(child))


def calls(node: Node, function: str) -> tuple[Call, ...]:
    """All calls of a function in a syntax tree."""
    own = (node,) if isinstance(node, Call) and node.function == function else ()
    return own + tuple(call for child in children(node) for call in calls(child, function))


def children(node: Node) -> tuple[Node, ...]:
    """The parts of a node, in the order of the text."""
    match node:
        case Sum():
            return tuple(term for _, term in node.terms)
        case Product():
            return tuple(factor for _, factor in node.factors)
        case Power():
            return node.base, node.exponent
        case Call():
            return node.arguments
        case _:
            return ()
