"""The error up to which a law holds, at the end of its text: ``Rn = H + LE + G +- 50``, ``... ± unknown``."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from sumgp.laws.formula.hints import Place

TO_BE_ESTIMATED = math.nan  # standard deviation of a law's error that the data are to tell
TOLERANCE_SIGNS = ("+/-", "+-", "±")
_SIGN = re.compile(r"`[^`]*`|(?P<sign>\+/-|\+-|±)")
_NUMBER = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
SOFT = "may stand only once, at the end of a law, followed by the size of its error: a + b = 1 +- 0.5"
LARGEST = 1e150  # squares of larger numbers are no doubles


class Tolerant(NamedTuple):
    """A law without its error, and the standard deviation of that: 0 = exact, NaN = to be estimated."""

    law: str
    sd: float


def split_tolerance(text: str) -> Tolerant:
    """Cut the error off the text of one law; ConstraintError with a caret where it is no number of zero or more."""
    signs = [match for match in _SIGN.finditer(text) if match["sign"]]
    if not signs:
        return Tolerant(text, 0.0)
    last = signs[-1]
    law, size = text[: last.start()], text[last.end() :]
    place = Place(text, last.start(), len(text))
    if "=" not in law or len(signs) > 1:
        raise place.error(f"{last['sign']} {SOFT}")
    if size.strip().lower() == "unknown":
        return Tolerant(law.rstrip(), TO_BE_ESTIMATED)
    if law.rstrip().endswith("(") and size.rstrip().endswith(")"):
        raise place.error(f"leave out the brackets: the law ends in {last['sign']} and the size of its error")
    if not _NUMBER.match(size.strip()) or not float(size) < LARGEST:
        raise place.error(
            f"after {last['sign']} a number is expected, the standard deviation of the law's error in the law's units (not "
            "per cent), or the word unknown, to have it estimated; for two values of a root give the law squared"
        )
    return Tolerant(law.rstrip(), float(size))
