"""What a law was understood to be, in words."""

from __future__ import annotations

from sumgp.laws.law import Law, SumLaw


def explain_law(law: Law, text: str = "") -> str:
    """Several lines: the text, kind and terms as understood, data columns needed, and the strategy chosen for it and why."""
    lines = [f"law: {text}"] if text else []
    lines.append(law.explain())
    if law.extra_columns:
        lines.append("data columns needed, also for predictions: " + ", ".join(law.extra_columns))
    return "\n".join([*lines, f"strategy: {_strategy(law)}"])


def _strategy(law: Law) -> str:
    if not isinstance(law, SumLaw):
        return "Linearized, because a term is not a transform of a single output"
    if law.is_linear:
        return "Conditioned, because the law is linear: conditioning the prior on it is exact"
    names = law.outputs + law.unknowns
    curved = [transform.label(names[column]) for column, transform in law.columns if not transform.is_identity]
    verb = "is" if len(curved) == 1 else "are"
    return f"Linearized, because {', '.join(curved)} {verb} not linear; Transformed is possible too"
