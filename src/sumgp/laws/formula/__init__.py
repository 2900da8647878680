"""From the text of a law to a law: syntax, names, normal form, checks and wording."""

from sumgp.laws.formula.constraint import FormulaConstraint, explain_law, parse_constraint

__all__ = [
    "FormulaConstraint",
    "explain_law",
    "parse_constraint",
]
