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


FUNCTIONS = (
    "sqrt", "exp", "log", "log10", "log2", "sin", "cos", "tan", "asin", "acos",
    "atan", "sinh", "cosh", "tanh", "abs", "sum", "mean", "norm",
)  # fmt: skip

# Other names of functions.
ALIASES = {"ln": "log", "arcsin": "asin", "arccos": "acos", "arctan": "atan"}

_QUOTES = "names with spaces or signs are quoted with backticks: `CO2 (ppm)`"
_DERIVATIVE = "write d(z, t) for the derivative of the output z by the input t, d(z, t, 2) for the second one"
_SUM = "write sum(p) for p1 + p2 + ... + pk, or write all terms out"
_DIGITS = "write 1000 without a separator"
_ROUGH = "write = for an exact law, and +- 0.5 at its end for a rough one"
_RANGE = "write 0 <= a <= 1 for a range"
SEVERAL = "write several laws separated by ;, each with both of its sides: a >= 0; b >= 0"
_ARROW = "a reaction is no equation between amounts: write what is conserved, e.g. H2 + H2O = total for 2 H2 + O2 -> 2 H2O"
REACTION = f"is not part of a formula; {_ARROW}"
_SLOPE = "bounds are put on outputs, not on their derivatives: a curve cannot be made to rise or fall"
_INTEGRAL = "integrals are not part of a formula; make the integral an output of its own: d(integral, t) = z"
_CHARACTERS = {
    "`": "this backtick opens a quoted name that is never closed",
    '"': _QUOTES,
    "’": _DERIVATIVE,
    "′": _DERIVATIVE,
    "∂": _DERIVATIVE,
    "∇": _DERIVATIVE,
    "∫": _INTEGRAL,
    "∑": _SUM,
    "∏": "write the factors out with *",
    "…": _SUM,
    "[": "write A for [A], p1 for p[1], sum(p) for a sum, and a name with signs in backticks: `Na+`",
    "]": "write A for [A], p1 for p[1], sum(p) for a sum, and a name with signs in backticks: `Na+`",
    "{": "group with round brackets",
    "}": "group with round brackets",
    "\\": "LaTeX is not read: write (a)/(b) for a fraction, sqrt(a) for a root, a*b for a product, z**2 for a power",
    "$": "leave dollar signs out",
    ":": "write = for an equation, a/b for a ratio a:b, and the names themselves (or sum(p)) for a range",
    "~": _ROUGH,
    "∝": "write = with a constant: a = k*b",
    "∈": _RANGE,
    **dict.fromkeys("→⟶⇌⇄↔", _ARROW),
    ";": "what is listed in brackets is separated by commas: sum(a, b)",
    "?": "a constant that is not known gets a name; give it the value unknown",
    "°": "leave it out where all angles are in degrees; functions take radians: sin(pi/180*z)",
    "∠": "leave it out: the names are enough",
    **dict.fromkeys("⁺⁻", _QUOTES),
    **dict.fromkeys("\u0307\u0308", _DERIVATIVE),  # dots above a letter
    "∞": "a formula holds finite numbers only",
    "‖": "write norm(a, b) for the distance of two points, norm(a) for the length of one",
    "!": "factorials are not part of a formula; write the number",
    "&": SEVERAL,
    "∧": SEVERAL,
}
_OTHER = "a formula holds names, numbers, + - * / ** ^ ( ) | , and one = or bounds <= >="

