"""From the text of a law to a law: syntax, names, normal form, checks and wording."""

from sumgp.laws.formula.constraint import FormulaConstraint, parse_constraint
from sumgp.laws.formula.explain import constant_names, explain_law, in_plain_words, where_held
from sumgp.laws.formula.hints import near_name
