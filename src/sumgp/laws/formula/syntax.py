"""Text of a law to a syntax tree, by our own small parser: text is data and is never executed.

    equation = sum ("=" | "==") sum
    sum      = product (("+" | "-") product)*
    product  = signed (("*" | "/") signed)*
    signed   = ("+" | "-")* power
    power    = atom (("**" | "^") signed)?
    atom     = number | name | `quoted name` | name "(" sum ("," sum)* ")" | "(" sum ")"

Length, nesting and number of parts are limited here, so everything later works on a small tree.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from sumgp.errors import ConstraintError
from sumgp.laws.formula.places import Place
from sumgp.laws.formula.tree import Call, Equation, Name, Node, Number, Power, Product, Sum

MAX_LENGTH = 2000  # characters of one law
MAX_DEPTH = 50  # brackets, calls and exponents inside each other
MAX_NODES = 500  # numbers, names and operations of one law
MAX_LAWS = 200

_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[^\W\d]\w*)"
    r"|`(?P<quoted>[^`]+)`"
    r"|(?P<operator>\*\*|==|<=|>=|!=|[-+*/^(),=<>])"
)
_HINTS = {
    ".": "there is no attribute access in a formula; write exp(z), not np.exp(z), and 0.5 or .5 for numbers",
    "`": "this backtick opens a quoted name that is never closed",
    "'": "names with spaces or signs are quoted with backticks: `CO2 (ppm)`",
    '"': "names with spaces or signs are quoted with backticks: `CO2 (ppm)`",
    "[": "write p1, p2, ... for indexed outputs, sum(p) for their sum",
    "{": "group with round brackets",
    "\u2212": "this minus sign is not the one of the keyboard; write -",
    "\u00b7": "write * for a product",
    "\u00d7": "write * for a product",
}


@dataclass(frozen=True)
class _Token:
    kind: str  # number, name, quoted, operator, end
    text: str
    place: Place

    def is_operator(self, *texts: str) -> bool:
        return self.kind == "operator" and self.text in texts


def split_laws(text: str) -> list[str]:
    """Cut a text at ``;`` and line ends outside of backticks; empty pieces are left out."""
    if len(text) > MAX_LAWS * MAX_LENGTH:
        raise ConstraintError(f"formula: expected at most {MAX_LAWS * MAX_LENGTH} characters, got {len(text)}; shorten it")
    pieces = [""]
    quoted = False
    for character in text:
        quoted ^= character == "`"
        if character in ";\n" and not quoted:
            pieces.append("")
        else:
            pieces[-1] += character
    laws = [piece.strip() for piece in pieces if piece.strip()]
    if len(laws) > MAX_LAWS:
        raise ConstraintError(f"formula: expected at most {MAX_LAWS} laws, got {len(laws)}; combine or drop some")
    return laws


def parse_equation(text: str) -> Equation:
    """Return the syntax tree of one law, or raise ConstraintError with a caret at the first problem."""
    if len(text) > MAX_LENGTH:
        raise ConstraintError(
            f"formula: expected at most {MAX_LENGTH} characters in one law, got {len(text)}; split it, or give a "
            "FunctionConstraint"
        )
    return _Parser(text).equation()


def _tokens(text: str) -> list[_Token]:
    tokens = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _stray(text, position)
        kind = match.lastgroup or ""
        if kind != "space":
            tokens.append(_Token(kind, match[kind], Place(text, match.start(), match.end())))
        position = match.end()
    tokens.append(_Token("end", "", Place(text, len(text), len(text) + 1)))
    return tokens


def _stray(text: str, position: int) -> ConstraintError:
    character = text[position]
    hint = _HINTS.get(character, "a formula holds names, numbers, + - * / ** ^ ( ) , and one =")
    return Place(text, position, position + 1).error(f"the character {character!r} is not part of a formula; {hint}")


def _number(token: _Token) -> Number:
    """The exact value of the digits; through float first, because 1e999999999 must not be expanded."""
    rounded = float(token.text)
    mantissa = re.split("[eE]", token.text)[0]
    if rounded == 0 and any(digit in "123456789" for digit in mantissa):
        raise token.place.error("this number is too small; change the units")
    if not rounded < 1e300:
        raise token.place.error("this number is too large; change the units")
    return Number(Fraction(token.text) if rounded else Fraction(0), token.place)


class _Parser:
    """Recursive descent over the tokens of one law; ``depth`` and ``nodes`` bound the recursion and the tree."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _tokens(text)
        self.position = 0
        self.depth = 0
        self.nodes = 0

    @property
    def current(self) -> _Token:
        return self.tokens[self.position]

    def equation(self) -> Equation:
        left = self.sum()
        sign = self.current
        if sign.is_operator("<", ">", "<=", ">=", "!="):
            raise sign.place.error(f"{sign.text!r} is not a law; only equalities are imposed, write =")
        if not self.taken("=", "=="):
            self.unexpected("the law has no '='; write both sides, e.g. z + v = 1")
        right = self.sum()
        if self.current.is_operator("=", "=="):
            raise self.current.place.error("a second '=' in one law; write two laws separated by ';'")
        if self.current.kind != "end":
            self.unexpected("")
        return Equation(left, right, self.text)

    def sum(self) -> Node:
        start = self.current
        terms = [(1, self.product())]
        while token := self.taken("+", "-"):
            terms.append((1 if token.text == "+" else -1, self.product()))
        return terms[0][1] if len(terms) == 1 else self.made(Sum(tuple(terms), self.since(start)))

    def product(self) -> Node:
        start = self.current
        factors = [(1, self.signed())]
        while token := self.taken("*", "/"):
            factors.append((1 if token.text == "*" else -1, self.signed()))
        return factors[0][1] if len(factors) == 1 else self.made(Product(tuple(factors), self.since(start)))

    def signed(self) -> Node:
        start = self.current
        sign = 1
        while token := self.taken("+", "-"):
            sign = sign if token.text == "+" else -sign
        value = self.power()
        return value if sign == 1 else self.made(Sum(((-1, value),), self.since(start)))

    def power(self) -> Node:
        start = self.current
        base = self.atom()
        if not self.taken("**", "^"):
            return base
        self.enter()
        exponent = self.signed()
        self.depth -= 1
        return self.made(Power(base, exponent, self.since(start)))

    def atom(self) -> Node:
        token = self.current
        if token.kind in ("number", "name", "quoted"):
            self.position += 1
            if token.kind == "number":
                return self.made(_number(token))
            if token.kind == "name" and self.taken("("):
                return self.call(token)
            return self.made(Name(token.text, token.place))
        if self.taken("("):
            self.enter()
            inner = self.sum()
            self.close(token)
            return inner
        message = "the law ends where a number, name or bracket is expected" if token.kind == "end" else ""
        raise token.place.error(message or f"expected a number, a name or a bracket, got {token.text!r}")

    def call(self, name: _Token) -> Node:
        self.enter()
        arguments = [self.sum()]
        while self.taken(","):
            arguments.append(self.sum())
        self.close(name)
        return self.made(Call(name.text, tuple(arguments), self.since(name)))

    def taken(self, *operators: str) -> _Token | None:
        """The current token if it is one of these operators, stepping over it."""
        token = self.current
        if not token.is_operator(*operators):
            return None
        self.position += 1
        return token

    def enter(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.current.place.error(f"more than {MAX_DEPTH} brackets or exponents inside each other; simplify it")

    def close(self, opening: _Token) -> None:
        self.depth -= 1
        if self.taken(")"):
            return
        if self.current.kind == "end" or self.current.is_operator("=", "=="):
            raise opening.place.error("the bracket opened here is never closed")
        self.unexpected("")

    def made(self, node: Node) -> Node:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise node.place.error(f"more than {MAX_NODES} parts in one law; simplify it, or give a FunctionConstraint")
        return node

    def since(self, start: _Token) -> Place:
        return Place(self.text, start.place.start, self.tokens[self.position - 1].place.end)

    def unexpected(self, at_end: str) -> None:
        """Raise for a token that cannot follow; products without ``*`` are the usual cause."""
        token = self.current
        if token.kind == "end":
            raise token.place.error(at_end)
        if token.is_operator(")"):
            raise token.place.error("this bracket was never opened")
        if token.kind in ("number", "name", "quoted") or token.is_operator("("):
            raise token.place.error("an operator is missing before this; products are written with *, e.g. 2*z")
        raise token.place.error(f"unexpected {token.text!r}")
