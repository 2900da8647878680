"""Bounds written as formulas: the word ``all``, and rows that must be linear in the outputs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sumgp.laws.bounds import ALL
from sumgp.laws.formula.hints import Place
from sumgp.laws.formula.syntax import parse_bounds
from sumgp.laws.formula.tree import Equation, Names, names_in
from sumgp.laws.law import Law, SumLaw


def for_all(bound: Equation, names: Names) -> tuple[Equation, ...]:
    """The bound itself, or one for each output where it says ``all``."""
    places = [leaf.place for side in (bound.left, bound.right) for leaf in names_in(side) if leaf.name == ALL]
    if not places or ALL in names.known:
        return (bound,)
    parts = parse_bounds(bound.text)
    position = next(i for i, part in enumerate(parts) if (part.left, part.right) == (bound.left, bound.right))
    return tuple(parse_bounds(_with_name(bound.text, places, name))[position] for name in names.outputs)


def _with_name(text: str, places: Sequence[Place], name: str) -> str:
    quoted = name if name.isidentifier() else f"`{name}`"
    for place in sorted(places, key=lambda place: -place.start):
        text = text[: place.start] + quoted + text[place.end :]
    return text


def linear_row(law: Law, text: str) -> SumLaw:
    """The law of left = right as a row left - right <= 0; ConstraintError where it is not linear in the outputs."""
    whole = Place(text, 0, len(text))
    if law.unknowns:
        raise whole.error(
            f"a bound cannot contain the estimated constant {law.unknowns[0]!r}; give its value, or leave it out"
        )
    if not isinstance(law, SumLaw) or not law.is_linear:
        curved = max(re.split("[<>≤≥]=?", text), key=len).strip()
        raise whole.error(
            "a bound must be linear in the outputs; make the curved part an output of its own, a column c without values, "
            f"by the law c = {curved}, and bound c"
        )
    return law
