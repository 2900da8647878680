"""Laws: linear, sums of transformed outputs, general functions, and formulas that become the most specific of them."""

from sumgp.laws.combination import AllOf, combine
from sumgp.laws.constraint import Constraint, Unknown
from sumgp.laws.formula import FormulaConstraint, explain_law, parse_constraint
from sumgp.laws.functions import FunctionConstraint
from sumgp.laws.geometry import Bend, UnitFreeLaw, bend, make_unit_free, project
from sumgp.laws.imbalance import Imbalance, measured_imbalance
from sumgp.laws.law import FunctionLaw, Law, SumLaw
from sumgp.laws.learnt import LearntError, learnt_errors, with_errors
from sumgp.laws.linear import LinearConstraint
from sumgp.laws.points import (
    LawSetup,
    RightSides,
    TaskRows,
    check_law,
    complete_scaling,
    independent_rows,
    linear_rows,
    set_up_law,
    task_rows,
    typical_rows,
)
from sumgp.laws.sums import SumConstraint, Term

__all__ = [
    "AllOf",
    "Bend",
    "Constraint",
    "FormulaConstraint",
    "FunctionConstraint",
    "FunctionLaw",
    "Imbalance",
    "Law",
    "LawSetup",
    "LearntError",
    "LinearConstraint",
    "RightSides",
    "SumConstraint",
    "SumLaw",
    "TaskRows",
    "Term",
    "UnitFreeLaw",
    "Unknown",
    "bend",
    "check_law",
    "combine",
    "complete_scaling",
    "explain_law",
    "independent_rows",
    "learnt_errors",
    "linear_rows",
    "make_unit_free",
    "measured_imbalance",
    "parse_constraint",
    "project",
    "set_up_law",
    "task_rows",
    "typical_rows",
    "with_errors",
]
