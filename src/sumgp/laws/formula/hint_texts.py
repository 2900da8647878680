"""What to write in place of characters, functions and words that a formula does not have, from ``hints.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources

FUNCTIONS = (
    "sqrt", "exp", "log", "log10", "log2", "sin", "cos", "tan", "asin", "acos",
    "atan", "sinh", "cosh", "tanh", "abs", "sum", "mean", "norm",
)  # fmt: skip

# Other names of functions.
ALIASES = {"ln": "log", "arcsin": "asin", "arccos": "acos", "arctan": "atan"}

_READ = tomllib.loads(resources.files("sumgp.laws.formula").joinpath("hints.toml").read_text(encoding="utf-8"))
_TEXTS = _READ["texts"]


def _by_word(hints: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Word -> hint, where a hint may be the name of one of the texts."""
    return {word: _TEXTS.get(hint, hint) for hint, words in hints.items() for word in words}


CHARACTERS, INSTEAD, WORDS, LATEX = (_by_word(_READ[name]) for name in ("characters", "instead", "words", "latex"))
QUOTES, DERIVATIVE, SUM, DIGITS, ROUGH = (_TEXTS[name] for name in ("quotes", "derivative", "sum", "digits", "rough"))
RANGE, SEVERAL, SLOPE, LENGTH, CONDITION = (_TEXTS[n] for n in ("range", "several", "slope", "length", "condition"))
ROWS, OTHER, CORNER = (_TEXTS[name] for name in ("rows", "other", "corner"))
REACTION = f"is not part of a formula; {_TEXTS['arrow']}"
CORNERS = (
    "max", "min", "maximum", "minimum", "sign", "floor", "ceil", "round",
    "mod", "if", "where", "clip", "median", "heaviside", "step",
)  # fmt: skip
GREEK = (
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "kappa", "lambda", "mu",
    "nu", "xi", "rho", "sigma", "tau", "phi", "chi", "psi", "omega",
)  # fmt: skip
