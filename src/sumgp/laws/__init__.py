"""Laws: linear, sums of transformed outputs, general functions, and formulas that become the most specific of them."""

from sumgp.laws.bounded import BoundedLaw, check_bounds
from sumgp.laws.bounds import Bounds, Inequalities, Limits
from sumgp.laws.columns import HIGHEST_ORDER, Derivative, varying_columns
from sumgp.laws.combination import AllOf, BoundConstraint, bind_constraint, combine, with_bounds
from sumgp.laws.eliminated import LatentMap, SplitLaw, between_outputs, latent_map, split_law
from sumgp.laws.elimination import Operator, Potential, as_operator, constant_rows, find_potential
from sumgp.laws.formula import FormulaConstraint, explain_law, parse_constraint, where_held
from sumgp.laws.function_law import FunctionConstraint, FunctionLaw
from sumgp.laws.geometry import Bend, Projection, UnitFreeLaw, bend, make_unit_free, mean_on_law, project, projected_draws
from sumgp.laws.law import Constraint, Law, SumLaw
from sumgp.laws.learnt import LearntError, learnt_errors, with_errors
from sumgp.laws.points import (
    UNKNOWN_VARIANCE,
    Imbalance,
    LawSetup,
    RightSides,
    TaskRows,
    check_law,
    complete_scaling,
    linear_rows,
    measured_imbalance,
    set_up_law,
    task_rows,
    typical_rows,
    unit_free_law,
)
from sumgp.laws.shared_constants import rival_constants
from sumgp.laws.sizes import column_effects
from sumgp.laws.sums import LinearConstraint, SumConstraint, Term, Unknown
