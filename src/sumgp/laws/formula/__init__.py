"""From the text of a law to a law: syntax, names, normal form, checks and wording."""

from sumgp.laws.bounds import ALL
from sumgp.laws.formula.constraint import FormulaConstraint, parse_constraint
from sumgp.laws.formula.explain import explain_law, where_held
from sumgp.laws.formula.hints import near_name
from sumgp.laws.formula.syntax import parse_bounds, parse_equation, split_laws
from sumgp.laws.formula.tree import BUILT_IN, Name, calls, mentioned

__all__ = [
    "ALL",
    "BUILT_IN",
    "FormulaConstraint",
    "Name",
    "calls",
    "explain_law",
    "mentioned",
    "near_name",
    "parse_bounds",
    "parse_constraint",
    "parse_equation",
    "split_laws",
    "where_held",
]
