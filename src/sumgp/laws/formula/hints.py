"""Where in a formula something is wrong, and what to write instead.

What to write instead: hints for characters, functions and names that a formula does not have.
A hint must lead to the law that was meant. Where that cannot be known, the hint says what is possible and suggests nothing.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from sumgp.errors import ConstraintError
from sumgp.laws.formula import hint_texts

_WINDOW = 100  # characters of a long law shown around the place


@dataclass(frozen=True)
class Place:
    """The characters ``text[start:end]`` of one law."""

    text: str
    start: int
    end: int

    def error(self, message: str) -> ConstraintError:
        """Return the error that shows the law's text with carets under this place.

        formula: unknown name 'zz' - did you mean 'z'?
            zz**2 + v**2 = 1
            ^^
        """
        first = 0 if len(self.text) <= _WINDOW else max(0, self.start - _WINDOW // 2)
        shown = self.text[first : first + _WINDOW]
        lead, tail = ("..." if first else ""), ("..." if first + _WINDOW < len(self.text) else "")
        width = max(1, min(self.end, first + _WINDOW) - self.start)
        # Characters that are no ordinary text (tabs, control codes) would move the caret or hide themselves.
        line = "".join(c if c.isprintable() else "?" for c in shown)
        return ConstraintError(
            f"formula: {message}\n    {lead}{line}{tail}\n    {' ' * (len(lead) + self.start - first)}{'^' * width}"
        )


_NEAR_FUNCTION = 0.8  # similarity at which a function's name can only be a typo: sine, arcsinus are, sign is not


def hint_for(text: str, position: int) -> str:
    """What to do about the character at this place of a law."""
    character = text[position]
    before = text[:position].rstrip()
    if character == "'":
        if re.search(r"\d$", text[:position]) and re.match(r"\d", text[position + 1 :]):
            return hint_texts.DIGITS
        return hint_texts.DERIVATIVE if re.search(r"[\w)]$", text[:position]) else hint_texts.QUOTES
    if character == "[":
        return _hint_for_bracket(text, position)
    if character == "{" and (name := re.search(r"(\w*_)\{(\w+)\}", text)) and before.endswith("_"):
        return f"write the name as in the data, e.g. {name[1]}{name[2]}"
    if character == ":" and re.search(r"\blambda\b", before):
        return "a Python function is given as FunctionConstraint(function)"
    if character == "\\" and (command := re.match(r"\\([a-zA-Z]+)", text[position:])):
        quotient = re.match(r"\\d?frac\s*\{\s*(d|\\partial)\b|\\d?frac\s*\{\s*d[a-zA-Z]", text[position:])
        hint = hint_texts.DERIVATIVE if quotient else hint_texts.LATEX.get(command[1])
        if command[1].lower() in hint_texts.GREEK:
            hint = f"write the name as in the data, e.g. {command[1]}"
        return f"LaTeX is not read: {hint}" if hint else hint_texts.CHARACTERS[character]
    if character == ".":
        if text[position : position + 2] == "..":
            return hint_texts.SUM
        if not text[position + 1 :].strip():
            return "leave out the full stop at the end"
        if re.match(r"\.(diff|dt|derivative)\b", text[position:]):
            return hint_texts.DERIVATIVE
        return "write the name alone: a for df.a, sum(a) for a.sum(); and 0.5 or .5 for numbers"
    if character == "^" or (character == "{" and before.endswith("^")):
        return "group with round brackets: z^(2)"
    return hint_texts.CHARACTERS.get(character, hint_texts.OTHER)


def _hint_for_bracket(text: str, position: int) -> str:
    """What to do about a square bracket: a range, a column, an index, or a name in brackets."""
    before, after = text[:position], text[position + 1 :]
    if re.search(r"\b(in|between|within)\s*$", before):
        return hint_texts.RANGE
    if quoted := re.match(r"\s*(['\"])(.+?)\1\s*\]", after):
        return f"write the name alone: {_as_written(quoted[2])}"
    if re.search(r"\w$", before):
        return (
            hint_texts.ROWS
            if re.match(r"\s*[a-zA-Z]", after)
            else "write the name as in the data, e.g. p1, or sum(p) for a sum"
        )
    named = re.match(r"([^\]]+)\]", after)
    return f"write {_as_written(named[1].strip())} for [{named[1]}]" if named else hint_texts.CHARACTERS["["]


def _as_written(name: str) -> str:
    return name if name.isidentifier() else f"`{name}`"


def two_kinds(words: Iterable[str]) -> str:
    """The message for a law with both = and a comparison, made of these words."""
    conditional = {word for word, hint in hint_texts.WORDS.items() if hint == hint_texts.CONDITION} & set(words)
    return hint_texts.CONDITION if conditional else "'=' and a bound in one law; write two laws separated by ';'"


def unknown_function(name: str) -> str:
    """The message for a function that a formula does not have."""
    if name.lower() in hint_texts.CORNERS:
        return f"{name!r} {hint_texts.CORNER.format(name=name)}"
    if name.lower() == "log":
        return f"unknown function {name!r}; write log for the natural logarithm, log10 for that of base 10"
    if name in ("d", "diff", "Derivative"):  # known in a law, so this is a bound
        return hint_texts.SLOPE
    if name == "D":
        return f"unknown function 'D'; {hint_texts.DERIVATIVE}"
    plain = unicodedata.normalize("NFKC", name)
    if plain != name and plain in hint_texts.FUNCTIONS:
        return f"unknown function {name!r}; write {plain}"
    if name.lower() in hint_texts.ALIASES:
        return f"unknown function {name!r}; write {name.lower()}"
    if name.lower() in hint_texts.INSTEAD:
        return f"unknown function {name!r}; {hint_texts.INSTEAD[name.lower()]}"
    near = difflib.get_close_matches(name.lower(), hint_texts.FUNCTIONS, n=1, cutoff=_NEAR_FUNCTION)
    return f"unknown function {name!r}" + (
        f" - did you mean {near[0]!r}?"
        if near
        else f"; known are {', '.join(hint_texts.FUNCTIONS)}; a name with brackets is quoted with backticks: `{name}(...)`"
    )


def missing_operator(before: str, word: str, text: str = "", position: int = 0) -> str:
    """The message for two operands in a row: ``before`` and ``word`` are their texts, ``word`` stands at ``position``."""
    text, after = text[:position], text[position + len(word) :].strip()
    if before in ("Σ", "∑") or re.match("sum_", before, re.IGNORECASE):
        return f"this is not read as a sum; {hint_texts.SUM}"
    if re.search(r"\bd\s*/\s*d\w+\s*$", text):
        return hint_texts.DERIVATIVE
    if before in (*hint_texts.FUNCTIONS, *hint_texts.ALIASES) or before in hint_texts.INSTEAD:
        return f"the argument of {before} needs brackets: write {before}(...)"
    if word in (*hint_texts.FUNCTIONS, *hint_texts.ALIASES):
        return f"an operator is missing before this; write {before}*{word}(...)"
    if word == "(" and re.match("approx|about|roughly", after, re.IGNORECASE):
        return hint_texts.ROUGH
    # "mass in = mass out" is no range.
    if word.lower() in hint_texts.WORDS and not (
        hint_texts.WORDS[word.lower()] == hint_texts.RANGE and after.startswith("=")
    ):
        return f"an operator is missing before {word!r}; {hint_texts.WORDS[word.lower()]}"
    number = before.lstrip(".")[:1].isdigit()
    if number and word.strip("_").isdigit():
        return hint_texts.DIGITS
    first, second = "(...)" if before == ")" else before, "(...)" if word == "(" else word
    names = before.isidentifier() and word.isidentifier()
    name = f"{before} {word}" if names else "CO2 (ppm)"
    more = "units are left out" if number else f"a name with spaces is quoted with backticks: `{name}`"
    return f"an operator is missing before this; products are written with *, e.g. {first}*{second}; {more}"


def near_name(name: str, known: Iterable[str]) -> str:
    """The one known name that ``name`` can be a typo of, or "".

    Case, underscores and subscripts may differ, letters be doubled, or one letter in four be wrong. Names that differ in
    digits, or in a letter such as d or Δ before them, mean different things.
    """
    candidates = [other for other in known if other != name]
    for same in (_plain, lambda text: re.sub(r"(.)\1+", r"\1", _plain(text))):
        alike = [other for other in candidates if same(other) == same(name)]
        if alike:
            return alike[0] if len(alike) == 1 or same is _plain else ""
    digits = re.findall(r"\d+", name)
    usual = [o for o in candidates if re.findall(r"\d+", o) == digits and not name.endswith(o) and not o.endswith(name)]
    lowered = {_plain(other): other for other in reversed(usual)}
    near = difflib.get_close_matches(_plain(name), lowered, n=1, cutoff=0.75)
    return lowered[near[0]] if near and len(near[0]) > 2 else ""


def _plain(text: str) -> str:
    """Without case, subscripts, underscores, spaces and signs."""
    normal = unicodedata.normalize("NFKC", text).casefold()
    return re.sub(r"[\W_]+", "", normal) or normal


def as_product(name: str, known: Collection[str]) -> str:
    """``m*v`` for ``mv`` where m and v are known and mv is not; "" where it is no product of known names."""
    parts = _split(name, known, 6)
    return "*".join(parts) if len(parts) > 1 else ""


def _split(name: str, known: Collection[str], most: int) -> Sequence[str]:
    if not name or most == 0:
        return ()
    if name in known:
        return (name,)
    for end in range(len(name) - 1, 0, -1):
        if name[:end] in known and (rest := _split(name[end:], known, most - 1)):
            return (name[:end], *rest)
    return ()


def unknown_name(name: str, known: Sequence[str]) -> str:
    """The message for a name that stands for nothing: a likely correction, or how to give it a meaning."""
    shown = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
    # ż and z̈ are z with marks on it.
    stem = unicodedata.normalize("NFD", name).rstrip("\u0307\u0308").lstrip("dΔδ∂")
    if name.startswith(("Σ", "∑")):
        return f"unknown name {name!r}; {hint_texts.SUM}; known are {shown}"
    if near := near_name(name, known):
        return f"unknown name {name!r} - did you mean {near!r}?"
    if product := as_product(name, known):
        return f"unknown name {name!r}; write {product} for a product"
    by = re.fullmatch(r"(.+)_(\w+)", name)
    by_input = by is not None and (by[2] in known or set(by[2]) <= set(known))  # z_t, u_xx
    slope = re.sub("_?dot$", "", name) if name.endswith("dot") else by[1] if by and by_input else stem
    if name == "d" or (name != slope and slope in known):
        return f"unknown name {name!r}; {hint_texts.DERIVATIVE}; known are {shown}"
    plain = name if name.isidentifier() else "E"
    remedy = (
        f'; if it is a constant, give its value: constants={{"{plain}": 1.5}} in Python, --constant {plain}=1.5 on the '
        'command line; with "unknown" it is estimated, and the name of a data column takes it from there'
    )
    return f"unknown name {name!r}; known are {shown}{remedy}"
