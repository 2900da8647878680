"""Text of a law to tokens: the one place that knows which characters a formula may hold.

A new sign of the language is added to ``_TOKEN`` (or to ``_SAME`` if it is another way to write a known one) and taken
out of ``_REFUSED`` or ``hint_for``; the parser in ``formula_syntax`` then says what it means.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction

from sumgp.errors import ConstraintError
from sumgp.laws.formula.hints import hint_for
from sumgp.laws.formula.places import Place

_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_FRACTIONS = "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒"
# Letters and digits of names; superscripts and fractions count as letters to Python but are none here.
_LETTER = rf"[^\W\d{_SUPERSCRIPTS}{_FRACTIONS}]"
_WORD = rf"[^\W{_SUPERSCRIPTS}{_FRACTIONS}]"
_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    rf"|(?P<fraction>[{_FRACTIONS}])"
    rf"|(?P<superscript>[⁺⁻]?[{_SUPERSCRIPTS}]+)"
    rf"|(?P<name>{_LETTER}{_WORD}*)"
    r"|`(?P<quoted>[^`]+)`"
    r"|(?P<refused>\+-|±|=>|=<|!=|[≠≈])"
    r"|(?P<operator>\*\*|==|<=|>=|[-+*/^(),=|%√·⋅×∗−–÷∕⁄<>≤≥])"
)
# Other ways to write an operator.
# Bounds are closed: a value that is allowed in every approach is allowed itself.
_COMPARED = {"<": "<=", ">": ">=", "≤": "<=", "≥": ">="}
_SAME = {**_COMPARED, "·": "*", "⋅": "*", "×": "*", "∗": "*", "−": "-", "–": "-", "÷": "/", "∕": "/", "⁄": "/"}
_SOFT = "would make the law hold only up to an error, which formulas cannot say so far; give SumConstraint(..., noise=0.5)"
_REFUSED = {
    "=>": "is not part of a formula; write >= for a bound",
    "=<": "is not part of a formula; write <= for a bound",
    "!=": "is not a law; only equalities and bounds are imposed",
    "≠": "is not a law; only equalities and bounds are imposed",
    "+-": _SOFT,
    "±": _SOFT,
    "≈": "would make the law hold only roughly; write = for an exact law, or give SumConstraint(..., noise=0.5)",
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
            raise place.error(f"{match[kind]!r} {_REFUSED[match[kind]]}")
        if kind != "space":
            found.append(Token(kind, _SAME.get(match[kind], match[kind]), place))
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
