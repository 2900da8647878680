"""What a law was understood to be, in words."""

from __future__ import annotations

from collections.abc import Mapping

from sumgp.laws.eliminated import split_law
from sumgp.laws.formula.tree import UNKNOWN, Constant
from sumgp.laws.law import Law, SumLaw


def explain_law(law: Law, text: str = "") -> str:
    """Several lines: the text, kind and terms as understood, data columns needed, and the strategy chosen for it and why."""
    lines = [f"law: {text}"] if text else []
    lines.append(law.explain())
    if law.extra_columns:
        lines.append("data columns needed, also for predictions: " + ", ".join(law.extra_columns))
    lines += [f"{label}: {place}" for label, place in zip(law.labels, where_held(law), strict=True) if law.derivatives]
    return "\n".join([*lines, f"strategy: {_strategy(law)}"])


def where_held(law: Law) -> tuple[str, ...]:
    """Of each row, where it holds exactly: everywhere by construction, at predicted points, or at points of a grid."""
    split = split_law(law)
    if split is not None:
        kept = "holds at every predicted point"
        return tuple("holds everywhere, by construction" if r in split.eliminated else kept for r in range(law.n_rows))
    if law.derivatives:
        return ("holds at the data, on a grid between them and at every predicted point (collocation)",) * law.n_rows
    return ("holds at every predicted point",) * law.n_rows


def _strategy(law: Law) -> str:
    split = split_law(law)
    if law.derivatives and split is None:
        return "Collocated, because its derivatives cannot be eliminated"
    if split is not None:
        return "Linearized, because the other laws follow from derivatives of free functions"
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
