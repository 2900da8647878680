"""Text of a law to a syntax tree, by our own small parser: text is data and is never executed.

    equation = sum ("=" | "==") sum
    bounds   = sum (("<=" | ">=") sum)+
    sum      = product (("+" | "-") product)*
    product  = signed (("*" | "/") signed)*
    signed   = ("+" | "-")* power
    power    = atom (("**" | "^") signed | superscript)?
    atom     = number "%"? | name | `quoted name` | name "(" sum ("," sum)* ")" | "(" sum ")" | "|" sum "|" | "√" "(" sum ")"

Signs that mean the same (· × for *, − for -) are one operator from ``formula_tokens`` on.

Length, nesting and number of parts are limited here, so everything later works on a small tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from sumgp.errors import ConstraintError
from sumgp.laws.formula import tree
from sumgp.laws.formula.hint_texts import ALIASES, FUNCTIONS, LENGTH, SEVERAL, SUM
from sumgp.laws.formula.hints import Place, missing_operator, two_kinds
from sumgp.laws.formula.tolerance import TOLERANCE_SIGNS, split_tolerance

MAX_LENGTH = 2000  # characters of one law
MAX_DEPTH = 50  # brackets, calls and exponents inside each other
MAX_NODES = 500  # numbers, names and operations of one law
MAX_LAWS = 200  # in one text: bounds the time that a text from outside can take


def split_laws(text: str) -> list[str]:
    """Cut a text at line ends, and at ``;`` outside of brackets, both outside of backticks; empty pieces are left out."""
    if len(text) > MAX_LAWS * MAX_LENGTH:
        raise ConstraintError(f"formula: expected at most {MAX_LAWS * MAX_LENGTH} characters, got {len(text)}; shorten it")
    pieces = [""]
    quoted, depth = False, 0
    for character in text:
        quoted ^= character == "`"
        depth = 0 if character == "\n" else max(0, depth + (character == "(") - (character == ")"))
        if not quoted and (character == "\n" or (character == ";" and depth == 0)):
            pieces.append("")
        else:
            pieces[-1] += character
    laws = [piece.strip() for piece in pieces if piece.strip()]
    if len(laws) > MAX_LAWS:
        raise ConstraintError(f"formula: expected at most {MAX_LAWS} laws, got {len(laws)}; combine or drop some")
    return laws


def parse_equation(text: str) -> tree.Equation:
    """Return the syntax tree of one law, or raise ConstraintError with a caret at the first problem."""
    return _parser(text).equation()


def parse_bounds(text: str) -> tuple[tree.Equation, ...]:
    """left <= right for each comparison of a text such as ``0 <= p <= 1``, as equations; none where it has no comparison."""
    return _parser(text).bounds()


def _parser(text: str) -> _Parser:
    if len(text) > MAX_LENGTH:
        raise ConstraintError(
            f"formula: expected at most {MAX_LENGTH} characters in one law, got {len(text)}; split it, or give a "
            "FunctionConstraint"
        )
    return _Parser(text)


_BASES = {"log10": 10, "log2": 2}  # of logarithms by the name of the function


class _Parser:
    """Recursive descent over the tokens of one law; ``depth`` and ``nodes`` bound the recursion and the tree."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tree.tokens(text)
        self.position = 0
        self.depth = 0
        self.nodes = 0

    @property
    def current(self) -> tree.Token:
        return self.tokens[self.position]

    def equation(self) -> tree.Equation:
        left = self.sum()
        if not self.taken("=", "=="):
            self.unexpected("the law has no '='; write both sides, e.g. z + v = 1, or a bound, e.g. z >= 0")
        right = self.sum()
        if self.current.is_operator("=", "=="):
            raise self.current.place.error("a second '=' in one law; write two laws separated by ';'")
        if self.current.kind != "end":
            self.unexpected("")
        return tree.Equation(left, right, self.text)

    def bounds(self) -> tuple[tree.Equation, ...]:
        if not any(token.is_operator("<=", ">=") for token in self.tokens):
            return ()
        side, found = self.sum(), []
        while token := self.taken("<=", ">="):
            following = self.sum()
            pair = (side, following) if token.text == "<=" else (following, side)
            found.append(tree.Equation(*pair, self.text))
            side = following
        if self.current.is_operator("=", "=="):
            raise self.current.place.error(two_kinds(token.text for token in self.tokens))
        if self.current.kind != "end" or not found:
            self.unexpected("")
        return tuple(found)

    def sum(self) -> tree.Node:
        start = self.current
        terms = [(1, self.product())]
        while token := self.taken("+", "-"):
            terms.append((1 if token.text == "+" else -1, self.product()))
        return terms[0][1] if len(terms) == 1 else self.made(tree.Sum(tuple(terms), self.since(start)))

    def product(self) -> tree.Node:
        start = self.current
        factors = [(1, self.signed())]
        while token := self.taken("*", "/"):
            factors.append((1 if token.text == "*" else -1, self.signed()))
        return factors[0][1] if len(factors) == 1 else self.made(tree.Product(tuple(factors), self.since(start)))

    def signed(self) -> tree.Node:
        start = self.current
        sign = 1
        while token := self.taken("+", "-"):
            sign = sign if token.text == "+" else -sign
        value = self.power()
        return value if sign == 1 else self.made(tree.Sum(((-1, value),), self.since(start)))

    def power(self) -> tree.Node:
        start = self.current
        base = self.atom()
        if self.current.kind == "superscript":
            return self.raised(base, start)
        if not self.taken("**", "^"):
            return base
        self.enter()
        exponent = self.signed()
        self.depth -= 1
        self.refuse_power_of_function(base, start)
        return self.made(tree.Power(base, exponent, self.since(start)))

    def refuse_power_of_function(self, base: tree.Node, at: tree.Token) -> None:
        """sin²(a) and sin^2 a, and d^2x."""
        if isinstance(base, tree.Name) and base.name == "d" and self.current.is_operand:
            raise at.place.error("write d(z, t, 2) for the second derivative of z by t")
        if isinstance(base, tree.Name) and base.name in (*FUNCTIONS, *ALIASES) and self.current.is_operand:
            raise at.place.error(f"write {base.name}(...)**2 for the square of {base.name}(...)")

    def raised(self, base: tree.Node, start: tree.Token) -> tree.Node:
        """base² and the like."""
        token = self.current
        self.position += 1
        if self.current.kind == "superscript" or self.current.is_operator("**", "^"):
            raise self.current.place.error("a power of a power needs brackets: write (z**2)**3")
        self.refuse_power_of_function(base, token)
        exponent = self.made(tree.Number(tree.superscript_value(token), token.place))
        return self.made(tree.Power(base, exponent, self.since(start)))

    def atom(self) -> tree.Node:
        token = self.current
        if token.kind in ("number", "fraction"):
            return self.number()
        if token.kind in ("name", "quoted"):
            self.position += 1
            if token.kind == "name" and self.taken("("):
                return self.call(token)
            return self.made(tree.Name(token.text, token.place))
        if self.taken("("):
            self.enter()
            inner = self.sum()
            self.close(token)
            return inner
        if self.taken("|"):
            return self.absolute(token)
        if self.taken("√"):
            if not self.taken("("):
                raise token.place.error("write sqrt(...) with what is under the root in brackets")
            return self.call(tree.Token("name", "sqrt", token.place))
        message = "the law ends where a number, name or bracket is expected" if token.kind == "end" else ""
        if self.position == 0 and token.is_operator("=", "=="):
            message = "leave out the = at the start; a law has something on both sides of its =, e.g. a + b = 1"
        if token.is_operator("/") and self.position and self.tokens[self.position - 1].is_operator("/"):
            message = "there is no // in a formula; write a/b"
        if token.is_operator(")") and [word.text.lower() for word in self.tokens[: self.position]][-2:] == ["pi", "("]:
            message = "pi is a number: write pi for pi()"
        raise token.place.error(message or f"expected a number, a name or a bracket, got {token.text!r}")

    def number(self) -> tree.Node:
        """A number, ½, or a percentage: 100% is 1."""
        token = self.current
        self.position += 1
        following = self.current
        if following.kind == "fraction":
            raise following.place.error("write mixed numbers as decimals or sums: 1.5 or (1 + 1/2) for 1½")
        value = tree.number_value(token)
        if self.taken("%"):
            if self.current.is_operand:
                word = self.current.text
                example = f"; write {token.text}%*{word} for a share" if word.isidentifier() and word != "of" else ""
                raise following.place.error(
                    f"% after a number is per cent, 100% is 1{example}; there is no remainder in a formula"
                )
            value /= 100
        if following.is_operator(",") and self.depth == 0 and self.tokens[self.position + 1].kind == "number":
            raise following.place.error("a number has no comma: write 0.5 with a point, 1000 without a separator")
        return self.made(tree.Number(value, self.since(token)))

    def absolute(self, opening: tree.Token) -> tree.Node:
        """|a| is abs(a)."""
        following = [token.text for token in self.tokens[self.position : self.position + 4]]
        if len(following) == 4 and [following[0], *following[2:]] == ["|"] * 3:
            raise opening.place.error(f"|| is not part of a formula; {LENGTH}")
        self.enter()
        inner = self.sum()
        self.depth -= 1
        if not self.taken("|"):
            raise opening.place.error("the bar opened here is never closed; write abs(...) for an absolute value")
        return self.made(tree.Call("abs", (inner,), self.since(opening)))

    def call(self, name: tree.Token) -> tree.Node:
        self.enter()
        arguments = [self.sum()]
        while self.taken(","):
            arguments.append(self.sum())
        self.close(name)
        place = self.since(name)
        if name.text not in _BASES:
            return self.made(tree.Call(ALIASES.get(name.text, name.text), tuple(arguments), place))
        # log10(a) = log(a)/log(10), and the same for base 2.
        base = tree.Call("log", (tree.Number(Fraction(_BASES[name.text]), place),), place)
        return self.made(tree.Product(((1, tree.Call("log", tuple(arguments), place)), (-1, base)), place))

    def taken(self, *operators: str) -> tree.Token | None:
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

    def close(self, opening: tree.Token) -> None:
        self.depth -= 1
        if self.taken(")"):
            return
        if opening.text.lower() == "sum" and self.current.is_operator("="):
            raise opening.place.error(f"a sum has no running index; {SUM}")
        if self.current.kind == "end" or self.current.is_operator("=", "==", "<=", ">="):
            raise opening.place.error("the bracket opened here is never closed")
        self.unexpected("")

    def made(self, node: tree.Node) -> tree.Node:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise node.place.error(f"more than {MAX_NODES} parts in one law; simplify it, or give a FunctionConstraint")
        return node

    def since(self, start: tree.Token) -> Place:
        return Place(self.text, start.place.start, self.tokens[self.position - 1].place.end)

    def unexpected(self, at_end: str) -> None:
        """Raise for a token that cannot follow; products without ``*`` are the usual cause."""
        token = self.current
        if token.kind == "end":
            raise token.place.error(at_end)
        if token.is_operator(")"):
            raise token.place.error("this bracket was never opened")
        if token.is_operand:
            before = self.tokens[self.position - 1].text if self.position else ""
            raise token.place.error(missing_operator(before, token.text, self.text, token.place.start))
        if token.is_operator("%"):
            raise token.place.error("% is not part of a formula except after a number: 100% is 1")
        if token.is_operator("|"):
            raise token.place.error(
                "a bar | opens or closes an absolute value |a|; conditions cannot be written in a formula"
            )
        if token.is_operator(","):
            raise token.place.error(f"unexpected ','; {SEVERAL}")
        raise token.place.error(f"unexpected {token.text!r}")


class ReadLaws(NamedTuple):
    """Equations with their texts and the sds of their errors (R,), and bounds."""

    equations: tuple[tree.Equation, ...]
    texts: tuple[str, ...]
    sds: np.ndarray
    bounds: tuple[tree.Equation, ...]


def read_laws(texts: Sequence[str]) -> ReadLaws:
    """Parse the texts of single laws; a bound has no error."""
    soft = [any(sign in text for sign in TOLERANCE_SIGNS) for text in texts]
    parts = [(t, *(split_tolerance(t) if may_err else (t, 0.0))) for t, may_err in zip(texts, soft, strict=True)]
    read = [(text, law, sd, parse_bounds(law)) for text, law, sd in parts]
    for text, _, sd, bounds in read:
        if bounds and sd != 0:
            raise ConstraintError("formula", "a bound without an error", repr(text), "leave out what follows +-")
    held = [(text, law, sd) for text, law, sd, bounds in read if not bounds]
    return ReadLaws(
        tuple(parse_equation(law) for _, law, _ in held),
        tuple(text for text, *_ in held),
        np.array([sd for *_, sd in held]),
        tuple(bound for *_, bounds in read for bound in bounds),
    )
