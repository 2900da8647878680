"""Laws: linear, sums of transformed outputs, general functions, and formulas that become the most specific of them."""

from sumgp.constraints.base import Constraint, Unknown
from sumgp.constraints.combine import AllOf, combine
from sumgp.constraints.formula import FormulaConstraint, explain_law, parse_constraint
from sumgp.constraints.functions import FunctionConstraint
from sumgp.constraints.law import FunctionLaw, Law, SumLaw
from sumgp.constraints.linear import LinearConstraint
from sumgp.constraints.sums import SumConstraint, Term

__all__ = [
    "AllOf",
    "Constraint",
    "FormulaConstraint",
    "FunctionConstraint",
    "FunctionLaw",
    "Law",
    "LinearConstraint",
    "SumConstraint",
    "SumLaw",
    "Term",
    "Unknown",
    "combine",
    "explain_law",
    "parse_constraint",
]