# Functions that people know from elsewhere, and what to write for them.
_INSTEAD = {
    "pow": "write a**b for pow(a, b)",
    "power": "write a**b for power(a, b)",
    "square": "write a**2",
    "sqr": "write a**2 for the square, sqrt(a) for the root",
    "cbrt": "write a**(1/3)",
    "root": "write sqrt(a), or a**(1/3) for other roots",
    "lg": "write log10 or log2, whichever is meant",
    "ld": "write log2",
    "lb": "write log2",
    "log1p": "write log(1 + a)",
    "expm1": "write exp(a) - 1",
    "exp2": "write 2**a",
    "exp10": "write 10**a",
    "log_10": "write log10",
    "log_2": "write log2",
    "log_e": "write log",
    "cot": "write 1/tan(a)",
    "sec": "write 1/cos(a)",
    "csc": "write 1/sin(a)",
    "asinh": "write log(a + sqrt(a**2 + 1))",
    "acosh": "write log(a + sqrt(a**2 - 1))",
    "atanh": "write log((1 + a)/(1 - a))/2",
    "sinc": "write sin(a)/a",
    "sind": "angles are in radians: write sin(pi/180*a)",
    "cosd": "angles are in radians: write cos(pi/180*a)",
    "tand": "angles are in radians: write tan(pi/180*a)",
    "rad": "write pi/180*a",
    "radians": "write pi/180*a",
    "deg": "write 180/pi*a",
    "degrees": "write 180/pi*a",
    "logit": "write log(p/(1 - p))",
    "expit": "write 1/(1 + exp(-a))",
    "sigmoid": "write 1/(1 + exp(-a))",
    "dot": "write the products of the coordinates out: a_x*b_x + a_y*b_y",
    "cross": "write the products of the coordinates out: a_x*b_y - a_y*b_x",
    "dist": "write norm(a, b) for the distance of two points",
    "distance": "write norm(a, b) for the distance of two points",
    "hypot": "write sqrt(a**2 + b**2)",
    "prod": "write the factors out with *",
    "product": "write the factors out with *",
    "total": "write sum(p) for p1 + p2 + ... + pk",
    "avg": "write mean(a, b)",
    "average": "write mean(a, b)",
    "der": _DERIVATIVE,
    **dict.fromkeys(("grad", "diff", "derivative", "deriv", "dt"), _DERIVATIVE),
    "div": "write the derivatives out: d(u, x) + d(v, y)",
    "curl": "write the derivatives out: d(v, x) - d(u, y)",
    "laplacian": "write the derivatives out: d(u, x, 2) + d(u, y, 2)",
    **dict.fromkeys(("integral", "integrate", "int"), _INTEGRAL),
    "atan2": "write the law by its parts: y = r*sin(phi); x = r*cos(phi). (atan(y/x) is the same only where x > 0)",
    "arctan2": "write the law by its parts: y = r*sin(phi); x = r*cos(phi). (atan(y/x) is the same only where x > 0)",
}
_CORNERS = (
    "max", "min", "maximum", "minimum", "sign", "floor", "ceil", "round",
    "mod", "if", "where", "clip", "median", "heaviside", "step",
)  # fmt: skip
_CORNER = (
    "has corners or jumps, which a law imposed by linearisation cannot follow; state the law on each side with a "
    "FunctionConstraint, or make the value of {name}(...) an output or a data column of its own"
)
# Words between two operands.
_WORDS = {
    **{"plus": "write +", "minus": "write -", "times": "write *", "over": "write /", "equals": "write =", "is": "write ="},
    **dict.fromkeys(("and", "or"), SEVERAL),
    **dict.fromkeys(("if", "else", "where", "for", "when"), "there are no conditions in a formula"),
    **dict.fromkeys(("in", "between", "within"), _RANGE),
    **dict.fromkeys(("approx", "about", "roughly"), _ROUGH),
    **dict.fromkeys(("positive", "nonnegative"), "write a >= 0"),
    **dict.fromkeys(("rising", "increasing", "falling", "decreasing", "monotonic", "monotone"), _SLOPE),
    "mod": "mod has jumps; make its value an output or a data column of its own",
}
_LATEX = {
    **dict.fromkeys(("dot", "ddot", "partial", "nabla"), _DERIVATIVE),
    **dict.fromkeys(("cdot", "times", "ast"), "write *"),
    **dict.fromkeys(("le", "leq", "leqslant"), "write <="),
    **dict.fromkeys(("ge", "geq", "geqslant"), "write >="),
    **dict.fromkeys(("approx", "sim", "simeq"), _ROUGH),
    **dict.fromkeys(("left", "right", "mathrm", "text"), "leave it out"),
    **{"pm": "write +- before the size of the law's error", "sum": _SUM, "int": _INTEGRAL, "in": _RANGE},
}
_NEAR_FUNCTION = 0.8  # similarity at which a function's name can only be a slip of the pen: sine, arcsinus are, sign is not


