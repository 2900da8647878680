"""Words of a formula: tokens, the nodes of its tree, and the names that it may use.

The one place that knows which characters a formula may hold.
A new sign is added to ``_TOKEN``, or to ``_SAME`` if it is another way to write a known one.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from sumgp.errors import ConstraintError
from sumgp.laws.bounds import ALL
from sumgp.laws.columns import Derivative
from sumgp.laws.formula.hint_texts import REACTION
from sumgp.laws.formula.hints import Place, hint_for, unknown_name
from sumgp.laws.formula.tolerance import SOFT
from sumgp.laws.sums import Unknown

if TYPE_CHECKING:
    import sympy

_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_FRACTIONS = "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒"
# Letters and digits of names; superscripts and fractions count as letters to Python but are none here.
_LETTER = rf"[^\W\d{_SUPERSCRIPTS}{_FRACTIONS}]"
_WORD = rf"[^\W{_SUPERSCRIPTS}{_FRACTIONS}]"
_TOKEN = re.compile(
    r"(?P<space>\s+|(?:np|numpy|math|jnp|torch|sympy)\.(?=[a-z]))"  # np.sin(z) is sin(z)
    r"|(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    rf"|(?P<fraction>[{_FRACTIONS}])"
    rf"|(?P<superscript>[⁺⁻]?[{_SUPERSCRIPTS}]+)"
    rf"|(?P<name>(?:∂|{_LETTER}){_WORD}*)"
    r"|`(?P<quoted>[^`]+)`"
    r"|(?P<refused>\+-|±|=>|=<|!=|<>|<-+>?|-+>|[≠≈])"
    r"|(?P<operator>\*\*|==|<=|>=|[-+*/^(),=＝≡|%√·⋅×∗−–÷∕⁄<>≤≥⩽⩾≦≧])"
)
# Bounds are closed: nothing tells a value from others that are as near to it as one likes.
_COMPARED = {**dict.fromkeys("<≤⩽≦", "<="), **dict.fromkeys(">≥⩾≧", ">=")}
# Other ways to write an operator.
_SAME = {**_COMPARED, **dict.fromkeys("·⋅×∗", "*"), **dict.fromkeys("−–", "-"), **dict.fromkeys("÷∕⁄", "/")}
_SAME |= dict.fromkeys("＝≡", "=")
_REFUSED = {
    "=>": "is not part of a formula; write >= for a bound",
    "=<": "is not part of a formula; write <= for a bound",
    **dict.fromkeys(("!=", "≠", "<>"), "is not a law; only equalities and bounds are imposed"),
    "<-": "can be read in two ways; write = for an equation, and a < -b with a space for a bound",
    "+-": SOFT,
    "±": SOFT,
    "≈": "would make the law hold only roughly; write = for an exact law, and +- 0.5 at its end for a rough one",
}


@dataclass(frozen=True)
class Token:
    """A piece of a law: ``kind`` is number, fraction, superscript, name, quoted, operator or end."""

    kind: str
    text: str
    place: Place

    def is_operator(self, *texts: str) -> bool:
        """True for one of these operators, however it was written."""
        return self.kind == "operator" and self.text in texts

    @property
    def is_operand(self) -> bool:
        """True for what a number, name or bracket begins with."""
        return self.kind in ("number", "fraction", "name", "quoted") or self.is_operator("(", "√")


def tokens(text: str) -> list[Token]:
    """The tokens of one law, ``end`` last; ConstraintError with a caret for what is none."""
    found = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _stray(text, position)
        kind = match.lastgroup or ""
        place = Place(text, match.start(), match.end())
        if kind == "refused":
            raise place.error(f"{match[kind]!r} {_REFUSED.get(match[kind], REACTION)}")
        if kind != "space":
            written = match[kind].replace("∂", "d", 1) if kind == "name" else match[kind]  # ∂u/∂x is du/dx
            found.append(Token(kind, _SAME.get(written, written), place))
        position = match.end()
    return [*found, Token("end", "", Place(text, len(text), len(text) + 1))]


def number_value(token: Token) -> Fraction:
    """The exact value of a number's digits; through float first, because 1e999999999 must not be expanded."""
    if token.kind == "fraction":
        return Fraction(unicodedata.normalize("NFKC", token.text).replace("⁄", "/"))
    rounded = float(token.text)
    mantissa = re.split("[eE]", token.text)[0]
    if rounded == 0 and any(digit in "123456789" for digit in mantissa):
        raise token.place.error("this number is too small; change the units")
    if not rounded < 1e300:
        raise token.place.error("this number is too large; change the units")
    return Fraction(token.text) if rounded else Fraction(0)


def superscript_value(token: Token) -> Fraction:
    """The whole number that ²  or ⁻¹ stands for."""
    digits = "".join(str(_SUPERSCRIPTS.index(c)) for c in token.text if c in _SUPERSCRIPTS)
    return Fraction(int(digits[:9]) * (-1 if token.text.startswith("⁻") else 1))


def _stray(text: str, position: int) -> ConstraintError:
    character = text[position]
    hint = hint_for(text, position)
    return Place(text, position, position + 1).error(f"the character {character!r} is not part of a formula; {hint}")


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


UNKNOWN = "unknown"
BUILT_IN = {"pi": Fraction(math.pi), "π": Fraction(math.pi), "e": Fraction(math.e)}
# Endings of names that ``norm`` takes as one point.
COORDINATES = (("_x", "_y", "_z"), ("x", "y", "z"), ("1", "2", "3"), ("_1", "_2", "_3"))

Constant = float | str | Callable


@dataclass(frozen=True)
class Names:
    """Every name a formula may use; names of the user hide the built-in ``pi`` and ``e``. ``columns`` maps a constant to
    the data column that gives its value, ``functions`` to a function of X; ``derivatives`` are those of the formula."""

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
        """Names ``name1, name2, ...`` or ``name_1, name_2, ...`` by their index, ascending, every output for ``all``."""
        if name == ALL and ALL not in self.known:
            return {-i: output for i, output in enumerate(self.outputs, 1)}  # below zero: paired with no other family
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
            raise ConstraintError("constants", "names as keys", repr(name), 'write {"E": 0.8}')
        if isinstance(value, Unknown):
            checked[name] = UNKNOWN
        elif (isinstance(value, str) and value) or callable(value):
            checked[name] = value
        elif (number := _finite_number(value)) is not None:
            checked[name] = number
        else:
            remedy = 'give a finite number, "unknown", the name of a data column, or a function of X'
            raise ConstraintError(f"constants[{name!r}]", "a constant", repr(value)[:60], remedy)
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
    """Sort the names by what they stand for; one for two things is refused (a lone input without a name is called x)."""
    if isinstance(outputs, str) or isinstance(inputs, str):
        raise ConstraintError("outputs, inputs", "lists of names", "one string", 'write outputs=["z", "v"]')
    taken: dict[str, str] = {}
    for kind, group in (("output", outputs), ("input", inputs), ("constant", constants)):
        for name in group:
            if name in taken:
                remedy = "name the inputs, e.g. inputs=['t']" if (kind, name) == ("input", "x") else "rename one"
                raise ConstraintError(f"formula: {name!r} is named twice, as {taken[name]} and as {kind}; {remedy}")
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
