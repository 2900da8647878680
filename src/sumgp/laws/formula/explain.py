"""What a law was understood to be, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sumgp.laws.bounds import ALL
from sumgp.laws.eliminated import split_law
from sumgp.laws.formula.derivatives import quotient_names
from sumgp.laws.formula.syntax import read_laws, split_laws
from sumgp.laws.formula.tree import BUILT_IN, UNKNOWN, Constant, Name, calls, mentioned
from sumgp.laws.law import Law, SumLaw


def explain_law(law: Law) -> str:
    """Several lines: kind and terms as understood, data columns needed, and the strategy chosen for it and why."""
    lines = [law.explain()]
    if law.extra_columns:
        lines.append("data columns needed, also for predictions: " + ", ".join(law.extra_columns))
    lines += [f"{label}: {place}" for label, place in zip(law.labels, where_held(law), strict=True) if law.derivatives]
    return "\n".join([*lines, f"strategy: {_strategy(law)}"])


def where_held(law: Law) -> tuple[str, ...]:
    """Of each row, where it holds: everywhere by construction, at prediction points, or at points of a grid."""
    split = split_law(law)
    if split is not None:
        kept = "holds at every prediction point"
        built = "holds everywhere, by construction"
        if split.rest is not None:
            built = "holds everywhere, up to the small step that brings predictions onto the other laws"
        return tuple(built if r in split.eliminated else kept for r in range(law.n_rows))
    if law.derivatives:
        return ("holds at the data, on a grid between them and at every prediction point (collocation)",) * law.n_rows
    return ("holds at every prediction point",) * law.n_rows


def _strategy(law: Law) -> str:
    split = split_law(law)
    if law.derivatives and split is None:
        return "Collocated, because its derivatives cannot be eliminated"
    if split is not None:
        return "Linearized, on a prior that obeys the laws which hold everywhere"
    if not isinstance(law, SumLaw):
        return "Linearized, because a term is not a transform of a single output"
    if law.is_linear:
        return "Conditioned, because the law is linear: conditioning the prior on it is exact"
    names = law.column_names
    curved = [transform.label(names[column]) for column, transform in law.columns if not transform.is_identity]
    verb = "is" if len(curved) == 1 else "are"
    return f"Linearized, because {', '.join(curved)} {verb} not linear; Transformed is possible too"


def constant_lines(constants: Mapping[str, Constant]) -> list[str]:
    """One line for each constant: its value, or where that comes from."""

    def phrase(value: Constant) -> str:
        if callable(value):
            return "a function of the inputs"
        if isinstance(value, float):
            return f"{value:g}"
        return "unknown, to be estimated" if value == UNKNOWN else f"the data column {value!r}"

    return [f"constant {name}: {phrase(value)}" for name, value in constants.items()]


def constant_names(law: str, outputs: Sequence[str], inputs: Sequence[str]) -> list[str]:
    """Names in a law that are neither columns in use, nor built in, nor families, points or derivatives of such columns."""
    read, found = read_laws(split_laws(law)), []
    for side in (side for e in (*read.equations, *read.bounds) for side in (e.left, e.right)):
        grouped = {
            argument.name
            for function in ("sum", "norm", "mean")
            for call in calls(side, function)
            for argument in call.arguments
            if isinstance(argument, Name) and any(o.startswith(argument.name) for o in outputs)
        }
        names = mentioned(side)
        apart = grouped | quotient_names(names, outputs, inputs)
        found += [name for name in names if name not in apart]
    return [name for name in dict.fromkeys(found) if name not in (*outputs, *inputs, *BUILT_IN, ALL)]


def in_plain_words(law: Law, inputs: Sequence[str]) -> list[str]:
    """What the law asks of predictions, a sentence a line, without terms of the method."""
    lines = []
    for row, (label, held) in enumerate(zip(law.labels, where_held(law), strict=True)):
        lines.append(f"{label}: {(*law.explain_noise(row), held)[0]}.")
    for d in law.derivatives:
        by = " and ".join(name for name, order in zip(inputs, d.orders, strict=False) if order)
        rate = "the rate at which" if d.order == 1 else "how fast the rate changes at which"
        lines.append(f"{d.name} is {rate} {law.outputs[d.output]} changes with {by}.")
    if law.unknowns:
        lines.append(f"Estimated from the data, with an interval: {', '.join(law.unknowns)}.")
    if law.extra_columns:
        lines.append(f"Taken from columns, which are needed at prediction points too: {', '.join(law.extra_columns)}.")
    if outside := law.outputs_outside():
        lines.append(f"Not in the law, but fitted along: {', '.join(outside)}.")
    return lines