def hint_for(text: str, position: int) -> str:
    """What to do about the character at this place of a law."""
    character = text[position]
    before = text[:position].rstrip()
    if character == "'":
        if re.search(r"\d$", text[:position]) and re.match(r"\d", text[position + 1 :]):
            return _DIGITS
        return _DERIVATIVE if re.search(r"[\w)]$", text[:position]) else _QUOTES
    if character == "[" and re.search(r"\b(in|between|within)$", before):
        return _RANGE
    if character == "\\" and (command := re.match(r"\\([a-zA-Z]+)", text[position:])):
        quotient = re.match(r"\\d?frac\s*\{\s*(d|\\partial)\b|\\d?frac\s*\{\s*d[a-zA-Z]", text[position:])
        hint = _DERIVATIVE if quotient else _LATEX.get(command[1])
        return f"LaTeX is not read: {hint}" if hint else _CHARACTERS[character]
    if character == ".":
        if text[position : position + 2] == "..":
            return _SUM
        if re.match(r"\.(diff|dt|derivative)\b", text[position:]):
            return _DERIVATIVE
        return "there is no attribute access in a formula; write exp(z), not np.exp(z), and 0.5 or .5 for numbers"
    if character == "^" or (character == "{" and before.endswith("^")):
        return "group with round brackets: z^(2)"
    return _CHARACTERS.get(character, _OTHER)


def unknown_function(name: str) -> str:
    """The message for a function that a formula does not have."""
    if name.lower() in _CORNERS:
        return f"{name!r} {_CORNER.format(name=name)}"
    if name.lower() == "log":
        return f"unknown function {name!r}; write log for the natural logarithm, log10 for that of base 10"
    if name in ("d", "diff", "Derivative"):  # known in a law, so this is a bound
        return _SLOPE
    if name == "D":
        return f"unknown function 'D'; {_DERIVATIVE}"
    plain = unicodedata.normalize("NFKC", name)
    if plain != name and plain in FUNCTIONS:
        return f"unknown function {name!r}; write {plain}"
    if name.lower() in _INSTEAD:
        return f"unknown function {name!r}; {_INSTEAD[name.lower()]}"
    near = difflib.get_close_matches(name.lower(), FUNCTIONS, n=1, cutoff=_NEAR_FUNCTION)
    return f"unknown function {name!r}" + (
        f" - did you mean {near[0]!r}?" if near else f"; known are {', '.join(FUNCTIONS)}"
    )


def missing_operator(before: str, word: str, text: str = "") -> str:
    """The message for two operands in a row: ``before`` and ``word`` are their texts, ``text`` all that stands before."""
    if before in ("Σ", "∑"):
        return f"this is not read as a sum; {_SUM}"
    if re.search(r"\bd\s*/\s*d\w+\s*$", text):
        return _DERIVATIVE
    if before in (*FUNCTIONS, *ALIASES) or before in _INSTEAD:
        return f"the argument of {before} needs brackets: write {before}(...)"
    if word.lower() in _WORDS:
        return f"an operator is missing before {word!r}; {_WORDS[word.lower()]}"
    number = before[:1].isdigit()
    if number and word.strip("_").isdigit():
        return _DIGITS
    more = "units are left out" if number else "a name with spaces is quoted with backticks: `CO2 (ppm)`"
    return f"an operator is missing before this; products are written with *, e.g. 2*z; {more}"


def near_name(name: str, known: Iterable[str]) -> str:
    """The one known name that ``name`` can be a slip of the pen of, or "".

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


def unknown_name(name: str, known: Sequence[str], can_be_constant: bool = True) -> str:
    """The message for a name that stands for nothing: a likely correction, or how to give it a meaning."""
    shown = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
    # ż and z̈ are z with marks on it.
    stem = unicodedata.normalize("NFD", name).rstrip("\u0307\u0308").lstrip("dΔδ∂")
    if name.startswith(("Σ", "∑")):
        return f"unknown name {name!r}; {_SUM}; known are {shown}"
    if near := near_name(name, known):
        return f"unknown name {name!r} - did you mean {near!r}?"
    if product := as_product(name, known):
        return f"unknown name {name!r}; write {product} for a product"
    by = re.fullmatch(r"(.+)_(\w+)", name)
    slope = name.removesuffix("dot") if name.endswith("dot") else by[1] if by and by[2] in known else stem
    if name != slope and slope in known:
        return f"unknown name {name!r}; {_DERIVATIVE}; known are {shown}"
    plain = name if name.isidentifier() else "E"
    remedy = (
        f'; if it is a constant, give its value: constants={{"{plain}": 1.5}} in Python, --constant {plain}=1.5 on the '
        'command line; "unknown" has it estimated, and the name of a data column takes it from there'
    )
    return f"unknown name {name!r}; known are {shown}{remedy if can_be_constant else ''}"
